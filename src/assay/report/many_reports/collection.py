"""Many reports as one page: every run, metrics over time, each report, and comparisons of any two."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from assay._atomic import Location, write_text
from assay.errors import ConfigError, describe
from assay.render import Document, Viewable, text
from assay.report.comparing.compare import compare
from assay.report.comparing.comparison import Comparison
from assay.report.many_reports.collection_view import collection_document, pair_sheet, run_sheet
from assay.report.many_reports.history_result import History
from assay.report.many_reports.tracking import find_reports, history, named_reports, time_of
from assay.report.report import Report

COMPARISONS = 30
"""How many pairs of runs are compared."""


@dataclass(frozen=True, eq=False)
class ReportCollection(Viewable):
    """Reports of many runs.

    Args:
        reports: the reports with their names, by the time when they were made.
        history: their metrics over time, and which files could not be read.
        comparisons: comparisons of two of them, by their places.
        files: where the reports are, as they were found; names where they are in memory.
    """

    reports: tuple[tuple[str, Report], ...]
    history: History
    comparisons: Mapping[tuple[int, int], Comparison]
    files: tuple[str, ...]

    def to_document(self) -> Document:
        """What is shown first: the runs, metrics over time, comparisons, and what could not be read."""
        return collection_document(self)

    def to_html(self, path: str | os.PathLike[str]) -> Location:
        """Write one page with all reports and comparisons in it, which needs nothing else.

        Args:
            path: the file, on this machine or at a URL.
        """
        return write_text(path, self._page())

    def _page(self) -> str:
        from assay.render.html import to_html

        sheets = {run_sheet(i): _named(name, report.to_document()) for i, (name, report) in enumerate(self.reports)}
        sheets |= {pair_sheet(*pair): found.to_document() for pair, found in self.comparisons.items()}
        return to_html(self.to_document(), sheets, self._choices())

    def _choices(self) -> dict[str, Any]:
        """What the script of the page needs to filter runs and to compare two, as JSON."""
        runs = [
            {
                "name": text.clean(name).strip(),
                "file": text.clean(file),
                "made": time_of(report.created, "created").isoformat(),
                "words": " ".join(_words(name, file, report)).lower(),
                "values": {key: [shown, text.number(value)] for key, value, shown in _values(report)},
            }
            for (name, report), file in zip(self.reports, self.files, strict=True)
        ]
        metrics = list(dict.fromkeys(text.clean(metric.name) for metric in self.history.metrics))
        return {"runs": runs, "pairs": {f"{a}-{b}": pair_sheet(a, b) for a, b in self.comparisons}, "metrics": metrics}


def collect(
    sources: Any,
    *,
    names: Sequence[str] | None = None,
    comparisons: int = COMPARISONS,
    slices: bool = False,
    confidence_level: float = 0.95,
    seed: int = 0,
) -> ReportCollection:
    """Reports of many runs, for one page over all of them.

    Args:
        sources: a folder, in which all reports are found, a pattern, a file, a report, or several of these.
        names: what to call the reports, as many as there are; by default what tells their files apart, or their titles.
        comparisons: compare at most this many pairs of runs: each run with the one before it, then each with the last
            one, then the others, the latest first.
        slices: whether to compare slices, too, which takes longer.
        confidence_level: of the intervals of differences.
        seed: where random numbers start.

    Raises:
        ConfigError: there is no report that can be read, or an option is invalid.

    Example:
        >>> from assay.report import Section, Value
        >>> runs = [Report(f"run {k}", [Section("test", [Value("mse", 2.0 - k)])]) for k in range(3)]
        >>> found = collect(runs)
        >>> sorted(found.comparisons), [name for name, _ in found.reports]
        ([(0, 1), (0, 2), (1, 2)], ['run 0', 'run 1', 'run 2'])
    """
    if comparisons < 0:
        raise ConfigError(describe("comparisons", comparisons, "0 or more", "Pass 0 for no comparison"))
    found, not_read = find_reports(sources)
    named = zip(named_reports(found, names), found, strict=True)
    in_order = sorted(named, key=lambda each: time_of(each[0][1].created, "created"))
    reports = tuple(run for run, _ in in_order)
    over_time = history(
        [report for _, report in reports] if reports else sources,
        names=[name for name, _ in reports] or None,
        confidence_level=confidence_level,
        seed=seed,
    )
    files = tuple(name if path is None else str(path) for (name, _), (path, _) in in_order)
    pairs: dict[tuple[int, int], Comparison] = {}
    for a, b in _pairs(len(reports)):
        if len(pairs) >= comparisons:
            break
        if {each.name for each in reports[a][1].sections} & {each.name for each in reports[b][1].sections}:
            pair = [reports[k] for k in (a, b)]
            pairs[a, b] = compare(
                *(report for _, report in pair),
                names=[name for name, _ in pair],
                confidence_level=confidence_level,
                seed=seed,
                slices=None if slices else False,
            )
    return ReportCollection(reports, replace(over_time, not_read=tuple(not_read)), dict(sorted(pairs.items())), files)


def _named(name: str, document: Document) -> Document:
    return document if name == document.title else replace(document, title=f"{name}: {document.title}")


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    """Pairs of runs in the order in which they matter; each once, the earlier run first."""
    steps = ((k - 1, k) for k in range(count - 1, 0, -1))
    others = sorted(combinations(range(count), 2), key=lambda pair: (-pair[1], -pair[0]))
    return iter(dict.fromkeys((*steps, *others)))


def _words(name: str, file: str, report: Report) -> Iterator[str]:
    yield from (name, file, report.title, report.device)
    if report.origin is not None:
        yield from (line for _, line in report.origin.lines())


def _values(report: Report) -> Iterable[tuple[str, float, float | str]]:
    """The values of all sections: name, value, and the value as JSON has it."""
    for section in report.sections:
        for value in section.values:
            shown = value.value if math.isfinite(value.value) else str(value.value)
            yield text.clean(f"{section.name}/{value.name}"), value.value, shown
