"""What a block of code costs on a device: time until its work is done, and the most memory that it held."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

_RESET, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass
class Cost:
    """What was measured; complete after the block."""

    seconds: float = 0.0  # from the start to the end of the work, also of what was still queued on the device
    peak_bytes: int | None = None  # the most memory held at once; None where that cannot be asked for
    memory: str = "this device does not tell"  # what that number is


def wait(device: torch.device) -> None:
    """Wait until the work that was given to a device is done; nothing on the CPU."""
    if device.type not in ("cpu", "meta"):
        torch.accelerator.synchronize(device)


@contextmanager
def cost(device: str | torch.device) -> Iterator[Cost]:
    """Measure what the block, which works on a device, takes.

    Accelerators report the peak of what torch's allocator gave out. On the CPU it is the peak of the whole process,
    which Linux lets a process start anew; elsewhere it is not known.

    Example:
        >>> with cost("cpu") as block:
        ...     total = torch.ones(1000).sum()
        >>> block.seconds > 0
        True
    """
    device = torch.device(device)
    result = Cost()
    wait(device)
    reset = _reset_peak(device)
    start = time.perf_counter()
    try:
        yield result
    finally:
        wait(device)
        result.seconds = time.perf_counter() - start
        if reset:
            result.peak_bytes, result.memory = _peak(device)


def _reset_peak(device: torch.device) -> bool:
    if device.type != "cpu":
        reset = getattr(getattr(torch, device.type, None), "reset_peak_memory_stats", None)
        if reset is None:
            return False
        reset(device)
        return True
    try:
        _RESET.write_text("5")  # proc(5): resets the peak resident set size
    except OSError:
        return False
    return True


def _peak(device: torch.device) -> tuple[int | None, str]:
    if device.type != "cpu":
        return int(getattr(torch, device.type).max_memory_allocated(device)), f"given out by torch on {device}"
    match = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    return (int(match[1]) * 1024, "of the whole process") if match else (None, Cost.memory)
