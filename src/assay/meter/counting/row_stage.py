"""Rows of small batches, copied one after the other until they are counted together."""

from __future__ import annotations

import math
from ctypes import memmove
from typing import Any

import torch
from torch import Tensor

from assay.devices.placement import outside_inference
from assay.meter.inputs.arguments import Arguments, preds_of


class RowStage:
    """Buffers on one device, which successive batches of equal columns are copied into.

    Args:
        device: where they are.
        most_bytes: how much memory they may take; 0 stages nothing.
        in_host_memory: tensors lie in the memory of this process, and are copied without an operator of torch.

    Attributes:
        rows: how many are staged.
        capacity: how many may be; 0 before a batch is expected.
    """

    def __init__(self, device: torch.device, most_bytes: int, in_host_memory: bool) -> None:
        self._device, self._most_bytes, self._in_host_memory = device, most_bytes, in_host_memory
        self.rows = self.capacity = self._room = 0
        self._columns: tuple[Any, ...] = ()
        self._buffers: list[Tensor] = []
        self._slots: dict[int, list[Tensor]] = {}
        self._places: list[tuple[int, int]] = []
        self._rows_of_batch = 0
        self._is_moved = False
        self._plain: list[tuple[torch.Size, torch.dtype, int]] = []

    @property
    def columns(self) -> tuple[Any, ...]:
        """The dtypes and shapes of the rows, and the names of their columns."""
        return self._columns

    def expect(self, batch: Arguments, columns: tuple[Any, ...] = ()) -> None:
        """Stage batches of this layout from now on; of other columns, nothing may be staged yet.

        Args:
            batch: one of them.
            columns: what `columns_of` gives of it, where that is known.
        """
        columns = columns or columns_of(batch)
        if columns != self._columns:
            assert not self.rows, "rows of other columns are counted first"
            row_bytes = sum(math.prod(t.shape[1:]) * t.element_size() for t in batch.tensors if t is not None)
            self.capacity = 0 if batch.ragged else self._most_bytes // max(1, row_bytes)
            self._columns, self._buffers, self._places, self._room = columns, [], [], 0
        self._slots.clear()
        self._rows_of_batch = preds_of(batch).shape[0]
        are_real = all(t is None or (type(t) is Tensor and not t.is_complex()) for t in batch.tensors)
        self._is_moved = self._in_host_memory and are_real  # complex numbers may be to be conjugated
        preds_and_target = [t for t in batch.tensors[:2] if t is not None]
        is_plain = self._is_moved and all(t is None for t in batch.tensors[2:])
        self._plain = [(t.shape, t.dtype, t.nbytes) for t in preds_and_target] if is_plain else []

    def add(self, batch: Arguments) -> None:
        """Copy a batch of the expected layout, for which there is room."""
        end = self.rows + self._rows_of_batch
        if self._room < end or not self._buffers:
            self._grow(end)
        if not (self._is_moved and self._move(batch)):
            self._copy(batch, end)
        self.rows = end

    def move(self, preds: Tensor, target: Tensor | None) -> int:
        """Copy the memory of a batch that has nothing else, is like the last one, and for which there is room.

        Returns:
            How many rows it has; 0 where nothing was copied.
        """
        rows, start, addresses = self._rows_of_batch, self.rows, []
        given = (preds,) if target is None else (preds, target)
        if len(given) != len(self._plain) or start + rows > self._room or not self._buffers:
            return 0
        try:
            for tensor, (shape, dtype, size) in zip(given, self._plain, strict=True):
                if type(tensor) is not Tensor or tensor.shape != shape or tensor.dtype is not dtype:
                    return 0
                if tensor.device != self._device or not tensor.is_contiguous() or tensor.is_neg():
                    return 0
                address = tensor.data_ptr()
                if not address or tensor.untyped_storage().nbytes() < size:
                    return 0
                addresses.append(address)
        except RuntimeError:  # a tensor without storage, or without a shape
            return 0
        for address, (place, row_bytes) in zip(addresses, self._places, strict=True):
            memmove(place + start * row_bytes, address, rows * row_bytes)
        self.rows = start + rows
        return rows

    def _move(self, batch: Arguments) -> bool:
        """Copy memory; false where a tensor does not lie there as it is read."""
        addresses = []
        for tensor in batch.tensors:
            if tensor is not None:  # the same as `is_as_read`, which is a call for each tensor of each batch
                address = tensor.data_ptr()
                if not address or not tensor.is_contiguous() or tensor.is_neg():
                    return False
                addresses.append(address)
        for address, (start, row_bytes) in zip(addresses, self._places, strict=True):
            memmove(start + self.rows * row_bytes, address, self._rows_of_batch * row_bytes)
        return True

    def _copy(self, batch: Arguments, end: int) -> None:
        slot = self._slots.get(self.rows)
        if slot is None:  # a view of the buffer costs as much as the copy into it: it is kept for the next round
            slot = self._slots[self.rows] = [buffer[self.rows : end] for buffer in self._buffers]
        tensors = [t.detach() if t.requires_grad else t for t in batch.tensors if t is not None]
        for into, tensor in zip(slot, tensors, strict=True):
            into.copy_(tensor)

    def _grow(self, end: int) -> None:
        """Make room. The first batch gets buffers of its size, as many come alone; the second one full buffers."""
        before, self._room = self._buffers, self.capacity if self._buffers else end
        with outside_inference():
            self._buffers = [
                torch.empty(self._room, *tail, dtype=dtype, device=self._device)
                for dtype, tail in (each for each in self._columns[0] if each)
            ]
        for into, rows in zip(self._buffers, before, strict=False):
            into[: self.rows] = rows[: self.rows]
        self._slots.clear()
        if self._in_host_memory:
            self._places = [(t.data_ptr(), math.prod(t.shape[1:]) * t.element_size()) for t in self._buffers]

    def staged(self) -> Arguments:
        """The rows; the next batch after `clear` overwrites them."""
        buffers, (dtypes, names) = iter(self._buffers), self._columns
        return Arguments([None if each is None else self._first_rows(next(buffers)) for each in dtypes], names)

    def _first_rows(self, buffer: Tensor) -> Tensor:
        return buffer if buffer.shape[0] == self.rows else buffer[: self.rows]

    def clear(self) -> None:
        """Stage from the beginning again."""
        self.rows = 0


def columns_of(batch: Arguments) -> tuple[Any, ...]:
    """The dtypes and shapes of the rows of a batch, and the names of its columns."""
    return tuple(None if t is None else (t.dtype, t.shape[1:]) for t in batch.tensors), batch.names
