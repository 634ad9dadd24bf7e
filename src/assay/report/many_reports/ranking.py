"""Many reports of the same samples in an order with ties: which cannot be told apart, and what places each may have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from assay.errors import ConfigError, describe
from assay.report.calls import called_as
from assay.report.comparing.compare import STOPPED_EARLY, assumptions, run_names
from assay.report.comparing.comparison import Run
from assay.report.inference.clusters import Clusters, with_clusters
from assay.report.inference.evidence import Evidence
from assay.report.inference.measured_value import MeasuredValue, why_not_the_same
from assay.report.inference.pairing import REPORT, SAMPLES, have_equal_samples
from assay.report.inference.tests_and_intervals import difference
from assay.report.many_reports.ranking_result import MetricRanking, RankedRun, RunRanking
from assay.report.per_sample.packed_array import Array
from assay.report.per_sample.samples import align
from assay.report.report import Report, Source
from assay.report.section import Section
from assay.report.value import check_confidence_level
from assay.stats.groups import groups_of, letters, places
from assay.stats.hypothesis_tests import correct


@called_as('rank(["runs/a", "runs/b"])')
def rank(
    reports: Sequence[Source],
    *,
    names: Sequence[str] | None = None,
    metrics: Sequence[str] = (),
    sections: Sequence[str] = (),
    confidence_level: float = 0.95,
    seed: int = 0,
    cluster: Clusters | None = None,
) -> RunRanking:
    """Rank runs by their metrics, with ties where they cannot be told apart.

    All pairs of runs are compared as `compare` does, sample by sample where both kept them, and p-values corrected by
    Holm over all pairs. A run may have any place from behind those that are known to be better to before those that are
    known to be worse.

    Args:
        reports: the reports, two or more.
        names: what to call them; by default what tells their files apart, or their titles.
        metrics: the metrics to rank by; all whose better direction is known, by default.
        sections: the sections to rank in; all by default.
        confidence_level: of all places and intervals of a metric together.
        seed: where the random numbers of sign flips start.
        cluster: which cluster each sample is in, of reports that do not say it; see `compare`.

    Raises:
        ConfigError: fewer than two reports, an invalid option, or no metric that all have and that can be ranked.

    Example:
        >>> import numpy as np
        >>> from assay.report import Samples, Value
        >>> def run(title, share):
        ...     right = np.random.default_rng(0).permutation(400) < 400 * share
        ...     accuracy = Value("accuracy", share, numerator="correct", higher_is_better=True)
        ...     samples = Samples.pack(range(400), {"correct": right})
        ...     return Report(title, [Section("test", [accuracy], samples=samples)])
        >>> found = rank([run("a", 0.80), run("b", 0.9), run("c", 0.8025)])
        >>> [(place.run, place.best, place.worst, place.groups) for place in found.metrics[0].places]
        [('b', 1, 1, ('a',)), ('c', 2, 3, ('b',)), ('a', 2, 3, ('b',))]
    """
    check_confidence_level("confidence_level", confidence_level)
    found = [with_clusters(Report.of(each), cluster) for each in reports]
    if len(found) < 2:
        raise ConfigError(describe("reports", f"{len(found)} report", "two or more", "Name the reports to rank"))
    called = run_names(reports, found, names)
    if len(set(called)) < len(called):
        raise ConfigError(describe("names", ", ".join(called), "a name for each run", "Pass names="))
    ranked: list[MetricRanking] = []
    notes: list[str] = []
    for name in dict.fromkeys(section.name for section in found[0].sections):
        if sections and name not in sections:
            continue
        own = [next((s for s in each.sections if s.name == name), None) for each in found]
        there = [each for each in own if each is not None]
        if len(there) < len(own):
            notes.append(f"{name}: missing in some of the runs.")
            continue
        field = _RankedSection(there, found, called, confidence_level, seed)
        for metric in dict.fromkeys(value.name for value in there[0].values):
            if not metrics or metric in metrics:
                one = field.ranked(metric)
                (notes if isinstance(one, str) else ranked).append(one)  # type: ignore[arg-type]
    if not ranked:
        got = " ".join(notes) or "none of this name"
        do = "Name a metric that all reports have, with values that are better the higher or the lower"
        raise ConfigError(describe("metrics", got, "one that can be ranked", do))
    runs = tuple(Run.of(name, report) for name, report in zip(called, found, strict=True))
    return RunRanking(runs, tuple(ranked), confidence_level, (*assumptions(found), *notes))


@dataclass
class _RankedSection:
    """One section of all reports, whose pairs are compared."""

    sections: Sequence[Section]
    reports: Sequence[Report]
    names: Sequence[str]
    confidence_level: float
    seed: int

    def __post_init__(self) -> None:
        self._pairings = {pair: self._pairing(*pair) for pair in combinations(range(len(self.sections)), 2)}

    def _pairing(self, i: int, j: int) -> tuple[Array | str | None, str]:
        a, b = self.sections[i], self.sections[j]
        whole = None if a.samples is None or b.samples is None else align(a.samples, b.samples)
        if self.reports[i] == self.reports[j]:
            return whole, REPORT
        return whole, SAMPLES if have_equal_samples(a.samples, b.samples, whole) else ""

    def ranked(self, metric: str) -> MetricRanking | str:
        """The places by a metric; or why there are none, in a sentence."""
        where = f"{self.sections[0].name}/{metric}"
        if any(sum(value.name == metric for value in each.values) != 1 for each in self.sections):
            return f"{where}: not once in each of the runs."
        if any(each.stopped for each in self.sections):
            return f"{where}: {STOPPED_EARLY}"
        measured = [MeasuredValue.of(each, metric) for each in self.sections]
        if why := next(filter(None, (why_not_the_same(measured[0], each) for each in measured[1:])), ""):
            return f"{where}: another metric of the same name ({why})."
        values = [each.value.value for each in measured]
        better = next((m.value.higher_is_better for m in measured if m.value.higher_is_better is not None), None)
        if better is None:
            return f"{where}: not ranked, as it is not known whether higher or lower values are better."
        if not all(map(math.isfinite, values)):
            return f"{where}: not ranked, as a value is undefined or infinite."
        return self._placed(metric, measured, better)

    def _placed(self, metric: str, measured: Sequence[MeasuredValue], better: bool) -> MetricRanking:
        values = [each.value.value for each in measured]
        order = sorted(range(len(values)), key=lambda k: (-values[k] if better else values[k], self.names[k]))
        at = {run: place for place, run in enumerate(order)}
        level = 1 - (1 - self.confidence_level) / len(self._pairings)
        found = {
            pair: difference(measured[pair[0]], measured[pair[1]], level, self.seed, whole, equal=equal)
            for pair, (whole, equal) in self._pairings.items()
        }
        corrected = correct([math.nan if each.p is None else each.p for each in found.values()], "holm")
        told = [pair for pair, p in zip(found, corrected, strict=True) if p < 1 - self.confidence_level]
        apart = sorted(tuple(sorted((at[i], at[j]))) for i, j in told if values[i] != values[j])
        groups = groups_of(len(order), apart)  # type: ignore[arg-type]
        ends = places(len(order), apart)  # type: ignore[arg-type]
        return MetricRanking(
            self.sections[0].name,
            metric,
            better,
            tuple(
                RankedRun(
                    self.names[run],
                    values[run],
                    *ends[place],
                    tuple(letters(k) for k, group in enumerate(groups) if place in group),
                    values[run] - values[order[0]],
                    *_behind(found, order[0], run),
                )
                for place, run in enumerate(order)
            ),
            len(found),
            len(apart),
            sum(each.p is None for each in found.values()),
            tuple(dict.fromkeys(_methods(found.values()))),
        )


def _behind(found: dict[tuple[int, int], Evidence], first: int, run: int) -> tuple[float | None, float | None]:
    """The interval of the difference of a run to the first."""
    if run == first:
        return None, None
    evidence = found[min(first, run), max(first, run)]
    if evidence.lower is None or evidence.upper is None:
        return None, None
    return (evidence.lower, evidence.upper) if first < run else (-evidence.upper, -evidence.lower)


def _methods(found: Iterable[Evidence]) -> Iterator[str]:
    for each in found:
        yield each.method or f"not tested: {each.note}"
