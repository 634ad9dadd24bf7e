"""Memory that runs out: which errors say so, and how what is cached is given back."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import torch

# Not every allocator raises torch.OutOfMemoryError. An Apple GPU raises a plain RuntimeError without a full stop after
# the words (huggingface/accelerate#4226), the CPU's allocator another (pytorch/pytorch#20618), cuBLAS a status, and an
# Intel GPU may raise the driver's (pytorch/pytorch#177714).
_SAID = (
    "out of memory",
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, so that less at once may fit.

    Example:
        >>> is_out_of_memory(RuntimeError("MPS backend out of memory (MPS allocated: 5.56 GB)"))
        True
        >>> is_out_of_memory(ValueError("out of memory"))
        False
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _SAID)


@cache
def host_bytes() -> int:
    """How much memory this machine has; 64 GiB where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf, and others lack some of its names
        return 1 << 36


def free_host_bytes() -> int | None:
    """How much memory programs can get; None where the system does not say it as Linux does."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(each.split()[1]) << 10 for each in lines if each.startswith("MemAvailable:")), None)


def free_cached(device: torch.device) -> None:
    """Give back what the allocator of a device keeps for later; nothing on the CPU."""
    give_back = getattr(getattr(torch, device.type, None), "empty_cache", None)
    if device.type != "cpu" and give_back is not None:
        give_back()
