"""A gate: what a report must show before something may go on, judged by intervals. It fails closed.

A rule passes where the whole interval is within its bound, fails where the whole interval is beyond, and else there is
not enough evidence. What is missing, undefined, ambiguous or another metric fails: a gate never passes by silence.

All rules must pass, each at the full level. That needs no correction for how many there are: what is unfit passes all
of them no more often than it passes the one that it is unfit for (Berger 1982, Technometrics 24:295).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from assay.errors import ConfigError, describe
from assay.report.plain import Plain
from assay.report.report import Report
from assay.report.stored import to_json

SCHEMA = "assay.gate/1"
KINDS = ("min", "max", "max-drop", "max-rise", "worst-slice", "worst-slice-max")
EXIT_CODES = {"pass": 0, "fail": 1, "not enough evidence": 2}


@dataclass(frozen=True, eq=False)
class Rule(Plain):
    """One condition.

    Args:
        kind: ``"min"`` and ``"max"`` bound a value; ``"max-drop"`` and ``"max-rise"`` its change against the baseline;
            ``"worst-slice"`` bounds it in every slice from below, ``"worst-slice-max"`` from above.
        metric: its name, or ``section/metric`` where several sections have one of that name. ``metric[slice]`` is that
            of one slice, ``metric[language = *]`` that of every slice whose name fits; the worst of them is told.
        bound: the bound, finite; it is itself allowed.

    Raises:
        ConfigError: another kind, no name of a metric, or a bound that is not finite.
    """

    kind: str
    metric: str
    bound: float

    def _check(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(
                describe(
                    "Rule.kind", repr(self.kind), f"one of {', '.join(KINDS)}", "Pass kind='min' for a lower bound"
                )
            )
        if not self.metric.strip():
            raise ConfigError(describe(f"Rule.metric of {self.kind}", repr(self.metric), "a name", "Name a metric"))
        if not math.isfinite(self.bound):
            raise ConfigError(
                describe(f"{self.kind} {self.metric}", self.bound, "a finite number", "Correct the bound")
            )


@dataclass(frozen=True, eq=False)
class Check(Plain):
    """What became of a rule.

    Args:
        rule: the rule.
        outcome: ``"pass"``, ``"fail"`` or ``"not enough evidence"``.
        where: what was looked at: ``section/metric``, with the slice where there is one; empty where nothing was found.
        value: the number that was judged: a value, or a change against the baseline; None where there is none.
        lower: the lower end of its interval; None where there is none.
        upper: the upper end.
        method: how the interval was found.
        reason: why this is the outcome, where the numbers do not say it.
    """

    rule: Rule
    outcome: str
    where: str = ""
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    method: str = ""
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Gate(Plain):
    """What a gate said.

    Args:
        outcome: ``"pass"`` where every check passed, ``"fail"`` where one failed, else ``"not enough evidence"``.
        checks: what became of each rule.
        confidence_level: of the intervals.
        point: whether the numbers were judged without their intervals.
        report: the title of the report.
        baseline: the title of the baseline; empty where there was none.
    """

    outcome: str
    checks: tuple[Check, ...]
    confidence_level: float
    point: bool
    report: str
    baseline: str = ""

    @property
    def exit_code(self) -> int:
        """0 for a pass, 1 for a failure, 2 for not enough evidence."""
        return EXIT_CODES[self.outcome]

    def to_json(self) -> str:
        """What the gate said as JSON, schema ``assay.gate/1``."""
        return to_json(self, SCHEMA)

    def show(self) -> None:
        """Print what the gate said."""
        from assay.report.gate_show import show

        show(self)


Rules: TypeAlias = Mapping[str, Mapping[str, float]] | Iterable[Rule]


def gate(
    report: Report,
    rules: Rules,
    baseline: Report | None = None,
    *,
    confidence_level: float = 0.95,
    point: bool = False,
    min_slice_size: int | None = None,
) -> Gate:
    """Judge a report by rules.

    Args:
        report: what is judged.
        rules: the rules, or a mapping as in the configuration file: ``{"min": {"accuracy": 0.9}}``.
        baseline: what drops and rises are counted from.
        confidence_level: of the two-sided intervals.
        point: judge by the numbers alone, without intervals.
        min_slice_size: slices of fewer samples are left out, but for one that is named; what the section says, unless
            given.

    Raises:
        ConfigError: no rule, an invalid one or confidence level, or a rule that asks for a change or a slice that is no
            loss for its metric: ``max-drop`` where lower is better.

    Example:
        >>> from assay.report import Section, Value
        >>> accuracy = Value("accuracy", 0.94, lower=0.92, upper=0.96, confidence_level=0.95)
        >>> report = Report("digits", [Section("test", [accuracy])])
        >>> [gate(report, {"min": {"accuracy": bound}}).outcome for bound in (0.9, 0.93, 0.97)]
        ['pass', 'not enough evidence', 'fail']
    """
    if not 0 < confidence_level < 1:
        raise ConfigError(
            describe("confidence_level", confidence_level, "a number between 0 and 1", "Pass 0.95 for 95 %")
        )
    if min_slice_size is not None and min_slice_size < 0:
        do = "Pass 0 to judge slices of any size"
        raise ConfigError(describe("min_slice_size", min_slice_size, "a number of samples", do))
    listed = tuple(_rules(rules))
    if not listed:
        raise ConfigError(describe("gate", "no rule", f"one or more of {', '.join(KINDS)}", "Say what must hold"))
    from assay.report.judge import Judge

    judge = Judge(report, baseline, confidence_level, point, min_slice_size)
    checks = tuple(judge.check(rule) for rule in listed)
    outcome = max((check.outcome for check in checks), key=("pass", "not enough evidence", "fail").index)
    return Gate(outcome, checks, confidence_level, point, report.title, baseline.title if baseline else "")


def _rules(rules: Rules) -> Iterator[Rule]:
    if not isinstance(rules, Mapping):
        yield from rules
        return
    for kind, bounds in rules.items():
        if not isinstance(bounds, Mapping):
            raise ConfigError(describe(kind, repr(bounds), "metrics and their bounds", "Write metric = number"))
        for metric, bound in bounds.items():
            yield Rule(kind, metric, bound)
