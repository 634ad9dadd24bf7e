"""Columns whose samples have any number of items, such as images with their boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import move

Lengths: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ragged:
    """A column whose samples have groups of items of any number, such as detections and truths.

    Lengths are known on the CPU without reading a value, as they come from shapes. Nobody may change the tensors.

    Args:
        items: for each group its fields, each with the items of all samples one after the other.
        lengths: for each group how many items each sample has.
    """

    items: Mapping[str, Mapping[str, Tensor]]
    lengths: Mapping[str, Lengths]

    def __len__(self) -> int:
        return len(next(iter(self.lengths.values())))

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for fields in self.items.values() for tensor in fields.values())

    @property
    def device(self) -> torch.device:
        """The device of the first group of items."""
        return next(iter(next(iter(self.items.values())).values())).device

    @property
    def layout(self) -> tuple[object, ...]:
        """What columns must have in common to be concatenated."""
        return tuple((each.dtype, each.device) for fields in self.items.values() for each in fields.values())

    def rows(self, rows: slice) -> Ragged:
        """Successive samples."""
        starts = {group: np.append(0, np.cumsum(lengths)) for group, lengths in self.lengths.items()}
        first, stop, _ = rows.indices(len(self))
        items = {group: slice(ends[first], ends[max(first, stop)]) for group, ends in starts.items()}
        return self._selected(lambda group, tensor: tensor[items[group]], lambda lengths: lengths[rows])

    def select(self, order: NDArray[np.int64]) -> Ragged:
        """The samples at these positions."""
        index = {group: torch.from_numpy(items_of(lengths, order)) for group, lengths in self.lengths.items()}
        return self._selected(
            lambda group, tensor: tensor.index_select(0, move(index[group], tensor.device)),
            lambda lengths: lengths[order],
        )

    @staticmethod
    def cat(parts: Sequence[Ragged]) -> Ragged:
        """The samples of columns with equal layouts, one after the other."""
        first = parts[0]
        items = {
            group: {name: _together([part.items[group][name] for part in parts]) for name in fields}
            for group, fields in first.items.items()
        }
        return Ragged(items, {group: np.concatenate([part.lengths[group] for part in parts]) for group in items})

    def _selected(self, items: Callable[[str, Tensor], Tensor], lengths: Callable[[Lengths], Lengths]) -> Ragged:
        return Ragged(
            {group: {n: items(group, each) for n, each in fields.items()} for group, fields in self.items.items()},
            {group: lengths(each) for group, each in self.lengths.items()},
        )


def _together(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one after the other; those without rows may be of any dtype."""
    return torch.cat([each for each in tensors if len(each)] or list(tensors[:1]))


def items_of(lengths: Lengths, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The positions of the items of samples, in another order of the samples.

    Example:
        >>> items_of(np.array([2, 0, 1]), np.array([2, 0]))
        array([2, 0, 1])
    """
    starts = np.cumsum(lengths) - lengths
    chosen = lengths[order]
    ends = np.cumsum(chosen)
    return np.repeat(starts[order] - ends + chosen, chosen) + np.arange(int(chosen.sum()))
