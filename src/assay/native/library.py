"""The compiled library: loaded once, if it has every function that is called, and whether it takes tensors."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from assay.native import compilation

MISSING = "assay has no compiled code here; install it again where there is a C compiler"


@cache
def library() -> ctypes.CDLL | None:
    """The compiled library, or None if it is missing or was made from other sources."""
    if os.environ.get("ASSAY_NATIVE") == "0" or not compilation.LIBRARY.exists():
        return None
    sources = compilation.digest().encode()
    try:
        compiled = ctypes.CDLL(str(compilation.LIBRARY))
        own = (ctypes.c_char * len(sources)).in_dll(compiled, "assay_sources").value
    except (OSError, ValueError):  # built for another machine, or without a digest
        return None
    return compiled if own == sources else None


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
