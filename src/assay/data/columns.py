"""Data in columns, one row a sample: what arrays, frames, tables and folders of images become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from assay.errors import ConfigError, ShapeError, describe

TARGETS = ("labels", "label", "target", "targets", "y")
"""What the target is usually called."""
BATCH_SIZE = 64


class Columns(Dataset[Any]):
    """A data set whose batches are mappings from names to the rows of columns, or tuples of these.

    Args:
        parts: tensors with a row a sample, arrays of strings, or columns whose `rows(index)` makes them. What
            comes without a name of its own (``""``) is a mapping, and joins the batch.
        is_tuple: whether batches are tuples in the order of the parts.

    Attributes:
        content_digest: of the file or folder that they are in; empty where nobody needs it.
    """

    def __init__(self, parts: Mapping[str, Any], is_tuple: bool = False) -> None:
        self.parts, self.is_tuple = dict(parts), is_tuple
        self.content_digest = ""
        self._size = len(next(iter(self.parts.values()))) if self.parts else 0

    @property
    def is_in_memory(self) -> bool:
        """Whether all rows are there, and none are made when they are needed."""
        return all(isinstance(part, Tensor | np.ndarray) for part in self.parts.values())

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Any:
        batch = self.__getitems__([index])
        return tuple(part[0] for part in batch) if self.is_tuple else {name: part[0] for name, part in batch.items()}

    def __getitems__(self, index: list[int]) -> Any:
        """A whole batch at once, as torch's loaders ask for it."""
        batch: dict[str, Any] = {}
        for name, part in self.parts.items():
            rows = _rows(part, index)
            batch |= {name: rows} if name else rows
        return tuple(batch.values()) if self.is_tuple else batch


class FrameRows:
    """Rows of some columns of a frame, as a frame."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __len__(self) -> int:
        return len(self.frame)

    def rows(self, index: list[int]) -> Any:
        """A frame of these rows."""
        return self.frame.iloc[index] if hasattr(self.frame, "iloc") else self.frame[index]


def _rows(part: Any, index: list[int]) -> Any:
    if isinstance(part, Tensor):
        return part[index]
    return part[index].tolist() if isinstance(part, np.ndarray) else part.rows(index)


def as_is(batch: Any) -> Any:
    """What a loader does with a batch that is one already; named, so that workers can be sent it."""
    return batch


@dataclass(frozen=True)
class Data:
    """Data that were opened, and how a batch of them is read; `assay.evaluate` takes it.

    Attributes:
        data: a loader, or anything else that `assay.evaluate` takes.
        inputs: the part that the model gets, where it is known.
        target: the part that is the target, where it is known.
        ids: the part that tells samples apart, where it is known.
        labels: the targets of all samples, where they are known.
        classes: the names of the classes, in the order of their numbers.
        notes: what a reader of the report must know.
        columns: by name, the parts that are the named columns of the metrics.
        strings: by name, the column of strings that a named column has the numbers of.
        path: the file or the folder; None where the data are in none.
    """

    data: Any
    inputs: Any = None
    target: Any = None
    ids: Any = None
    labels: Tensor | None = None
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    strings: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None


def loader(columns: Columns, batch_size: int | None, workers: int) -> DataLoader[Any]:
    """A loader that reads whole batches, of 64 samples by default."""
    return DataLoader(columns, batch_size=batch_size or BATCH_SIZE, num_workers=workers, collate_fn=as_is)


def check_lengths(parts: Mapping[str, Any], where: str, do: str = "Name the parts that belong together") -> None:
    """Raise where columns have not as many rows as each other, or none."""
    sizes = {name: len(part) for name, part in parts.items()}
    if len(set(sizes.values())) > 1:
        got = ", ".join(f"{name} with {size:,}" for name, size in sizes.items())
        raise ShapeError(describe(where, f"rows: {got}", "as many of each", do))
    if not any(sizes.values()):
        raise ConfigError(describe(where, "no samples", "one or more", "Check what was written there"))
