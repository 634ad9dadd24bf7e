"""``assay gate``: whether a stored report is good enough."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import typer

from assay.cli.config import read_config
from assay.cli.declaration import options_of, same_named
from assay.cli.options.reports import GateCommand
from assay.cli.output import print_as
from assay.errors import ConfigError, describe
from assay.report import gate
from assay.report.gating.gate_result import KINDS, GateRule


def run(options: GateCommand) -> None:
    """Judge a report, print the checks, and exit with 0 (pass), 1 (fail) or 2 (cannot say)."""
    options, digest = _locked(options)
    ranges = dict(map(parse_range, options.range))
    result = gate(options.report, rules_of(options), **same_named(gate, options, ranges=ranges))
    print_as(replace(result, rules_sha256=digest), options)
    raise typer.Exit(result.exit_code)


def _locked(options: GateCommand) -> tuple[GateCommand, str]:
    """The options with those of the locked file, and its digest; as they are where none is locked.

    Raises:
        ConfigError: the command line or another file says more than which report and baseline to judge.
    """
    if options.locked is None:
        return options, ""
    given = {name: getattr(options, name) for name in ("report", "baseline", "json", "markdown", "locked")}
    if options != GateCommand(**given):
        do = "Write them into the locked file, and fix it anew"
        raise ConfigError(describe("--locked", "rules or options of another place", "none", do))
    content = options.locked.read_bytes()
    values = read_config(options.locked, options_of(GateCommand))
    once = {name for name, value in given.items() if value is not None and name in values}
    if once | set(values) & {"report", "locked", "json", "markdown"} or not rules_of(GateCommand(**values)):
        expected = "rules, and options of how to judge"
        raise ConfigError(describe(str(options.locked), ", ".join(values) or "nothing", expected, "Write min.accuracy"))
    known = {name: value for name, value in given.items() if value is not None}
    return GateCommand(**(values | known)), hashlib.sha256(content).hexdigest()


def rules_of(options: GateCommand) -> tuple[GateRule, ...]:
    """The rules, of which a later one replaces an earlier one of the same kind and metric."""
    rules = {}
    for kind in KINDS:
        for written in getattr(options, kind.replace("-", "_")):
            rule = parse_rule(kind, written)
            rules[kind, rule.metric] = rule
    return tuple(rules.values())


def parse_rule(kind: str, written: str) -> GateRule:
    """A rule as it stands on the command line.

    Args:
        kind: one of ``KINDS``.
        written: ``metric=number`` or ``metric[slice]=number``; the metric may hold further equals signs.

    Example:
        >>> parse_rule("min", "digits/accuracy=0.9").bound
        0.9
    """
    do = f"Write --{kind} accuracy=0.9"
    return GateRule(kind, *metric_and_number(f"--{kind}", written, do))


def parse_range(written: str) -> tuple[str, tuple[float, float]]:
    """A metric with the range of its samples, as it stands on the command line.

    Example:
        >>> parse_range("loss=0,10")
        ('loss', (0.0, 10.0))
    """
    start, comma, high = written.rpartition(",")
    do = "Write --range loss=0,10"
    if not comma:
        raise ConfigError(describe("--range", repr(written), "metric=low,high", do))
    metric, low = metric_and_number("--range", start, do)
    return metric, (low, metric_and_number("--range", f"{metric}={high}", do)[1])


def metric_and_number(option: str, written: str, do: str) -> tuple[str, float]:
    """A metric with a number, as an option takes them.

    Args:
        option: how a message names the option.
        written: ``metric=number``; the metric may hold further equals signs.
        do: what a message says to do.

    Example:
        >>> metric_and_number("--min", "a=b=0.9", "Write --min a=0.9")
        ('a=b', 0.9)
    """
    metric, _, number = written.rpartition("=")
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not metric.strip() or not math.isfinite(bound):
        raise ConfigError(describe(option, repr(written), "metric=number", do))
    return metric.strip(), bound
