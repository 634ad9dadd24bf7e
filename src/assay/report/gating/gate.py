"""A gate: what a report must show before something may go on, judged by intervals. It fails closed.

A rule passes where the whole interval is within its bound, fails where the whole interval is beyond, and else there is
not enough evidence. What is missing, undefined, ambiguous or another metric fails: a gate never passes by silence.

All rules must pass, each at the full level. That needs no correction for how many there are: what is unfit passes all
of them no more often than it passes the one that it is unfit for (Berger 1982, Technometrics 24:295).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from assay.errors import ConfigError, describe
from assay.report.calls import called_as
from assay.report.gating.gate_result import KINDS, Gate, GateRule
from assay.report.gating.rule_checks import RuleChecker
from assay.report.inference.clusters import Clusters, with_clusters
from assay.report.inference.sequential import Ranges, SequentialIntervals
from assay.report.report import Report, Source
from assay.report.value import check_confidence_level

Rules: TypeAlias = Mapping[str, Mapping[str, float]] | Iterable[GateRule]


@called_as('gate(report, {"min": {"accuracy": 0.9}})')
def gate(
    report: Source,
    rules: Rules,
    baseline: Source | None = None,
    *,
    confidence_level: float = 0.95,
    point: bool = False,
    min_slice_size: int | None = None,
    cluster: Clusters | None = None,
    sequential: bool = False,
    ranges: Ranges | None = None,
) -> Gate:
    """Judge a report by rules.

    Args:
        report: what is judged: a report, or the path or URL of one.
        rules: the rules, or a mapping as in the configuration file: ``{"min": {"accuracy": 0.9}}``.
        baseline: what drops and rises are counted from, likewise.
        confidence_level: the confidence level of the two-sided intervals.
        point: judge by the numbers alone, without intervals.
        min_slice_size: slices of fewer samples are left out, but for one that is named; what the section says, unless
            given.
        cluster: which cluster each sample is in, of reports that do not say it; see `compare`.
        sequential: judge by intervals that hold at any number of looks, while samples are added to the report. They are
            wider, and of means of bounded samples: of yes or no, and of metrics in ``ranges``. The baseline must have
            all samples of the report, and may have more.
        ranges: by metric, the least and the largest number that a sample can add to its mean: ``{"loss": (0, 10)}``.

    Raises:
        ConfigError: there is no rule, a rule or the confidence level is invalid, or a rule asks for a change or a slice
            that is no loss for its metric: ``max-drop`` where lower is better.

    Example:
        >>> from assay.report import Section, Value
        >>> accuracy = Value("accuracy", 0.94, lower=0.92, upper=0.96, confidence_level=0.95)
        >>> report = Report("digits", [Section("test", [accuracy])])
        >>> [gate(report, {"min": {"accuracy": bound}}).outcome for bound in (0.9, 0.93, 0.97)]
        ['pass', 'not enough evidence', 'fail']
    """
    report, baseline = Report.of(report), None if baseline is None else Report.of(baseline)
    check_confidence_level("confidence_level", confidence_level)
    if min_slice_size is not None and min_slice_size < 0:
        do = "Pass 0 to judge slices of any size"
        raise ConfigError(describe("min_slice_size", min_slice_size, "a number of samples", do))
    listed = listed_rules(rules)
    report = with_clusters(report, cluster)
    baseline = None if baseline is None else with_clusters(baseline, cluster)
    stopped = [section.name for each in (report, baseline) if each for section in each.sections if section.stopped]
    if stopped and not sequential and not point:
        got = f"a run that ended early by what it showed ({stopped[0]})"
        do = "Pass sequential=True (--sequential)"
        raise ConfigError(describe("gate", got, "intervals that hold at any number of looks", do))
    if ranges and not sequential:
        do = "Pass sequential=True, or leave ranges out"
        raise ConfigError(describe("ranges", f"those of {', '.join(ranges)}", "none without sequential", do))
    if sequential and point:
        do = "Leave one of the two out"
        raise ConfigError(describe("gate", "sequential and point", "intervals, or the numbers alone", do))
    intervals = SequentialIntervals(confidence_level, ranges or {}) if sequential else None
    checker = RuleChecker(report, baseline, confidence_level, point, min_slice_size, intervals)
    checks = tuple(map(checker.check, listed))
    outcome = max((check.outcome for check in checks), key=("pass", "not enough evidence", "fail").index)
    return Gate(outcome, checks, confidence_level, point, report.title, baseline.title if baseline else "", sequential)


def listed_rules(rules: Rules) -> tuple[GateRule, ...]:
    """Rules one by one.

    Raises:
        ConfigError: there are no rules, or one is unknown.
    """
    listed = tuple(_rules(rules))
    if not listed:
        raise ConfigError(describe("gate", "no rule", f"one or more of {', '.join(KINDS)}", "Say what must hold"))
    return listed


def _rules(rules: Rules) -> Iterator[GateRule]:
    if not isinstance(rules, Mapping):
        listed: Any = (rules,) if isinstance(rules, str | GateRule) else rules
        for each in listed:
            if not isinstance(each, GateRule):
                do = 'Write {"min": {"accuracy": 0.9}}'
                raise ConfigError(describe("rules", repr(each), "rules, or metrics and bounds by kind", do))
        yield from listed
        return
    for kind, bounds in rules.items():
        if not isinstance(bounds, Mapping):
            raise ConfigError(describe(kind, repr(bounds), "metrics and their bounds", "Write metric = number"))
        for metric, bound in bounds.items():
            yield GateRule(kind, metric, bound)
