"""The compiled library: loaded once, if it has every function that is called, and whether it takes tensors."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay.native import compilation

MISSING = "assay has no compiled code here; install it again where there is a C compiler"


@cache
def library() -> ctypes.CDLL | None:
    """The compiled library, or None if it is missing or was made from other sources."""
    file = compilation.LIBRARY
    if os.environ.get("ASSAY_NATIVE") == "0" or not file.exists() or is_cut_short(file):
        return None
    sources = compilation.digest().encode()
    try:
        compiled = ctypes.CDLL(str(file))
        own = (ctypes.c_char * len(sources)).in_dll(compiled, "assay_sources").value
    except (OSError, ValueError):  # built for another machine, or without a digest
        return None
    return compiled if own == sources else None


def is_cut_short(file: Path) -> bool:
    """Whether a file ends before its segments do: loading it would end the process with a bus error.

    Only ELF with 64 bits, as Linux has it, is looked into. Source: https://refspecs.linuxfoundation.org/elf/elf.pdf
    """
    size = file.stat().st_size
    with file.open("rb") as opened:
        head = opened.read(64)
        if head[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
            return False
        if len(head) < 64:
            return True
        start, sections, _, _, width, count, of_section, number = struct.unpack_from("<QQIHHHHH", head, 32)
        opened.seek(start)
        table = opened.read(width * count)
    if len(table) < width * count or width < 56 or sections + of_section * number > size:
        return True
    segments = (struct.unpack_from("<IIQQQQ", table, width * k) for k in range(count))
    return any(kind == 1 and offset + stored > size for kind, _, offset, _, _, stored in segments)


@contextmanager
def in_torch() -> Iterator[None]:
    """A block in which assay uses no compiled code, which works on the CPU only, and whose steps no one can see."""
    before = os.environ.get("ASSAY_NATIVE")
    os.environ["ASSAY_NATIVE"] = "0"
    library.cache_clear()
    try:
        yield
    finally:
        del os.environ["ASSAY_NATIVE"]
        os.environ.update({} if before is None else {"ASSAY_NATIVE": before})
        library.cache_clear()


def takes(*tensors: Tensor, dtypes: tuple[torch.dtype, ...] = (torch.float32,)) -> bool:
    """Whether tensors can go to the library. That they are in host memory is for the caller to know."""
    return library() is not None and all(type(t) is Tensor and t.dtype in dtypes for t in tensors)


def loaded() -> ctypes.CDLL:
    """The library, after `takes` returned true."""
    compiled = library()
    assert compiled is not None, "takes() was not asked"
    return compiled


@cache
def compiled_function(name: str, arguments: int) -> Any:
    """A function of the library that takes so many addresses and integers, after `takes` returned true."""
    found = getattr(loaded(), f"assay_{name}")
    found.argtypes = [ctypes.c_void_p] * arguments  # so that ctypes makes no object for each argument
    return found


def call(name: str, *arguments: object) -> None:
    """Call a function of the library, after `takes` returned true: tensors go by address, integers as int64."""
    addresses = [each.data_ptr() if isinstance(each, Tensor) else each for each in arguments]
    compiled_function(name, len(addresses))(*addresses)
