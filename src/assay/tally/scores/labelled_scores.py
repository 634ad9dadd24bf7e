"""Scores with labels: how batches of them become rows, and what is counted that should not be there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.decide import Threshold, first_largest
from assay.errors import ConfigError, DtypeError, describe
from assay.native import bins as native
from assay.native.library import takes
from assay.tally.base import BAD_WEIGHTS, Batch, BatchLayout, InvalidValues, bad_weights
from assay.tally.conservation import HostCount, Laws, at_most, equal
from assay.tally.labels.labels import Labels, scores
from assay.tally.layout_checks import AS_SCORES, OUTSIDE
from assay.tally.sums.row_sums import sum_each_row
from assay.tally.term_log import ROUNDING

KINDS = (
    "targets are outside {range}",
    "scores are NaN, or infinite so that they have no value",
    f"scores are {OUTSIDE}",
    BAD_WEIGHTS,
)
"""What is counted that should not be there."""


@dataclass(frozen=True)
class ScoreRows:
    """Scores `(rows, groups)`, targets `(rows, 1)` or `(rows, groups)`, and weights of the shape of the targets.

    `place` is the target as `Labels.rows` says it: one more than the class, or out of range, or ignored.
    """

    scores: Tensor
    place: Tensor
    weights: Tensor | None


@dataclass(frozen=True)
class ScoreSpec:
    """How scores and labels are given.

    Args:
        labels: what the targets can be, and which are left out.
        groups: how many scores a row has.
        logits: scores are any real numbers; otherwise they are in [0, 1].
    """

    labels: Labels
    groups: int = 1
    logits: bool = False

    def check(self, layout: BatchLayout) -> None:
        """Raise an error if batches of this layout have no such rows."""
        if not layout.preds.dtype.is_floating_point:
            raise DtypeError(describe("preds", layout.preds.dtype, "scores as floats", AS_SCORES))
        self.labels.check(layout)

    def rows(self, batch: Batch) -> ScoreRows:
        """The rows of a batch, made once for all tallies that ask."""
        return batch.memoize((self.labels, self.groups, "scored rows"), self._arranged)

    def ranked_rows(self, batch: Batch) -> ScoreRows:
        """The rows of a batch with the scores that are compared between rows: for multiclass logits, the log-odds.

        Probabilities may lie column by column, as those of a table do: nothing is summed over classes.
        """
        if not self.labels.multiclass:
            return self.rows(batch)
        return batch.memoize((self.labels, self.groups, "ranked rows"), self._ranked)

    def _ranked(self, batch: Batch) -> ScoreRows:
        if not self.logits:
            return ScoreRows(self.labels.compared(batch), self.labels.rows(batch).view(-1, 1), self._weights(batch))
        rows = self.rows(batch)
        found = batch.rounded((self, "log odds"), [log_odds(rows.scores)], ROUNDING)
        return replace(rows, scores=found[0])

    def with_probabilities(self, batch: Batch) -> ScoreRows:
        """The rows of a batch, with probabilities as scores."""
        rows = self.rows(batch)
        return rows if not self.logits else batch.memoize((self, "probabilities"), lambda b: self._probable(b, rows))

    def _probable(self, batch: Batch, rows: ScoreRows) -> ScoreRows:
        made = probabilities(rows.scores, self.labels.multiclass)
        return replace(rows, scores=batch.rounded((self, "probabilities"), [made], ROUNDING)[0])

    def _weights(self, batch: Batch) -> Tensor | None:
        """Weights of targets that have one column."""
        return None if batch.weights is None else self.labels.weights(batch).reshape(-1, 1)

    def _arranged(self, batch: Batch) -> ScoreRows:
        place = self.labels.rows(batch)
        if self.labels.num_labels is None:
            values = scores(batch, self.labels.multiclass)
            return ScoreRows(values.reshape(-1, self.groups), place.view(-1, 1), self._weights(batch))
        shape = batch.needed_target.shape

        def arranged(tensor: Tensor) -> Tensor:
            rows = tensor.view(shape)
            return rows if len(shape) == 2 else rows.movedim(1, -1).reshape(-1, self.groups)

        weights = None if batch.weights is None else arranged(self.labels.weights(batch))
        return ScoreRows(scores(batch, True), arranged(place), weights)

    def known(self, rows: ScoreRows) -> Tensor:
        """The class, or -1 where the target is ignored or no class."""
        beyond = (rows.place - self.labels.num_classes).clamp_(0, 1)
        return torch.addcmul(rows.place - 1, beyond, rows.place, value=-1)

    def positives(self, target: Tensor, group: int) -> tuple[Tensor, int]:
        """The known classes of the rows of a group as int8, and which of them is that of positives."""
        classes = target[:, group if self.labels.num_labels else 0]
        positive = group if self.labels.multiclass else 1
        if classes.dtype == torch.int8:
            return classes, positive
        return (classes == positive).to(torch.int8) - (classes < 0).to(torch.int8), 1

    def is_simple(self, batch: Batch) -> bool:
        """Whether compiled code copies a batch unchanged: binary scores in float32, and classes in int64."""
        simple = batch.compiled and self.groups == 1 and not self.labels.multiclass and batch.weights is None
        return simple and batch.needed_target.dtype == torch.int64 and takes(batch.preds)

    def copy_simple(self, invalid: Tensor, scores: int, target: int, rows: int, known: int, kept: int = 0) -> None:
        """Copy rows of a batch that `is_simple` between addresses: the known classes as int8, and the scores.

        What is invalid is added to `invalid`.
        """
        given = known, kept, scores, target, rows, self.logits, self.labels.ignore_index
        native.copy_labelled_scores(invalid, *given)

    def add_known(self, invalid: Tensor, batch: Batch) -> Tensor | None:
        """The known classes of a batch that `is_simple` as int8 `(rows,)`; None of others.

        What is invalid is added to `invalid`.
        """
        if not self.is_simple(batch):
            return None
        scores, target = batch.preds.contiguous(), batch.needed_target.contiguous()
        known = torch.empty(scores.numel(), dtype=torch.int8, device="cpu")
        self.copy_simple(invalid, scores.data_ptr(), target.data_ptr(), scores.numel(), known.data_ptr())
        return known

    def valid_classes(self, batch: Batch) -> Tensor | None:
        """The known classes as int8 `(rows,)` of a batch that `is_simple` and has nothing invalid; None of others.

        None too of a batch whose terms are recorded or compared: those are the terms of `rows`.
        """
        if batch.terms is not None:
            return None
        known = self.add_known(invalid := torch.zeros(len(KINDS), dtype=torch.int64, device="cpu"), batch)
        return None if known is None or invalid.numpy().any() else known

    def valid_rows(self, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """The scores and the classes of a batch in host memory, if none of its rows is ignored or invalid; else None.

        None too of a batch whose terms are recorded or compared: those are the terms of `rows`.
        """
        is_plain = batch.compiled and batch.terms is None and batch.weights is None
        if not is_plain or self.labels.ignore_index is not None or not takes((rows := self.rows(batch)).scores):
            return None
        self.add_invalid(invalid := torch.zeros(len(KINDS), dtype=torch.int64, device="cpu"), rows, compiled=True)
        return None if invalid.numpy().any() else (rows.scores, rows.place - 1)

    def add_invalid(self, invalid: Tensor, rows: ScoreRows, compiled: bool = False) -> None:
        """Add to `invalid` how many targets, scores and weights should not be there, without those that are ignored."""
        if compiled and rows.weights is None:
            scores = rows.scores.reshape(-1, rows.scores.shape[1] // rows.place.shape[1])
            native.count_invalid_scores(invalid, scores, rows.place, self.labels.num_classes, self.logits)
        else:
            invalid += self.count_invalid(rows)

    def count_invalid(self, rows: ScoreRows) -> Tensor:
        """How many targets, scores and weights should not be there, without those that are ignored."""
        kinds = self.invalid_rows(rows)
        return F.pad(torch.stack([torch.count_nonzero(kind) for kind in kinds]), (0, len(KINDS) - len(kinds)))

    def invalid_rows(self, rows: ScoreRows) -> list[Tensor]:
        """For each kind of what should not be there a tensor of the shape of the targets, not 0 where it is."""
        low, high, place = rows.scores, rows.scores, rows.place
        if low.shape != place.shape:
            low, high = low.amin(1, keepdim=True), high.amax(1, keepdim=True)
        outside = torch.zeros_like(low) if self.logits else torch.maximum(high - 1, -low) > 0
        kinds = [place - place.clamp(1, self.labels.num_classes), low.isnan(), outside]
        if rows.weights is not None:
            kinds.append(bad_weights(rows.weights))
        if self.labels.ignore_index is not None:
            counted = place <= self.labels.num_classes + 1
            kinds = [kind * counted for kind in kinds]
        return kinds

    @property
    def invalid(self) -> tuple[str, ...]:
        """What is wrong with the targets, scores and weights that `count_invalid` counts."""
        ignored = "" if self.labels.ignore_index is None else f" and are not ignore_index={self.labels.ignore_index}"
        return tuple(what.format(range=f"{self.labels.range}{ignored}") for what in KINDS)

    def counted_laws(self, rows: int | None, counted: Sequence[int], invalid: Sequence[int]) -> Laws:
        """The laws of how many scores of each group were counted, of so many rows with these counts of `KINDS`."""
        if self.labels.multiclass:
            for of_group in counted:
                yield from equal("each class has as many scores as the others", counted[0], of_group)
        total = counted[0] if self.labels.multiclass else sum(counted)
        targets = None if rows is None else rows * (1 if self.labels.num_labels is None else self.groups)
        for what, count in zip(("targets", "scores", "scores", "weights"), invalid, strict=True):
            yield from at_most(f"invalid {what} are no more than the targets", targets, count)
        law = "scores in bins and invalid targets add up to the targets"
        if targets is not None and self.labels.ignore_index is None:
            yield from equal(law, targets, total + invalid[0])
        yield from at_most(
            "scores in bins and invalid targets are no more than the targets", targets, total + invalid[0]
        )

    def rows_of(self, given: HostCount) -> int | None:
        """How many rows of scores there are in what the host counted; None where that is not known."""
        return None if given.targets is None else given.targets // (self.labels.num_labels or 1)

    def invalid_values(self, counts: Tensor) -> Sequence[InvalidValues]:
        """What the counts of `count_invalid` say."""
        found: list[int] = counts.tolist()
        return [InvalidValues(what, n) for what, n in zip(self.invalid, found, strict=True) if n] if any(found) else []


def score_spec(
    num_classes: int | None, num_labels: int | None = None, ignore_index: int | None = None, logits: bool = False
) -> ScoreSpec:
    """Binary scores, one per class with `num_classes`, or one per label with `num_labels`."""
    if num_classes is not None and num_labels is not None:
        got = f"{num_classes}, next to num_labels={num_labels}"
        raise ConfigError(describe("num_classes", got, "one of the two, or neither", "Leave one of them out"))
    multiclass = num_classes is not None
    labels = Labels(
        2 if num_classes is None else num_classes, Threshold(logits=logits), num_labels, ignore_index, multiclass
    )
    return ScoreSpec(labels, num_classes or num_labels or 1, logits)


def probabilities(logits: Tensor, multiclass: bool) -> Tensor:
    """Logits through a softmax over dimension 1, or a sigmoid.

    On the CPU `torch.sigmoid` gives other bits in the last elements of a tensor, which do not fill a vector register:
    values would depend on how the samples were split. `exp` does not.
    """
    if multiclass:
        return torch.softmax(logits, 1)
    small = torch.exp(-logits.abs())
    return torch.where(logits < 0, small, 1) / (1 + small)


def log_odds(logits: Tensor) -> Tensor:
    """`logits[:, c] - logsumexp(the other logits)` for each class c: the logarithm of `p / (1 - p)` of its softmax p.

    It grows with the softmax and does not saturate. It is computed from differences to the largest logit of the row
    only, so a constant that is added to a row without rounding changes no bit. The largest of the other logits is
    factored out of each sum: for the largest logit that is the second largest, and for every other logit the largest.

    Args:
        logits: float32 or float64 of shape `(rows, classes)`; -inf stands for a class that is impossible.

    Returns:
        The same shape and dtype. Some elements of a row are NaN where a logit is NaN or +inf, or where all are -inf.
    """
    last = logits.shape[1] - 1
    best = first_largest(logits).clamp_(max=last)[:, None]
    lead = logits - logits.gather(1, best)  # 0 for the best, or NaN where it is infinite
    others = lead.scatter(1, best, -math.inf)
    second = first_largest(others).clamp_(max=last)[:, None]
    gap = others.gather(1, second)
    # The largest term of each sum is 1: log1p takes the rest.
    behind_second = (others - gap.clamp(min=torch.finfo(gap.dtype).min)).exp_().scatter_(1, second, 0)
    of_best = lead.gather(1, best) - gap - torch.log1p(sum_each_row(behind_second))
    behind_best = others.exp_()
    of_others = lead - torch.log1p((sum_each_row(behind_best) - behind_best).clamp_(min=0))
    return torch.where(torch.arange(last + 1, device=logits.device) == best, of_best, of_others)
