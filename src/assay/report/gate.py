"""A gate: what a report must show before something may go on, judged by intervals. It fails closed.

A rule passes where the whole interval is within its bound, fails where the whole interval is beyond, and else there is
not enough evidence. What is missing, undefined, ambiguous or another metric fails: a gate never passes by silence.

All rules must pass, each at the full level. That needs no correction for how many there are: what is unfit passes all
of them no more often than it passes the one that it is unfit for (Berger 1982, Technometrics 24:295).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from assay.errors import ConfigError, describe
from assay.report.evidence import Evidence, Measured, difference, interval_of, why_not_the_same
from assay.report.plain import Plain
from assay.report.report import Report, Section
from assay.report.slices import Slice
from assay.report.stored import to_json
from assay.report.value import Value

SCHEMA = "assay.gate/1"
KINDS = ("min", "max", "max-drop", "max-rise", "worst-slice", "worst-slice-max")
EXIT_CODES = {"pass": 0, "fail": 1, "not enough evidence": 2}
BY_POINT = "judge by the number alone with --point"


@dataclass(frozen=True, eq=False)
class Rule(Plain):
    """One condition.

    Args:
        kind: ``"min"`` and ``"max"`` bound a value; ``"max-drop"`` and ``"max-rise"`` its change against the baseline;
            ``"worst-slice"`` bounds it in every slice from below, ``"worst-slice-max"`` from above.
        metric: its name, or ``section/metric`` where several sections have one of that name.
        bound: the bound, finite; it is itself allowed.

    Raises:
        ConfigError: another kind, or a bound that is not finite.
    """

    kind: str
    metric: str
    bound: float

    def _check(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(describe("Rule.kind", repr(self.kind), f"one of {', '.join(KINDS)}", "Choose one"))
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
        level: the confidence level of the intervals.
        point: whether the numbers were judged without their intervals.
        report: the title of the report.
        baseline: the title of the baseline; empty where there was none.
    """

    outcome: str
    checks: tuple[Check, ...]
    level: float
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
    level: float = 0.95,
    point: bool = False,
    min_slice_size: int = 1,
    seed: int = 0,
) -> Gate:
    """Judge a report by rules.

    Args:
        report: what is judged.
        rules: the rules, or a mapping as in the configuration file: ``{"min": {"accuracy": 0.9}}``.
        baseline: what drops and rises are counted from.
        level: the confidence level of the two-sided intervals.
        point: judge by the numbers alone, without intervals.
        min_slice_size: slices of fewer samples are left out.
        seed: where the random numbers of the bootstrap start.

    Raises:
        ConfigError: there is no rule, or a rule or the level cannot be.

    Example:
        >>> accuracy = Value("accuracy", 0.94, lower=0.92, upper=0.96, level=0.95)
        >>> report = Report("digits", [Section("test", [accuracy])])
        >>> [gate(report, {"min": {"accuracy": bound}}).outcome for bound in (0.9, 0.93, 0.97)]
        ['pass', 'not enough evidence', 'fail']
    """
    if not 0 < level < 1:
        raise ConfigError(describe("level", level, "a number between 0 and 1", "Pass 0.95 for 95 %"))
    listed = tuple(_rules(rules))
    if not listed:
        raise ConfigError(describe("gate", "no rule", f"one or more of {', '.join(KINDS)}", "Say what must hold"))
    judge = _Judge(report, baseline, level, point, min_slice_size, seed)
    checks = tuple(judge.check(rule) for rule in listed)
    outcome = max((check.outcome for check in checks), key=("pass", "not enough evidence", "fail").index)
    return Gate(outcome, checks, level, point, report.title, baseline.title if baseline else "")


def _rules(rules: Rules) -> Iterator[Rule]:
    if not isinstance(rules, Mapping):
        yield from rules
        return
    for kind, bounds in rules.items():
        if not isinstance(bounds, Mapping):
            raise ConfigError(describe(kind, repr(bounds), "metrics and their bounds", "Write metric = number"))
        for metric, bound in bounds.items():
            yield Rule(kind, metric, bound)


@dataclass(frozen=True)
class _Judge:
    report: Report
    baseline: Report | None
    level: float
    point: bool
    min_slice_size: int
    seed: int

    def check(self, rule: Rule) -> Check:
        if rule.kind.startswith("worst-slice"):
            return self._worst_slice(rule)
        found = _find(self.report, rule.metric, lambda section: (value.name for value in section.values))
        if isinstance(found, str):
            return Check(rule, "fail", reason=found)
        section, name = found
        measured = _measured(section, name)
        if isinstance(measured, str):
            return Check(rule, "fail", f"{section.name}/{name}", reason=measured)
        if rule.kind in ("max-drop", "max-rise"):
            return self._change(rule, section.name, measured)
        return self._judged(rule, f"{section.name}/{name}", measured.value.value, lambda: self._interval(measured))

    def _interval(self, measured: Measured) -> Evidence:
        return interval_of(measured, self.level, self.seed)

    def _change(self, rule: Rule, section: str, measured: Measured) -> Check:
        where = f"{section}/{measured.value.name}"
        before = self._before(section, measured)
        if isinstance(before, str):
            return Check(rule, "fail", where, reason=before)
        change = measured.value.value - before.value.value
        return self._judged(rule, where, change, lambda: difference(before, measured, self.level, self.seed))

    def _before(self, section: str, measured: Measured) -> Measured | str:
        if self.baseline is None:
            return "no baseline was given"
        there = next((each for each in self.baseline.sections if each.name == section), Section(section))
        before = _measured(there, measured.value.name)
        if isinstance(before, str):
            return f"in the baseline: {before}"
        why = why_not_the_same(before, measured)
        return f"the baseline has another metric of this name: {why}" if why else before

    def _judged(self, rule: Rule, where: str, value: float, evidence: Callable[[], Evidence]) -> Check:
        """Hold a number against the bound of a rule; the interval is made only where it is asked for."""
        if not math.isfinite(value):
            return Check(rule, "fail", where, value, reason="undefined or infinite")
        sign = -1.0 if rule.kind in ("max", "max-rise", "worst-slice-max") else 1.0
        bound = -rule.bound if rule.kind in ("max-drop",) else sign * rule.bound
        if self.point:
            return Check(rule, "pass" if sign * value >= bound else "fail", where, value)
        found = evidence()
        if found.lower is None or found.upper is None or math.isnan(found.lower) or math.isnan(found.upper):
            reason = f"no interval: {found.note or 'too few samples'}; {BY_POINT}"
            return Check(rule, "not enough evidence", where, value, reason=reason)
        low, high = sorted((sign * found.lower, sign * found.upper))
        outcome = "pass" if low >= bound else "fail" if high < bound else "not enough evidence"
        reason = "the bound is within the interval" if outcome == "not enough evidence" else ""
        reason = "; ".join(part for part in (reason, found.note) if part)
        return Check(rule, outcome, where, value, found.lower, found.upper, found.method, reason)

    def _worst_slice(self, rule: Rule) -> Check:
        found = _find(self.report, rule.metric, _names_in_slices)
        if isinstance(found, str):
            return Check(rule, "fail", reason=f"in slices: {found}")
        section, name = found
        large = [each for each in section.slices if each.count >= self.min_slice_size]
        if not large:
            reason = f"none of {len(section.slices)} slices has {self.min_slice_size} samples"
            return Check(rule, "fail", f"{section.name}/{name}", reason=reason)
        checks = [self._slice(rule, section, name, each) for each in large]
        for outcome in ("fail", "not enough evidence", "pass"):
            if alike := [check for check in checks if check.outcome == outcome]:
                return self._worst(rule, alike, len(large), len(section.slices) - len(large))
        raise AssertionError(checks)

    def _slice(self, rule: Rule, section: Section, name: str, part: Slice) -> Check:
        where = f"{section.name}/{name} in {part.name!r} (n = {part.count:,})"
        value = next((value for value in part.values if value.name == name), None)
        if value is None:
            return Check(rule, "fail", where, reason="missing")
        members = None if part.members is None else part.members.values
        measured = Measured(value, section.samples if part.members is not None else None, members)
        return self._judged(rule, where, value.value, lambda: self._interval(measured))

    @staticmethod
    def _worst(rule: Rule, alike: list[Check], judged: int, left_out: int) -> Check:
        sign = -1.0 if rule.kind == "worst-slice-max" else 1.0
        values = [
            -math.inf if check.value is None or math.isnan(check.value) else sign * check.value for check in alike
        ]
        worst = alike[values.index(min(values))]
        said = f"{len(alike):,} of {judged:,} slices: {worst.outcome}, this is the worst"
        said += f"; {left_out:,} too small" if left_out else ""
        return replace(worst, reason="; ".join(part for part in (worst.reason, said) if part))


def _measured(section: Section, name: str) -> Measured | str:
    values: list[Value] = [value for value in section.values if value.name == name]
    if len(values) != 1:
        return f"{len(values)} metrics of this name" if values else "missing"
    return Measured(values[0], section.samples)


def _names_in_slices(section: Section) -> Iterator[str]:
    for each in section.slices:
        yield from (value.name for value in each.values)


def _find(report: Report, name: str, names: Callable[[Section], Iterable[str]]) -> tuple[Section, str] | str:
    """The section and the metric that a rule names, or why there is none: exact names first, then without case."""
    there = [(section, each) for section in report.sections for each in dict.fromkeys(names(section))]
    for form in (str, str.casefold):
        wanted = form(name)
        fit = [(s, each) for s, each in there if wanted in (form(each), form(f"{s.name}/{each}"))]
        if len(fit) == 1:
            return fit[0]
        if fit:
            return f"ambiguous: name one of {', '.join(f'{section.name}/{each}' for section, each in fit)}"
    known = ", ".join(f"{section.name}/{each}" for section, each in there) or "nothing"
    return f"missing: there is {known:.400}"
