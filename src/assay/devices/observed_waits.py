"""How often the program synchronizes with a device, as torch itself tells: its module for CUDA does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from assay.devices.capabilities import device_type


def tells_waits(device: str | torch.device) -> bool:
    """Whether torch tells where the program synchronizes with a device.

    Example:
        >>> tells_waits("cpu")
        False
    """
    return hasattr(getattr(torch, device_type(device), None), "set_sync_debug_mode")


@contextmanager
def observed_waits(device: str | torch.device) -> Iterator[Callable[[], int]]:
    """Count how often the program synchronizes with a device that tells it; other warnings of the block are dropped."""
    module = torch.get_device_module(device_type(device))
    before = module.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module.set_sync_debug_mode("warn")
        try:
            yield lambda: sum("called a synchronizing" in str(each.message) for each in caught)
        finally:
            module.set_sync_debug_mode(before)
