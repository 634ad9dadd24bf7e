"""Finding the compiled library, and asking whether it takes given tensors."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import torch
from torch import Tensor


@cache
def library() -> ctypes.CDLL | None:
    """The compiled library, or None where there is none."""
    path = Path(__file__).with_name("_native.so")
    if os.environ.get("ASSAY_NATIVE") == "0" or not path.exists():
        return None
    try:
        return ctypes.CDLL(str(path))
    except OSError:  # built for another machine
        return None


def takes(*tensors: Tensor) -> bool:
    """Whether float tensors can go to the library. That they are in host memory is for the caller to know."""
    return library() is not None and all(type(t) is Tensor and t.dtype == torch.float32 for t in tensors)


def loaded() -> ctypes.CDLL:
    """The library, after `takes` said yes."""
    found = library()
    assert found is not None, "takes() was not asked"
    return found


def address(tensor: Tensor) -> ctypes.c_void_p:
    """Where the data of a tensor begins."""
    return ctypes.c_void_p(tensor.data_ptr())
