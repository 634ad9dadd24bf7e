"""Data that were named on the command line, as `assay.evaluate` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.utils.data import DataLoader

from assay.errors import ConfigError, ShapeError, describe
from assay.evaluation.data.columns import Columns, as_is


@dataclass(frozen=True)
class Data:
    """Data that were named, and how a batch of them is read.

    Attributes:
        data: what `assay.evaluate` takes.
        inputs: the part that the model gets, where it is known.
        target: the part that is the target, where it is known.
        ids: the part that tells samples apart, where it is known.
        labels: the targets of all samples, where they are known.
        classes: the names of the classes, in the order of their numbers.
        notes: what a reader of the report must know.
        is_made: whether a function made them, which may give others each time.
        columns: by name, the parts that are the named columns of the metrics.
    """

    data: Any
    inputs: Any = None
    target: Any = None
    ids: Any = None
    labels: Tensor | None = None
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_made: bool = False
    columns: Mapping[str, Any] = field(default_factory=dict)


_BATCH_SIZE = 64


def loader(columns: Columns, batch_size: int | None, workers: int) -> DataLoader[Any]:
    """A loader that reads whole batches, of 64 samples by default."""
    if batch_size is None:
        batch_size = _BATCH_SIZE
    if batch_size < 1:
        raise ConfigError(describe("--batch-size", batch_size, "an integer of at least 1", "Write --batch-size 64"))
    if workers < 0:
        raise ConfigError(describe("--num-workers", workers, "0 or more", "Write --num-workers 0 for none"))
    return DataLoader(columns, batch_size=batch_size, num_workers=workers, collate_fn=as_is)


def check_lengths(parts: Mapping[str, Any], where: str) -> None:
    """Raise where columns have not as many rows as each other."""
    sizes = {name: len(part) for name, part in parts.items()}
    if len(set(sizes.values())) > 1:
        got = ", ".join(f"{name} with {size:,}" for name, size in sizes.items())
        raise ShapeError(describe(where, f"rows: {got}", "as many of each", "Name the parts that belong together"))
    if not any(sizes.values()):
        raise ConfigError(describe(where, "no samples", "one or more", "Check what was written there"))
