"""What a device of this machine is called."""

from __future__ import annotations

import platform

import torch

from assay.devices.capabilities import kind


def name_of(device: torch.device) -> str:
    """The name of the processor or card, where the system tells it; else of the kind of device.

    Example:
        >>> "threads" in name_of(torch.device("cpu"))
        True
    """
    if device.type == "cpu":
        return f"{_processor()}, {torch.get_num_threads()} threads"
    if device.type in ("cuda", "xpu"):
        return str(getattr(torch, device.type).get_device_name(device))
    known = kind(device)
    return known.name if known else device.type


def _processor() -> str:
    """The processor's name where the system tells it, else its architecture."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            named = next((line for line in lines if line.startswith("model name")), "")
    except OSError:
        named = ""
    return named.partition(":")[2].strip() or platform.processor() or platform.machine()
