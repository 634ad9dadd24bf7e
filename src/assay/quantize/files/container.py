"""Safetensors files that are filled tensor by tensor, in any order, and take their names together.

A safetensors file begins with a header that says where each tensor lies, so all shapes are given before the first byte.
Checksums have a fixed length: the header is written last into the place that was kept for it. Nothing but the tensor at
hand is in memory. The format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from assay._atomic import local_path
from assay.devices.placement import to_host
from assay.errors import ConfigError, DtypeError, StateError, describe

NAMES: Mapping[torch.dtype, str] = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}
ALIGNMENT = 8

Metadata: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class TensorEntry:
    """What one tensor of a file will be.

    Raises:
        DtypeError: the format has no such dtype.
    """

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.dtype not in NAMES:
            raise DtypeError(describe(self.name, str(self.dtype), "a dtype that safetensors has", "Convert it before"))

    @classmethod
    def of(cls, name: str, tensor: Tensor) -> TensorEntry:
        """The entry of a tensor that is there."""
        return cls(name, tensor.dtype, tuple(tensor.shape))

    @property
    def nbytes(self) -> int:
        """The bytes it takes."""
        return math.prod(self.shape) * self.dtype.itemsize


class Container:
    """One file that is being filled, under a name of its own until :meth:`publish`.

    Args:
        path: the name that it takes at last.
        entries: all of its tensors.
        metadata: checksums by tensor -> what the header says. The length of its texts must not depend on the checksums.
        part: the name that it has until then.

    Raises:
        StateError: the disk has no room for it.
        ConfigError: the folder cannot be written.
    """

    def __init__(
        self,
        path: Path,
        entries: Sequence[TensorEntry],
        metadata: Callable[[Mapping[str, str]], Metadata],
        part: Path,
    ) -> None:
        self.path, self.part, self._metadata = local_path("path", path), part, metadata
        # Larger elements first, as safetensors does it: so every tensor lies at a multiple of its element's size.
        self.entries = sorted(entries, key=lambda entry: -entry.dtype.itemsize)
        ends = list(accumulate((entry.nbytes for entry in self.entries), initial=0))
        self._spans = dict(zip((entry.name for entry in self.entries), pairwise(ends), strict=True))
        self._head = len(self._header(dict.fromkeys(self._spans, hashlib.sha256().hexdigest())))
        self.nbytes = self._head + sum(entry.nbytes for entry in self.entries)

    def reserve(self) -> None:
        """Take the room on the disk, so that a full disk raises before the work. What was filled before stays."""
        with writing(self.part, self.nbytes):
            self.part.parent.mkdir(parents=True, exist_ok=True)
            with open(self.part, "ab") as file:
                if hasattr(os, "posix_fallocate") and self.nbytes:
                    os.posix_fallocate(file.fileno(), 0, self.nbytes)
                file.truncate(self.nbytes)

    def put(self, name: str, tensor: Tensor) -> str:
        """Write one tensor to its place.

        Returns:
            The SHA-256 of its bytes.

        Raises:
            StateError: the disk refused it.
        """
        data = raw(tensor)
        start, end = self._spans[name]
        assert len(data) == end - start, f"{name}: {len(data)} bytes for {end - start}"
        self._write(self._head + start, data)
        return hashlib.sha256(data).hexdigest()

    def _write(self, start: int, data: bytes | memoryview) -> None:
        with writing(self.part, self.nbytes), open(self.part, "rb+") as file:
            file.seek(start)
            file.write(data)

    def sync(self) -> None:
        """Wait until what was written is on the disk."""
        with open(self.part, "rb+") as file:
            os.fsync(file.fileno())

    def checksum(self, name: str) -> str:
        """The SHA-256 of what lies now where a tensor belongs; of nothing, where the file is too short."""
        start, end = self._spans[name]
        with open(self.part, "rb") as file:
            file.seek(self._head + start)
            digest, left = hashlib.sha256(), end - start
            while left and (chunk := file.read(min(left, 1 << 20))):
                digest.update(chunk)
                left -= len(chunk)
        return digest.hexdigest()

    def seal(self, checksums: Mapping[str, str]) -> None:
        """Write the header: from then on it is a whole file."""
        header = self._header(checksums)
        assert len(header) == self._head, "the length of the header depends on the checksums"
        self._write(0, header)
        with writing(self.part, self.nbytes):
            self.sync()

    def publish(self) -> None:
        """Take the name, in one step."""
        with writing(self.path, self.nbytes):
            os.replace(self.part, self.path)

    def _header(self, checksums: Mapping[str, str]) -> bytes:
        fields: dict[str, object] = {"__metadata__": self._metadata(checksums)}
        for entry in self.entries:
            spans = list(self._spans[entry.name])
            fields[entry.name] = {"dtype": NAMES[entry.dtype], "shape": list(entry.shape), "data_offsets": spans}
        text = json.dumps(fields, separators=(",", ":")).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        return struct.pack("<Q", len(text)) + text


def raw(tensor: Tensor) -> memoryview:
    """The bytes of a tensor in row-major order, little-endian, without a copy where it lies so."""
    flat = to_host(tensor.detach()).contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")


def sha256(tensor: Tensor) -> str:
    """The SHA-256 of the bytes of a tensor."""
    return hashlib.sha256(raw(tensor)).hexdigest()


def in_shards(groups: Iterable[Sequence[TensorEntry]], shard_bytes: int) -> list[list[TensorEntry]]:
    """Cut entries into files of at most so many bytes; a group stays together, and a larger one has a file of its own.

    Example:
        >>> groups = [[TensorEntry(name, torch.uint8, (6,))] for name in "abc"]
        >>> [[entry.name for entry in shard] for shard in in_shards(groups, 12)]
        [['a', 'b'], ['c']]
    """
    shards: list[list[TensorEntry]] = [[]]
    room = shard_bytes
    for group in groups:
        needed = sum(entry.nbytes for entry in group)
        if needed > room and shards[-1]:
            shards.append([])
            room = shard_bytes
        shards[-1].extend(group)
        room -= needed
    return shards


@contextmanager
def writing(path: Path, needed: int) -> Iterator[None]:
    """Write a file that needs so many bytes.

    Raises:
        ConfigError: the folder cannot be written.
        StateError: the disk is full, or fails.
    """
    try:
        yield
    except (PermissionError, FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        got, do = (error.strerror or str(error)).lower(), "Name another one, or change its rights"
        raise ConfigError(describe(str(path.parent), got, "a folder that can be written", do)) from error
    except OSError as error:
        got, do = (error.strerror or str(error)).lower(), "Make room, or name a folder on another disk"
        do += ", then run it again: what was written is kept"
        raise StateError(describe(str(path), got, f"room for {needed / 1e6:,.1f} MB", do)) from error
