"""What stored predictions, or a second run, say of a report: the same bits, or the samples and parts that differ."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from assay._records import encode
from assay.errors import AssayError, ConfigError, StateError, describe
from assay.evaluation.results.provenance import file_digests
from assay.meter.file import MeterDescription, as_file_error
from assay.metrics.base import Metric
from assay.render.text import first_names
from assay.report import Report, Samples, Section
from assay.report.origin import SectionCounts
from assay.scoring.bad_rows import BadRowsError
from assay.scoring.options import ScoreOptions
from assay.scoring.stored_predictions import score_table
from assay.verify.file_level import same_number
from assay.verify.group_tables import differences
from assay.verify.result import Level, Outcome, VerificationCheck

OF_A_RUN = ("Run", "Decisions")
"""Tables that say how a run went: no two runs have the same."""
_PARTS = ("values", "counts", "slices", "resampling", "plots", "tables", "by", "worst_queries", "samples")
_OF_TABLES = ("score", "merge")
"""The calls that count tables of predictions: at once, or in parts that are added up."""
_SHOWN = 5
_ROUNDED_ELSEWHERE = 1e-6
"""How near numbers are that other versions or another processor give: sums of floats may be rounded differently."""


def metrics_of(report: Report) -> dict[str, Metric]:
    """The metrics of a report, made from their descriptions.

    Raises:
        StateError: the report has none, or one that cannot be made, such as of a function.
        ConfigError: the report has several sections, which were not measured by one call.
    """
    if len(report.sections) != 1:
        got = f"{len(report.sections)} sections"
        raise ConfigError(describe("report", got, "one, which one call made", "Verify the file alone"))
    counts = report.sections[0].counts
    if counts is None:
        do = "Verify a report that this version of assay made"
        raise StateError(describe("report", "no descriptions of its metrics", "those of schema 7", do))
    with as_file_error("report"):
        described = {name: json.loads(text) for name, text in counts.metrics.items()}
        return MeterDescription(described, counts.weighted, counts.rows).made((), "report")


def verify_recount(report: Report, data: Any, columns: Mapping[str, str] | None = None) -> list[VerificationCheck]:
    """Count the predictions in a table once more, as the report says that they were counted.

    Args:
        report: the report.
        data: the table: a path, several, or what `score` takes.
        columns: instead of the recorded ones: `preds`, `target`, `weights`, `ids`.

    Raises:
        ConfigError: the report does not say from which columns it was counted, and `columns` does not either.
        StateError: the metrics cannot be made.
    """
    metrics, options = metrics_of(report), _options(report, columns or {})
    try:
        again = score_table(data, metrics, options)
    except BadRowsError as error:
        if error.report is None or options.on_bad != "skip":
            return [VerificationCheck("recount", "rows", "fail", str(error))]
        again = error.report
    return verify_by_report(report, again, "recount", file_digests(data))


def _options(report: Report, columns: Mapping[str, str]) -> ScoreOptions:
    """How the table was counted: the recorded options, of which a query of DuckDB is not run."""
    origin = report.origin
    is_table = origin is not None and origin.call in _OF_TABLES
    if not is_table and "preds" not in columns:
        got = "a report of another call" if origin is not None else "no record of its call"
        do = "Add --preds and --target, or verify with --model"
        raise ConfigError(describe("--data", got, "a report of assay score", do))
    recorded = origin.call_options() if is_table and origin is not None else {}
    for name in ("num_classes", "sql", "progress", "workers"):
        recorded.pop(name, None)
    counts = report.sections[0].counts
    assert counts is not None, "metrics_of refuses such a report"
    recorded |= counts.interval_options
    names = ScoreOptions.__dataclass_fields__
    if unknown := sorted(recorded.keys() - names.keys()):
        do = "Use the version of assay that wrote it"
        raise StateError(describe("report.origin.options", ", ".join(unknown), "options of score", do))
    slices = recorded.get("slices")
    if isinstance(slices, dict):
        recorded["slices"] = {name: tuple(each) if isinstance(each, list) else each for name, each in slices.items()}
    try:
        return ScoreOptions(**{**recorded, **columns, "progress": False})
    except (TypeError, AssayError) as error:
        do = "They were changed, or give --preds and --target"
        raise StateError(describe("report.origin.options", str(error), "options of score", do)) from error


def verify_by_report(
    report: Report, again: Report, level: Level, data: Mapping[str, str] | None = None, model: str = ""
) -> list[VerificationCheck]:
    """Compare a report with one that was made again.

    Args:
        report: the report.
        again: the other one.
        level: how it was made.
        data: the digests of the files that it was made from.
        model: the digest of the model that it was made with.
    """
    (mine,), (other,) = report.sections, again.sections
    checks = list(_digests(report, dict(data or {}), model, level))
    same_machine = report.device == again.device and all(
        report.environment.get(name) == again.environment.get(name) for name in ("torch", "numpy", "python", "system")
    )
    for part, faults, is_near in _differences(mine, other):
        outcome: Outcome = "fail" if faults and not (is_near and not same_machine) else "pass"
        found = "the same bits"
        if faults:
            found = first_names(faults, _SHOWN, "; ")
        if faults and outcome == "pass":
            outcome, found = "not checked", f"near, on another processor or by other versions: {found}"
        checks.append(VerificationCheck(level, part, outcome, found, outcome == "not checked"))
    return checks


def _digests(report: Report, data: dict[str, str], model: str, level: Level) -> Iterator[VerificationCheck]:
    known = report.origin
    if known is None:
        return
    of_bytes = {digest for digest in known.data.values() if digest.startswith("sha256:")}
    if of_bytes and data:
        other = sorted(name for name, digest in data.items() if digest not in of_bytes)
        found = f"other bytes than those that were counted: {', '.join(other)}" if other else "those that were counted"
        yield VerificationCheck(level, "files", "fail" if other else "pass", found)
    if known.model and model:
        found = "the weights that were measured" if known.model == model else "other weights than those measured"
        yield VerificationCheck(level, "model", "pass" if known.model == model else "fail", found)


def _differences(mine: Section, other: Section) -> Iterator[tuple[str, list[str], bool]]:
    """By part of a section, what differs, and whether it is near."""
    for part in _PARTS:
        one, two = getattr(mine, part), getattr(other, part)
        if part == "samples" and mine.samples is not None and other.samples is not None:
            yield part, *_samples(mine.samples, other.samples)
        elif part == "values":
            yield part, *_values(mine, other)
        elif part == "by":
            if one or two:
                yield "tables by a column", *differences(one, two)
        elif part in ("plots", "slices", "tables"):
            yield part, *_named(one, two)
        elif part == "counts":
            yield part, *_counts(one, two)
        elif one is not None or two is not None:
            same = encode(one) == encode(two)
            yield part, [] if same else [f"another {part.replace('_', ' ')}"], _is_near(encode(one), encode(two))


def _counts(mine: SectionCounts | None, other: SectionCounts | None) -> tuple[list[str], bool]:
    """Whether counts differ; those of floats, which have no other form than their bits, may where values are near."""
    if mine is None or other is None:
        return ["counts in one of the two only"] * (mine is not other), False
    if replace(mine, packed="", sha256="") != replace(other, packed="", sha256=""):
        return ["other metrics or another number of samples"], False
    return ["other counts"] * (mine.sha256 != other.sha256), True


def _is_near(one: Any, two: Any) -> bool:
    """Whether two trees of a file differ by the rounding of floats alone."""
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=_ROUNDED_ELSEWHERE, abs_tol=_ROUNDED_ELSEWHERE)
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_is_near(one[name], two[name]) for name in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_is_near, one, two))
    return bool(one == two)


def _named(mine: Any, other: Any) -> tuple[list[str], bool]:
    """The names of parts that differ, and whether all are near."""
    own, theirs = ({each.name: encode(each) for each in parts if each.name not in OF_A_RUN} for parts in (mine, other))
    faults = [f"{name} differs" for name, each in own.items() if each != theirs.get(name)]
    return faults + [f"{name} is missing" for name in theirs.keys() - own.keys()], _is_near(own, theirs)


def _values(mine: Section, other: Section) -> tuple[list[str], bool]:
    """The values that differ, and whether all are near; signatures apart, which hold the version of assay."""
    own, theirs = ({each.name: each for each in section.values} for section in (mine, other))
    faults, is_near = [], own.keys() == theirs.keys()
    for name, value in own.items():
        again = theirs.get(name)
        if again is None:
            faults.append(f"{name}: not measured again")
            continue
        before, now = encode(replace(value, signature="")), encode(replace(again, signature=""))
        is_near &= _is_near(before, now)
        if not same_number(value.value, again.value):
            faults.append(f"{name}: {value.value!r}, now {again.value!r}")
        elif before != now:
            fields = [field for field in before.keys() | now.keys() if before.get(field) != now.get(field)]
            faults.append(f"{name}: another {', '.join(sorted(fields))}")
    return faults + [f"{name}: not in the report" for name in theirs.keys() - own.keys()], is_near


def _samples(mine: Samples, other: Samples) -> tuple[list[str], bool]:
    """The samples that differ, by their ids, with what is known of each, and whether all are near."""
    own, now = (list(map(str, each.ids.values.tolist())) for each in (mine, other))
    places = {name: place for place, name in enumerate(now)}
    faults = [f"sample {name}: missing now" for name in own if name not in places]
    faults += [f"sample {name}: not in the report" for name in places.keys() - set(own)]
    is_near = not faults
    both = [(k, places[name]) for k, name in enumerate(own) if name in places]
    rows, again = (np.array([pair[side] for pair in both], np.int64) for side in (0, 1))
    for what, one, two in _series(mine, other):
        if one is None or two is None:
            faults += [f"{what}: in one of the two only"] * (one is not two)
            is_near &= one is two
            continue
        before, after = one[rows], two[again]
        both_nan = (before != before) & (after != after)
        differs = np.flatnonzero((before != after) & ~both_nan)
        is_near &= _are_near(before[differs], after[differs])
        faults += [f"sample {own[rows[k]]}: {what} {before[k]}, now {after[k]}" for k in differs]
    if all(encode(getattr(mine, name)) == encode(getattr(other, name)) for name in ("classes", "score", "cluster")):
        return faults, is_near
    return [*faults, "other names of classes, score or cluster"], False


def _are_near(one: Any, two: Any) -> bool:
    """The same for arrays; labels and clusters, which are integers, must be equal."""
    if one.dtype.kind != "f" or two.dtype.kind != "f":
        return not len(one)
    return bool(np.isclose(one, two, rtol=_ROUNDED_ELSEWHERE, atol=_ROUNDED_ELSEWHERE).all())


def _series(mine: Samples, other: Samples) -> Iterator[tuple[str, Any, Any]]:
    for name in ("target", "decision", "clusters"):
        one, two = getattr(mine, name), getattr(other, name)
        yield name, None if one is None else one.values, None if two is None else two.values
    names = [[each.name for each in samples.columns] for samples in (mine, other)]
    for name in dict.fromkeys([*names[0], *names[1]]):
        one, two = (each.column(name) if name in own else None for each, own in zip((mine, other), names, strict=True))
        yield name, one, two
