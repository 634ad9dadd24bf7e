"""How a gate judges one rule: what it is about, the number, its interval, and the outcome."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from assay.report.evidence import Evidence, Measured, difference, interval_of, why_not_the_same
from assay.report.gate import Check, Rule
from assay.report.packed import Array
from assay.report.report import Report, Section
from assay.report.samples import align
from assay.report.slices import Slice
from assay.report.value import Value

BY_POINT = "judge by the number alone with --point"
CHANGES = ("max-drop", "max-rise")
FROM_ABOVE = ("max", "max-rise", "worst-slice-max")

_SLICED = re.compile(r"(.+?)\s*\[(.+)\]", re.DOTALL)  # accuracy[language = de]


@dataclass(frozen=True)
class Judge:
    """A report, and how it is judged; the arguments are those of `gate`."""

    report: Report
    baseline: Report | None
    level: float
    point: bool
    min_slice_size: int | None
    seed: int
    aligned: dict[str, Array | str] = field(default_factory=dict)

    def check(self, rule: Rule) -> Check:
        """What becomes of a rule."""
        metric, pattern = self._parts(rule)
        if pattern:
            return self._slices(rule, metric, pattern)
        found = _find(self.report, metric, _names)
        if isinstance(found, str):
            return Check(rule, "fail", reason=found)
        return self._number(rule, found[0], found[1], None)

    def _parts(self, rule: Rule) -> tuple[str, str]:
        """The metric and the pattern of the slices; a metric whose own name holds brackets comes first."""
        in_slices = rule.kind.startswith("worst-slice")
        sliced = _SLICED.fullmatch(rule.metric)
        if sliced is None or not isinstance(_find(self.report, rule.metric, _names), str):
            return rule.metric, "*" if in_slices else ""
        return sliced[1], sliced[2].strip()

    def _number(self, rule: Rule, section: Section, name: str, part: Slice | None) -> Check:
        """Judge one metric, of all samples or of a slice."""
        where = f"{section.name}/{name}" + ("" if part is None else f" in {part.name!r} (n = {part.count:,})")
        measured = _measured(section, name, part)
        if isinstance(measured, str):
            return Check(rule, "fail", where, reason=measured)
        if rule.kind not in CHANGES:
            return self._judged(rule, where, measured.value.value, lambda: interval_of(measured, self.level, self.seed))
        before = self._before(section, measured, part)
        if isinstance(before, str):
            return Check(rule, "fail", where, reason=before)
        change = measured.value.value - before.value.value
        whole = self._whole(section)
        return self._judged(rule, where, change, lambda: difference(before, measured, self.level, self.seed, whole))

    def _whole(self, section: Section) -> Array | str | None:
        """Which samples of the baseline are those of a section; found once, for all slices."""
        there = self._baseline_of(section).samples
        if section.samples is None or there is None:
            return None
        if section.name not in self.aligned:
            self.aligned[section.name] = align(there, section.samples)
        return self.aligned[section.name]

    def _before(self, section: Section, measured: Measured, part: Slice | None) -> Measured | str:
        if self.baseline is None:
            return "no baseline was given"
        there = self._baseline_of(section)
        slices = [] if part is None else [each for each in there.slices if each.name == part.name]
        if part is not None and not slices:
            return "in the baseline: no such slice"
        before = _measured(there, measured.value.name, slices[0] if slices else None)
        if isinstance(before, str):
            return f"in the baseline: {before}"
        why = why_not_the_same(before, measured)
        return f"the baseline has another metric of this name: {why}" if why else before

    def _baseline_of(self, section: Section) -> Section:
        sections = () if self.baseline is None else self.baseline.sections
        return next((each for each in sections if each.name == section.name), Section(section.name))

    def _judged(self, rule: Rule, where: str, value: float, evidence: Callable[[], Evidence]) -> Check:
        """Hold a number against the bound of a rule; the interval is made only where it is asked for."""
        if not math.isfinite(value):
            return Check(rule, "fail", where, value, reason="undefined or infinite")
        sign = _sign(rule)
        bound = -rule.bound if rule.kind == "max-drop" else sign * rule.bound
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

    def _slices(self, rule: Rule, metric: str, pattern: str) -> Check:
        """Judge every slice that a pattern names, and tell of the worst; one that is gone fails."""
        found = _find(self.report, metric, _names_in_slices)
        if isinstance(found, str):
            return Check(rule, "fail", reason=f"in slices: {found}")
        section, name = found
        for part in section.slices:
            if part.name == pattern:
                return self._number(rule, section, name, part)
        least = section.min_slice if self.min_slice_size is None else self.min_slice_size
        fit = [part for part in section.slices if _fits(part.name, pattern)]
        large = [part for part in fit if part.count >= least]
        checks = [self._number(rule, section, name, part) for part in large]
        checks += self._gone(rule, section, name, pattern, least)
        if not checks:
            reason = f"none of {len(fit)} slices has {least} samples" if fit else _no_slice(section, pattern)
            return Check(rule, "fail", f"{section.name}/{name}", reason=reason)
        for outcome in ("fail", "not enough evidence", "pass"):
            if alike := [check for check in checks if check.outcome == outcome]:
                return _worst(rule, alike, len(checks), len(fit) - len(large))
        raise AssertionError(checks)

    def _gone(self, rule: Rule, section: Section, name: str, pattern: str, least: int) -> Iterator[Check]:
        """Slices of the baseline that a change is asked of, and that the report lacks."""
        if rule.kind not in CHANGES:
            return
        here = {part.name for part in section.slices}
        for part in self._baseline_of(section).slices:
            if part.name not in here and part.count >= least and _fits(part.name, pattern):
                yield Check(
                    rule, "fail", f"{section.name}/{name} in {part.name!r}", reason="missing: the baseline has it"
                )


def _sign(rule: Rule) -> float:
    return -1.0 if rule.kind in FROM_ABOVE else 1.0


def _worst(rule: Rule, alike: list[Check], judged: int, left_out: int) -> Check:
    sign = _sign(rule)
    values = [-math.inf if check.value is None or math.isnan(check.value) else sign * check.value for check in alike]
    worst = alike[values.index(min(values))]
    said = f"{len(alike):,} of {judged:,} slices: {worst.outcome}, this is the worst"
    said += f"; {left_out:,} too small" if left_out else ""
    return replace(worst, reason="; ".join(part for part in (worst.reason, said) if part))


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is the pattern, in which ``*`` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


def _no_slice(section: Section, pattern: str) -> str:
    there = ", ".join(repr(part.name) for part in section.slices) or "none"
    return f"missing: no slice {pattern!r}; there is {there:.400}"


def _measured(section: Section, name: str, part: Slice | None) -> Measured | str:
    values: list[Value] = [value for value in (part or section).values if value.name == name]
    if len(values) != 1:
        return f"{len(values)} metrics of this name" if values else "missing"
    if part is None:
        return Measured(values[0], section.samples)
    if part.members is None:
        return Measured(values[0])
    return Measured(values[0], section.samples, part.members.values)


def _names(section: Section) -> Iterator[str]:
    return (value.name for value in section.values)


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
