"""The arguments of an update: as tensors, and their metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import move
from assay.native.labels import has_columns
from assay.tally.ragged import Ragged

NO_RAGGED: Mapping[str, Ragged] = MappingProxyType({})

COPIED_BYTES = 1 << 25
"""Rows of more than that (a batch of images) are not copied into another order, but given one by one."""


class Arguments(NamedTuple):
    """The arguments of an update as tensors.

    Attributes:
        tensors: preds, target, weights, and the columns in the order of their names.
        names: those of the columns, in order.
        ragged: the columns whose samples have any number of items; nobody writes into their tensors.
    """

    tensors: Sequence[Tensor | None]
    names: Sequence[str] = ()
    ragged: Mapping[str, Ragged] = NO_RAGGED

    @property
    def preds(self) -> Tensor:
        return preds_of(self)

    def by_name(self) -> dict[str, Tensor | None]:
        """The dense tensors, by the names that an update gives them."""
        return dict(zip(("preds", "target", "weights", *self.names), self.tensors, strict=True))

    def map(self, change: Callable[[Tensor], Tensor]) -> Arguments:
        """The arguments with every dense tensor changed."""
        return Arguments(
            [None if tensor is None else change(tensor) for tensor in self.tensors], self.names, self.ragged
        )

    def rows(self, rows: slice) -> Arguments:
        """Successive samples."""
        dense = self.map(lambda tensor: tensor[rows])
        return dense._replace(ragged={name: each.rows(rows) for name, each in self.ragged.items()})

    def select(self, order: NDArray[np.int64]) -> Arguments:
        """The samples at these positions."""
        index = move(torch.from_numpy(order), self.preds.device)
        dense = self.map(lambda tensor: _selected(tensor, index))
        return dense._replace(ragged={name: each.select(order) for name, each in self.ragged.items()})

    @staticmethod
    def cat(parts: Sequence[Arguments]) -> Arguments:
        """The samples of arguments with equal columns, one after the other."""
        first = parts[0]
        together = zip(*(part.tensors for part in parts), strict=True)
        tensors = [None if each[0] is None else _joined(each) for each in together]
        ragged = {name: Ragged.cat([part.ragged[name] for part in parts]) for name in first.ragged}
        return Arguments(tensors, first.names, ragged)

    def by_code(self, codes: NDArray[np.int64]) -> Iterator[tuple[int, Arguments]]:
        """Each code with the rows that have it, in their order; rows of a large batch come one by one.

        Args:
            codes: integers `(N,)`, one a row.
        """
        if self.nbytes > COPIED_BYTES:
            for row, code in enumerate(codes.tolist()):
                yield code, self.rows(slice(row, row + 1))
            return
        few = len(codes) > 0 and codes.min() >= 0 and codes.max() < 2**16
        order = np.argsort(codes.astype(np.uint16) if few else codes, kind="stable")  # by radix where they are short
        ordered = self.select(order)
        present, starts = np.unique(codes[order], return_index=True)
        for code, start, stop in zip(present, starts, np.append(starts[1:], len(codes)), strict=True):
            yield int(code), ordered.rows(slice(int(start), int(stop)))

    @property
    def nbytes(self) -> int:
        size = 0
        for tensor in self.tensors:  # a sum takes three times as long
            if tensor is not None:
                size += tensor.nbytes
        return size + sum(each.nbytes for each in self.ragged.values()) if self.ragged else size


def preds_of(batch: Arguments) -> Tensor:
    """`batch.preds` where torch may trace: torch 2.10 takes no property of a named tuple in a compiled function."""
    preds = batch.tensors[0]
    assert preds is not None
    return preds


def _selected(tensor: Tensor, index: Tensor) -> Tensor:
    """The rows at these positions; columns that lie one after the other stay so, which takes a tenth of the time."""
    return tensor.t().index_select(1, index).t() if has_columns(tensor) else tensor.index_select(0, index)


def _joined(tensors: tuple[Tensor, ...]) -> Tensor:
    """The rows of several tensors; columns that lie one after the other stay so."""
    if all(map(has_columns, tensors)):
        return torch.cat([each.t() for each in tensors], 1).t()
    return torch.cat(tensors)


def layout_of(batch: Arguments) -> tuple[Any, ...]:
    """All metadata of a batch that is checked, in a form that is quick to make and to compare.

    The bytes of the storage are part of it, up to those that the tensor has: torch itself crashes, or reads what is not
    its own, where a storage was freed or cut.

    Raises:
        RuntimeError: a tensor has no storage, as sparse ones, or no shape, as nested ones.
    """
    tensors, names, _ = batch
    if not names:
        preds, target, weights = tensors
        if type(preds) is Tensor and target is None and weights is None:  # as most are, or as the next ones
            return preds.shape, preds.dtype, preds.device, min(preds.untyped_storage().nbytes(), preds.nbytes)
        other, is_weight = (target, False) if weights is None else (weights, target is None)
        if type(preds) is Tensor and type(other) is Tensor and (weights is None or is_weight):
            return (
                is_weight,
                preds.shape,
                preds.dtype,
                preds.device,
                min(preds.untyped_storage().nbytes(), preds.nbytes),
                other.shape,
                other.dtype,
                other.device,
                min(other.untyped_storage().nbytes(), other.nbytes),
            )
    return *map(_metadata, tensors), *names


def _metadata(tensor: Tensor | None) -> tuple[Any, ...]:
    if not isinstance(tensor, Tensor):  # None, or what no layout has
        return (type(tensor),)
    stored = -1 if type(tensor) is not Tensor else min(tensor.untyped_storage().nbytes(), tensor.nbytes)
    return type(tensor), tensor.shape, tensor.dtype, tensor.device, stored
