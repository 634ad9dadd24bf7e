"""Data in columns, one row a sample: what arrays, frames, tables and folders of images become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import Dataset


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


def _rows(part: Any, index: list[int]) -> Any:
    if isinstance(part, Tensor):
        return part[index]
    return part[index].tolist() if isinstance(part, np.ndarray) else part.rows(index)


def as_is(batch: Any) -> Any:
    """What a loader does with a batch that is one already; named, so that workers can be sent it."""
    return batch
