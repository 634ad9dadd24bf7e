"""The report of an evaluation: what was measured, what was decided, what a reader must know."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from assay.devices.assign import DeviceAssignment
from assay.devices.processor import device_name
from assay.evaluation.arguments.options import EvaluateOptions
from assay.evaluation.data.batch import only_entry, parse_shown
from assay.evaluation.data.coverage import Coverage
from assay.evaluation.data.data_source import DataSource
from assay.evaluation.data.pictures import draw, find_image
from assay.evaluation.loop.loop import Loop
from assay.evaluation.model.forward import Forward
from assay.evaluation.observe.per_sample import PerSampleValues
from assay.evaluation.observe.query_recorder import QueryRecorder
from assay.evaluation.observe.worst_queries import ChosenQueries, numbered_queries, ranking_metric
from assay.evaluation.results.counted_samples import CountedSamples, section_of
from assay.evaluation.results.diagnostics import Diagnostics
from assay.meter import Meter
from assay.meter.checks.recounts import RecountSummary
from assay.metrics.base import Metric
from assay.render.pictures import Picture
from assay.report import Report, Section, Table
from assay.report.origin import ReportOrigin
from assay.report.per_sample.packed_array import PackedArray
from assay.report.per_sample.sample_files import with_linked_files
from assay.report.worst import MOST_PICTURES, chosen_errors, worst_positions


@dataclass(frozen=True)
class FinishedEvaluation:
    """An evaluation whose samples were all counted.

    Attributes:
        loop: what counted on this process.
        metrics: those that were asked for.
        diagnostics: what the report shows beside the metrics.
        source: the data.
        assigned: the device.
        options: how it was run.
        start: when it began, on the clock of `time.perf_counter`.
        origin: gives what made the report; called once, when all is counted.
    """

    loop: Loop
    metrics: Mapping[str, Metric]
    diagnostics: Diagnostics
    source: DataSource
    assigned: DeviceAssignment
    options: EvaluateOptions
    start: float
    origin: Callable[[], ReportOrigin]


@dataclass(frozen=True)
class RankSummary:
    """What one process tells the others."""

    device: str
    failures: list[tuple[str, str]]
    memory: str
    rounded: list[tuple[str, str, str]]
    takes_images: bool
    repeats: int
    recounted: RecountSummary


@dataclass(frozen=True)
class WantedPictures:
    """The worst samples, and some of the errors, of which pictures are kept.

    Attributes:
        names: what the samples are called, by their indices: the worst first, then the others.
        marks: by name, what is drawn into the picture.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    marks: Mapping[str, Any] = field(default_factory=dict)


def build_report(evaluation: FinishedEvaluation) -> Report:
    """The report, made by the first process, the same on all."""
    loop, ranks = evaluation.loop, evaluation.loop.ranks
    summaries = ranks.gather(lambda: _summary(evaluation))
    total = loop.meter.sync()
    coverage = loop.coverage.summary(ranks, total.rows)
    observed = loop.observers.gathered(ranks)
    own: list[tuple[Report, WantedPictures, ChosenQueries | None]] = []

    def made() -> tuple[Report, WantedPictures, ChosenQueries | None] | None:
        if not ranks.own:
            own.append(_report(evaluation, summaries, total, coverage, observed))
        return own[0] if own else None

    given = ranks.gather(made)[0]
    assert given is not None
    report, wanted, queries = own[0] if own else given  # what was sent does not own the temporary file of its samples
    if ranks.own:
        report = with_linked_files(report)
    ranks.meet()
    if queries is not None:
        report = _with_queries(report, queries, evaluation)
    return _with_pictures(report, wanted, evaluation) if wanted.names else report


def _report(
    evaluation: FinishedEvaluation,
    summaries: list[RankSummary],
    total: Meter,
    coverage: Coverage,
    observed: Mapping[str, Any],
) -> tuple[Report, WantedPictures, ChosenQueries | None]:
    loop, options = evaluation.loop, evaluation.options
    failures = [failure for each in summaries for failure in each.failures]
    repeats = sum(each.repeats for each in summaries)
    counting_s = loop.checkpoints.before_s + time.perf_counter() - evaluation.start
    tables = [coverage.table(), _decisions(evaluation, summaries), _run(evaluation, total.rows, counting_s, repeats)]
    if failures:
        tables.append(Table("Batches left out", ("error", "samples"), tuple(failures)))
    counted = CountedSamples(total, evaluation.metrics, evaluation.diagnostics, observed)
    section, per_sample, notes = section_of(counted, options, tables)
    notes = [*_notes(coverage, evaluation, failures), *_of_recounts(summaries), *notes]
    device = f"{summaries[0].device} ({device_name(torch.device(summaries[0].device))})"
    duration = loop.checkpoints.before_s + time.perf_counter() - evaluation.start
    origin = evaluation.origin()
    report = Report(options.title, (section,), device=device, notes=tuple(notes), duration_s=duration, origin=origin)
    return report, _wanted_pictures(section, per_sample, evaluation, summaries), _chosen_queries(counted)


def _wanted_pictures(
    section: Section, per_sample: PerSampleValues, evaluation: FinishedEvaluation, summaries: list[RankSummary]
) -> WantedPictures:
    """The worst samples and some of the errors, where the model takes images and the data set has indices."""
    samples, takes_images = section.samples, any(each.takes_images for each in summaries)
    if samples is None or per_sample.index is None or evaluation.source.shares is None or not takes_images:
        return WantedPictures()
    marks, found = per_sample.marks, samples.ids.values
    index = per_sample.index.values if isinstance(per_sample.index, PackedArray) else per_sample.index
    chosen = [row for row in chosen_errors(section, MOST_PICTURES) if not marks or str(found[row]) in marks]
    rows = [*worst_positions(section, MOST_PICTURES), *chosen]
    names = {int(index[row]): str(found[row]) for row in rows}
    return WantedPictures(names, {name: marks[name] for name in names.values() if name in marks})


def _chosen_queries(counted: CountedSamples) -> ChosenQueries | None:
    """The worst queries, with what was kept of their documents."""
    ranking, recorder = ranking_metric(counted.metrics), counted.observed.get("queries")
    if ranking is None:
        return None
    if ranking[1].by_row:
        return recorder.queries() if isinstance(recorder, QueryRecorder) else None
    queries = numbered_queries(counted.total, *ranking)
    if queries is None:
        return None
    return queries.chosen(recorder.documents(queries.values) if isinstance(recorder, QueryRecorder) else {}, {})


def _with_queries(report: Report, queries: ChosenQueries, evaluation: FinishedEvaluation) -> Report:
    """The report with its worst queries, and what is to be shown of their documents, each read by its process."""
    source, names = evaluation.source, tuple(parse_shown(evaluation.options.show))
    (section,) = report.sections
    shown: dict[int, tuple[Any, ...]] = {}
    notes: dict[str, None] = {}
    if names and queries.keys and source.shares is not None:
        keys = queries.keys
        for values, failures in evaluation.loop.ranks.gather(lambda: _shown(keys, evaluation)):
            shown |= values
            notes |= dict.fromkeys(failures)
    elif names and queries.worst.queries:
        notes["What show= names is not in the report: samples of a stream cannot be read again."] = None
    section = replace(section, worst_queries=queries.result(names if shown else (), shown))
    return replace(report, sections=(section,), notes=(*report.notes, *notes))


def _shown(keys: Sequence[int], evaluation: FinishedEvaluation) -> tuple[dict[int, tuple[Any, ...]], list[str]]:
    """What is shown of the samples that this process has, by their indices, and why some of it is not there."""
    source = evaluation.source
    assert source.shares is not None
    own = np.intersect1d(keys, np.concatenate([np.empty(0, np.int64), *source.shares.lists]))
    shown: dict[int, tuple[Any, ...]] = {}
    try:
        for unit in source.read(own.tolist()):
            if unit.error is not None:
                raise unit.error
            if unit.index is not None:
                shown[int(unit.index[0])] = tuple(map(only_entry, evaluation.loop.reader.shown(unit.data)))
    except Exception as error:  # all is measured: no text is worth losing the report
        return shown, [f"Not all texts of the worst queries could be read: {type(error).__name__}: {error}"]
    return shown, []


def _with_pictures(report: Report, wanted: WantedPictures, evaluation: FinishedEvaluation) -> Report:
    """The report with pictures of its worst samples, each read by the process that has it."""
    source, names = evaluation.source, wanted.names
    (section,) = report.sections
    assert section.samples is not None
    assert source.shares is not None
    lists = source.shares.lists

    def pictures() -> tuple[list[Picture], list[str]]:
        own = np.intersect1d(list(names), np.concatenate([np.empty(0, np.int64), *lists]))
        drawn, failures = [], []
        try:
            for unit in source.read(own.tolist()):
                if unit.error is not None:
                    raise unit.error
                image = find_image(evaluation.loop.reader.read(unit.data)[0])
                if image is not None and unit.index is not None:
                    name = names[int(unit.index[0])]
                    drawn.append(draw(name, image, wanted.marks.get(name), evaluation.diagnostics.named))
        except Exception as error:  # all is measured: no picture is worth losing the report
            failures.append(f"Not all pictures of the worst samples could be made: {type(error).__name__}: {error}")
        return drawn, failures

    made = evaluation.loop.ranks.gather(pictures)
    drawn = {each.id: each for pictures_of_rank, _ in made for each in pictures_of_rank}
    ordered = tuple(drawn[name] for name in names.values() if name in drawn)
    section = replace(section, samples=replace(section.samples, pictures=ordered))
    notes = dict.fromkeys(note for _, failures in made for note in failures)
    return replace(report, sections=(section,), notes=(*report.notes, *notes))


def _summary(evaluation: FinishedEvaluation) -> RankSummary:
    loop = evaluation.loop
    return RankSummary(
        str(evaluation.assigned.device.value),
        loop.coverage.failures if loop.ranks.place.counts else [],
        str(loop.limit),
        _rounded(loop.forward),
        bool(loop.forward.takes_images),
        loop.repeats,
        loop.meter.counts.recounted(),
    )


def _of_recounts(summaries: list[RankSummary]) -> list[str]:
    """How many batches of devices were counted once more; nothing on the CPU, and where none was to be."""
    found = [each.recounted for each in summaries]
    total = RecountSummary(sum(each.recounted for each in found), sum(each.batches for each in found))
    return [f"{total}"] * (total.batches > 0)


def _notes(coverage: Coverage, evaluation: FinishedEvaluation, failures: list[tuple[str, str]]) -> list[str]:
    known = coverage.expected is not None or coverage.duplicated is not None
    notes = [f"Every sample once: {coverage}." if known else f"Samples are identified by {coverage.by}: {coverage}."]
    if coverage.repeated and evaluation.loop.coverage.keyed:
        notes.append(
            f"{coverage.repeated:,} rows had the id of an earlier row that is the same, and were not counted again."
        )
    if evaluation.source.unused:
        unused = f"{evaluation.source.unused:,} samples"
        notes.append(f"The loader gives {unused} of the data set to nobody (a sampler, or drop_last).")
    if failures:
        notes.append(f"{len(failures)} batches failed and were left out: {coverage.skipped:,} samples.")
    if evaluation.loop.forward.outputs.gathered:
        notes.append(
            "Each batch of the model's scores was gathered from the processes that share its classes: metrics that "
            "need more than the class with the highest score were evaluated."
        )
    if not coverage.whole and not failures:
        notes.append("Not every sample was counted exactly once.")
    return notes


def _run(evaluation: FinishedEvaluation, rows: int, counting_s: float, repeats: int) -> Table:
    run = [
        ("samples", f"{rows:,}"),
        ("processes", f"{evaluation.loop.ranks.count}"),
        *_shared(evaluation, repeats),
        ("seed", f"{evaluation.options.seed}"),
        ("samples a second", f"{rows / max(counting_s, 1e-9):,.0f}"),
    ]
    if evaluation.options.resume is not None:
        run.append(("samples from checkpoints", f"{evaluation.loop.checkpoints.resumed_rows:,}"))
    return Table("Run", ("what", "value"), tuple(run))


def _shared(evaluation: FinishedEvaluation, repeats: int) -> list[tuple[str, str]]:
    """Of a model that is shared among processes, how samples were shared out."""
    if evaluation.loop.companions is None:
        return []
    return [
        ("processes with samples of their own", f"{evaluation.loop.ranks.place.count}"),
        ("batches repeated without weight", f"{repeats}"),
    ]


def _decisions(evaluation: FinishedEvaluation, summaries: list[RankSummary]) -> Table:
    assigned, precision, source = evaluation.assigned, evaluation.options.precision, evaluation.source
    rows: list[tuple[str, str, str]] = [
        ("device", str(assigned.device.value), assigned.device.reason),
        ("pinned memory", _yes(assigned.pin.value), assigned.pin.reason),
        ("non-blocking copies", _yes(assigned.non_blocking.value), assigned.non_blocking.reason),
        ("precision", precision or "the model's", "asked for" if precision else "none was asked for"),
        ("data", source.how, "" if source.shares is None else source.shares.how),
    ]
    memory = list(dict.fromkeys(each.memory for each in summaries))
    rows.append(("memory", "; ".join(memory), "learnt when memory runs out"))
    rows += list(dict.fromkeys(decision for each in summaries for decision in each.rounded))
    return Table("Decisions", ("what", "choice", "why"), tuple(rows))


def _rounded(forward: Forward) -> list[tuple[str, str, str]]:
    lacks = f"{forward.device} has no such dtype"
    rows = [("inputs", f"{dtype} was rounded to a narrower dtype", lacks) for dtype in forward.narrowed]
    do = "a cast in the data set would keep them on the device"
    return rows + [
        ("target", f"{dtype} meets the predictions on the CPU", f"{lacks}; {do}") for dtype in forward.on_host
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
