"""What each kind of device can do: a pure look-up of dated facts, each with its reason and its source.

The facts are data, one TOML file a device in ``known/``. Looking one up imports no torch and asks no device; whether
the device at hand keeps the promise is for :mod:`assay.devices.selftest` to find out.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from assay.devices.kinds import DEVICES
from assay.errors import ConfigError, describe

if TYPE_CHECKING:
    import torch

FEATURES = {
    "float64": "tensors and arithmetic in float64",
    "float16": "tensors and arithmetic in float16",
    "bfloat16": "tensors and arithmetic in bfloat16",
    "complex64": "tensors and arithmetic in complex64",
    "complex128": "tensors and arithmetic in complex128",
    "int64_reductions": "exact sums of int64",
    "int64_scatter": "exact index_add_ and scatter_add_ of int64",
    "int64_cumsum": "exact cumulative sums of int64",
    "frexp": "torch.frexp",
    "bincount_without_sync": "torch.bincount without waiting for the device",
    "deterministic_scatter": "the same bits from every scatter_add_ of floats",
    "deterministic_cumsum": "the same bits from every cumsum of floats",
    "non_blocking_copies": "copies with non_blocking=True",
    "pinned_memory": "host memory that the device can read (pin_memory)",
    "strided_copies_to_host": "right copies of non-contiguous tensors to the CPU",
}


@dataclass(frozen=True)
class Fact:
    """Whether a kind of device has a feature, and how we know.

    Attributes:
        device: the device type, such as ``"mps"``.
        feature: one of :data:`FEATURES`.
        supported: ``True``, ``False``, ``"partial"`` (see ``why``), or ``None`` where nothing is known.
        since: the first version of torch for which this holds, or empty.
        why: the reason, or the condition.
        source: where it is documented: a repository's issue, a document, a source file.
    """

    device: str
    feature: str
    supported: bool | Literal["partial"] | None
    since: str = ""
    why: str = ""
    source: str = ""

    def __str__(self) -> str:
        answer = {True: "yes", False: "no", None: "not known"}.get(self.supported, "partly")  # type: ignore[arg-type]
        since = f" (since torch {self.since})" if self.since else ""
        why = f": {self.why}" if self.why and self.supported is not None else ""
        return f"{self.feature} on {self.device}: {answer}{since}{why}"


@dataclass(frozen=True)
class FactSheet:
    """A kind of device, the torch version and the date of its facts, and whether they were tried on a real one."""

    type: str
    name: str
    torch: str
    checked: str
    tested: bool


def supports(device: str | torch.device, feature: str) -> Fact:
    """Look up whether a kind of device has a feature.

    Args:
        device: a device or its name; the index does not matter.
        feature: one of :data:`FEATURES`.

    Returns:
        The fact. ``supported`` is ``None`` for a device or a feature of which nothing is known.

    Raises:
        ConfigError: there is no such feature.

    Example:
        >>> fact = supports("mps", "float64")
        >>> fact.supported, fact.source
        (False, 'pytorch/pytorch#122602')
        >>> print(supports("tpu", "float64"))
        float64 on tpu: not known
    """
    if feature not in FEATURES:
        raise ConfigError(describe("feature", repr(feature), f"one of {', '.join(FEATURES)}", "Check the spelling"))
    kind = device_type(device)
    return _facts(kind).get(feature, Fact(kind, feature, None, why="not known"))


def facts(device: str | torch.device) -> tuple[Fact, ...]:
    """All facts about a kind of device, in the order of :data:`FEATURES`."""
    return tuple(supports(device, feature) for feature in FEATURES)


def kind(device: str | torch.device) -> FactSheet | None:
    """Name, date and torch version of the facts about a kind of device; ``None`` for a device that is not known."""
    data = _read(device_type(device)).get("device")
    return FactSheet(**{**data, "checked": str(data["checked"])}) if data else None


def device_type(device: str | torch.device) -> str:
    """The type of a device, ``"cuda"`` for ``"cuda:1"``, without importing torch."""
    return str(device).partition(":")[0]


@cache
def _facts(device: str) -> dict[str, Fact]:
    return {feature: Fact(device, feature, **fact) for feature, fact in _read(device).get("facts", {}).items()}


def _read(device: str) -> dict[str, Any]:
    return fact_file(device) if device in DEVICES else {}


@cache
def fact_file(name: str) -> dict[str, Any]:
    """The facts of a file in ``known/``."""
    return tomllib.loads(files("assay.devices").joinpath("known", f"{name}.toml").read_text(encoding="utf-8"))
