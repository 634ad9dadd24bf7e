"""A plan read from its JSON again, checked as a whole before any of it is believed."""

from __future__ import annotations

import json
from typing import Any

from assay.errors import ConfigError, StateError, describe
from assay.quantize.planning.plan import FORM, LayerPlan, Others, Plan
from assay.quantize.scheme import Scheme

_DO = "Write it again with assay quantize --plan --json, or Plan.to_json"


def from_json(text: str, where: str) -> Plan:
    """The plan that `Plan.to_json` wrote.

    Raises:
        StateError: the text was cut short, is no plan, or contradicts itself.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StateError(describe(where, f"no JSON ({error})", "a plan", _DO)) from error
    if not isinstance(data, dict) or data.get("plan") != FORM:
        version = data.get("plan") if isinstance(data, dict) else type(data).__name__
        raise StateError(describe(where, f"plan: {version!r}", f"plan: {FORM}", _DO))
    try:
        result = _plan(data)
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        got = f"a part that cannot be read ({type(error).__name__}: {error})"
        raise StateError(describe(where, got, "the fields of a plan", _DO)) from error
    if json.loads(result.to_json()) != data:
        differing = [key for key, value in json.loads(result.to_json()).items() if data.get(key) != value]
        got = f"values that do not follow from the layers ({', '.join(differing) or 'further fields'})"
        raise StateError(describe(where, got, "the totals of its layers", _DO))
    return result


def _plan(data: dict[str, Any]) -> Plan:
    return Plan(
        layers=tuple(map(_layer, data["layers"])),
        others=tuple(Others(**each) for each in data["others"]),
        device=data["device"],
        dtype=data["dtype"],
        method=data["method"],
        torch=data["torch"],
        notes=tuple(data["notes"]),
    )


def _layer(data: dict[str, Any]) -> LayerPlan:
    rows, columns = data["shape"]
    return LayerPlan(
        **data
        | {
            "shape": (rows, columns),
            "scheme": None if data["scheme"] is None else Scheme.parse(data["scheme"]),
            "kernels": tuple((start, name) for start, name in data["kernels"]),
            "tied": tuple(data["tied"]),
        }
    )
