"""Comparing reports: metric by metric, sample by sample where both kept their samples."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.errors import ConfigError, describe
from assay.report.comparison import Comparison, Delta, Flips, Run, Unmatched
from assay.report.evidence import Measured, difference, why_not_the_same
from assay.report.packed import Array, Packed
from assay.report.plain import Cell
from assay.report.report import Report, Section
from assay.report.samples import Samples, align
from assay.report.statistics import correct

FLIPS = 10
"""Samples listed for each way to flip; all of them are counted."""


@dataclass(frozen=True)
class _Settings:
    level: float
    seed: int
    flips: int


def compare(
    a: Report,
    b: Report,
    *more: Report,
    level: float = 0.95,
    correction: str = "holm",
    seed: int = 0,
    flips: int = FLIPS,
    names: Sequence[str] | None = None,
) -> Comparison:
    """Compare runs with a baseline.

    Metrics are matched by section and name. Where both sides kept the same samples they are paired by id. Where they
    cannot be paired the test is an unpaired one, and the delta says why.

    Args:
        a: the baseline.
        b: a run.
        more: further runs; each is compared with the baseline.
        level: the confidence level of the intervals; also how small a corrected p must be, 1 - level.
        correction: ``"holm"``, ``"bh"`` or ``"none"``, over all metrics and runs.
        seed: where the random numbers of bootstrap and sign flips start.
        flips: how many samples to list for each way to flip.
        names: what to call the reports, the baseline first; their titles where these differ, unless given.

    Raises:
        ConfigError: the level or the correction cannot be, names do not fit, or no section is in both reports.

    Example:
        >>> from assay.report import Samples, Value
        >>> def run(title, *right):
        ...     samples = Samples.pack(range(len(right)), {"correct": np.array(right, dtype=bool)})
        ...     accuracy = Value("accuracy", sum(right) / len(right), column="correct", better="higher")
        ...     return Report(title, [Section("test", [accuracy], samples=samples)])
        >>> delta = compare(run("main", *[0, 1] * 9), run("new", *[1, 1] * 9)).delta("accuracy")
        >>> delta.difference, round(delta.p, 4), delta.verdict
        (0.5, 0.002, 'better')
    """
    if not 0 < level < 1:
        raise ConfigError(describe("level", level, "a number between 0 and 1", "Pass 0.95 for 95 %"))
    reports = (a, b, *more)
    settings = _Settings(level, seed, flips)
    runs = tuple(
        Run(name, report.title, report.created, report.device)
        for name, report in zip(_names(reports, names), reports, strict=True)
    )
    found = [
        part
        for run, report in zip(runs[1:], reports[1:], strict=True)
        for part in _compared(run.name, a, report, settings)
    ]
    deltas = [part for part in found if isinstance(part, Delta)]
    corrected = correct([float("nan") if delta.p is None else delta.p for delta in deltas], correction)
    return Comparison(
        runs,
        tuple(_judged(delta, p, level) for delta, p in zip(deltas, corrected, strict=True)),
        tuple(part for part in found if isinstance(part, Flips)),
        tuple(part for part in found if isinstance(part, Unmatched)),
        level,
        correction,
        seed,
    )


def _names(reports: Sequence[Report], names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
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
    parts = [os.fspath(path).removesuffix(".json").replace(os.sep, "/").split("/") for path in paths]
    while min(map(len, parts)) > 1 and len({each[-1] for each in parts}) == 1:
        parts = [each[:-1] for each in parts]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-length:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{'/'.join(each)} ({i})" for i, each in enumerate(parts)]


def _compared(run: str, a: Report, b: Report, settings: _Settings) -> Iterator[Delta | Flips | Unmatched]:
    sections = {section.name: section for section in b.sections}
    if not sections.keys() & {section.name for section in a.sections}:
        got = ", ".join(repr(section.name) for section in a.sections) or "no section"
        expected = f"one of the sections of {run!r} ({', '.join(map(repr, sections)) or 'none'})"
        do = "Give the sections that belong together one name"
        raise ConfigError(describe("the baseline", got, expected, do))
    for section in a.sections:
        yield from _section(run, section, sections.pop(section.name, Section(section.name)), settings)
    for rest in sections.values():
        yield from _section(run, Section(rest.name), rest, settings)


def _section(run: str, a: Section, b: Section, settings: _Settings) -> Iterator[Delta | Flips | Unmatched]:
    firsts, seconds = [v.name for v in a.values], [v.name for v in b.values]
    for name in dict.fromkeys(firsts + seconds):
        times = firsts.count(name), seconds.count(name)
        if times != (1, 1):
            yield Unmatched(run, a.name, name, _why_not(times))
            continue
        first, second = (next(value for value in each.values if value.name == name) for each in (a, b))
        yield from _metric(run, a.name, Measured(first, a.samples), Measured(second, b.samples), settings)


def _why_not(times: tuple[int, int]) -> str:
    if max(times) > 1:
        return f"the baseline has {times[0]} of this name, the run {times[1]}"
    return "missing in the run" if times[0] else "missing in the baseline"


def _metric(
    run: str, section: str, a: Measured, b: Measured, settings: _Settings
) -> Iterator[Delta | Flips | Unmatched]:
    name = a.value.name
    if why := why_not_the_same(a, b):
        yield Unmatched(run, section, name, f"another metric of the same name: {why}")
        return
    found = difference(a, b, settings.level, settings.seed)
    better = a.value.better or b.value.better
    yield Delta(
        run,
        section,
        name,
        a.value.value,
        b.value.value,
        b.value.value - a.value.value,
        found.lower,
        found.upper,
        found.p,
        None,
        found.effect,
        found.scale,
        found.method,
        found.paired,
        _counts(a, b),
        better,
        note=found.note,
    )
    if _is_yes_or_no(a, found.paired):
        yield _flips(run, section, name, better, a, b, settings.flips)


def _is_yes_or_no(measured: Measured, paired: bool) -> bool:
    return paired and measured.has_terms() and measured.terms().dtype.kind == "b"


def _counts(a: Measured, b: Measured) -> tuple[int, ...]:
    counts = [_count(each) for each in (a, b)]
    return tuple(count for count in counts if count is not None) if None not in counts else ()


def _count(measured: Measured) -> int | None:
    """How many samples a value rests on: of a recall, the positives."""
    if measured.samples is None or not measured.has_terms():
        return measured.value.count
    share = measured.share()
    return len(measured.samples) if share is None else int(share[1].sum())


def _judged(delta: Delta, corrected: float, level: float) -> Delta:
    if delta.p is None or np.isnan(corrected):
        return delta
    if corrected >= 1 - level:
        return replace(delta, corrected=corrected, verdict="no evidence")
    if not delta.better or not delta.difference:
        return replace(delta, corrected=corrected, verdict="differs")
    is_better = (delta.difference > 0) == (delta.better == "higher")
    return replace(delta, corrected=corrected, verdict="better" if is_better else "worse")


def _flips(run: str, section: str, metric: str, better: str, a: Measured, b: Measured, limit: int) -> Flips:
    assert a.samples is not None, metric
    assert b.samples is not None, metric
    position = align(a.samples, b.samples)
    assert not isinstance(position, str), position
    first, second = a.terms(), b.terms()[position]
    ups, downs = (np.flatnonzero(change) for change in (~first & second, first & ~second))
    decisions = _decisions(a.samples, b.samples, position)
    return Flips(
        run,
        section,
        metric,
        better,
        len(ups),
        len(downs),
        int((first & second).sum()),
        int((~first & ~second).sum()),
        None if decisions is None else int(np.sum(np.asarray(decisions[0] != decisions[1]))),
        *(_listed(a.samples, rows, decisions, limit) for rows in (ups, downs)),
    )


def _decisions(a: Samples, b: Samples, position: Array) -> tuple[Array, Array] | None:
    if a.decision is None or b.decision is None:
        return None
    return a.decision.values, b.decision.values[position]


def _listed(
    samples: Samples, rows: Array, decisions: tuple[Array, Array] | None, limit: int
) -> tuple[tuple[Cell, ...], ...]:
    """The first rows by id: id, target, decision of the baseline, decision of the run."""
    ids = samples.ids.values
    first = rows[np.argsort(ids[rows], kind="stable")][: max(0, limit)]
    before, after = decisions or (None, None)
    return tuple(
        (_cell(ids, i), _cell(_values(samples.target), i), _cell(before, i), _cell(after, i)) for i in first.tolist()
    )


def _values(packed: Packed | None) -> Array | None:
    return None if packed is None else packed.values


def _cell(array: Array | None, i: int) -> Cell:
    """One entry for a table, in plain Python; a boolean becomes 0 or 1."""
    if array is None:
        return None
    entry = array[i]
    return str(entry) if isinstance(entry, str) else int(entry) if array.dtype.kind in "bi" else float(entry)
