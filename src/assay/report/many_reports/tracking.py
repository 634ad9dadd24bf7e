"""A history: the values of metrics in many reports, and which changes from run to run are more than noise."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay._atomic import Location, files_in, location
from assay._remote import RemotePath
from assay.errors import AssayError, ConfigError, describe
from assay.report.calls import called_as
from assay.report.comparing.compare import compare, short_names, with_verdict
from assay.report.comparing.comparison import Delta, Run
from assay.report.many_reports.history_result import History, HistoryMetric, HistoryValue
from assay.report.per_sample.samples import align
from assay.report.report import Report
from assay.report.section import Section
from assay.report.value import Value

_HEAD = 200  # characters in which a file says what it is
_Named = tuple[str, Report]


@called_as('history(["runs/a", "runs/b"])')
def history(
    sources: Any,
    *,
    names: Sequence[str] | None = None,
    metrics: Sequence[str] = (),
    sections: Sequence[str] = (),
    slices: Sequence[str] = (),
    last: int | None = None,
    since: str = "",
    confidence_level: float = 0.95,
    correction: str = "holm",
    seed: int = 0,
    sequential: bool = False,
) -> History:
    """The values of metrics over runs, by the time when their reports were made.

    Each run is compared with the one before it on the same samples, as `compare` does: sample by sample where both kept
    them. Runs on other samples are not compared: `History.not_comparable` says how these differ.

    Args:
        sources: a folder, in which all reports are found, a pattern, a file, a report, or several of these.
        names: what to call the reports, as many as there are; by default what tells their files apart, or their titles.
        metrics: the metrics to show; all by default.
        sections: the sections to show; all by default.
        slices: the slices to show beside them: "sex = f", or "sex" for all of that name; none by default.
        last: show this many of the last runs; all by default.
        since: show runs from this time on, ISO 8601: "2026-11-20".
        confidence_level: of the intervals of changes.
        correction: of p-values over the metrics of a section in a run: ``"holm"``, ``"bh"`` or ``"none"``.
        seed: where the random numbers of sign flips start.
        sequential: keep the level over all runs, however many will come: the p-values of the k-th change are also
            multiplied by ``k (k + 1)``, with all runs counted, also those that are not shown.

    Raises:
        ConfigError: there is no report that can be read, none is left, or an option is invalid.

    Example:
        >>> from assay.report import Value
        >>> runs = [Report(f"run {k}", [Section("test", [Value("mse", 2.0 - k)])]) for k in range(2)]
        >>> found = history(runs)
        >>> [value.value for value in found.metrics[0].values]
        [2.0, 1.0]
    """
    given, not_read = find_reports(sources)
    runs = named_reports(given, names)
    if last is not None and last < 1:
        raise ConfigError(describe("last", last, "1 or more", "Leave it out for all runs"))
    runs = sorted(runs, key=lambda run: time_of(run[1].created, "created"))
    are_read = bool(runs)
    times = {name: k * (k + 1) if sequential else 1 for k, (name, _) in enumerate(runs)}  # Σ 1 / (k (k + 1)) = 1
    if since:
        start = time_of(since, "since")
        runs = [run for run in runs if time_of(run[1].created, "created") >= start]
    runs = runs[-last:] if last else runs
    if not runs:
        unread = f"none that can be read ({not_read[0].rstrip('.')})" if not_read else "none"
        got = f"none since {since}" if are_read else unread
        raise ConfigError(describe("reports", got, "one or more", "Name a folder with the reports of runs"))
    names_shown = _section_names(runs, sections)
    if slices:
        runs = [(name, _with_slices(report, slices)) for name, report in runs]
        names_shown = _with_their_slices(runs, names_shown, slices)
    tracked = [_tracked(name, runs, times, (confidence_level, correction, seed)) for name in names_shown]
    shown = [each for found, _ in tracked for each in found if not metrics or each.name in metrics]
    if unknown := set(metrics) - {each.name for each in shown}:
        there = ", ".join(dict.fromkeys(each.name for found, _ in tracked for each in found))
        raise ConfigError(describe("metrics", ", ".join(sorted(unknown)), f"some of {there}", "Correct the name"))
    return History(
        tuple(Run.of(name, report) for name, report in runs),
        tuple(shown),
        tuple(line for _, lines in tracked for line in lines),
        tuple(not_read),
        confidence_level,
        correction,
        sequential=sequential,
    )


def time_of(written: str, what: str) -> datetime:
    try:
        time = datetime.fromisoformat(written)
    except ValueError as error:
        do = f"Write {what} as 2026-11-20, or 2026-11-20T12:30"
        raise ConfigError(describe(what, repr(written), "a time in ISO 8601", do)) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def find_reports(sources: Any) -> tuple[list[tuple[Location | None, Report]], list[str]]:
    """The reports with their files, and which files could not be read."""
    listed = [sources] if isinstance(sources, str | os.PathLike | Report) else list(sources)
    found: list[tuple[Location | None, Report]] = []
    not_read: list[str] = []
    once: set[Location] = set()
    for each in listed:
        if isinstance(each, Report):
            found.append((None, each))
            continue
        for path in _files(os.fspath(each)):
            file = path.resolve() if isinstance(path, Path) else path
            if file in once:
                continue
            once.add(file)
            try:
                report = Report.load(path)
                time_of(report.created, f"{path}: created")
                found.append((path, report))
            except (AssayError, OSError) as error:
                not_read.append(str(error))
    return found, not_read


def _files(source: str) -> list[Location]:
    """The files that a path, a URL or a pattern names; of folders, those that say that they are reports."""
    place = location("reports", source)
    paths = [place]
    if glob.has_magic(source) and not place.exists():
        paths = _matches(place)
        if not paths:
            raise ConfigError(
                describe("reports", f"no file that matches {source!r}", "one or more", "Check the pattern")
            )
    return [file for path in paths for file in (_in_folder(path) if path.is_dir() else [path])]


def _matches(pattern: Location) -> list[Location]:
    if isinstance(pattern, RemotePath):
        return [*pattern.matches()]
    return [Path(each) for each in sorted(glob.glob(os.fspath(pattern), recursive=True))]


def _in_folder(folder: Location) -> list[Location]:
    files = files_in(folder, "*.json", recursive=True)
    return [path for path in files if path.name == "report.json" or _says_report(path)]


def _says_report(path: Location) -> bool:
    if isinstance(path, RemotePath):
        return b'"assay.report/' in path.head(_HEAD)
    with path.open("rb") as file:
        return b'"assay.report/' in file.read(_HEAD)


def named_reports(found: Sequence[tuple[Location | None, Report]], names: Sequence[str] | None) -> list[_Named]:
    reports = [report for _, report in found]
    paths = [path for path, _ in found if path is not None]
    titles = [report.title for report in reports]
    if names is not None and len(names) != len(reports):
        expected = f"{len(reports)}, one for each report"
        raise ConfigError(describe("names", f"{len(names)} names", expected, "Pass as many"))
    if names is None and len(paths) == len(reports) > 1:
        names = short_names(paths)
    elif names is None:
        names = titles if len(set(titles)) == len(titles) else [f"run {k}" for k in range(len(titles))]
    return list(zip(names, reports, strict=True))


def _section_names(runs: Sequence[_Named], chosen: Sequence[str]) -> list[str]:
    there = list(dict.fromkeys(section.name for _, report in runs for section in report.sections))
    if unknown := set(chosen) - set(there):
        expected = f"some of {', '.join(there)}"
        raise ConfigError(describe("sections", ", ".join(sorted(unknown)), expected, "Correct the name"))
    return [name for name in there if not chosen or name in chosen]


def _with_slices(report: Report, chosen: Sequence[str]) -> Report:
    """The report with each chosen slice as a section behind its own."""
    sections: list[Section] = []
    for section in report.sections:
        names = [each.name for each in section.slices if any(_is_chosen(each.name, name) for name in chosen)]
        parts = [(name, section.of_slice(name)) for name in names]
        sections += [section, *(replace(part, name=f"{section.name}: {name}") for name, part in parts if part)]
    return replace(report, sections=tuple(sections))


def _is_chosen(name: str, chosen: str) -> bool:
    """Whether a slice is the chosen one, or one of the chosen name."""
    return _spaced(name) == _spaced(chosen) or name.partition(" = ")[0] == chosen


def _spaced(name: str) -> str:
    return "=".join(part.strip() for part in name.split("=", 1))


def _with_their_slices(runs: Sequence[_Named], sections: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """The sections, each with its chosen slices behind it.

    Raises:
        ConfigError: no run has a slice of a chosen name.
    """
    names = {section: [section] for section in sections}
    there: dict[str, None] = {}
    for parent in (each for _, report in runs for each in report.sections if each.name in names):
        there |= dict.fromkeys(each.name for each in parent.slices)
        shown = [each.name for each in parent.slices if any(_is_chosen(each.name, name) for name in chosen)]
        names[parent.name] += [f"{parent.name}: {name}" for name in shown]
    if unknown := [name for name in chosen if not any(_is_chosen(each, name) for each in there)]:
        expected = f"one of {', '.join(map(repr, there))}" if there else "reports with slices"
        raise ConfigError(describe("slices", repr(unknown[0]), expected, "Correct the name, or pass slices= (--slice)"))
    return list(dict.fromkeys(name for section in sections for name in names[section]))


def _tracked(
    name: str, runs: Sequence[_Named], times: Mapping[str, int], settings: tuple[float, str, int]
) -> tuple[list[HistoryMetric], list[str]]:
    """The metrics of a section over runs, and which runs have other samples."""
    values: dict[str, list[HistoryValue]] = {}
    better: dict[str, bool | None] = {}
    latest: list[tuple[str, Report, Section]] = []  # the last run on each set of samples
    lines: list[str] = []
    for run, report in runs:
        section = next((each for each in report.sections if each.name == name), None)
        if section is None:
            continue
        reasons = [other_samples(before, section) for _, _, before in latest]
        data = reasons.index("") if "" in reasons else len(latest)
        previous, changes = "", {}
        if data < len(latest):
            previous = latest[data][0]
            changes = _changes(latest[data][1], report, name, (previous, run), times[run], settings)
            latest[data] = run, report, section
        else:
            if latest:
                lines.append(f"{name}: {latest[-1][0]} and {run} have other samples: {reasons[-1]}")
            latest.append((run, report, section))
        for value in section.values:
            better.setdefault(value.name, value.higher_is_better)
            entry = _value(run, value, data + 1, previous, changes.get(value.name))
            values.setdefault(value.name, []).append(entry)
    return [HistoryMetric(name, metric, better[metric], tuple(each)) for metric, each in values.items()], lines


def _value(run: str, value: Value, data: int, previous: str, change: Delta | None) -> HistoryValue:
    return HistoryValue(run, value.value, value.lower, value.upper, value.count, data, previous, change)


def _changes(
    before: Report,
    after: Report,
    section: str,
    names: tuple[str, str],
    times: int,
    settings: tuple[float, str, int],
) -> dict[str, Delta]:
    """The changes of the metrics of one section from one run to the next, with p so many times as large."""
    level, correction, seed = settings
    pair = [replace(each, sections=tuple(s for s in each.sections if s.name == section)) for each in (before, after)]
    found = compare(*pair, confidence_level=level, correction=correction, seed=seed, flips=0, names=names, slices=False)
    if times == 1:
        return {delta.metric: delta for delta in found.deltas}
    p = [math.nan if each.corrected is None else min(1.0, times * each.corrected) for each in found.deltas]
    return {each.metric: with_verdict(each, of, level) for each, of in zip(found.deltas, p, strict=True)}


def other_samples(a: Section, b: Section) -> str:
    """How the samples of two sections differ; empty where they are the same, as far as that is known."""
    if a.samples is not None and b.samples is not None:
        aligned = align(a.samples, b.samples)
        return aligned if isinstance(aligned, str) else ""
    return next(_other_counts(a, b), "")


def _other_counts(a: Section, b: Section) -> Iterator[str]:
    counts = {value.name: value.count for value in a.values}
    for value in b.values:
        count = counts.get(value.name)
        if count is not None and value.count is not None and count != value.count:
            yield f"{value.name} rests on {value.count:,} samples, and not on {count:,}"
