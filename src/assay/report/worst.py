"""The worst errors of a section: the samples on which a model was most wrong, by id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay._records import CellValue
from assay.render.matrices import ConfusionPlot
from assay.report.per_sample.packed_array import Array, PackedArray
from assay.report.per_sample.samples import Samples
from assay.report.section import Section, Table
from assay.stats.sampling import mixed, numbers_of

LIMIT = 20
MOST_PICTURES = 12
"""Of the worst errors, and of the errors that are chosen regardless of their size."""
CONFIDENCE = "confidence"
"""A column of this name orders wrong decisions where no loss was kept: the surest first."""

ABSOLUTE_ERROR = "|decision − target|"


@dataclass(frozen=True)
class _Order:
    """Which samples count as errors, and how bad each is: by a size, or by a score of which less is worse."""

    wrong: Array
    size: Array
    name: str
    what: str
    by_score: bool = False

    def rows(self, samples: Samples, limit: int) -> Array:
        """The positions of the worst samples."""
        severities = np.where(self.wrong, -self.size if self.by_score else self.size, -np.inf)
        return worst_rows(severities, samples.ids.values, limit)


def worst_errors(section: Section, limit: int = LIMIT) -> Table | None:
    """The samples on which a model was most wrong, the worst first.

    Decisions that are numbers are ordered by how far they are from the target. Wrong decisions among classes are
    ordered by the first loss of the section that is a mean over samples, else by confidence, else by id. A loss that is
    NaN comes first. Where there are no decisions, samples are ordered by what they contribute to the first metric that
    is a mean over samples or the quotient of two: the most errors first, as of a word error rate, or the lowest scores,
    as of the queries of a ranking; without one, by the score of the samples, as of images with boxes.

    Args:
        section: what was measured, with its samples.
        limit: how many to list.

    Returns:
        A table of id, target, decision and the size of the error, with the strings of raw samples. None where samples
        were not kept, none is wrong, or nothing tells how wrong they are.

    Example:
        >>> from assay.report import Value
        >>> samples = Samples.pack([7, 8, 9], {"loss": [0.1, 2.5, 0.9]}, decision=[0, 1, 1], target=[0, 0, 0],
        ...                        classes=("cat", "dog"))
        >>> loss = Value("log loss", 3.5 / 3, numerator="loss", higher_is_better=False)
        >>> worst_errors(Section("test", [loss], samples=samples)).rows
        (('8', 'cat', 'dog', 2.5), ('9', 'cat', 'dog', 0.9))
    """
    samples = section.samples
    order = None if samples is None or not len(samples) else _order(section, samples)
    if samples is None or order is None or not order.wrong.any():
        return None
    rows = order.rows(samples, limit)
    named = {
        "id": _plain(samples.ids, rows),
        "target": _class_names(samples.target, rows, class_names(section)),
        "decision": _class_names(samples.decision, rows, class_names(section)),
        **_raw(samples, rows),
        order.name: _sizes(order.size[rows]) if order.name else None,
    }
    columns = {name: cells for name, cells in named.items() if cells is not None}
    total = int(order.wrong.sum())
    end = "smallest" if order.by_score else "largest"
    by = f"by {order.name}, the {end} first" if order.name else "by id: no loss of single samples was kept"
    note = f"{len(rows):,} of {total:,} {order.what}, {by}."
    return Table("Worst errors", tuple(columns), tuple(zip(*columns.values(), strict=True)), note)


def worst_positions(section: Section, limit: int) -> Array:
    """Where the samples of `worst_errors` stand among those of the section."""
    samples = section.samples
    order = None if samples is None or not len(samples) else _order(section, samples)
    return np.empty(0, np.int64) if samples is None or order is None else order.rows(samples, limit)


def chosen_errors(section: Section, limit: int) -> Array:
    """Where some errors of any size stand in the section: those with the lowest hashes of their ids.

    So reports on the same samples choose the same ones, as far as they are errors in both.
    """
    samples = section.samples
    order = None if samples is None or not len(samples) else _order(section, samples)
    if samples is None or order is None:
        return np.empty(0, np.int64)
    rows = np.flatnonzero(order.wrong)
    ids = samples.ids.values[rows]
    return rows[worst_rows(-order_of_choice(ids), ids, limit)]


def order_of_choice(ids: Array) -> Array:
    """A hash of each id, from 0 to 1."""
    return mixed(numbers_of(ids.tolist()).view(np.uint64)) / 2.0**64


def _sizes(values: Array) -> list[CellValue]:
    """Counts as integers, other numbers as they are."""
    whole = bool((np.isfinite(values) & (values == np.rint(values))).all())
    return [*map(int if whole else float, values)]


def class_names(section: Section) -> tuple[str, ...]:
    """The names of the classes of a section: those of its samples, else those of its confusion matrix."""
    if section.samples is not None and section.samples.classes:
        return section.samples.classes
    return next((plot.labels for plot in section.plots if isinstance(plot, ConfusionPlot)), ())


def severity(values: Array, counts: Array | None, higher_is_better: bool) -> Array:
    """How bad samples are by their terms of a metric: larger is worse, and -inf is no error.

    Args:
        values: the numerator of each sample.
        counts: its denominator; None for a mean over samples.
        higher_is_better: whether the terms are scores, and not errors.

    Example:
        >>> severity(np.array([0, 3]), np.array([2, 5]), False), severity(np.array([0, 3]), np.array([0, 4]), True)
        (array([-inf,   3.]), array([ -inf, -0.75]))
    """
    values = values.astype(np.float64)
    if not higher_is_better:
        return np.where(values != 0, values, -np.inf)
    with np.errstate(all="ignore"):
        scores = values if counts is None else values / counts
    return np.where(np.isnan(scores), -np.inf, -scores)


def worst_rows(severities: Array, ids: Array, limit: int) -> Array:
    """Where the worst samples stand: NaN first, then the largest severity, equal ones by id; -inf is left out."""
    rows = np.flatnonzero(severities != -np.inf)
    size = np.where(np.isnan(severities[rows]), np.inf, severities[rows])
    if len(rows) > limit:  # sorting ids costs more than all else
        least = np.partition(size, len(size) - limit)[len(size) - limit]
        rows, size = rows[size >= least], size[size >= least]
    rank = np.argsort(np.argsort(ids[rows], kind="stable"), kind="stable")
    return rows[np.lexsort((rank, -size))[:limit]]


def _order(section: Section, samples: Samples) -> _Order | None:
    if samples.decision is not None and samples.target is not None:
        decision, target = samples.decision.values, samples.target.values
        if "f" in (decision.dtype.kind, target.dtype.kind) and "O" not in (decision.dtype.kind, target.dtype.kind):
            with np.errstate(all="ignore"):
                apart = np.abs(decision.astype(np.float64) - target)
            return _Order(apart != 0, apart, ABSOLUTE_ERROR, "samples that are off")
        wrong = np.broadcast_to(np.asarray(decision != target, dtype=bool), len(samples))
        name, loss = _loss(section, samples)
        if loss is None:
            name, loss = _confidence(samples)
        return _Order(wrong, np.zeros(len(samples)) if loss is None else loss, name, "wrong decisions")
    return _by_contribution(section, samples)


def _by_contribution(section: Section, samples: Samples) -> _Order | None:
    """By what samples contribute to the first metric that they have terms of; else by their score."""
    for value in section.values:
        if value.numerator and value.higher_is_better is not None:
            counts = samples.column(value.denominator) if value.denominator else None
            size = severity(samples.column(value.numerator), counts, value.higher_is_better)
            if not value.higher_is_better:
                return _Order(size != -np.inf, size, value.numerator, "samples")
            return _below_the_best(size, value.numerator)
    if not samples.score:
        return None
    return _below_the_best(severity(samples.column(samples.score), None, True), samples.score)


def _below_the_best(size: Array, name: str) -> _Order:
    is_counted = size != -np.inf
    wrong = is_counted & (size > size.min(where=is_counted, initial=np.inf))
    return _Order(wrong, -size, name, "samples below the best", by_score=True)


def _raw(samples: Samples, rows: Array) -> dict[str, list[CellValue] | None]:
    """Targets and predictions of raw samples, as far as they were kept."""
    known = {each.id: each for each in samples.raw}
    shown = [known.get(str(name)) for name in samples.ids.values[rows]]
    if not any(shown):
        return {}
    return {
        "target": [None if each is None else each.target for each in shown],
        "prediction": [None if each is None else each.prediction for each in shown],
    }


def _loss(section: Section, samples: Samples) -> tuple[str, Array | None]:
    """The first loss that is a mean over samples; its name is that of its column."""
    for value in section.values:
        if value.higher_is_better is False and value.numerator and not value.denominator:
            column = samples.column(value.numerator)
            if column.dtype.kind != "b":
                return value.numerator, column.astype(np.float64)
    return "", None


def _confidence(samples: Samples) -> tuple[str, Array | None]:
    if CONFIDENCE not in [column.name for column in samples.columns]:
        return "", None
    return CONFIDENCE, samples.column(CONFIDENCE).astype(np.float64)


def _class_names(packed: PackedArray | None, rows: Array, names: tuple[str, ...]) -> list[CellValue] | None:
    """Entries with the names of the classes that their numbers stand for, where all of these have one."""
    if packed is None:
        return None
    entries = packed.values[rows]
    if names and entries.dtype.kind in "bi" and (entries >= 0).all() and (entries < len(names)).all():
        return [names[int(entry)] for entry in entries]
    return _plain(packed, rows)


def _plain(packed: PackedArray, rows: Array) -> list[CellValue]:
    """Entries as they stand in the data: an integer is a name and takes no commas."""
    entries = packed.values[rows]
    if entries.dtype.kind == "f":
        return [float(entry) for entry in entries]
    return [str(int(entry)) if entries.dtype.kind in "bi" else str(entry) for entry in entries]
