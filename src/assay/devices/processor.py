"""What a device of this machine is called, and whether something can be measured on it."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from assay.devices.capabilities import device_type, kind
from assay.devices.pretend_state import pretended_kind

if TYPE_CHECKING:
    import torch

CPUINFO = Path("/proc/cpuinfo")


@cache
def processor(device: str) -> str:
    """The name of a device's processor, and for the CPU the vector instructions that torch uses.

    Measurements can be compared where the names are equal.

    Example:
        >>> processor("cpu") == processor("cpu:0")
        True
    """
    import torch

    type = device_type(device)
    if type == "cpu":
        return f"{_model()}, {_vector_instructions()}"
    named = getattr(torch.get_device_module(type), "get_device_name", None)  # mps has none: one to a machine
    return f"{named(device)}{_rocm(type)}" if named else f"{type}, {platform.platform()}"


def device_name(device: torch.device) -> str:
    """The name of the processor or card, where the system tells it; else of the kind of device.

    Of the CPU also its vector instructions and the number of threads: the last bits of a model depend on them.
    AMD GPUs, which torch calls ``cuda``, are told by the version of ROCm that torch was built for.

    Example:
        >>> import torch
        >>> "threads" in device_name(torch.device("cpu"))
        True
    """
    import torch

    if device.type == "cpu":
        return f"{_model()}, {_vector_instructions()}, {torch.get_num_threads()} threads"
    named = getattr(getattr(torch, device.type, None), "get_device_name", None)
    if named:
        return f"{named(device)}{_rocm(device.type)}"
    known = kind(device)
    return known.name if known else device.type


def _rocm(type: str) -> str:
    import torch

    return f", ROCm {torch.version.hip}" if type == "cuda" and torch.version.hip else ""


def why_not_here(device: str | torch.device) -> str:
    """Why nothing can be timed on a device: this machine has none, or it is pretended; empty if it can.

    Example:
        >>> why_not_here("cpu")
        ''
    """
    import torch

    if pretended_kind() == device_type(device):
        return "it is pretended"
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        return str(error).splitlines()[0][:100]
    return ""


def _vector_instructions() -> str:
    """Those that torch uses; tiles (AMX) are no level of it, and oneDNN uses them."""
    import torch

    has_tiles = getattr(torch.cpu, "_is_amx_tile_supported", bool)  # torch 2.6 has it, and nothing public for it
    return f"{torch.backends.cpu.get_cpu_capability()}{' with AMX' if has_tiles() else ''}"


def _model() -> str:
    try:
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return name or platform.processor() or platform.machine()
