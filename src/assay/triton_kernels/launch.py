"""Launching a kernel on the device of its tensors; one that fails is reported once and not tried again."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module

import torch
from torch import Tensor

from assay.devices.placement import as_current_cuda_device
from assay.errors import KernelWarning

_OPTIONS = {"enable_fp_fusion": False, "num_warps": 8}
_failed: dict[str, str] = {}


def launch(name: str, grid: Sequence[int], *arguments: object, **constants: object) -> bool:
    """Launch a kernel, or say that it did not run.

    Args:
        name: the module in `programs` and the function, such as `"sums.carry"`.
        grid: how many programs, by dimension; without any, nothing is launched.
        *arguments: what it takes; the first is a tensor or a tuple of tensors.
        **constants: what it is compiled for.

    Returns:
        Whether it was launched. If it was not, it changed nothing, and the caller counts in another way.

    Warns:
        KernelWarning: it does not compile or launch on this machine; once a process.
    """
    if name in _failed:
        return False
    if 0 in grid:
        return True
    first = arguments[0][0] if isinstance(arguments[0], tuple) else arguments[0]
    assert isinstance(first, Tensor)
    module, function = name.split(".")
    try:
        kernel = getattr(import_module(f"assay.triton_kernels.programs.{module}"), function)
        with as_current_cuda_device(first):
            kernel[tuple(grid)](*arguments, **constants, **_OPTIONS)
    except Exception as error:  # a compiler and a driver raise anything
        why = _failed[name] = str(error).strip().partition("\n")[0] or type(error).__name__
        warnings.warn(
            f"The Triton kernel {name} does not run on {first.device} ({why}); torch's operators count instead, with "
            "the same values. Set ASSAY_TRITON=0 to use them from the start.",
            KernelWarning,
            stacklevel=2,
        )
        return False
    return True


def failures() -> dict[str, str]:
    """The kernels that did not run in this process, and why."""
    return dict(_failed)


def takes(*tensors: Tensor, dtypes: Sequence[torch.dtype]) -> bool:
    """Whether tensors can go to kernels. That they are on a device that has them is for the caller to know."""
    return all(type(t) is Tensor and t.dtype in dtypes for t in tensors)


def blocks(size: int, block: int) -> int:
    """How many blocks hold so many elements."""
    return -(-size // block)


def power_of_two(size: int, most: int) -> int:
    """The smallest power of two that is no less than `size`, and at most `most`."""
    return min(most, 1 << max(0, size - 1).bit_length())
