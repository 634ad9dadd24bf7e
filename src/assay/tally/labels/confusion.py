"""The confusion matrix, and the counts per class for when there are too many classes for one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from assay.decide import Threshold
from assay.errors import ConfigError, describe
from assay.native import labels as native
from assay.native import readings
from assay.native.library import library, takes
from assay.tally.base import (
    BAD_WEIGHTS,
    Batch,
    BatchLayout,
    InvalidValues,
    PreparedAdd,
    Rule,
    State,
    Tally,
    Whole,
    bad_weights,
)
from assay.tally.conservation import (
    HostCount,
    Laws,
    each_at_most,
    equal,
    no_sum_without_counts,
    not_negative,
)
from assay.tally.labels.labels import Labels, true_labels
from assay.tally.row_cells import RowCells
from assay.tally.sums import exact
from assay.tally.sums.fingerprints import (
    Fingerprint,
    FingerprintSize,
    of_counts_with_weights,
    of_places,
    residues,
    residues_at,
)

FEW_CLASSES = 128  # up to here the matrix is small enough to be the state of everything
FEW_WEIGHTED = 64
LARGEST_STATE = 1 << 31  # bytes


@dataclass(frozen=True)
class ClassTotals:
    """How often each class was the target, was predicted, and both: Python integers, each of shape `(labels, C)`.

    They are in units of `2 ** unit`; the unit is 0 unless the samples were weighted.
    """

    target: np.ndarray
    predicted: np.ndarray
    hits: np.ndarray
    unit: int = 0

    def totals(self) -> ClassTotals:
        return self

    def whole_totals(self) -> ClassTotals:
        return self


@dataclass(frozen=True)
class Counts:
    """The matrix of shape `(labels, C, C)`: true label by predicted label, in units of `2 ** unit`.

    Of tables with more dimensions before theirs, those of resamples, all is computed at once.

    `values` has dtype int64, or object (Python integers) when weighted; the unit is 0 unless it is.
    """

    values: np.ndarray
    unit: int = 0

    def totals(self) -> ClassTotals:
        """The totals per class."""
        return self._totals

    def whole_totals(self) -> ClassTotals:
        """The same as int64 where samples have no weights: sums of them fit, products may not."""
        hits = self.values.diagonal(axis1=-2, axis2=-1)
        return ClassTotals(self.values.sum(-1), self.values.sum(-2), hits, self.unit)

    @cached_property
    def _totals(self) -> ClassTotals:
        of = self.whole_totals()
        return ClassTotals(of.target.astype(object), of.predicted.astype(object), of.hits.astype(object), of.unit)


@dataclass(frozen=True)
class LabelTally(Tally):
    """What the tallies of labels have in common: a table of counts, and when weighted the sums of weights in its cells.

    The state is `counts`, an int64 table of the shape that the tally states. Weighted, there are also `weights`, exact
    sums in limbs for each cell, and `invalid`, the number of invalid weights.
    """

    labels: Labels
    weighted: bool = False

    def __post_init__(self) -> None:
        size = 8 * math.prod(self.shape) * (1 + exact.num_limbs(1) * self.weighted)
        if size > LARGEST_STATE:
            argument, number, do = self.what_to_reduce
            got = f"{number}, whose {type(self).__name__} takes {size / 2**30:.1f} GiB"
            raise ConfigError(describe(argument, got, f"at most {LARGEST_STATE >> 30} GiB", do))

    @property
    def what_to_reduce(self) -> tuple[str, int, str]:
        """Where the table is too large: the argument, its value, and what to do."""
        do = "Use metrics that need no confusion matrix, such as Accuracy or F1Score, or merge classes"
        return "num_classes", self.labels.num_classes, do

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""

    chunk_scale: ClassVar[int] = 8  # the scores are read once, and what follows has one element per row

    @cached_property
    def fields(self) -> Mapping[str, Rule]:
        return dict.fromkeys(("counts", "weights", "invalid") if self.weighted else ("counts",), "sum")

    def check(self, layout: BatchLayout) -> None:
        self.labels.check(layout)

    def zero(self, device: torch.device) -> State:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        state: State = {"counts": zeros(*self.shape)}
        if self.weighted:
            state |= {"weights": zeros(*self.shape, exact.num_limbs(1)), "invalid": zeros(1)}
        return state

    def canonicalize(self, state: State, rows: int) -> State:
        return state | {"weights": exact.canonical(state["weights"])} if self.weighted else state

    def canonicalize_cells(self, states: State, rows: Whole) -> State:
        return self.canonicalize(states, int(rows.sum()))

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        counts = (*self.count_invalid(state["counts"].numpy()), int(state["invalid"]) if self.weighted else 0)
        if not any(counts):
            return ()
        problems = map(InvalidValues, (*self.labels.invalid, BAD_WEIGHTS), counts)
        return [problem for problem in problems if problem.count]

    @abstractmethod
    def count_invalid(self, counts: np.ndarray) -> tuple[int, int]:
        """How many targets are out of range, and how many predictions for targets in range are."""

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "counts", "invalid")
        if self.weighted:
            law = "a cell that counted nothing has no weight"
            yield from no_sum_without_counts(law, state["counts"].numpy(), state["weights"])

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        return FingerprintSize(2 * self.weighted)  # of the weights, and how many of them are invalid

    def fingerprint_of(self, state: State) -> Fingerprint:
        found = of_counts_with_weights(state["counts"], state.get("weights"))
        return Fingerprint(found.places, torch.cat([found.residues, state["invalid"]])) if self.weighted else found

    def _fingerprint_at(
        self,
        batch: Batch,
        places: Tensor,
        counts: Tensor | None = None,
        weights: Tensor | None = None,
        is_first: bool = True,
    ) -> Fingerprint:
        """That of targets that count in these places, once or as often as is given; of invalid weights if first."""
        if not self.weighted:
            return Fingerprint(of_places(places, counts), places.new_zeros(0))
        if weights is None:
            weights = batch.memoize("weights", self.labels.weights)
        parts = exact.parts(weights.masked_fill(torch.ne(weights - weights, 0), 0))
        if counts is not None:
            parts = parts.times_sign(counts)
        bad = torch.count_nonzero(bad_weights(weights)).view(1) * is_first
        return Fingerprint(of_places(places, counts), torch.cat([residues_at(residues(parts), places).view(1), bad]))

    def _values(self, state: State) -> tuple[np.ndarray, int]:
        """The table as exact integers, and their unit."""
        if self.weighted:
            return exact.to_integers(state["weights"]), exact.origin(1)
        return state["counts"].numpy(), 0

    def _starts(self, batch: Batch, cells: RowCells) -> Tensor:
        """Where the table of the cell of each row starts in those of all cells, laid out flat: `(rows,)`."""
        return self._of_rows(batch, cells).numbers * math.prod(self.shape)

    @staticmethod
    def _of_rows(batch: Batch, cells: RowCells) -> RowCells:
        """The cells of rows, of which a sample may have several."""
        return cells.repeated(math.prod(batch.needed_target.shape[1:]))

    def _weights(self, state: State, batch: Batch, cells: RowCells | None = None) -> exact.Parts:
        """One weight per row, taken apart."""
        weights = batch.memoize("weights", self.labels.weights)
        return self._finite(state, weights, None if cells is None else self._of_rows(batch, cells))

    def _finite(self, state: State, weights: Tensor, cells: RowCells | None = None) -> exact.Parts:
        """Weights as limbs, and the number of invalid ones; what is not finite is taken as 0."""
        if cells is None:
            state["invalid"] += bad_weights(weights).sum()
        else:
            cells.add_to(state["invalid"], bad_weights(weights))
        return exact.parts(weights.masked_fill(torch.ne(weights - weights, 0), 0))


@dataclass(frozen=True)
class Confusion(LabelTally):
    """Counts of (true label, predicted label), for each label of multilabel data.

    The table has the shape `(labels, C + 3, C + 2)`. Its rows are the true label: below range, the `C` classes, above
    range, ignored; its columns the predicted label: below range, the `C` classes, above range or undecidable. What
    should not be there is so counted at no extra cost.

    Size: `8 (C + 3) (C + 2)` bytes per label; weighted, 70 times that.
    """

    has_cells = True

    @property
    def shape(self) -> tuple[int, ...]:
        return self.labels.groups, self.labels.num_classes + 3, self.labels.num_classes + 2

    def add_cells(self, states: State, batch: Batch, cells: RowCells) -> None:
        labels = self.labels
        if batch.compiled and library() is not None and not self.weighted and labels.num_labels is None:
            rows = labels.given(batch).contiguous(), true_labels(batch).contiguous()
            own = self._of_rows(batch, cells).numbers.contiguous()
            native.count_labels_of_cells(states["counts"], *rows, own, labels.num_classes, labels.ignore_index)
            return
        place = batch.memoize(("places", self.labels), lambda rows: confusion_places(self.labels, rows))
        self._add_at(states, batch, self._starts(batch, cells).add_(place), cells)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        return self._fingerprint_at(batch, confusion_places(self.labels, batch))

    def add(self, state: State, batch: Batch) -> None:
        labels = self.labels
        if batch.compiled and library() is not None and not self.weighted:
            self._count_compiled(state, batch)
            return
        if not self.weighted and labels.count_in_triton(state["counts"], batch):
            return
        self._add_at(state, batch, confusion_places(self.labels, batch))

    def _count_compiled(self, state: State, batch: Batch) -> None:
        labels, decision, target = self.labels, self.labels.decision, true_labels(batch).contiguous()
        is_decided = batch.has((decision, False))
        if labels.num_labels is None and isinstance(decision, Threshold) and takes(batch.preds) and not is_decided:
            scores, counts = batch.preds.reshape(-1), state["counts"]
            native.count_scores_above(counts, scores, decision.level, decision.logits, target, labels.ignore_index)
        else:
            predicted = labels.given(batch).contiguous()
            self._counts_into(state, batch.needed_target.shape).add(predicted.data_ptr(), target.data_ptr())

    def prepare(self, state: State, batch: Batch) -> PreparedAdd | None:
        target = batch.needed_target
        known = batch.compiled and library() is not None and target.dtype == torch.int64 and not self.weighted
        decided = self.labels.prepare(batch.preds) if known else None
        if decided is None:
            return None
        counts = self._counts_into(state, target.shape)
        return lambda preds, target, weights: counts.add(decided(preds), target.data_ptr())  # type: ignore[union-attr]

    def _counts_into(self, state: State, target: Sequence[int]) -> native.LabelCounts:
        samples, *positions = target
        shape = samples, self.labels.groups, math.prod(positions) // self.labels.groups
        return native.LabelCounts(state["counts"], shape, self.labels.num_classes, self.labels.ignore_index)

    def _add_at(self, state: State, batch: Batch, place: Tensor, cells: RowCells | None = None) -> None:
        ones = batch.memoize("ones", lambda _: torch.ones_like(place))
        state["counts"].view(-1).scatter_add_(0, place, ones)
        if self.weighted:
            weights = self._weights(state, batch, cells)
            exact.add_to(state["weights"].view(-1, exact.num_limbs(1)), weights, place)

    def count_invalid(self, counts: np.ndarray) -> tuple[int, int]:
        beyond = self.labels.num_classes + 1  # the place above the range; the one below it is 0
        targets, predictions = counts[:, ::beyond], counts[:, 1:-2, ::beyond]
        if not (np.count_nonzero(targets) or np.count_nonzero(predictions)):  # found out in a quarter of the time
            return 0, 0
        return int(targets.sum()), int(predictions.sum())

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from super().broken_laws(state, given)
        yield from all_targets_counted(state["counts"].numpy().sum((1, 2)), given)

    def union(self, other: Tally) -> Tally | None:
        covered = isinstance(other, ClassCounts) and (other.labels, other.weighted) == (self.labels, self.weighted)
        return self if covered or other == self else None

    def extract(self, state: State, wanted: Tally) -> State:
        """The state of the class counts of the same labels, as they would have counted it themselves."""
        if wanted == self:
            return state
        chosen = state | {"counts": _class_table(state["counts"])}
        if self.weighted:
            chosen["weights"] = exact.canonical(_class_table(state["weights"]))
        return chosen

    def plain_matrices(self, state: State) -> Tensor | None:
        """The matrix of each label, `(labels, C, C)`, of a state without weights; None where a label is invalid."""
        return readings.matrices(state["counts"], self.labels.groups, self.labels.num_classes)

    def plain_outcomes(self, state: State, of_classes: bool) -> Tensor | None:
        """True and false positives, true and false negatives and support: see `native.readings.outcomes`."""
        return readings.outcomes(state["counts"], self.labels.groups, self.labels.num_classes, of_classes)

    def compute(self, state: State) -> Counts:
        """The matrix, without what was ignored."""
        values, unit = self._values(state)
        return Counts(values[..., 1:-2, 1:-1], unit)


def all_targets_counted(of_labels: Whole, given: HostCount) -> Laws:
    """The cells of each label add up to its targets, and to as many as those of the others: int64 of `(labels,)`."""
    targets = given.targets if given.targets is None else given.targets // len(of_labels)
    for counted in dict.fromkeys(of_labels.tolist()):
        yield from equal("the cells of the table add up to the targets", targets, counted)
        yield from equal("each label has as many targets as the others", int(of_labels[0]), counted)


def confusion_places(labels: Labels, batch: Batch) -> Tensor:
    """The place of each row in the table of `Confusion`, laid out flat: int64 of shape `(rows,)`."""
    rows, columns = labels.num_classes + 3, labels.num_classes + 2
    place = torch.add(labels.predicted(batch), labels.rows(batch), alpha=columns).add_(1)
    if labels.num_labels is not None:
        place += labels.group_start(batch, rows * columns)
    return place


def _class_table(table: Tensor) -> Tensor:
    """The table of `ClassCounts` out of one of `Confusion`, of shape `(1, C + 3, C + 2, ...)`."""
    matrix = table[0]
    classes = torch.zeros(3, *matrix.shape[:1], *matrix.shape[2:], dtype=torch.int64, device="cpu")
    classes[0] = matrix.sum(1)
    classes[1, :-1] = matrix[1:-2].sum(0)
    classes[2, :-1] = matrix[:-1].diagonal(dim1=0, dim2=1).movedim(-1, 0)
    return classes


@dataclass(frozen=True)
class ClassCounts(LabelTally):
    """How often each class was the target, was predicted, and both: what most metrics need of a confusion matrix.

    The table has the shape `(3, C + 3)`, by true label as the rows of `Confusion`; by predicted label as its columns,
    only where the target is in range; and by label where both agree. Not for multilabel data.

    Size: `24 (C + 3)` bytes; weighted, 70 times that.
    """

    has_cells = True

    def __post_init__(self) -> None:
        assert self.labels.num_labels is None, "multilabel data has two classes, which is few"
        super().__post_init__()

    @property
    def shape(self) -> tuple[int, ...]:
        return 3, self.labels.num_classes + 3

    def add(self, state: State, batch: Batch) -> None:
        if self.weighted or not self.labels.count_in_triton(state["counts"], batch):
            self._add(state, batch)

    def add_cells(self, states: State, batch: Batch, cells: RowCells) -> None:
        self._add(states, batch, cells)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        last = self.labels.num_classes
        row, column = self.labels.rows(batch), self.labels.predicted(batch) + 1
        of_rows = row, torch.where((row >= 1) & (row <= last), column, -1), torch.where(row == column, row, -1)
        counted = [(each >= 0).to(torch.int64) for each in of_rows]
        found = [
            self._fingerprint_at(batch, each.clamp(min=0) + k * (last + 3), counts, is_first=not k)
            for k, (each, counts) in enumerate(zip(of_rows, counted, strict=True))
        ]
        first, *others = found
        for other in others:
            first.add(other)
        return first

    def _add(self, state: State, batch: Batch, cells: RowCells | None = None) -> None:
        last = self.labels.num_classes
        row = self.labels.rows(batch)
        column = self.labels.predicted(batch) + 1
        known = row.clamp(1, last).eq_(row)
        ones = batch.memoize("ones", lambda _: torch.ones_like(row))
        counted = ((row, ones), (column, known), (row, torch.eq(row, column, out=torch.empty_like(row))))
        parts = self._weights(state, batch, cells) if self.weighted else None
        start = 0 if cells is None else self._starts(batch, cells)
        for k, (index, one) in enumerate(counted):
            place = index + k * (last + 3) + start  # into the whole table: mps was wrong for slices with an offset
            state["counts"].view(-1).scatter_add_(0, place, one)
            if parts is not None:
                exact.add_to(state["weights"].view(-1, exact.num_limbs(1)), parts.times_sign(one), place)

    def count_invalid(self, counts: np.ndarray) -> tuple[int, int]:
        return int(counts[0, [0, -2]].sum()), int(counts[1, [0, -2]].sum())

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from super().broken_laws(state, given)
        target, predicted, hits = state["counts"].numpy()
        yield from equal("the true labels add up to the targets", given.targets, int(target.sum()))
        known = int(target[1:-2].sum())
        yield from equal("the predicted labels add up to the targets in range", known, int(predicted.sum()))
        yield from each_at_most("a class has no more hits than targets", target, hits)
        yield from each_at_most("a class has no more hits than predictions", predicted[1:-2], hits[1:-2])

    def union(self, other: Tally) -> Tally | None:
        return self if self == other else other.union(self) if isinstance(other, Confusion) else None

    def compute(self, state: State) -> ClassTotals:
        """The totals per class, each of shape `(1, C)`."""
        values, unit = self._values(state)
        target, predicted, hits = np.moveaxis(values, -2, 0)[..., None, 1:-2].astype(object)
        return ClassTotals(target, predicted, hits, unit)


def class_tally(labels: Labels, weighted: bool) -> Tally:
    """The cheapest tally that gives totals per class: a confusion matrix while it is small, else counts per class."""
    few = FEW_WEIGHTED if weighted else FEW_CLASSES
    return (Confusion if labels.num_classes <= few else ClassCounts)(labels, weighted)
