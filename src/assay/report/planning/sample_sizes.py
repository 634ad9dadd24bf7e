"""How many samples a comparison needs to find a difference, and the smallest difference that a report can show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.errors import ConfigError, describe
from assay.render.text import number
from assay.report.inference.clusters import ClusterCodes, Clusters, are_clustered, assumption, with_clusters
from assay.report.inference.measured_value import MeasuredValue, why_not_the_same
from assay.report.inference.named_values import metric_of
from assay.report.inference.pairing import have_equal_samples
from assay.report.inference.spread import spread_of
from assay.report.inference.tests_and_intervals import difference
from assay.report.per_sample.samples import align
from assay.report.planning.power_result import Power, PowerEstimate
from assay.report.report import Report, Source
from assay.report.section import Section
from assay.report.value import check_confidence_level
from assay.stats.clusters import FEWEST_CLUSTERS
from assay.stats.power import POWER, Spread

PAIRED, OTHER = "same samples", "other samples"
LEAST, MOST = f"{PAIRED}, at least", f"{PAIRED}, independent models"


def power(
    report: Source,
    effects: Mapping[str, float],
    run: Source | None = None,
    *,
    counts: Iterable[int] = (),
    power: float = POWER,
    confidence_level: float = 0.95,
    cluster: Clusters | None = None,
) -> Power:
    """How many samples comparisons with a report need to find a difference, and the smallest that they can find.

    How much the difference of two models varies stands in two reports of the same samples. Of one report alone it
    has bounds: of yes or no, at least the effect of all samples differ, and at most as many as of independent models;
    of numbers, the variance is at most twice that of the report.

    Args:
        report: the baseline: a report, or the path or URL of one.
        effects: the difference that should be found, above 0, of each metric: ``{"accuracy": 0.01}``.
        run: a report of another model on the same samples, such as an earlier run.
        counts: numbers of samples, for which to give the smallest difference, too.
        power: the probability to find such a difference, between 0.5 and 1.
        confidence_level: that of the comparison.
        cluster: which cluster each sample is in, of reports that do not say it; see `compare`.

    Raises:
        ConfigError: no effect, an effect that is not above 0 or larger than possible, a metric that is missing, or
            whose samples are not known, or a run of other samples.

    Example:
        >>> import numpy as np
        >>> from assay.report import Samples, Value
        >>> right = np.arange(1000) < 800
        >>> samples = Samples.pack(range(1000), {"correct": right})
        >>> section = Section("test", [Value("accuracy", 0.8, numerator="correct")], samples=samples)
        >>> found = power(Report("digits", [section]), {"accuracy": 0.02})
        >>> [(each.design, each.samples) for each in found.estimates][:2]
        [('same samples, at least', 391), ('same samples, independent models', 6277)]
    """
    check_confidence_level("confidence_level", confidence_level)
    asked = tuple(counts)
    if not 0.5 <= power < 1:
        raise ConfigError(describe("power", power, "a number from 0.5 to below 1", "Pass 0.8, which is usual"))
    if not effects:
        raise ConfigError(describe("power", "no effect", "one or more metrics", 'Pass effects={"accuracy": 0.01}'))
    if wrong := [each for each in asked if each < 2]:
        raise ConfigError(describe("counts", wrong[0], "a number of samples, 2 or more", "Pass counts=[1000]"))
    baseline = with_clusters(Report.of(report), cluster)
    other = None if run is None else with_clusters(Report.of(run), cluster)
    questions = [_Question.of(baseline, other, name, effect, confidence_level) for name, effect in effects.items()]
    return Power(
        tuple(estimate for each in questions for estimate in each.estimates(power, asked)),
        power,
        confidence_level,
        baseline.title,
        "" if other is None else other.title,
        tuple(dict.fromkeys(assumption(each.section) for each in questions)),
    )


@dataclass(frozen=True)
class _Question:
    """A difference that should be found, of a value with a known number of samples."""

    section: Section
    measured: MeasuredValue
    count: int
    effect: float
    confidence_level: float
    spreads: Sequence[tuple[str, str, Spread]]

    @classmethod
    def of(cls, baseline: Report, other: Report | None, name: str, effect: float, confidence_level: float) -> _Question:
        """A question, with the ways to compare: the design, what is assumed, and how much the difference varies."""
        if not (math.isfinite(effect) and effect > 0):
            do = "Pass the size of the difference, such as 0.01, without its direction"
            raise ConfigError(describe(f"effect of {name}", effect, "a number above 0", do))
        section, measured = _found(baseline, name, "the report")
        single, count = spread_of(measured, confidence_level), measured.count
        if isinstance(single, str) or count is None:
            do = "Evaluate again with keep_samples=True, on more than one sample"
            raise ConfigError(describe(f"power of {name}", single, "samples that say how much it varies", do))
        value = measured.value.value
        if single.differing is not None and effect > max(value, 1 - value):
            expected = f"at most {max(value, 1 - value):g}, as it is {value:g}"
            do = "Pass a share of samples, such as 0.01 for one in a hundred"
            raise ConfigError(describe(f"effect of {name}", effect, expected, do))
        assumed = _assumed(single, count)
        spreads = [(MOST, assumed, single), (OTHER, assumed, single)]
        if other is not None:
            its = _found(other, f"{section.name}/{measured.value.name}", "the run")
            of_two = _between(section, measured, *its, confidence_level)
            if isinstance(of_two, str):
                do = "Pass a report of another model on the same samples"
                raise ConfigError(describe(f"{name} of the run", of_two, "a value that can be paired", do))
            spreads[0] = PAIRED, f"{_assumed(of_two, count)}, as in the two reports", of_two
        elif single.differing is not None:
            least = f"no more samples differ than the effect needs{_in_clusters(single)}"
            spreads.insert(0, (LEAST, least, replace(single, differing=0.0)))
        return cls(section, measured, count, effect, confidence_level, spreads)

    def estimates(self, power: float, counts: Sequence[int]) -> Iterator[PowerEstimate]:
        """What each way to compare needs, and what it finds with some numbers of samples."""
        is_clustered = self.measured.has_terms() and are_clustered(self.measured)
        clusters = len(ClusterCodes.of(self.measured).numbers) if is_clustered else None
        least = 0 if clusters is None else math.ceil(FEWEST_CLUSTERS * self.count / clusters)
        counts = tuple(dict.fromkeys((self.count, *counts)))
        for design, assumed, spread in self.spreads:
            size = self.count / spread.units  # samples that say as much as an independent unit
            units = spread.units_for(self.effect, self.confidence_level, power)
            samples = max(math.ceil(size * units - 1e-9), least)
            yield PowerEstimate(
                self.section.name,
                self.measured.value.name,
                self.measured.value.value,
                self.effect,
                design,
                assumed,
                samples,
                None if clusters is None else math.ceil(samples * clusters / self.count),
                counts,
                tuple(
                    math.inf if each < least else spread.smallest(self.confidence_level, power, each / size)
                    for each in counts
                ),
            )


def _found(report: Report, name: str, where: str) -> tuple[Section, MeasuredValue]:
    found = metric_of(report, name)
    if isinstance(found, str):
        raise ConfigError(describe(f"metric {name!r} of {where}", found, "one metric", "Name one that is there"))
    return found


def _between(
    a: Section, first: MeasuredValue, b: Section, second: MeasuredValue, confidence_level: float
) -> Spread | str:
    """How much the difference of two models varies from one of their samples to the next; or why that is not known."""
    if why := why_not_the_same(first, second):
        return f"another metric of the same name: {why}"
    whole = None if a.samples is None or b.samples is None else align(a.samples, b.samples)
    if a == b or have_equal_samples(a.samples, b.samples, whole):
        return "the same values for each sample, as of the same model"
    evidence = difference(first, second, confidence_level, whole=whole)
    if evidence.spread is None or not evidence.paired:
        return evidence.note or "no sample differs"
    return evidence.spread


def _assumed(spread: Spread, count: int) -> str:
    """How much a difference varies from one sample to the next, as a part of a sentence."""
    if spread.differing is not None:
        return f"{100 * spread.differing:.3g} % of the samples differ{_in_clusters(spread)}"
    deviation = math.sqrt(spread.variance * count / spread.units / spread.design_effect)
    return f"standard deviation {number(deviation)} of the difference{_in_clusters(spread)}"


def _in_clusters(spread: Spread) -> str:
    return f", design effect {spread.design_effect:.2f}" if spread.design_effect != 1 else ""
