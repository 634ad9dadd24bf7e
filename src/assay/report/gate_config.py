"""The rules of a gate as they are written: ``accuracy=0.9`` on the command line, and the same in a TOML file."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay._records import read_text
from assay.errors import ConfigError, StateError, describe
from assay.report.gate_result import KINDS, GateRule


@dataclass(frozen=True)
class Settings:
    """What a gate is told besides the report.

    Args:
        rules: the rules.
        baseline: the file of the baseline.
        confidence_level: the confidence level.
        point: whether to judge without intervals.
        min_slice_size: slices of fewer samples are left out; None for what the report says.
    """

    rules: tuple[GateRule, ...] = ()
    baseline: Path | None = None
    confidence_level: float = 0.95
    point: bool = False
    min_slice_size: int | None = None


def parse_rule(kind: str, written: str) -> GateRule:
    """A rule as it stands on the command line.

    Args:
        kind: one of ``KINDS``.
        written: ``metric=number`` or ``metric[slice]=number``; the metric may hold further equals signs.

    Raises:
        ConfigError: there is no equals sign, no metric or no finite number.

    Example:
        >>> parse_rule("min", "digits/accuracy=0.9").bound
        0.9
    """
    metric, _, number = written.rpartition("=")
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not metric.strip() or not math.isfinite(bound):
        do = f"Write --{kind} accuracy=0.9"
        raise ConfigError(describe(f"--{kind}", repr(written), "metric=number", do))
    return GateRule(kind, metric.strip(), bound)


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The settings in a TOML file; its keys are the options of ``assay gate``.

    Args:
        path: the file; a baseline in it is looked for beside it.

    Returns:
        The arguments of `Settings` that the file gives.

    Raises:
        StateError: it is not TOML.
        ConfigError: a key is unknown, or a value is of the wrong kind.
        OSError: it cannot be read.
    """
    where = os.fspath(path)
    data = _toml(read_text(path), where)
    found: dict[str, Any] = {"rules": tuple(_rules(data, where))}
    for key, (name, kinds, expected) in _PLAIN.items():
        if key not in data:
            continue
        value = data[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ConfigError(describe(f"{where}: {key}", repr(value), expected, f"Write {expected} there"))
        found[name] = value
    if "baseline" in found:
        found["baseline"] = Path(path).parent / _path(found["baseline"], where)
    return found


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        got = "tables or lists nested too deeply"
        raise StateError(
            describe(where, got, "one table for each kind of rule", "Write [min] and metric = number")
        ) from error
    except ValueError as error:  # what is no TOML, and integers of more digits than Python reads
        got = f"a file that is not TOML: {error!s:.200}"
        raise StateError(describe(where, got, "TOML", "Correct the line that is named")) from error


def _path(name: str, where: str) -> str:
    if not name or "\0" in name:
        raise ConfigError(describe(f"{where}: baseline", repr(name), "the path of a report", "Name a file"))
    return name


_PLAIN: dict[str, tuple[str, tuple[type, ...], str]] = {
    "baseline": ("baseline", (str,), "the path of a report"),
    "confidence-level": ("confidence_level", (float,), "a number between 0 and 1"),
    "point": ("point", (bool,), "true or false"),
    "min-slice-size": ("min_slice_size", (int,), "a whole number"),
}


def _rules(data: dict[str, Any], where: str) -> Iterable[GateRule]:
    known = (*KINDS, *_PLAIN)
    for key, bounds in data.items():
        if key not in known:
            raise ConfigError(describe(where, f"the key {key!r}", f"one of {', '.join(known)}", "Correct or remove it"))
        if key in _PLAIN:
            continue
        if not isinstance(bounds, dict):
            raise ConfigError(describe(f"{where}: {key}", repr(bounds), "a table of metrics", f"Write [{key}]"))
        for metric, bound in bounds.items():
            if isinstance(bound, bool) or not isinstance(bound, int | float):
                do = 'Quote a name that holds a dot: "top.5" = 0.9'
                raise ConfigError(describe(f"{where}: {key}.{metric}", repr(bound), "a number", do))
            yield GateRule(key, metric, _number(bound, f"{where}: {key}.{metric}"))


def _number(bound: int | float, where: str) -> float:
    try:
        return float(bound)
    except OverflowError as error:
        got = "an integer that is larger than any float"
        raise ConfigError(describe(where, got, "a finite number", "Write a smaller bound")) from error
