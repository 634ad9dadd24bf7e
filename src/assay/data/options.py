"""What a caller says of a file or a folder, and what a model takes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from assay.errors import ConfigError, describe


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """How a file or a folder becomes data. `assay evaluate` has options of the same names.

    Args:
        target: the column of the target; None for one of a usual name, "" for none.
        inputs: the columns that the model is passed by their names; by default all others become one tensor.
        features: the columns that become one float tensor; p* stands for all that begin with p.
        text: one or two columns of strings that go through the tokenizer.
        weights: the column of the weights of samples; empty for none.
        ids: the column of the ids of samples; empty for none.
        cluster: the column of the clusters of samples; empty for none.
        others: more columns that a batch has, such as those that slices are made of.
        columns: by name, the columns that metrics take.
        classes: the names of the classes, in the order of the model's outputs.
        image_size: the square in the middle of an image, in pixels; 0 for the whole image.
        image_resize: what the shorter side of an image becomes before that; 0 for image_size.
        image_mode: RGB or L.
        mean: what is subtracted from each channel of an image.
        std: what each channel of an image is then divided by.
        batch_size: samples a batch; None for 64.
        num_workers: processes that load data; 0 for this one.
    """

    target: str | None = None
    inputs: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    weights: str = ""
    ids: str = ""
    cluster: str = ""
    others: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    image_size: int = 0
    image_resize: int = 0
    image_mode: str = "RGB"
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    batch_size: int | None = None
    num_workers: int = 0

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 1:
            raise ConfigError(describe("batch_size", self.batch_size, "an integer of at least 1", "Write 64"))
        if self.num_workers < 0:
            raise ConfigError(describe("num_workers", self.num_workers, "0 or more", "Write 0 for none"))


@dataclass(frozen=True, kw_only=True)
class ModelNeeds:
    """What a model and its metrics take of data.

    Attributes:
        dtype: of the floats that it takes; None for any.
        features: the names of the columns that it was fitted on; empty where it takes a matrix.
        classes: what the labels of the target are, in the order of their numbers; empty for numbers as they are.
        columns: the names of the columns that metrics take.
        takes_raw: whether metrics take strings.
        is_estimator: whether it is an estimator.
        is_identity: whether its predictions are its inputs.
        tokenizer: gives its tokenizer and how many tokens it takes at most (None for any number); None where it has
            none.
    """

    dtype: torch.dtype | None = None
    features: tuple[str, ...] = ()
    classes: tuple[Any, ...] = ()
    columns: frozenset[str] = frozenset()
    takes_raw: bool = False
    is_estimator: bool = False
    is_identity: bool = False
    tokenizer: Callable[[], tuple[Any, int | None]] | None = None

    @property
    def float_dtype(self) -> torch.dtype:
        """The dtype of floats in tables: that of the model; else float32, and float64 of predictions and estimators."""
        return self.dtype or (torch.float64 if self.is_identity or self.is_estimator else torch.float32)

    def labels(self, options: DataOptions) -> tuple[Any, ...]:
        """What the labels of the target are: those of an estimator, or the names of the classes that are known."""
        return self.classes if self.is_estimator and self.classes else options.classes or self.classes
