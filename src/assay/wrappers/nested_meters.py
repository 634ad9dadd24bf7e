"""Meters that are part of something: checked, and saved in one state dictionary."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from assay.errors import StateError, describe
from assay.meter import Meter


def save_meters(meters: Mapping[str, Meter]) -> dict[str, Tensor]:
    """What meters have counted, as tensors on the CPU, named `"<name>/<tensor>"`."""
    return {f"{name}/{key}": tensor for name, meter in meters.items() for key, tensor in meter.state_dict().items()}


def load_meters(state: Mapping[str, Tensor], empty: Callable[[str], Meter | None]) -> dict[str, Meter]:
    """New meters with what `saved` gave.

    Args:
        state: tensors by name.
        empty: a meter that has counted nothing, for each name; None for a name that is not known.

    Raises:
        StateError: a name is not known, or a meter does not take its part.
    """
    parts: dict[str, dict[str, Tensor]] = {}
    for key, tensor in state.items():
        name, _, rest = str(key).partition("/")
        parts.setdefault(name, {})[rest] = tensor
    meters = {}
    for name, part in parts.items():
        meter = empty(name)
        if meter is None:
            do = "Load it into what state_dict was called on, made with the same arguments"
            raise StateError(describe("state_dict", f"a part named {name!r}", "the parts of this one", do))
        meter.load_state_dict(part)
        meters[name] = meter
    return meters


def require_meter(name: str, value: object) -> Meter:
    """What was given, which must be a meter.

    Raises:
        StateError: it is none.
    """
    if isinstance(value, Meter):
        return value
    got = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    raise StateError(describe(name, got, "a meter", "Write Meter(acc=Accuracy(num_classes=10))"))
