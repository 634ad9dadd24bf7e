"""Which operator a device has in this or an older release of torch, and what its kernels take: a pure look-up.

The device need not be here: what torch says of itself is read from the table of operators that its wheel carries
(:mod:`assay.devices.operators.overloads`), and what only its sources say from ``known/quantization.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from assay.devices.capabilities import device_type, fact_file
from assay.devices.kinds import DEVICES
from assay.devices.operators.overloads import overloads
from assay.devices.operators.releases import as_of
from assay.devices.operators.rules import rules
from assay.devices.pretend_state import pretended_kind

if TYPE_CHECKING:
    import torch

HOST = "cpu"


@dataclass(frozen=True)
class OperatorLimits:
    """What an operator for quantized weights takes on one kind of device."""

    operator: str  # torch's name without ``aten::``
    device: str  # a kind of device, such as ``"cuda"``
    dtypes: tuple[str, ...] = ("bfloat16", "float16", "float32")  # of the activations
    groups: tuple[int, ...] = ()  # the sizes of groups that it knows; empty where a whole row shares its scale
    rows: int = 1  # what the number of rows of the weight must be divisible by
    width: int = 1  # the same of its columns
    symmetric: bool = False  # it cannot add a zero to the weights of a group
    needs: str = ""  # what the device must have, or empty
    note: str = ""  # what else is worth knowing, or empty
    source: str = ""  # where it can be read


def lacks(device: str | torch.device, operator: str, release: str | None = None) -> str:
    """Why a kind of device cannot run an operator of torch; empty if it can.

    Args:
        device: a device or its name, of this machine or not; the index does not matter.
        operator: torch's name, with or without ``aten::``.
        release: of torch, such as ``"2.4"``, of which it is known what it lacked; by default the installed one.

    Returns:
        A reason that can follow the name of what is not to be had.

    Raises:
        ConfigError: ``release`` is none.

    Example:
        >>> lacks("mps", "_weight_int4pack_mm")
        ''
        >>> lacks("cpu", "aten::_weight_int4pack_mm")
        'torch has no kernel of _weight_int4pack_mm for cpu'
        >>> lacks("mps", "_convert_weight_to_int4pack", release="2.4")
        'torch 2.4 has no kernel of _convert_weight_to_int4pack for mps'

    Source:
        ``native_functions.yaml`` of the installed torch; ``known/history.toml`` for older releases.
    """
    kind, name = device_type(device), operator.removeprefix("aten::")
    if _has(kind, name, release):
        return _not_borrowed(kind, name)
    return f"torch{' ' + release if release else ''} has no kernel of {name} for {kind}"


def kernel(device: str | torch.device, operator: str) -> OperatorLimits | None:
    """What an operator for quantized weights takes on a kind of device; ``None`` where nothing is known.

    Example:
        >>> kernel("cuda:1", "_weight_int4pack_mm").dtypes
        ('bfloat16',)
    """
    return _kernels().get((operator, device_type(device)))


def falls_short(device: torch.device, needs: str) -> str:
    """Why the device at hand lacks what a kernel needs; empty if it has it, or if it is not here to be asked."""
    import torch

    if needs != "compute capability 8.0" or not torch.cuda.is_available() or torch.version.hip:
        return ""
    major, minor = torch.cuda.get_device_capability(device)
    return "" if major >= 8 else f"it needs {needs}, and {device} has {major}.{minor}"


def layout_of(device: str | torch.device) -> str:
    """What the layouts of torch's packed weights depend on: the kind of device, and its processor where that matters.

    torch packs 4-bit weights for the CPU by the vector instructions it finds, with one shape and dtype for all.

    Example:
        >>> layout_of("mps")
        'mps'
        >>> layout_of("cpu").startswith("cpu-")
        True
    """
    import torch

    kind = device_type(device)
    if kind == HOST:
        return f"{kind}-{torch.backends.cpu.get_cpu_capability()}"
    return "rocm" if kind == "cuda" and torch.version.hip else kind


def borrowed(device: str | torch.device, operator: str) -> OperatorLimits | None:
    """What the CPU's kernel takes, where a pretend device that is open borrows it; else ``None``."""
    return kernel(HOST, operator) if pretended_kind() == device_type(device) else None


def _not_borrowed(kind: str, operator: str) -> str:
    """Why a pretend device that is open cannot run what the real one can; empty where none is open."""
    if pretended_kind() != kind:
        return ""
    overload = overloads()[f"aten::{operator}"]
    if overload.composite or "CPU" in overload.kernels:
        return ""
    return f"a pretended {kind} cannot run {operator}, of which torch has no kernel for the CPU to borrow"


@cache
def _has(kind: str, operator: str, release: str | None) -> bool:
    overload = overloads().get(f"aten::{operator}")
    if overload is None or kind not in DEVICES:
        return False
    if kind == HOST:
        return "CPU" in overload.kernels or overload.composite
    known = as_of(rules(kind), release) if release else rules(kind)
    rule = known.operator(f"aten::{operator}")
    return rule.available and not rule.on_cpu


@cache
def _kernels() -> dict[tuple[str, str], OperatorLimits]:
    kernels = fact_file("quantization")["kernels"].items()
    return {(name, device): _limits(name, device, row) for name, devices in kernels for device, row in devices.items()}


def _limits(operator: str, device: str, row: dict[str, Any]) -> OperatorLimits:
    lists: dict[str, Any] = {name: tuple(row[name]) for name in ("dtypes", "groups") if name in row}
    return OperatorLimits(operator, device, **{**row, **lists})
