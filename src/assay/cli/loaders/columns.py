"""Data in columns, one row a sample: what tables, arrays and folders of images become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from assay.errors import ConfigError, ShapeError, describe


class Columns(Dataset[Any]):
    """A data set whose batches are mappings from names to the rows of columns.

    Args:
        parts: tensors with a row a sample, arrays of texts, or columns whose `rows(index)` makes them. What
            comes without a name of its own (``""``) is a mapping, and joins the batch.

    Attributes:
        content_digest: of the file or folder that they are in; empty where nobody needs it.
    """

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self.parts = dict(parts)
        self.content_digest = ""
        self._size = len(next(iter(self.parts.values()))) if self.parts else 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Any:
        return {name: part[0] for name, part in self.__getitems__([index]).items()}

    def __getitems__(self, index: list[int]) -> Any:
        """A whole batch at once, as torch's loaders ask for it."""
        batch: dict[str, Any] = {}
        for name, part in self.parts.items():
            rows = _rows(part, index)
            batch |= {name: rows} if name else rows
        return batch


def _rows(part: Any, index: list[int]) -> Any:
    if isinstance(part, Tensor):
        return part[index]
    return part[index].tolist() if isinstance(part, np.ndarray) else part.rows(index)


def as_is(batch: Any) -> Any:
    """What a loader does with a batch that is one already; named, so that workers can be sent it."""
    return batch


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
