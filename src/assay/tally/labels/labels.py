"""Rows of labels out of batches of any shape: what the classification tallies have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.decide import Argmax, Decision, Rows, Threshold, TopK
from assay.errors import ConfigError, DtypeError, ShapeError, describe
from assay.native.labels import decision_of, has_columns
from assay.native.library import takes
from assay.tally.base import Batch, BatchLayout, TensorLayout, shown
from assay.tally.layout_checks import AS_INTEGERS, NO_TARGET, OUTSIDE, check_weights
from assay.triton_kernels import labels as triton_labels
from assay.triton_kernels.launch import takes as triton_takes

_ALTERNATIVES = "Leave num_classes out for two classes, give one score for each class, or pass labels as integers"


@dataclass(frozen=True)
class Labels:
    """How a batch becomes one predicted and one true label per row.

    Args:
        num_classes: how many classes there are; 2 for binary and for each label of multilabel data.
        decision: how scores become a label; integer `preds` are taken as labels.
        num_labels: for multilabel data, the size of dimension 1 of `preds` and `target`.
        ignore_index: rows with this target are left out.

    Shapes: with a class dimension `preds (N, C, ...)` and `target (N, ...)`; without, of one shape. Scores have a class
    dimension exactly when the task is multiclass; labels never have one.
    """

    num_classes: int
    decision: Decision
    num_labels: int | None = None
    ignore_index: int | None = None
    multiclass: bool = True

    def __post_init__(self) -> None:
        if self.num_classes < 2:
            raise ConfigError(
                describe("num_classes", self.num_classes, "2 or more", "For binary data leave num_classes out")
            )
        if self.num_labels is not None and self.num_labels < 1:
            raise ConfigError(describe("num_labels", self.num_labels, "1 or more", "Give the number of labels"))
        if isinstance(self.decision, TopK) and self.decision.k > self.num_classes:
            expected = f"at most num_classes={self.num_classes}"
            raise ConfigError(describe("top_k", self.decision.k, expected, "Give a smaller k"))

    @property
    def groups(self) -> int:
        return self.num_labels or 1

    @property
    def invalid(self) -> tuple[str, str]:
        """What invalid targets and predictions are."""
        exception = "" if self.ignore_index is None else f" and are not ignore_index={self.ignore_index}"
        of_probabilities = isinstance(self.decision, Threshold) and not self.decision.logits
        scores = f", or scores {OUTSIDE}" if of_probabilities else ""
        return f"targets are outside {self.range}{exception}", f"predictions are NaN or outside {self.range}{scores}"

    @property
    def range(self) -> str:
        """The valid labels in words; of two, what more of them need."""
        more = " (more classes need num_classes=)" if self.num_classes == 2 and self.num_labels is None else ""
        return f"0 ... {self.num_classes - 1}{more}"

    def check(self, layout: BatchLayout) -> None:
        """Raise an error if batches of this layout have no such labels."""
        preds, target = layout.preds, layout.target
        if target is None:
            raise ShapeError(describe("target", "nothing", "one label per row", NO_TARGET))
        if target.dtype.is_floating_point or target.dtype.is_complex:
            one_hot = self._one_hot(target)
            got = f"{target.dtype}, of shape {shown(target.tail)}" if one_hot else target.dtype
            do = "Pass target.argmax(1), if it is one-hot" if one_hot else AS_INTEGERS
            if not preds.dtype.is_floating_point and len(target.tail) > len(preds.tail):
                do = "Exchange preds and target, where preds are the labels"
            raise DtypeError(describe("target", got, "an integer or bool dtype", do))
        if preds.dtype.is_complex:
            raise DtypeError(describe("preds", preds.dtype, "scores or labels", "Pass real numbers"))
        if isinstance(self.decision, TopK) and not preds.dtype.is_floating_point:
            raise DtypeError(
                describe("preds", preds.dtype, f"scores, for top_k={self.decision.k}", "Pass one float score per class")
            )
        if isinstance(self.decision, Threshold) and self.decision.logits and not preds.dtype.is_floating_point:
            do = "Pass the logits, or leave logits out for labels"
            raise DtypeError(describe("preds", preds.dtype, "floats, for logits=True", do))
        classes = (self.num_classes,) if self.multiclass and preds.dtype.is_floating_point else ()
        expected = (*classes, *target.tail)
        if preds.tail != expected:
            got = f"shape {shown(preds.tail)} and dtype {preds.dtype} with target of shape {shown(target.tail)}"
            scores_of = " (scores: one per class in dimension 1)" if classes else ""
            arguments, do = self._advice(layout)
            message = describe("preds", got, f"shape {shown(expected)}{scores_of}", do)
            raise ShapeError(message, arguments=arguments)
        if self.num_labels is not None and target.tail[:1] != (self.num_labels,):
            needed = f"shape (N, {self.num_labels}, ...)"
            raise ShapeError(describe("target", f"shape {shown(target.tail)}", needed, "Check num_labels"))
        check_weights(layout.weights, target.tail)

    def _one_hot(self, target: TensorLayout) -> bool:
        """Whether a target has a dimension of the classes, which classes as indices do not have."""
        return self.multiclass and target.tail[:1] == (self.num_classes,)

    def _advice(self, layout: BatchLayout) -> tuple[dict[str, int | None], str]:
        """What to do about predictions of another shape: with which arguments they fit, where any do, and in words."""
        assert layout.target is not None
        first, *others = layout.preds.tail or (0,)
        if self._one_hot(layout.target) and layout.preds.tail == layout.target.tail:
            return {}, "Pass target.argmax(1), if it is one-hot"
        if self.multiclass and layout.target.tail == (1,) and layout.preds.tail == (self.num_classes,):
            return {}, "Pass target.squeeze(1)"
        if self.multiclass and layout.preds.tail == (*layout.target.tail, self.num_classes):
            return {}, "Pass preds.movedim(-1, 1)"
        if first == 1 and tuple(others) == layout.target.tail:
            return {}, "Pass preds.squeeze(1)"
        if self.num_labels is None and layout.preds.dtype.is_floating_point:
            if first > 1 and tuple(others) == layout.target.tail:
                return {"num_classes": first}, f"Pass num_classes={first}, as preds has {first} scores for each target"
            if self.multiclass and layout.preds.tail == layout.target.tail:
                return {"num_classes": None}, _ALTERNATIVES
        return {}, "Give scores as floats with the class dimension second, or labels as integers"

    def predicted(self, batch: Batch) -> Tensor:
        """Predicted labels, int64 of shape `(rows,)`: the classes, -1 below range, `num_classes` above or unclear."""
        last = self.num_classes
        if not batch.preds.dtype.is_floating_point:
            return batch.memoize(("labels", last), lambda b: b.preds.reshape(-1).to(torch.int64).clamp(-1, last))
        return batch.memoize((self.decision, self.multiclass), lambda b: self.decision(self._scored(b)))

    def given(self, batch: Batch) -> Tensor:
        """Predicted labels for code that clamps them itself: given ones as they are."""
        return self.predicted(batch) if batch.preds.dtype.is_floating_point else batch.preds.reshape(-1).to(torch.int64)

    def prepare(self, preds: Tensor) -> Callable[[Tensor], int] | None:
        """What decides contiguous `preds` like these by compiled code, and gives the address of their labels, or None.

        The labels are int64, and the next call may write over them.
        """
        if preds.dtype == torch.int64:
            return Tensor.data_ptr
        if isinstance(self.decision, Threshold):
            return decision_of(preds, self.decision.level, self.decision.logits) if takes(preds) else None
        has_rows = self.decision == Argmax() and preds.ndim == 2
        return decision_of(preds) if has_rows and takes(preds) else None

    def count_in_triton(self, counts: Tensor, batch: Batch) -> bool:
        """Count predicted by true labels into a table of `Confusion` or `ClassCounts`, in one launch.

        False where the kernel does not take the batch, and then nothing was counted.
        """
        preds, target = batch.preds, batch.needed_target
        if not (batch.triton and self.num_labels is None and triton_takes(target, dtypes=triton_labels.TARGETS)):
            return False
        rest = (counts, target, self.num_classes, self.ignore_index)
        decision = (self.decision, self.multiclass)
        decides = self.multiclass and self.decision.top_k and not batch.has(decision)
        if decides and triton_takes(preds, dtypes=triton_labels.SCORES):
            predicted = triton_labels.count_labels(*rest, scores=preds, top_k=self.decision.top_k)
            if predicted is not None:
                batch.memoize(decision, lambda _: predicted)
        else:
            predicted = triton_labels.count_labels(*rest, predicted=self.predicted(batch))
        return predicted is not None

    def _scored(self, batch: Batch) -> Rows:
        return batch.memoize(("scored", self.multiclass), lambda b: Rows(self.compared(b), true_labels(b), b.compiled))

    def compared(self, batch: Batch) -> Tensor:
        """The scores whose order in a row decides; compiled code compares columns as they are."""
        if batch.compiled and self.multiclass and batch.preds.dtype == torch.float32 and has_columns(batch.preds):
            return batch.preds
        return scores(batch, self.multiclass)

    def rows(self, batch: Batch) -> Tensor:
        """True labels mapped to `0`: below range, `1 ... C`: class + 1, `C + 1`: above range, `C + 2`: ignored."""
        return batch.memoize(("rows", self.num_classes, self.ignore_index), lambda b: self._rows(true_labels(b)))

    def _rows(self, target: Tensor) -> Tensor:
        row = target.clamp(-1, self.num_classes).add_(1)
        if self.ignore_index is not None:
            shown = min(max(self.ignore_index, -1), self.num_classes) + 1
            ignored = target.clone().eq_(self.ignore_index)
            row.add_(ignored, alpha=self.num_classes + 2 - shown)
        return row

    def weights(self, batch: Batch) -> Tensor:
        """One weight per row."""
        weights, target = batch.weights, batch.needed_target
        assert weights is not None, "the layout was checked"
        if weights.shape != target.shape:
            weights = weights.view(-1, *(1,) * (target.ndim - 1)).expand(target.shape)
        return weights.reshape(-1)

    def group_start(self, batch: Batch, cells: int) -> Tensor:
        """For multilabel data the first cell of each row's label in a table with `cells` cells per label."""
        shape = batch.needed_target.shape
        assert self.num_labels is not None
        start = torch.arange(0, self.num_labels * cells, cells, device=batch.preds.device)
        return start.view(-1, *(1,) * (len(shape) - 2)).expand(shape).reshape(-1)


def true_labels(batch: Batch) -> Tensor:
    """The target as int64 rows."""
    return batch.memoize("target", lambda b: b.needed_target.reshape(-1).to(torch.int64))


def scores(batch: Batch, class_dimension: bool) -> Tensor:
    """The scores as float32 or float64 rows: `(rows, C)` with a class dimension, else `(rows,)`."""
    return batch.memoize(("scores", class_dimension), lambda b: _scores(b.preds, class_dimension))


def _scores(preds: Tensor, class_dimension: bool) -> Tensor:
    if preds.dtype != torch.float64:
        preds = preds.float()
    if not class_dimension:
        return preds.reshape(-1)
    if preds.ndim == 2:
        return preds.contiguous()
    # A sum over classes adds up in the order of memory, so rows of any other layout would give other bits.
    return preds.movedim(1, -1).reshape(-1, preds.shape[1]).contiguous()
