"""Bins of confidence: how sure predictions were, and how often they were right."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

from assay.decide import first_largest
from assay.native import bins as native
from assay.native import labels as native_labels
from assay.native.library import takes
from assay.tally.base import Batch, BatchLayout, InvalidValues, PreparedAdd, Rule, State, Tally, Whole
from assay.tally.conservation import BrokenLaw, HostCount, Laws, at_most, between, each_at_most, not_negative
from assay.tally.row_cells import RowCells
from assay.tally.scores.labelled_scores import KINDS, ScoreRows, ScoreSpec
from assay.tally.sums import exact
from assay.tally.sums.fingerprints import (
    Fingerprint,
    FingerprintSize,
    of_limbs_at,
    of_places,
    of_table,
    reduced,
    residues,
    residues_at,
    times,
)
from assay.tally.sums.row_sums import add_invalid


@dataclass(frozen=True)
class BinTotals:
    """For each bin: how many samples, their weight (their number, without weights), that of those that were right, and
    the exact sum of the confidences, each times its weight, as integers in units of `2 ** unit`."""

    count: list[int]
    weight: Sequence[Fraction | int]
    right: Sequence[Fraction | int]
    confidences: list[int]
    unit: int

    @property
    def confidence(self) -> list[Fraction]:
        """The sums of the confidences."""
        return [exact.fraction(each, self.unit) for each in self.confidences]

    def integers(self) -> tuple[list[int], ...]:
        """The weights, those that were right, and the confidences as integers of one unit, a power of two."""
        if self.weight is self.count:  # numbers of samples
            bits = max(-self.unit, 0)
            counted = ([int(each) << bits for each in of] for of in (self.weight, self.right))
            return *counted, [each << (bits + self.unit) for each in self.confidences]
        numbers = *self.weight, *self.right
        bits = max(-self.unit, *(each.denominator.bit_length() - 1 for each in numbers))
        weights, rights = (
            [each.numerator << (bits + 1 - each.denominator.bit_length()) for each in of]
            for of in (self.weight, self.right)
        )
        return weights, rights, [each << (bits + self.unit) for each in self.confidences]


class _RowsInBins(NamedTuple):
    """Rows in bins: the bin of each, 1 where it counts, 1 where it is right, what is summed of it, and its weight."""

    place: Tensor
    counted: Tensor
    right: Tensor
    values: exact.Parts
    weights: exact.Parts | None


@dataclass(frozen=True)
class Confidence(Tally):
    """Counts and exact sums of confidences in `num_bins` bins of equal width.

    The confidence is the score (binary; right means that the target is 1), or the highest score of a row (multiclass;
    right means that it is the target's, the lowest class among equals). Logits go through a sigmoid or a softmax in
    float32 (float64 for float64 inputs). Bin k holds the confidences c with `floor(c * num_bins) == k`, the product
    rounded as floats are: closed below, open above, and the last bin holds 1.

    State, int64: `counts (bins, 2)` (all, right), `invalid`, and limbs of the sums of confidences, of 0.6 KiB a bin;
    weighted, also of the weights.
    """

    data: ScoreSpec
    num_bins: int = 15
    weighted: bool = False
    has_cells = True

    @property
    def fields(self) -> Mapping[str, Rule]:
        names = ["counts", "invalid", "confidence"] + (["weights"] if self.weighted else [])
        return dict.fromkeys(names, "sum")

    def check(self, layout: BatchLayout) -> None:
        self.data.check(layout)

    def zero(self, device: torch.device) -> State:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        order = 2 if self.weighted else 1
        state = {
            "counts": zeros(self.num_bins, 2),
            "invalid": zeros(len(KINDS)),
            "confidence": zeros(self.num_bins, exact.num_limbs(order)),
        }
        if self.weighted:
            state["weights"] = zeros(2 * self.num_bins, exact.num_limbs(1))
        return state

    def add(self, state: State, batch: Batch) -> None:
        known = None if self.data.logits else self.data.add_known(state["invalid"], batch)
        if known is not None:
            self._add_compiled(state, batch.preds.reshape(-1), known)
            return
        is_plain = self.data.labels.multiclass and not self.data.logits
        if is_plain and (valid := self.data.valid_rows(batch)) is not None:
            scores, classes = valid
            label = native_labels.first_largest(scores).unsqueeze(1)
            self._add_compiled(
                state, scores.gather(1, label).view(-1), torch.eq(label, classes).view(torch.int8).view(-1)
            )
            return
        rows = self.data.with_probabilities(batch)
        compiled = batch.compiled and takes(rows.scores)
        self.data.add_invalid(state["invalid"], rows, compiled)
        if compiled and not self.weighted:
            self._add_compiled(state, *self._outcomes(rows))
        else:
            self._add(state, rows, compiled)

    def prepare(self, state: State, batch: Batch) -> PreparedAdd | None:
        labels, target = self.data.labels, batch.needed_target
        is_plain = not (self.weighted or self.data.logits) and labels.ignore_index is None
        classes = self.data.groups if labels.multiclass else 1
        shape = (*target.shape[:1], classes) if labels.multiclass else target.shape
        if not is_plain or target.dtype != torch.int64 or not takes(batch.preds) or batch.preds.shape != shape:
            return None
        rows = native.ScoredRows(state["counts"], state["confidence"], exact.origin(1), target.numel(), classes)

        def add(preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
            if target is None or not rows.add(preds, target):
                self.add(state, Batch(preds.detach(), target, compiled=True))

        return add

    def add_cells(self, states: State, batch: Batch, cells: RowCells) -> None:
        rows = self.data.with_probabilities(batch)
        cells = cells.repeated(len(rows.place) // max(1, len(cells)))
        compiled = batch.compiled and takes(rows.scores)
        add_invalid(states["invalid"], batch, self.data.invalid_rows(rows), cells)
        if not compiled or self.weighted:
            self._add(states, rows, compiled, cells)
            return
        starts, order = cells.segments
        confidence, outcome = (each[order] for each in self._outcomes(rows))
        for cell, (start, stop) in enumerate(itertools.pairwise(starts.tolist())):
            if start < stop:
                state = {name: table[cell] for name, table in states.items()}
                self._add_compiled(state, confidence[start:stop], outcome[start:stop])

    def _outcomes(self, rows: ScoreRows) -> tuple[Tensor, Tensor]:
        """How sure each row is, and what came of it, as compiled code takes it."""
        known = self.data.known(rows)[:, 0]
        confidence, right = self._decided(rows, known, compiled=True)
        return confidence, torch.where(known < 0, -1, right).to(torch.int8)

    def _add(self, state: State, rows: ScoreRows, compiled: bool, cells: RowCells | None = None) -> None:
        """Add to the bins; with cells to those of the cell of each row."""
        of_rows = self._binned(rows, compiled)
        place, counted = of_rows.place, of_rows.counted
        if cells is not None:
            place = place + cells.numbers * self.num_bins
        cell = 2 * place
        state["counts"].view(-1).scatter_add_(0, cell, counted)
        state["counts"].view(-1).scatter_add_(0, cell + 1, counted * of_rows.right)
        if of_rows.weights is not None:
            table = state["weights"].view(-1, exact.num_limbs(1))
            exact.add_to(table, of_rows.weights, cell)
            exact.add_to(table, of_rows.weights.times_sign(of_rows.right), cell + 1)
        values = of_rows.values if of_rows.weights is None else exact.product(of_rows.values, of_rows.weights)
        exact.add_to(state["confidence"].view(-1, state["confidence"].shape[-1]), values, place)

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        return FingerprintSize(1 + self.weighted)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        of_rows = self._binned(self.data.with_probabilities(batch), compiled=False)
        place, counted, right = of_rows.place, of_rows.counted, of_rows.right
        cells = torch.stack([2 * place, 2 * place + 1])
        factors = [reduced(residues(each)) for each in (of_rows.values, of_rows.weights) if each is not None]
        found = [residues_at(times(*factors), place)]
        if of_rows.weights is not None:
            found.append(residues_at(factors[1], cells[0]) + residues_at(factors[1] * right, cells[1]))
        return Fingerprint(of_places(cells, torch.stack([counted, counted * right])), torch.stack(found))

    def fingerprint_of(self, state: State) -> Fingerprint:
        limbs = [state[name] for name in ("confidence", "weights") if name in state]
        return Fingerprint(of_table(state["counts"]), torch.stack([of_limbs_at(each) for each in limbs]))

    def _binned(self, rows: ScoreRows, compiled: bool) -> _RowsInBins:
        """What is counted of each row, and where."""
        known = self.data.known(rows)[:, 0]
        confidence, right = self._decided(rows, known, compiled)
        counted = known.clamp(-1, 0).add_(1)
        counted *= torch.eq(confidence - confidence, 0)  # what is not finite was found to be invalid
        if rows.weights is not None:
            counted *= torch.ne(rows.weights[:, 0], 0)
        confidence = confidence.nan_to_num(0, 0, 0)
        place = (confidence * self.num_bins).clamp_(0, self.num_bins - 1).to(torch.int64)
        values = exact.parts(confidence).times_sign(counted)
        if rows.weights is None:
            return _RowsInBins(place, counted, right, values, None)
        weights = exact.parts(rows.weights[:, 0]).times_sign(counted)
        return _RowsInBins(place, counted, right, values, weights)

    @staticmethod
    def _add_compiled(state: State, confidence: Tensor, outcome: Tensor) -> None:
        native.count_confidence(state["counts"], state["confidence"], exact.origin(1), confidence, outcome)

    def _decided(self, rows: ScoreRows, known: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
        """How sure each row is, and 1 where it is right."""
        if not self.data.labels.multiclass:
            return rows.scores[:, 0], known.clamp(min=0)
        label = native_labels.first_largest(rows.scores) if compiled else first_largest(rows.scores)
        confidence = rows.scores.gather(1, label.clamp(max=self.data.groups - 1)[:, None])[:, 0]
        return confidence, torch.eq(label, known, out=torch.empty_like(label))

    def canonicalize(self, state: State, rows: int) -> State:
        limbs = [name for name in ("confidence", "weights") if name in state]
        return state | {name: exact.canonical(state[name]) for name in limbs}

    def canonicalize_cells(self, states: State, rows: Whole) -> State:
        return self.canonicalize(states, int(rows.sum()))

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        return self.data.invalid_values(state["invalid"])

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "counts", "invalid")
        (every, right), invalid = state["counts"].numpy().T, state["invalid"].tolist()
        yield from each_at_most("a bin has no more right samples than samples", every, right)
        rows, total = self.data.rows_of(given), int(every.sum())
        yield from at_most("samples in bins are no more than the rows", rows, total)
        if rows is not None and self.data.labels.ignore_index is None and not self.weighted:
            law = "samples in bins and invalid ones are no fewer than the rows"
            yield from between(law, rows - sum(invalid[:3]), rows - invalid[0], total)
        if not self.weighted and not any(invalid):
            yield from self._confidence_laws(every.tolist(), exact.fractions(state["confidence"], 1))

    def _confidence_laws(self, counts: Sequence[int], sums: Sequence[Fraction]) -> Laws:
        """The sum of the confidences of a bin lies between its edges, each times its samples.

        The product that decides the bin is rounded, to float32 at worst.
        """
        for k, (count, total) in enumerate(zip(counts, sums, strict=True)):
            slack = Fraction(count * (k + 1), 1 << 22)
            low, high = count * k - slack, count * (k + 1) + slack
            if not low <= total * self.num_bins <= high:
                law = f"confidences of bin {k} lie between its edges"
                expected = f"a sum from {float(low / self.num_bins):g} to {float(high / self.num_bins):g}"
                yield BrokenLaw(law, expected, f"{float(total):g}")

    def compute(self, state: State) -> BinTotals:
        """What the bins hold, as exact numbers."""
        counts = state["counts"].tolist()
        confidences = exact.integers(state["confidence"], 2 if self.weighted else 1)
        every, right = ([row[k] for row in counts] for k in range(2))
        if not self.weighted:
            return BinTotals(every, every, right, *confidences)
        sums = exact.fractions(state["weights"], 1)
        return BinTotals(every, sums[::2], sums[1::2], *confidences)
