"""When an evaluation may end early: as soon as rules are decided, by intervals that hold at any number of looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay.errors import ConfigError, describe
from assay.report.gating.gate import Rules, listed_rules
from assay.report.gating.rule_checks import RuleChecker
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.sequential import ClusterSizes, Ranges, SequentialIntervals
from assay.report.report import Report, Source
from assay.report.section import Section
from assay.report.slices import Slice
from assay.report.value import Value, check_confidence_level

STOPPED = "no interval: the run ended by what it showed, and none is known that holds then"


@dataclass(frozen=True)
class StopWhen:
    """Rules that end an evaluation as soon as all of them hold, or one is known not to hold.

    Args:
        rules: as `gate` takes them: ``{"min": {"accuracy": 0.9}}``, of means of yes or no, or of bounded numbers.
        baseline: the report that drops and rises are counted from, of the same samples.
        confidence_level: of the intervals.
        ranges: by metric, the least and the largest number that a sample can add to its mean.

    Example:
        >>> StopWhen({"max-drop": {"accuracy": 0.01}}, baseline="main.json").confidence_level
        0.95
    """

    rules: Rules
    baseline: Source | None = None
    confidence_level: float = 0.95
    ranges: Ranges = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> StopWhen:
        """What `evaluate` is given: a `StopWhen`, or its rules.

        Raises:
            ConfigError: it is neither.
        """
        if isinstance(given, Mapping):
            return cls(given)
        if not isinstance(given, cls):
            do = 'Pass {"min": {"accuracy": 0.9}}, or StopWhen(rules, baseline="main.json")'
            raise ConfigError(describe("stop_when", repr(given), "rules, or a StopWhen", do))
        return given

    def outcome(self, report: Report, cluster_sizes: ClusterSizes | None = None) -> str:
        """``"pass"``, ``"fail"``, or empty while the rules are undecided.

        Args:
            report: the samples so far.
            cluster_sizes: of samples in clusters, how many each cluster has.

        Raises:
            ConfigError: no number of samples decides a rule: a metric is missing, or has no such interval.
        """
        check_confidence_level("confidence_level", self.confidence_level)
        baseline = None if self.baseline is None else Report.of(self.baseline)
        intervals = SequentialIntervals(self.confidence_level, self.ranges, cluster_sizes)
        checker = RuleChecker(report, baseline, self.confidence_level, False, None, intervals)
        checks = tuple(map(checker.check, listed_rules(self.rules)))
        for check in checks:
            if check.value is None or (check.lower is None and "undefined" not in check.reason):
                got = f"{check.rule.kind} {check.rule.metric}: {check.reason}"
                do = "Stop by a mean of yes or no, or of numbers with a range, on one section"
                raise ConfigError(describe("stop_when", got, "rules that some number of samples decides", do))
        if any(check.outcome == "fail" for check in checks if check.lower is not None):
            return "fail"
        return "pass" if all(check.outcome == "pass" for check in checks) else ""

    def marked(self, report: Report, cluster_sizes: ClusterSizes | None = None) -> Report:
        """The report of a run that ended early: its intervals are those that hold at any number of looks.

        Other values lose their intervals and replicates.
        """
        intervals = SequentialIntervals(self.confidence_level, self.ranges, cluster_sizes)
        return replace(report, sections=tuple(_marked(section, intervals) for section in report.sections))


def _marked(section: Section, intervals: SequentialIntervals) -> Section:
    def value(each: Value, part: Slice | None = None) -> Value:
        found = intervals.of(MeasuredValue.of(section, each.name, part))
        return replace(
            each,
            lower=found.lower,
            upper=found.upper,
            safe_lower=None,
            safe_upper=None,
            replicates=None,
            confidence_level=None if found.lower is None else intervals.confidence_level,
            note=found.method or STOPPED,
        )

    slices = tuple(
        replace(part, values=tuple(value(each, part) for each in part.values), resampling=None)
        for part in section.slices
    )
    values = tuple(map(value, section.values))
    return replace(section, values=values, slices=slices, resampling=None, stopped=True)
