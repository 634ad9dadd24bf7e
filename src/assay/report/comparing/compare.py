"""Comparing reports: metric by metric and slice by slice, sample by sample if both kept their samples."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from assay.errors import ConfigError, describe
from assay.report.calls import called_as
from assay.report.comparing.changed_groups import changed_groups
from assay.report.comparing.changed_samples import changed_samples
from assay.report.comparing.comparison import Changes, Comparison, Delta, Flips, PlotPair, Run, Unmatched
from assay.report.comparing.flips import flips as flips_of
from assay.report.comparing.group_changes import GroupChanges
from assay.report.comparing.plot_pairs import plot_pairs
from assay.report.inference.clusters import INDEPENDENT, Clusters, assumption, with_clusters
from assay.report.inference.evidence import Evidence
from assay.report.inference.measured_value import MeasuredValue, why_not_the_same
from assay.report.inference.pairing import REPORT, SAMPLES, have_equal_samples
from assay.report.inference.tests_and_intervals import difference
from assay.report.per_sample.packed_array import Array
from assay.report.per_sample.samples import align
from assay.report.report import Report, Source
from assay.report.section import Section
from assay.report.slices import Slice
from assay.report.value import Value, check_confidence_level
from assay.stats.hypothesis_tests import correct

_Found: TypeAlias = Delta | Flips | Changes | GroupChanges | Unmatched
FLIPS = 10
"""Samples listed for each way to flip; all of them are counted."""
STOPPED_EARLY = "A run ended early by what it showed: p and intervals are of one look, and do not hold their level."


@dataclass(frozen=True)
class _Settings:
    confidence_level: float
    seed: int
    flips: int
    slices: bool | None
    correction: str


@dataclass(frozen=True)
class _Pairing:
    """What two sections have in common.

    Args:
        whole: what `align` says of all samples of both; None where one has none.
        equal: what is equal of them; see `assay.report.inference.tests_and_intervals.difference`.
    """

    whole: Array | str | None
    equal: str


@dataclass(frozen=True)
class _Part:
    """What is compared at a time: a section, or one slice of it."""

    section: Section
    slice: Slice | None = None

    @property
    def name(self) -> str:
        """Of the slice; empty for all samples."""
        return "" if self.slice is None else self.slice.name

    @property
    def values(self) -> tuple[Value, ...]:
        return self.section.values if self.slice is None else self.slice.values

    def measured(self, name: str) -> MeasuredValue:
        return MeasuredValue.of(self.section, name, self.slice)


@called_as("compare(first, second)")
def compare(
    a: Source,
    b: Source,
    *more: Source,
    confidence_level: float = 0.95,
    correction: str = "holm",
    seed: int = 0,
    flips: int = FLIPS,
    names: Sequence[str] | None = None,
    slices: bool | None = None,
    cluster: Clusters | None = None,
) -> Comparison:
    """Compare runs with a baseline.

    Metrics are matched by section and name. Where both sides kept the same samples they are paired by id. Where they
    cannot be paired the test is an unpaired one, and the delta says why. Slices that both have are compared in the same
    way, on their own samples; their tests count among those that p-values are corrected for. Of tables by a column of
    many values (``score(by=)``) those groups are listed that changed most, with a correction for each table.

    Args:
        a: the baseline: a report, or the path or URL of one.
        b: a run, likewise.
        more: further runs; each is compared with the baseline.
        confidence_level: the confidence level of the intervals; also how small a corrected p must be, 1 - level.
        correction: ``"holm"``, ``"bh"`` or ``"none"``, over all metrics, slices and runs.
        seed: where the random numbers of sign flips start.
        flips: how many samples to list for each way to flip.
        names: what to call the reports, the baseline first; by default what tells their paths apart, or their titles.
        slices: whether to compare slices; those that both have, by default. True where there must be one.
        cluster: which cluster each sample is in, of reports that do not say it: a regular expression of ids, a function
            of an id, the clusters by id, or one for each sample in the order of the ids. Samples of one cluster (of a
            passage, a patient, a video) may depend on each other. Reports of ``evaluate(cluster=...)`` know them.

    Raises:
        ConfigError: the confidence level or the correction is invalid, names do not fit, no section is in both reports,
            or there is no slice where there must be one.

    Example:
        >>> from assay.report import Samples, Value
        >>> def run(title, *right):
        ...     samples = Samples.pack(range(len(right)), {"correct": np.array(right, dtype=bool)})
        ...     accuracy = Value("accuracy", sum(right) / len(right), numerator="correct", higher_is_better=True)
        ...     return Report(title, [Section("test", [accuracy], samples=samples)])
        >>> delta = compare(run("main", *[0, 1] * 9), run("new", *[1, 1] * 9)).delta("accuracy")
        >>> delta.difference, round(delta.p, 4), delta.verdict
        (0.5, 0.002, 'better')
    """
    check_confidence_level("confidence_level", confidence_level)
    sources = (a, b, *more)
    reports = tuple(with_clusters(Report.of(source), cluster) for source in sources)
    settings = _Settings(confidence_level, seed, flips, slices, correction)
    runs = tuple(Run.of(name, report) for name, report in zip(run_names(sources, reports, names), reports, strict=True))
    parts = [
        part
        for run, report in zip(runs[1:], reports[1:], strict=True)
        for part in _compared(run.name, reports[0], report, settings)
    ]
    deltas = [part for part in parts if isinstance(part, Delta)]
    if slices and not any(delta.slice for delta in deltas):
        raise ConfigError(describe("slices", "none that both have", "one or more", "Leave out slices=True"))
    corrected = correct([float("nan") if delta.p is None else delta.p for delta in deltas], correction)
    return Comparison(
        runs,
        tuple(with_verdict(delta, p, confidence_level) for delta, p in zip(deltas, corrected, strict=True)),
        tuple(part for part in parts if isinstance(part, Flips)),
        tuple(part for part in parts if isinstance(part, Unmatched)),
        confidence_level,
        correction,
        seed,
        assumptions(reports),
        changes=tuple(part for part in parts if isinstance(part, Changes)),
        plots=tuple(_plots(runs, reports)),
        groups=tuple(part for part in parts if isinstance(part, GroupChanges)),
    )


def _plots(runs: Sequence[Run], reports: Sequence[Report]) -> Iterator[PlotPair]:
    """The plots that the baseline shares with each run."""
    for run, report in zip(runs[1:], reports[1:], strict=True):
        sections = {section.name: section for section in report.sections}
        for section in reports[0].sections:
            if section.name in sections:
                for plot in plot_pairs(section, sections[section.name], (runs[0].name, run.name)):
                    yield PlotPair(run.name, section.name, plot)


def assumptions(reports: Sequence[Report]) -> tuple[str, ...]:
    """What the tests assume of samples: a line for all sections of which the same is assumed."""
    by_section: dict[str, str] = {}
    for section in (section for report in reports for section in report.sections):
        if by_section.get(section.name, INDEPENDENT) == INDEPENDENT:
            by_section[section.name] = assumption(section)
    for section in (each for report in reports for each in report.sections if each.stopped):
        by_section[section.name] = STOPPED_EARLY
    names: dict[str, list[str]] = {}
    for name, line in by_section.items():
        names.setdefault(line, []).append(name)
    return tuple(f"{', '.join(of)}: {line}" if len(names) > 1 else line for line, of in names.items())


def run_names(sources: Sequence[Source], reports: Sequence[Report], names: Sequence[str] | None) -> Sequence[str]:
    """What reports are called: the names that were given, what tells their files apart, or their titles."""
    if names is None:
        paths = [each for each in sources if not isinstance(each, Report)]
        if len(paths) == len(sources):
            return short_names(paths)
        titles = [report.title for report in reports]
        return titles if len(set(titles)) == len(titles) else [f"run {i}" for i in range(len(titles))]
    if len(names) != len(reports):
        expected = f"{len(reports)}, one for each report"
        raise ConfigError(describe("names", f"{len(names)} names", expected, "Pass the baseline's first"))
    return names


def short_names(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The shortest names that tell files apart: without the folders and the file name that they share, and ``.json``.

    Example:
        >>> short_names(["runs/main/report.json", "runs/new/report.json"]), short_names(["a/main.json", "b/new.json"])
        (['main', 'new'], ['main', 'new'])
    """
    parts = [os.path.normpath(path).removesuffix(".json").replace(os.sep, "/").split("/") for path in paths]
    while min(map(len, parts)) > 1 and len({each[-1] for each in parts}) == 1 < len(set(map(tuple, parts))):
        parts = [each[:-1] for each in parts]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-length:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{each[-1]} ({i})" for i, each in enumerate(parts)]


def _compared(run: str, a: Report, b: Report, settings: _Settings) -> Iterator[_Found]:
    sections = {section.name: section for section in b.sections}
    if not sections.keys() & {section.name for section in a.sections}:
        got = ", ".join(repr(section.name) for section in a.sections) or "no section"
        expected = f"one of the sections of {run!r} ({', '.join(map(repr, sections)) or 'none'})"
        do = "Give the sections that belong together one name"
        raise ConfigError(describe("the baseline", got, expected, do))
    same = a == b
    for section in a.sections:
        yield from _section(run, section, sections.pop(section.name, Section(section.name)), same, settings)
    for rest in sections.values():
        yield from _section(run, Section(rest.name), rest, same, settings)


def _section(run: str, a: Section, b: Section, same: bool, settings: _Settings) -> Iterator[_Found]:
    whole = None if a.samples is None or b.samples is None else align(a.samples, b.samples)
    equal = REPORT if same else SAMPLES if have_equal_samples(a.samples, b.samples, whole) else ""
    pairing = _Pairing(whole, equal)
    yield from _part(run, _Part(a), _Part(b), pairing, settings)
    if settings.slices is not False and a.slices and b.slices:
        yield from _slices(run, a, b, pairing, settings)
    if settings.slices is not False:
        yield from changed_groups(run, a, b, settings.confidence_level, settings.correction)


def _slices(run: str, a: Section, b: Section, pairing: _Pairing, settings: _Settings) -> Iterator[_Found]:
    firsts, seconds = ({each.name: each for each in section.slices} for section in (a, b))
    least = max(a.min_slice_size, b.min_slice_size)
    for name in dict.fromkeys([*firsts, *seconds]):
        if name not in firsts or name not in seconds:
            yield Unmatched(run, a.name, "", _why_not((int(name in firsts), int(name in seconds))), name)
        elif (count := min(firsts[name].count, seconds[name].count)) < least:
            yield Unmatched(run, a.name, "", f"{count:,} samples, fewer than {least:,}", name)
        else:
            yield from _part(run, _Part(a, firsts[name]), _Part(b, seconds[name]), pairing, settings)


def _part(run: str, a: _Part, b: _Part, pairing: _Pairing, settings: _Settings) -> Iterator[_Found]:
    firsts, seconds = [v.name for v in a.values], [v.name for v in b.values]
    shown: list[tuple[str, str]] = []  # metrics of the same terms have the same samples
    for name in dict.fromkeys(firsts + seconds):
        times = firsts.count(name), seconds.count(name)
        if times != (1, 1):
            yield Unmatched(run, a.section.name, name, _why_not(times), a.name)
            continue
        first, second = a.measured(name), b.measured(name)
        if why := why_not_the_same(first, second):
            yield Unmatched(run, a.section.name, name, f"another metric of the same name: {why}", a.name)
            continue
        delta = _delta(run, a, first, second, pairing, settings)
        yield delta
        if delta.paired and first.is_of_booleans and second.is_of_booleans:
            yield flips_of(delta, first, second, pairing.whole, settings.flips)
        terms = first.value.numerator, first.value.denominator
        if settings.flips > 0 and not a.name and _has_changes(delta, first, second, pairing) and terms not in shown:
            shown.append(terms)
            assert isinstance(pairing.whole, np.ndarray), name
            yield changed_samples(delta, a.section, b.section, pairing.whole, settings.flips)


def _has_changes(delta: Delta, a: MeasuredValue, b: MeasuredValue, pairing: _Pairing) -> bool:
    """Whether samples can be said to have got worse or better by a metric."""
    is_paired = delta.paired and isinstance(pairing.whole, np.ndarray)
    return is_paired and delta.higher_is_better is not None and a.has_terms() and b.has_terms()


def _why_not(times: tuple[int, int]) -> str:
    if max(times) > 1:
        return f"the baseline has {times[0]} of this name, the run {times[1]}"
    return "missing in the run" if times[0] else "missing in the baseline"


def _delta(run: str, part: _Part, a: MeasuredValue, b: MeasuredValue, pairing: _Pairing, settings: _Settings) -> Delta:
    evidence = difference(a, b, settings.confidence_level, settings.seed, pairing.whole, equal=pairing.equal)
    return Delta(
        run,
        part.section.name,
        a.value.name,
        a.value.value,
        b.value.value,
        b.value.value - a.value.value,
        evidence.lower,
        evidence.upper,
        evidence.p,
        None,
        evidence.effect,
        evidence.scale,
        evidence.method,
        evidence.paired,
        _counts(a, b),
        b.value.higher_is_better if a.value.higher_is_better is None else a.value.higher_is_better,
        note=evidence.note,
        slice=part.name,
        smallest=None if part.name else _smallest(evidence, settings.confidence_level),
    )


def _counts(a: MeasuredValue, b: MeasuredValue) -> tuple[int, ...]:
    counts = [each.count for each in (a, b)]
    return tuple(count for count in counts if count is not None) if None not in counts else ()


def _smallest(evidence: Evidence, confidence_level: float) -> float | None:
    """The smallest difference that would have been found."""
    if evidence.spread is None:
        return None
    smallest = evidence.spread.smallest(confidence_level)
    return smallest if np.isfinite(smallest) else None


def with_verdict(delta: Delta, corrected: float, confidence_level: float) -> Delta:
    """A difference with its corrected p, and what follows from that."""
    if delta.p is None or np.isnan(corrected):
        return delta
    if corrected >= 1 - confidence_level:
        return replace(delta, corrected=corrected, verdict="no evidence")
    if delta.higher_is_better is None or not delta.difference:
        return replace(delta, corrected=corrected, verdict="differs")
    is_better = (delta.difference > 0) == delta.higher_is_better
    return replace(delta, corrected=corrected, verdict="better" if is_better else "worse")
