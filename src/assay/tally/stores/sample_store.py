"""A store of samples: on the device they come from until a budget is spent, then in host memory, then in files."""

from __future__ import annotations

import hashlib
import math
import mmap
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import IO, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import to_host
from assay.devices.policies import policy
from assay.errors import CapacityError, DtypeError, ShapeError, describe
from assay.native.library import library
from assay.native.rankings import MOST_ROWS, order_rows
from assay.tally.base import (
    TensorLayout,
)
from assay.tally.stores.huge_pages import HUGE_PAGE, empty_bytes
from assay.tally.stores.row_copies import copy_rows
from assay.tally.sums.fingerprints import of_rows

DEVICE_BUDGET = 64 << 20  # bytes
HOST_BUDGET = 2 << 30  # bytes
_BLOCK_BYTES = 8 << 20  # blocks double up to this size, which bounds what is allocated and not yet used
_FIRST_ROWS = 256
_LEAST_HUGE = HUGE_PAGE // 4  # bytes: clearing a huge page takes longer than less memory in small ones
_ALIGNED = 64  # bytes
_SORTED = 64
"""Elements of a row up to which rows are sorted by their bits; longer ones are sorted by a digest of them."""

_CHECKED = 1 << 20
"""Elements whose checksum is computed in one go on the CPU."""
ANY = torch.bool
"""As the dtype of a column: the dtype of the data."""

Place = Literal["device", "host", "disk"]
WriteRows = Callable[[Mapping[str, Tensor], int, int, int], None]
_CPU = torch.device("cpu")
_SMALL = (torch.bool, torch.uint8, torch.int8, torch.int16)
WHOLE = (*_SMALL, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_BITS = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}


@dataclass(eq=False)
class _Block:
    """Rows in one place; those before `used` never change, so views of them can be shared."""

    tensors: dict[str, Tensor]
    place: Place
    used: int = 0
    is_narrow_on_host: bool = False
    """Whether it is in host memory, and columns are as narrow as those of the store."""
    checksum: Tensor | None = None
    """Of the rows, on the device that they came from; None of those in host memory."""

    @property
    def capacity(self) -> int:
        return next(iter(self.tensors.values())).shape[0]

    @property
    def nbytes(self) -> int:
        return sum([tensor.nbytes for tensor in self.tensors.values()])  # a generator takes longer

    @property
    def used_bytes(self) -> int:
        """Bytes of the rows, without the room for more."""
        capacity = self.capacity
        return self.nbytes if self.used == capacity else self.nbytes * self.used // capacity

    @property
    def signature(self) -> tuple[Any, ...]:
        return tuple((tensor.dtype, tensor.device) for tensor in self.tensors.values())

    def filled(self) -> dict[str, Tensor]:
        return {name: tensor[: self.used] for name, tensor in self.tensors.items()}

    def closed(self) -> _Block:
        """The same rows, with no room for more."""
        return _Block(self.filled(), self.place, self.used, checksum=self.checksum)


class SampleStore:
    """Rows of named columns, in the order in which they came.

    Rows stay on the device they come from while those blocks are below `device_budget` bytes. Then they move to host
    memory, and beyond `host_budget` to temporary files, which are mapped into memory and vanish with the store, or with
    the process however it ends. A single batch may exceed a budget by its own size, and the block that is being filled
    by 8 MiB.

    Args:
        columns: for each name the shape of one row, and the narrowest dtype to keep it in. Wider data is kept in its
            own dtype; `column` gives the narrowest one that holds all of it. Integers of 32 bits and more that
            meet floats become float64, which is exact up to 2 ** 53. `ANY` stands for the dtype of the data.
        device_budget: bytes on an accelerator.
        host_budget: bytes in host memory.

    Example:
        >>> store = SampleStore({"score": TensorLayout(torch.float32, ())})
        >>> store.append(score=torch.tensor([0.5, 0.25]))
        >>> store.rows, store.column("score")
        (2, tensor([0.5000, 0.2500]))
    """

    is_held: ClassVar[bool] = False
    """Whether rows may be the caller's, who changes them later: a store that takes them copies them."""

    def __init__(
        self,
        columns: Mapping[str, TensorLayout],
        *,
        device_budget: int = DEVICE_BUDGET,
        host_budget: int = HOST_BUDGET,
    ) -> None:
        self.columns = dict(columns)
        self.device_budget, self.host_budget = device_budget, host_budget
        self.has_checksums = True
        """Whether rows of a device get a checksum, by other operators than those that copy them."""
        self.is_canonical = False
        """Whether the rows are known to be in their canonical order, see `canonical`."""
        self.rows = 0
        self._blocks: list[_Block] = []
        self._bytes: dict[Place, int] = {"device": 0, "host": 0, "disk": 0}

    def append(self, **tensors: Tensor) -> None:
        """Copy rows into the store, on their device and without waiting for it, unless a budget is passed by them.

        Args:
            **tensors: for every column a tensor of shape `(rows, *tail)`, all on one device.

        Raises:
            ShapeError, DtypeError: the tensors are not rows of the columns.
            CapacityError: the temporary file cannot be written; the store is as it was before.
        """
        if self._copy_in(tensors):
            return
        rows = self._checked(tensors)
        if not rows:
            return
        dtypes = {name: common_dtype(column.dtype, tensors[name].dtype) for name, column in self.columns.items()}

        def write(columns: Mapping[str, Tensor], row: int, start: int, count: int) -> None:
            with torch.no_grad():
                for name, into in columns.items():
                    into[row : row + count].copy_(tensors[name].detach()[start : start + count])

        def checksum(start: int, count: int) -> Tensor:
            rows = slice(start, start + count)
            return of_rows([tensors[name].detach()[rows].to(dtype) for name, dtype in dtypes.items()])

        self._append(rows, dtypes, next(iter(tensors.values())).device, write, checksum)

    def append_by(self, rows: int, write: WriteRows) -> None:
        """Add rows that a function writes, in the narrowest dtypes and on the CPU.

        Args:
            rows: how many.
            write: called as `write(columns, row, start, count)`, it writes the rows from `start` on, so many of them,
                into contiguous columns from `row` on.
        """
        if not rows:
            return
        last = self._blocks[-1] if self._blocks else None
        if last is not None and last.is_narrow_on_host and last.used + rows <= last.capacity:
            write(last.tensors, last.used, 0, rows)
            last.used += rows
            self.rows += rows
            self.is_canonical = False
        else:
            self._append(rows, {name: column.dtype for name, column in self.columns.items()}, _CPU, write)

    def _copy_in(self, rows: Mapping[str, Tensor]) -> bool:
        """Copy rows into the room of the last block without an operator of torch; false where nothing was copied.

        That is where they have no room there, or other dtypes, or do not lie in host memory as they are read.
        """
        last = self._blocks[-1] if self._blocks else None
        if last is None or last.place != "host" or len(rows) != len(last.tensors):
            return False
        count = next(iter(rows.values())).shape[0]
        if not count or last.used + count > last.capacity or self._bytes["host"] > self.host_budget:
            return False
        if not copy_rows(last.tensors, last.used, rows, count):
            return False
        last.used += count
        self.rows += count
        self.is_canonical = False
        return True

    def _append(
        self,
        rows: int,
        dtypes: Mapping[str, torch.dtype],
        device: torch.device,
        write: WriteRows,
        checksum: Callable[[int, int], Tensor] | None = None,
    ) -> None:
        place = _place(device)
        self._make_room(place, rows * self._row_bytes(dtypes))
        self.is_canonical, offset = False, 0
        while offset < rows:
            block = self._open(dtypes, device, place, rows - offset)
            count = min(block.capacity - block.used, rows - offset)
            write(block.tensors, block.used, offset, count)
            if place == "device" and self.has_checksums and checksum is not None:
                with torch.no_grad():
                    found = checksum(offset, count)
                    block.checksum = found if block.checksum is None else block.checksum + found
            block.used += count
            offset += count
        self.rows += rows

    def _row_bytes(self, dtypes: Mapping[str, torch.dtype]) -> int:
        return sum(dtype.itemsize * math.prod(self.columns[name].tail) for name, dtype in dtypes.items())

    def reserve(self, device: torch.device, nbytes: int) -> None:
        """Make room for rows of so many bytes that will come from a device.

        Raises:
            CapacityError: the temporary file cannot be written; the store is as it was before.
        """
        self._make_room(_place(device), nbytes)

    def column(self, name: str) -> Tensor:
        """All rows of a column on the CPU, in the order in which they came; this synchronizes with the device."""
        column, blocks = self.columns[name], self._blocks
        if len(blocks) == 1:  # as after one flush: a copy in one step
            tensor = to_host(blocks[0].tensors[name][: blocks[0].used])
            dtype = common_dtype(column.dtype, tensor.dtype)
            return tensor.to(dtype, copy=True, memory_format=torch.contiguous_format)
        dtype = reduce(common_dtype, (block.tensors[name].dtype for block in blocks), column.dtype)
        parts = [to_host(block.tensors[name][: block.used]).to(dtype) for block in blocks]
        return torch.cat(parts) if parts else torch.empty(0, *column.tail, dtype=dtype, device="cpu")

    def given_column(self, name: str) -> Tensor:
        """A column on the CPU, in the dtype in which it is kept, which nobody may change: a copy of several blocks."""
        if len(self._blocks) != 1:
            return self.column(name)
        block = self._blocks[0]
        return to_host(block.tensors[name][: block.used])

    def count_nan(self, name: str) -> int:
        """How many numbers of a column are NaN; this synchronizes with the device."""
        columns = [block.tensors[name][: block.used] for block in self._blocks]
        return sum([_count_nan(to_host(column)) for column in columns if column.is_floating_point()])

    def blocks(self) -> list[dict[str, Tensor]]:
        """All rows in pieces, each where it is kept and in its own dtype; nothing is moved and no device waited for."""
        return [block.filled() for block in self._blocks]

    def on_host(self) -> SampleStore:
        """A store with the same rows, none of them on a device; this synchronizes with the device."""
        store = self.emptied()
        store.rows = self.rows
        for block in self._blocks:
            store._keep(self._to_host(block) if block.place == "device" else block)
        return store

    def is_whole(self) -> bool:
        """Whether the rows, none of which is on a device now, are those that devices had a checksum of."""
        return all(block.checksum is None or _checksum(block) == int(block.checksum) for block in self._blocks)

    def emptied(self) -> SampleStore:
        """A store like this one, without rows."""
        store = SampleStore(self.columns, device_budget=self.device_budget, host_budget=self.host_budget)
        store.has_checksums = self.has_checksums
        return store

    def copy(self) -> SampleStore:
        """A store with the same rows that goes its own way. Rows that are there already are shared, as none changes."""
        return self.emptied()._take(self)

    def extend(self, other: SampleStore) -> None:
        """Add the rows of another store of the same columns behind those of this one."""
        if other.columns != self.columns:
            got, expected = f"columns {other.columns}", f"columns {self.columns}"
            raise ShapeError(describe("extend", got, expected, "Join stores of equal columns"))
        if other.is_held:
            for block in other.blocks():
                self.append(**block)
            return
        self._make_room("device", other._bytes["device"])
        self._make_room("host", other._bytes["host"])
        self._take(other)

    def replaced(self, values: Mapping[str, Tensor], *, canonical: bool = False) -> SampleStore:
        """A store of the same columns with these rows instead; it keeps the tensors, which nobody may change then."""
        store = self.emptied()
        if rows := store._checked(values):
            tensors = {name: values[name].detach() for name in self.columns}
            store._hold(tensors, _place(next(iter(tensors.values())).device), rows)
        store.is_canonical = canonical
        return store

    def _hold(self, tensors: dict[str, Tensor], place: Place, rows: int) -> None:
        """Have these tensors, all of whose rows are in one place."""
        self._keep(_Block(tensors, place, rows))
        self.rows += rows

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, wherever they are."""
        return sum([block.used_bytes for block in self._blocks])

    @property
    def allocated(self) -> dict[Place, int]:
        """Bytes taken on the device, in host memory and on disk, with what is not yet used of them."""
        return dict(self._bytes)

    def __getstate__(self) -> dict[str, Any]:
        values = {name: self.column(name) for name in self.columns}
        return {"columns": self.columns, "budgets": (self.device_budget, self.host_budget), "values": values}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        device_budget, host_budget = saved["budgets"]
        self.__init__(saved["columns"], device_budget=device_budget, host_budget=host_budget)  # type: ignore[misc]
        self.__dict__.update(self.replaced(saved["values"]).__dict__)

    def __repr__(self) -> str:
        return f"SampleStore({', '.join(self.columns)}; {self.rows} rows)"

    def _checked(self, tensors: Mapping[str, Tensor]) -> int:
        """How many rows there are, when they are rows of the columns."""
        if tensors.keys() != self.columns.keys():
            expected = f"columns {sorted(self.columns)}"
            raise ShapeError(describe("append", f"columns {sorted(tensors)}", expected, "Give each column"))
        first = next(iter(tensors.values()))
        for name, tensor in tensors.items():
            shape = (first.shape[0], *self.columns[name].tail)
            if tuple(tensor.shape) != shape:
                got = f"shape {tuple(tensor.shape)}"
                raise ShapeError(describe(name, got, f"shape {shape}", "Give one row each"))
            if tensor.device != first.device:
                expected = f"rows on {first.device}"
                raise ShapeError(describe(name, f"rows on {tensor.device}", expected, "Bring the columns together"))
        return first.shape[0]

    def _take(self, other: SampleStore) -> SampleStore:
        self._trim_last()
        self.is_canonical = other.is_canonical and not self.rows
        for block in list(other._blocks):
            self._keep(block.closed())
        self.rows += other.rows
        return self

    def _keep(self, block: _Block) -> None:
        self._blocks.append(block)
        self._bytes[block.place] += block.nbytes

    def _open(self, dtypes: Mapping[str, torch.dtype], device: torch.device, place: Place, rows: int) -> _Block:
        """A block of these dtypes with room: the last one, or a new one that is twice as large."""
        wanted = tuple((dtype, device) for dtype in dtypes.values())
        last = self._blocks[-1] if self._blocks else None
        same = last is not None and last.signature == wanted and last.place == place
        if last is not None and same and last.used < last.capacity:
            return last
        self._trim_last()
        row_bytes = self._row_bytes(dtypes)
        most = max(1, _BLOCK_BYTES // max(1, row_bytes))
        capacity = max(rows, min(2 * last.capacity if last is not None and same else _FIRST_ROWS, most))
        with torch.inference_mode(False):
            if place == "host" and capacity * row_bytes >= _LEAST_HUGE:
                tensors = self._in_huge_pages(dtypes, capacity, row_bytes)
            else:
                tensors = {
                    name: torch.empty(capacity, *self.columns[name].tail, dtype=dtype, device=device)
                    for name, dtype in dtypes.items()
                }
        is_narrow = place == "host" and all(dtype == self.columns[name].dtype for name, dtype in dtypes.items())
        self._keep(_Block(tensors, place, is_narrow_on_host=is_narrow))
        return self._blocks[-1]

    def _in_huge_pages(self, dtypes: Mapping[str, torch.dtype], rows: int, row_bytes: int) -> dict[str, Tensor]:
        """Columns of at least so many rows, which fill whole huge pages together."""
        unaligned = _ALIGNED * len(dtypes)
        size = -(-(rows * row_bytes + unaligned) // HUGE_PAGE) * HUGE_PAGE
        rows = (size - unaligned) // row_bytes
        room, start, tensors = empty_bytes(size), 0, {}
        for name, dtype in dtypes.items():
            shape = (rows, *self.columns[name].tail)
            stop = start + math.prod(shape) * dtype.itemsize
            tensors[name] = room[start:stop].view(dtype).view(shape)
            start = stop + -stop % _ALIGNED
        return tensors

    def _trim_last(self) -> None:
        """Give back the room that the last block will not use, as another one follows."""
        if not self._blocks or self._blocks[-1].used == self._blocks[-1].capacity:
            return
        block = self._blocks[-1]
        self._bytes[block.place] -= block.nbytes
        block.tensors = {name: tensor.clone() for name, tensor in block.filled().items()}
        self._bytes[block.place] += block.nbytes

    def _make_room(self, place: Place, more: int) -> None:
        """Move what is there when `more` bytes of rows would pass the budget of a place.

        Room that is not yet used does not count, so that after one call for many rows no part of them moves anything.
        """
        if self._bytes[place] + more <= (self.host_budget if place == "host" else self.device_budget):
            return  # even with the room that is not used
        size = self._bytes_in(place)
        if place == "device" and size and size + more > self.device_budget:
            self._make_room("host", size)
            self._move("device", [self._to_host(block) for block in self._at("device")])
        if place == "host" and size and size + more > self.host_budget:
            self._move("host", _on_disk(self._at("host")))

    def _bytes_in(self, place: Place) -> int:
        """Bytes of the rows in a place: only the last block may have room left."""
        last = self._blocks[-1] if self._blocks else None
        if last is None or last.place != place:
            return self._bytes[place]
        return self._bytes[place] - last.nbytes + last.used_bytes

    def _at(self, place: Place) -> list[_Block]:
        return [block for block in self._blocks if block.place == place]

    def _move(self, place: Place, moved: Sequence[_Block]) -> None:
        """Put blocks where those of a place were."""
        coming = iter(moved)
        blocks = [next(coming) if block.place == place else block for block in self._blocks]
        self._blocks, self._bytes = [], {"device": 0, "host": 0, "disk": 0}
        for block in blocks:
            self._keep(block)

    @staticmethod
    def _to_host(block: _Block) -> _Block:
        tensors = {name: to_host(tensor) for name, tensor in block.filled().items()}
        return _Block(tensors, "host", block.used, checksum=block.checksum)


def _count_nan(values: Tensor) -> int:
    """How many numbers are NaN; NumPy takes a third of the time for few of them, and does not know bfloat16."""
    if values.dtype == torch.bfloat16:
        return int(values.isnan().sum())
    return int(np.count_nonzero(np.isnan(values.numpy())))


def _checksum(block: _Block) -> int:
    """That of the rows of a block that is in host memory or in a file, some of them at a time."""
    columns = block.filled().values()
    size = max(1, _CHECKED * block.used // max(1, sum(each.numel() for each in columns)))
    parts = [of_rows([each[start : start + size] for each in columns]) for start in range(0, block.used, size)]
    return int(torch.stack(parts).sum()) if parts else 0


def _place(device: torch.device) -> Place:
    return "host" if policy(device).read_on.value == device else "device"


def common_dtype(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """The narrowest dtype that holds the values of both (integers beyond 2 ** 53 next to floats excepted).

    Example:
        >>> common_dtype(torch.int64, torch.float16), common_dtype(torch.int8, torch.float16)
        (torch.float64, torch.float32)
    """
    for dtype in (a, b):
        if dtype not in WHOLE + FLOATS:
            do = "Convert them, for example with .float()"
            raise DtypeError(describe("samples", dtype, "real numbers of a common dtype", do))
    if a == b:
        return a
    if ANY in (a, b) or a.is_floating_point == b.is_floating_point:
        return torch.promote_types(a, b)
    whole, floating = (b, a) if a.is_floating_point else (a, b)
    return torch.float32 if whole in _SMALL and floating != torch.float64 else torch.float64


def _on_disk(blocks: Sequence[_Block]) -> list[_Block]:
    """The blocks in one temporary file that is mapped into memory.

    The file has no name where the system allows that, so it is gone with the last mapping of it, even after a crash. It
    is written before it is mapped, because a mapping of a file on a full disk ends the process instead of raising.
    """
    try:
        with tempfile.TemporaryFile(prefix="assay-samples-") as file:
            starts = [{name: _write(file, tensor) for name, tensor in b.filled().items()} for b in blocks]
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError as error:
        size = sum(block.nbytes for block in blocks)
        got = f"no room for {size / 2**20:.1f} MiB in {tempfile.gettempdir()} ({error.strerror or error})"
        expected = "a temporary file for what exceeds the budget of host memory"
        do = "Free space there, set TMPDIR, or use a metric that counts instead of keeping samples"
        raise CapacityError(describe("samples", got, expected, do)) from error
    return [
        _Block(
            {name: _mapped(mapped, start[name], tensor) for name, tensor in b.filled().items()},
            "disk",
            b.used,
            checksum=b.checksum,
        )
        for start, b in zip(starts, blocks, strict=True)
    ]


def _write(file: IO[bytes], tensor: Tensor) -> int:
    """Write the bytes of a tensor, aligned, and say where they begin."""
    file.write(bytes(-file.tell() % _ALIGNED))
    start = file.tell()
    file.write(_raw(tensor).data)
    return start


def _mapped(mapped: mmap.mmap, start: int, like: Tensor) -> Tensor:
    if not like.numel():
        return torch.empty_like(like)
    return torch.frombuffer(mapped, dtype=like.dtype, count=like.numel(), offset=start).view(like.shape)


def canonical(store: SampleStore) -> SampleStore:
    """The same rows on the CPU, sorted by their bits, or where these are many by a digest of them.

    So there is one order for all ways in which they may have come.
    """
    if store.is_canonical:
        return store
    values = {name: store.column(name) for name in store.columns}
    if not store.rows:
        return store.replaced(values)
    if [each.numel() for each in values.values()] == [store.rows]:  # one number a row, which its bits are
        ((name, only),) = values.items()
        keys = torch.from_numpy(np.sort(_bits(only.reshape(-1))))
        return store.replaced({name: keys.view(only.dtype).view(only.shape)})
    order = torch.from_numpy(canonical_order(list(values.values())))
    return store.replaced({name: each.index_select(0, order) for name, each in values.items()}, canonical=True)


def canonical_order(values: Sequence[Tensor]) -> np.ndarray:
    """The positions of one or more rows in their canonical order; see `canonical`."""
    columns = [value.reshape(len(value), -1) for value in values]
    if sum(column.shape[1] for column in columns) > _SORTED:
        return np.argsort(_digests(columns), kind="stable")
    keys = [key for column in columns for key in _bits(column).T]
    is_compiled = library() is not None and len(keys[0]) < MOST_ROWS
    return order_rows(keys) if is_compiled else np.lexsort(keys)


def _digests(columns: Sequence[Tensor]) -> np.ndarray:
    """For each row a digest of its bytes in all columns."""
    raw = [_raw(column).reshape(len(column), -1) for column in columns]
    rows = (b"".join(each.tobytes() for each in row) for row in zip(*raw, strict=True))
    return np.array([hashlib.blake2b(row, digest_size=16).digest() for row in rows], dtype="S16")


def _bits(values: Tensor) -> np.ndarray:
    return _raw(values).view(_BITS[values.dtype.itemsize]).reshape(values.shape)


def _raw(values: Tensor) -> np.ndarray:
    return values.contiguous().view(-1).view(torch.uint8).numpy()
