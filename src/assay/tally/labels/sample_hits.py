"""How many samples have every label right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.native.labels import labels_at
from assay.native.library import library
from assay.tally.base import Batch, BatchLayout, PreparedAdd, State
from assay.tally.conservation import HostCount, Laws, at_most, equal
from assay.tally.labels.confusion import LabelTally
from assay.tally.labels.labels import Labels
from assay.tally.layout_checks import check_weights
from assay.tally.sums import exact
from assay.tally.sums.fingerprints import Fingerprint, FingerprintSize, of_places

IGNORED, RIGHT, WRONG, BAD_TARGET, BAD_PREDICTION = range(5)


def sample_results(labels: Labels, batch: Batch) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Whether each sample is `IGNORED`, `RIGHT` or `WRONG`, and which targets and predictions are invalid, as 1."""
    last = labels.num_classes
    row = labels.rows(batch)
    column = labels.predicted(batch) + 1
    ignored = row.clamp(min=last + 1).sub_(last + 1)
    result = torch.ne(column, row, out=torch.empty_like(row)).add_(RIGHT).sub_(ignored, alpha=WRONG)
    known = row.clamp(1, last).eq_(row)
    bad_target = (1 - known).sub_(ignored)
    bad_prediction = column.clamp(1, last).ne_(column).mul_(known)
    result = result.view(batch.needed_target.shape)
    if labels.num_labels is not None:
        result = result.amax(1)
    elif result.ndim > 1:
        result = result.flatten(1).amax(1)
    return result, (bad_target, bad_prediction)


def _are_inside(labels: np.ndarray, num_classes: int) -> bool:
    """Whether all labels, of which there is one or more, are from 0 to `num_classes - 1`."""
    return bool(np.maximum.reduce(labels.view(np.uint64)) < num_classes)


@dataclass(frozen=True)
class SampleTotals:
    """How many samples are all right, and how many have a wrong label, as Python integers of any one unit."""

    right: Any
    wrong: Any


@dataclass(frozen=True)
class SampleHits(LabelTally):
    """Samples whose labels are all right, counted apart from those with a wrong one and those that are all ignored.

    A sample is a row of dimension 0 with all its positions; for multilabel data `(N, num_labels, ...)` it is a
    position with all its labels. Ignored labels are neither right nor wrong. The last two cells of the table of shape
    `(5,)` count labels out of range, of targets and of predictions.
    """

    shape = (5,)

    def check(self, layout: BatchLayout) -> None:
        super().check(layout)
        check_weights(layout.weights)

    def add(self, state: State, batch: Batch) -> None:
        if not batch.needed_target.numel():
            return
        sample, invalid = sample_results(self.labels, batch)
        counts = state["counts"]
        counts.scatter_add_(0, sample.reshape(-1), torch.ones_like(sample).view(-1))
        counts[BAD_TARGET:] += torch.stack([each.sum() for each in invalid])
        if self.weighted:
            weights = self._sample_weights(batch, sample)
            exact.add_to(state["weights"], self._finite(state, weights), sample.reshape(-1))

    def prepare(self, state: State, batch: Batch) -> PreparedAdd | None:
        target, labels = batch.needed_target, self.labels
        known = batch.compiled and library() is not None and target.dtype == torch.int64 and not self.weighted
        decided = labels.prepare(batch.preds) if known and labels.ignore_index is None else None
        if decided is None or not target.numel():
            return None
        counts, shape = state["counts"].numpy(), (*target.shape[: 1 + (labels.num_labels is not None)], -1)
        samples = target.numel() // (labels.num_labels or target[0].numel())

        def add(preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
            assert target is not None, "the layout was checked"
            true, found = target.numpy().reshape(-1), labels_at(decided(preds.detach()), target.numel())
            if not (_are_inside(true, labels.num_classes) and _are_inside(found, labels.num_classes)):
                self.add(state, Batch(preds.detach(), target, compiled=True))
                return
            right = np.count_nonzero(np.equal(true, found).reshape(shape).all(1))
            counts[RIGHT] += right
            counts[WRONG] += samples - right

        return add

    def fingerprint(self, batch: Batch) -> Fingerprint:
        if not batch.needed_target.numel():
            return Fingerprint.zero(FingerprintSize(2 * self.weighted), batch.preds.device)
        sample, invalid = sample_results(self.labels, batch)
        weights = self._sample_weights(batch, sample) if self.weighted else None
        found = self._fingerprint_at(batch, sample.reshape(-1), weights=weights)
        counts = torch.stack([torch.count_nonzero(each) for each in invalid])
        places = torch.arange(BAD_TARGET, BAD_TARGET + 2, device=counts.device)
        return Fingerprint(found.places + of_places(places, counts), found.residues)

    def _sample_weights(self, batch: Batch, sample: Tensor) -> Tensor:
        assert batch.weights is not None, "the layout was checked"
        return batch.weights.view(-1, *(1,) * (sample.ndim - 1)).expand(sample.shape).reshape(-1)

    def count_invalid(self, counts: np.ndarray) -> tuple[int, int]:
        return int(counts[BAD_TARGET]), int(counts[BAD_PREDICTION])

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from super().broken_laws(state, given)
        counts = state["counts"].numpy()
        samples = int(counts[:BAD_TARGET].sum())
        if self.labels.num_labels is None:
            if given.targets is not None:  # without targets there is nothing of a sample to count
                yield from equal("right, wrong and ignored samples add up to the rows", given.rows, samples)
            yield from at_most("right, wrong and ignored samples are no more than the rows", given.rows, samples)
        elif given.targets is not None:
            positions = given.targets // self.labels.num_labels
            yield from equal("right, wrong and ignored samples add up to the positions", positions, samples)
        yield from at_most("invalid labels are no more than the targets", given.targets, int(counts[BAD_TARGET:].sum()))

    def compute(self, state: State) -> SampleTotals:
        """The samples that are all right, and the others that are not all ignored."""
        values, _ = self._values(state)
        return SampleTotals(int(values[RIGHT]), int(values[WRONG]))
