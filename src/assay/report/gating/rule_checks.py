"""How a gate judges one rule: what it is about, the number, its interval, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from assay.errors import ConfigError, describe
from assay.report.gating.gate_result import RATIOS, GateCheck, GateRule
from assay.report.gating.group_checks import GroupChecker
from assay.report.inference.evidence import Evidence
from assay.report.inference.measured_value import MeasuredValue, why_not_the_same
from assay.report.inference.named_values import find_metric, fits, names_in_slices, names_of_values, value_of
from assay.report.inference.pairing import REPORT, SAMPLES, have_equal_samples
from assay.report.inference.sequential import SequentialIntervals
from assay.report.inference.tests_and_intervals import difference, interval_of
from assay.report.per_sample.packed_array import Array
from assay.report.per_sample.samples import align
from assay.report.report import Report
from assay.report.section import Section
from assay.report.slices import Slice, spaced

BY_POINT = "judge by the number alone with --point"
CHANGES = ("max-drop", "max-rise", *RATIOS)
FROM_ABOVE = ("max", "max-rise", "max-ratio", "worst-slice-max")


@dataclass(frozen=True, eq=False)
class RuleChecker:
    """A report, and how it is judged; the arguments are those of `gate`."""

    report: Report
    baseline: Report | None
    confidence_level: float
    point: bool
    min_slice_size: int | None
    sequential: SequentialIntervals | None = None
    pairings: dict[str, tuple[Array | str | None, str]] = field(default_factory=dict)

    def check(self, rule: GateRule) -> GateCheck:
        """What becomes of a rule."""
        metric, pattern = self._parts(rule)
        if pattern:
            return self._groups(rule, metric, pattern) or self._slices(rule, metric, pattern)
        values = find_metric(self.report, metric, names_of_values)
        if isinstance(values, str):
            return GateCheck(rule, "fail", reason=values)
        return self._number(rule, values[0], values[1], None)

    def _parts(self, rule: GateRule) -> tuple[str, str]:
        """The metric and the pattern of the slices; a metric whose own name holds brackets comes first."""
        in_slices = rule.kind.startswith("worst-slice")
        name, _, pattern = rule.metric.removesuffix("]").partition("[")
        is_sliced = bool(rule.metric.endswith("]") and name.strip() and pattern.strip())
        if not is_sliced or not isinstance(find_metric(self.report, rule.metric, names_of_values), str):
            return rule.metric, "*" if in_slices else ""
        return name.strip(), pattern.strip()

    def _groups(self, rule: GateRule, metric: str, pattern: str) -> GateCheck | None:
        """Judge the groups of a table, where a pattern begins with its column and no slice fits it."""
        column, _, group = spaced(pattern).partition(" = ")

        def names(section: Section) -> Iterator[str]:
            return (each.name for table in section.by if table.name == column for each in table.metrics)

        sections = self.report.sections
        if not any(map(any, map(names, sections))) or any(fits(p.name, pattern) for s in sections for p in s.slices):
            return None
        found = find_metric(self.report, metric, names)
        if isinstance(found, str):
            return GateCheck(rule, "fail", reason=f"by {column}: {found}")
        section, name = found
        table = next(each for each in section.by if each.name == column)
        _check_direction(rule, table.metric(name).higher_is_better)
        if rule.kind in CHANGES:
            reason = f"changes by {column} are not judged: compare lists the groups that changed; slices are judged"
            return GateCheck(rule, "fail", f"{section.name}/{name}", reason=reason)
        least = section.min_slice_size if self.min_slice_size is None else self.min_slice_size
        in_clusters = section.samples is not None and section.samples.clusters is not None
        level = None if in_clusters or self.sequential else self.confidence_level
        return GroupChecker(rule, section.name, table, table.metric(name), least, level, self.point).check(group)

    def _number(self, rule: GateRule, section: Section, name: str, part: Slice | None) -> GateCheck:
        """Judge one metric, of all samples or of a slice."""
        where = f"{section.name}/{name}" + ("" if part is None else f" in {part.name!r} (n = {part.count:,})")
        measured = value_of(section, name, part)
        if isinstance(measured, str):
            return GateCheck(rule, "fail", where, reason=measured)
        _check_direction(rule, measured.value.higher_is_better)
        if rule.kind not in CHANGES:
            return self._check(rule, where, measured.value.value, lambda: self._interval(measured))
        before = self._before(section, measured, part)
        if isinstance(before, str):
            return GateCheck(rule, "fail", where, reason=before)
        _check_direction(rule, before.value.higher_is_better)
        if rule.kind in RATIOS:
            return self._ratio(rule, where, section, before, measured)
        change = measured.value.value - before.value.value
        return self._check(rule, where, change, lambda: self._difference(section, before, measured))

    def _ratio(
        self, rule: GateRule, where: str, section: Section, before: MeasuredValue, measured: MeasuredValue
    ) -> GateCheck:
        """Judge ``b / a`` by the interval of ``b - bound a``, divided by ``a``: exact at the bound (Fieller 1954)."""
        baseline = before.value.value
        if not 0 < baseline < math.inf:
            reason = f"the baseline is {baseline:g}, and ratios are of positive values: bound the change"
            return GateCheck(rule, "fail", where, reason=reason)

        def evidence() -> Evidence:
            apart = self._difference(section, before.scaled(rule.bound), measured)
            if apart.lower is None or apart.upper is None:
                return apart
            lower, upper = (rule.bound + end / baseline for end in (apart.lower, apart.upper))
            return replace(apart, lower=lower, upper=upper)

        return self._check(rule, where, measured.value.value / baseline, evidence)

    def _interval(self, measured: MeasuredValue) -> Evidence:
        return self.sequential.of(measured) if self.sequential else interval_of(measured, self.confidence_level)

    def _difference(self, section: Section, before: MeasuredValue, measured: MeasuredValue) -> Evidence:
        if self.sequential is not None and not self._is_baseline:
            return self.sequential.difference(before, measured)
        whole, equal = self._pairing(section)
        return difference(before, measured, self.confidence_level, whole=whole, equal=equal, safe=True)

    @cached_property
    def _is_baseline(self) -> bool:
        """Whether the report is compared with itself."""
        return self.report == self.baseline

    def _pairing(self, section: Section) -> tuple[Array | str | None, str]:
        """Which samples of the baseline are those of a section, and what is equal; found once, for all slices."""
        if section.name not in self.pairings:
            there = self._baseline_of(section).samples
            whole = None if section.samples is None or there is None else align(there, section.samples)
            equal = SAMPLES if have_equal_samples(there, section.samples, whole) else ""
            self.pairings[section.name] = whole, REPORT if self._is_baseline else equal
        return self.pairings[section.name]

    def _before(self, section: Section, measured: MeasuredValue, part: Slice | None) -> MeasuredValue | str:
        if self.baseline is None:
            return "no baseline was given"
        there = self._baseline_of(section)
        slices = [] if part is None else [each for each in there.slices if each.name == part.name]
        if part is not None and not slices:
            return "in the baseline: no such slice"
        before = value_of(there, measured.value.name, slices[0] if slices else None)
        if isinstance(before, str):
            return f"in the baseline: {before}"
        why = why_not_the_same(before, measured)
        return f"the baseline has another metric of this name: {why}" if why else before

    def _baseline_of(self, section: Section) -> Section:
        sections = () if self.baseline is None else self.baseline.sections
        return next((each for each in sections if each.name == section.name), Section(section.name))

    def _check(self, rule: GateRule, where: str, value: float, evidence: Callable[[], Evidence]) -> GateCheck:
        """Hold a number against the bound of a rule; the interval is made only where it is asked for."""
        if not math.isfinite(value):
            return GateCheck(rule, "fail", where, value, reason="undefined or infinite")
        sign = _sign(rule)
        bound = -rule.bound if rule.kind == "max-drop" else sign * rule.bound
        if self.point:
            return GateCheck(rule, "pass" if sign * value >= bound else "fail", where, value)
        result = evidence()
        if result.lower is None or result.upper is None or math.isnan(result.lower) or math.isnan(result.upper):
            reason = f"no interval: {result.note or 'too few samples'}; {BY_POINT}"
            return GateCheck(rule, "not enough evidence", where, value, reason=reason)
        ends = ("lower", result.lower), ("upper", result.upper)
        (near, low), (far, high) = ((name, sign * end) for name, end in (ends if sign > 0 else ends[::-1]))
        outcome, reason = "not enough evidence", "the bound is within the interval"
        if low >= bound and sign * value >= bound:
            outcome, reason = ("pass", "") if result.risky not in (near, "both") else (outcome, _risk(result.risky))
        elif high < bound:
            outcome, reason = ("fail", "") if result.risky not in (far, "both") else (outcome, _risk(result.risky))
        reason = "; ".join(part for part in (reason, result.note) if part)
        return GateCheck(rule, outcome, where, value, result.lower, result.upper, result.method, reason)

    def _slices(self, rule: GateRule, metric: str, pattern: str) -> GateCheck:
        """Judge every slice that a pattern names, and tell of the worst; one that is gone fails."""
        values = find_metric(self.report, metric, names_in_slices)
        if isinstance(values, str):
            is_sliced = any(section.slices for section in self.report.sections)
            return GateCheck(rule, "fail", reason=f"in slices: {values}" if is_sliced else _nothing_by(self.report))
        section, name = values
        for part in section.slices:
            if part.name == pattern:
                return self._number(rule, section, name, part)
        least = section.min_slice_size if self.min_slice_size is None else self.min_slice_size
        fit = [part for part in section.slices if fits(part.name, pattern)]
        large = [part for part in fit if part.count >= least]
        checks = [self._number(rule, section, name, part) for part in large]
        checks += self._absent(rule, section, name, pattern, least)
        if not checks:
            reason = f"none of {len(fit)} slices has {least} samples" if fit else _no_slice(section, pattern)
            return GateCheck(rule, "fail", f"{section.name}/{name}", reason=reason)
        for outcome in ("fail", "not enough evidence", "pass"):
            if same := [check for check in checks if check.outcome == outcome]:
                return _worst(rule, same, len(checks), len(fit) - len(large))
        raise AssertionError(checks)

    def _absent(self, rule: GateRule, section: Section, name: str, pattern: str, least: int) -> Iterator[GateCheck]:
        """Slices of the baseline that a change is asked of, and that the report lacks."""
        if rule.kind not in CHANGES:
            return
        here = {part.name for part in section.slices}
        for part in self._baseline_of(section).slices:
            if part.name not in here and part.count >= least and fits(part.name, pattern):
                yield GateCheck(
                    rule, "fail", f"{section.name}/{name} in {part.name!r}", reason="missing: the baseline has it"
                )


def _risk(risky: str) -> str:
    """Why an interval that is within the bound, or beyond it, does not decide."""
    if risky == "both":
        return f"too few samples for an interval that holds its level; {BY_POINT}"
    return f"too few samples for how skewed they are: the {risky} end may miss more often than its level; {BY_POINT}"


def _check_direction(rule: GateRule, higher_is_better: bool | None) -> None:
    """Raise where a rule asks for the change, or the slice, that is no loss for this metric.

    Raises:
        ConfigError: a drop of a metric that is better the lower it is, say.
    """
    if_higher = {"max-rise": "max-drop", "max-ratio": "min-ratio", "worst-slice-max": "worst-slice"}
    if_lower = {right: wrong for wrong, right in if_higher.items()}
    instead = None if higher_is_better is None else (if_higher if higher_is_better else if_lower).get(rule.kind)
    if instead is not None:
        got = f"a metric of which {'higher' if higher_is_better else 'lower'} is better"
        do = f"Use {instead}, or min and max, which name a bound and no direction"
        raise ConfigError(describe(f"{rule.kind} {rule.metric}", got, "one that gets worse that way", do))


def _sign(rule: GateRule) -> float:
    return -1.0 if rule.kind in FROM_ABOVE else 1.0


def _worst(rule: GateRule, same: list[GateCheck], judged: int, left_out: int) -> GateCheck:
    sign = _sign(rule)
    values = [-math.inf if check.value is None or math.isnan(check.value) else sign * check.value for check in same]
    worst = same[values.index(min(values))]
    summary = f"{len(same):,} of {judged:,} slices: {worst.outcome}, this is the worst"
    summary += f"; {left_out:,} too small" if left_out else ""
    return replace(worst, reason="; ".join(part for part in (worst.reason, summary) if part))


def _nothing_by(report: Report) -> str:
    columns = dict.fromkeys(table.name for section in report.sections for table in section.by)
    return "missing: the report has no slices" + (f"; its groups are by {', '.join(columns)}" if columns else "")


def _no_slice(section: Section, pattern: str) -> str:
    there = ", ".join(repr(part.name) for part in section.slices) or "none"
    return f"missing: no slice {pattern!r}; there is {there:.400}"
