"""Two models, of each of which several training runs saw the same samples: runs crossed with samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from assay.errors import ConfigError, describe
from assay.report.comparing.compare import STOPPED_EARLY, assumptions, with_verdict
from assay.report.comparing.comparison import Comparison, Delta, Run, Unmatched
from assay.report.inference.clusters import ClusterCodes, Clusters, are_clustered, with_clusters
from assay.report.inference.evidence import Evidence
from assay.report.inference.measured_value import MeasuredValue, why_not_the_same
from assay.report.inference.pairing import pair
from assay.report.inference.spread import NOT_FINITE, is_finite
from assay.report.per_sample.packed_array import Array
from assay.report.per_sample.resampling import why_not_alike
from assay.report.report import Report, Source
from assay.report.section import Section
from assay.report.slices import Slice
from assay.report.value import check_confidence_level
from assay.stats.bootstrap import LEAST, replicate_error
from assay.stats.crossed import CrossedDifference, means_over_runs
from assay.stats.hypothesis_tests import correct
from assay.stats.intervals import FEWEST

ASSUMPTION = (
    "Runs of a model are taken as independent draws, such as of seeds; intervals are for other runs and samples."
)


def compare_training_runs(
    baseline: Sequence[Source],
    runs: Sequence[Source],
    *,
    confidence_level: float = 0.95,
    correction: str = "holm",
    names: tuple[str, str] = ("baseline", "runs"),
    slices: bool | None = None,
    cluster: Clusters | None = None,
) -> Comparison:
    """Compare two models, of each of which several training runs were evaluated on the same samples.

    One run of each tells how these two runs differ. Another seed may turn the difference round, so the interval is one
    of other runs and of other samples: their variances add up.

    Args:
        baseline: the reports of the runs of one model, two or more.
        runs: those of the other model.
        confidence_level: the confidence level of the intervals.
        correction: of p-values over all metrics and slices: ``"holm"``, ``"bh"`` or ``"none"``.
        names: what to call the two models.
        slices: whether to compare slices; those that all reports have, by default.
        cluster: which cluster each sample is in, of reports that do not say it; see `compare`.

    Raises:
        ConfigError: fewer than two runs of a model, a report that stands twice, an invalid option, or no section that
            all reports have.

    Example:
        >>> from assay.report import Samples, Value
        >>> def run(seed, shift):
        ...     rng = np.random.default_rng(seed)
        ...     loss = np.arange(100) / 50 + rng.normal(size=100) / 10 + rng.normal() / 10 + shift
        ...     samples = Samples.pack(range(100), {"loss": loss})
        ...     value = Value("loss", loss.mean(), numerator="loss", higher_is_better=False)
        ...     return Report(f"seed {seed}", [Section("test", [value], samples=samples)])
        >>> found = compare_training_runs([run(k, 0.0) for k in range(3)], [run(k, -0.9) for k in range(3, 6)])
        >>> found.delta("loss").verdict
        'better'
    """
    check_confidence_level("confidence_level", confidence_level)
    models = [[with_clusters(Report.of(each), cluster) for each in given] for given in (baseline, runs)]
    for name, reports in zip(names, models, strict=True):
        if len(reports) < 2:
            do = "Name the reports of two or more training runs of each model, or compare two single reports"
            raise ConfigError(describe(name, f"{len(reports)} report", "two or more, of different runs", do))
    everyone = [*models[0], *models[1]]
    if any(first == second for k, first in enumerate(everyone) for second in everyone[:k]):
        do = "Name each report once"
        raise ConfigError(describe("runs", "a report that stands twice", "reports of different runs", do))
    parts = list(_parts(models[0], models[1], names[1], confidence_level, slices is not False))
    deltas = [part for part in parts if isinstance(part, Delta)]
    if not deltas:
        do = "Give the sections that belong together one name"
        raise ConfigError(describe("runs", "no metric that all reports have", "one or more", do))
    corrected = correct([math.nan if delta.p is None else delta.p for delta in deltas], correction)
    return Comparison(
        tuple(_named(name, reports) for name, reports in zip(names, models, strict=True)),
        tuple(with_verdict(delta, p, confidence_level) for delta, p in zip(deltas, corrected, strict=True)),
        unmatched=tuple(part for part in parts if isinstance(part, Unmatched)),
        confidence_level=confidence_level,
        correction=correction,
        notes=(ASSUMPTION, *assumptions(everyone)),
    )


def _named(name: str, reports: Sequence[Report]) -> Run:
    titles = ", ".join(dict.fromkeys(report.title for report in reports))
    return Run(name, f"{len(reports)} runs: {titles}", max(report.created for report in reports), reports[0].device)


def _parts(
    first: Sequence[Report], second: Sequence[Report], run: str, confidence_level: float, with_slices: bool
) -> Iterator[Delta | Unmatched]:
    for section in first[0].sections:
        found = [next((s for s in each.sections if s.name == section.name), None) for each in (*first, *second)]
        sections = [each for each in found if each is not None]
        if len(sections) < len(found):
            yield Unmatched(run, section.name, "", "missing in some of the runs")
            continue
        names = [""]
        for table in section.by if with_slices else ():
            yield Unmatched(run, section.name, f"by {table.name}", "groups of training runs are not compared")
        if with_slices:
            names += [
                each.name for each in section.slices if all(_slice(other, each.name) is not None for other in sections)
            ]
        for name in names:
            slices = [_slice(each, name) for each in sections]
            least = max(each.min_slice_size for each in sections)
            if name and min(each.count for each in slices if each is not None) < least:
                yield Unmatched(run, section.name, "", f"fewer than {least:,} samples", name)
                continue
            for metric in dict.fromkeys(value.name for value in (slices[0] or section).values):
                yield _delta(run, sections, slices, metric, len(first), confidence_level)


def _slice(section: Section, name: str) -> Slice | None:
    return next((each for each in section.slices if each.name == name), None)


def _delta(
    run: str,
    sections: Sequence[Section],
    slices: Sequence[Slice | None],
    metric: str,
    count: int,
    confidence_level: float,
) -> Delta | Unmatched:
    section, name = sections[0].name, "" if slices[0] is None else slices[0].name
    times = [
        sum(v.name == metric for v in (part or whole).values) for whole, part in zip(sections, slices, strict=True)
    ]
    if set(times) != {1}:
        return Unmatched(run, section, metric, "not once in each of the runs", name)
    measured = [MeasuredValue.of(whole, metric, part) for whole, part in zip(sections, slices, strict=True)]
    if why := next(filter(None, (why_not_the_same(measured[0], each) for each in measured[1:])), ""):
        return Unmatched(run, section, metric, f"another metric of the same name: {why}", name)
    values = np.array([each.value.value for each in measured])
    means = float(values[:count].mean()), float(values[count:].mean())
    evidence, smallest = _evidence(measured, count, confidence_level)
    if any(each.stopped for each in sections):
        evidence, smallest = Evidence(note=STOPPED_EARLY), None
    counts = [each.count for each in (measured[0], measured[count])]
    return Delta(
        run,
        section,
        metric,
        *means,
        means[1] - means[0],
        evidence.lower,
        evidence.upper,
        evidence.p,
        method=evidence.method,
        paired=evidence.paired,
        counts=tuple(each for each in counts if each is not None) if None not in counts else (),
        higher_is_better=next(filter(lambda x: x is not None, (m.value.higher_is_better for m in measured)), None),
        note=evidence.note,
        slice=name,
        smallest=None if name else smallest,
    )


def _evidence(measured: Sequence[MeasuredValue], count: int, confidence_level: float) -> tuple[Evidence, float | None]:
    """What is known of the difference, and the smallest that would have been found."""
    if not all(math.isfinite(each.value.value) for each in measured):
        return Evidence(note="undefined or infinite in some of the runs"), None
    found = (
        _over_samples(measured, count) if all(each.has_terms() for each in measured) else _resampled(measured, count)
    )
    if isinstance(found, str):
        return Evidence(note=found), None
    error, freedom, of = found
    values = np.array([each.value.value for each in measured])
    crossed = CrossedDifference.of(values[:count], values[count:], error, freedom)
    samples, runs = crossed.sample_error, math.hypot(*crossed.run_errors)
    note = f"standard error {samples:.2g} over samples, {runs:.2g} over runs"
    method = f"Student's test and interval of {count} and {len(measured) - count} runs crossed with {of}"
    ends = crossed.interval(confidence_level)
    return Evidence(*ends, crossed.p(), method=method, paired=True, note=note), crossed.smallest(confidence_level)


def _over_samples(measured: Sequence[MeasuredValue], count: int) -> tuple[float, float, str] | str:
    """The standard error of the difference over samples, with its degrees of freedom, and what it is of; or why not."""
    if not all(map(is_finite, measured)):
        return NOT_FINITE
    terms: list[Array] = [measured[0].terms()]
    for each in measured[1:]:
        position = pair(measured[0], each)
        if isinstance(position, str):
            return f"the runs have other samples: {position}"
        terms.append(each.terms()[position])
    if len(terms[0]) < FEWEST:
        return f"fewer than {FEWEST} samples"
    apart = means_over_runs(terms[count:]) - means_over_runs(terms[:count])
    if int(np.count_nonzero(apart)) < FEWEST:
        return f"fewer than {FEWEST} samples differ between the two, which says little of others"
    clustered = [are_clustered(each) for each in measured]
    if any(clustered):
        if not all(clustered):
            return "clusters are known of some runs only: evaluate all with the same cluster="
        of = ClusterCodes.of(measured[0])
        mean = of.mean([apart])
        if isinstance(mean, str):
            return mean
        return (mean.error, mean.freedom, str(of)) if mean.error else "all clusters differ by the same"
    error = float(apart.std(ddof=1)) / math.sqrt(len(apart))
    return (error, len(apart) - 1.0, f"{len(apart):,} samples") if error else "all samples differ by the same"


def _resampled(measured: Sequence[MeasuredValue], count: int) -> tuple[float, float, str] | str:
    """The same, of values that are no means, from replicates of the same samples."""
    replicates = []
    for each in measured:
        first = measured[0].resampling
        if each.value.replicates is None or each.resampling is None or first is None:
            return "a run has neither per-sample values nor replicates"
        if why := why_not_alike(first, each.resampling):
            return f"the runs have other samples: {why}"
        replicates.append(each.value.replicates.values)
    assert measured[0].resampling is not None
    least = min(map(len, replicates))
    drawn = [each[:least] for each in replicates]
    apart = means_over_runs(drawn[count:]) - means_over_runs(drawn[:count])
    known, groups = apart[np.isfinite(apart)], measured[0].resampling.filled
    if len(known) < max(LEAST, least / 2):
        return "most replicates are undefined in some of the runs"
    error, freedom = replicate_error(known, groups)
    return (error, freedom, f"{groups} groups of samples") if error else "no replicate differs"
