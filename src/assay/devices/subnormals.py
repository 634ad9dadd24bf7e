"""Numbers below the smallest normal float, which a thread may take for 0: `torch.set_flush_denormal(True)`."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

from assay.errors import RoundingWarning, describe, warn

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_SUBNORMAL: float = struct.unpack("<d", b"\1" + bytes(7))[0]  # from its bits, as a thread may read its digits as 0


def keeps_subnormals(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """The function, during which the calling thread computes with subnormal numbers.

    Threads of torch that were started while they were taken for 0 go on doing so: where there are several, it warns.

    Example:
        >>> half = keeps_subnormals(lambda x: x / 2)
        >>> half(1e-310)
        5e-311
    """

    @wraps(function)
    def kept(*args: _Given.args, **options: _Given.kwargs) -> _Result:
        if _SUBNORMAL != 0.0:  # Python's floats are compared as torch's are
            return function(*args, **options)
        if torch.get_num_threads() > 1:
            got = "torch.set_flush_denormal(True) with several threads, which may take subnormal numbers for 0"
            do = "Call torch.set_flush_denormal(False) before the first operator, or torch.set_num_threads(1)"
            warn(describe("torch", got, "threads that compute with them", do), RoundingWarning)
        torch.set_flush_denormal(False)
        try:
            return function(*args, **options)
        finally:
            torch.set_flush_denormal(True)

    return kept
