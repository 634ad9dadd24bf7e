"""Batches as TorchMetrics' classes take them, as the arguments of `Meter.update`; nothing is read on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from assay.devices.placement import bring_together, can_read
from assay.errors import DtypeError, ShapeError, describe
from assay.integrations.optional_packages import import_package
from assay.metrics.base import Metric
from assay.metrics.classification.confusion import StatScores
from assay.metrics.classification.samplewise import sample_outcomes
from assay.migrate.table import Counterpart
from assay.tally.base import Batch

_checks: Any = import_package("torchmetrics.utilities.checks", "metrics of its names")
_check_same_shape: Any = _checks._check_same_shape

NO_LABEL = -(2**62)
"""A label of no class, which `ignore_index` is not either."""

_OF_ONE_OUTPUT = frozenset(
    {"ConcordanceCorrCoef", "KendallRankCorrCoef", "LogCoshError", "PearsonCorrCoef", "RelativeSquaredError"}
)
"""Classes that refuse rows of several numbers, which others take for samples, unless `num_outputs` says so."""

_OF_COUNTED_ROWS = frozenset(
    {"BinaryCohenKappa", "BinaryConfusionMatrix", "BinaryJaccardIndex", "BinaryMatthewsCorrCoef"}
)
"""Classes of labels that leave ignored rows out before they look for logits, as all classes of scores do."""

BatchFormat = Callable[..., dict[str, Any]]
"""A function of the arguments of an `update` of TorchMetrics."""


@dataclass(frozen=True)
class OfCountedRows:
    """A format for which scores of rows that are left out do not say whether a batch has logits.

    Args:
        form: the format.
        ignore_index: the target of those rows.
    """

    form: BatchFormat
    ignore_index: int

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        if preds.is_floating_point() and _fits(preds, target):
            preds, target = bring_together(preds=preds, target=target).values()  # type: ignore[assignment]
            is_ignored = target == self.ignore_index
            preds = preds.masked_fill(is_ignored if preds.ndim == target.ndim else is_ignored.unsqueeze(1), 0)
        return self.form(preds, target)


def _fits(preds: Tensor, target: Tensor) -> bool:
    """Whether there is a score for each target, or one of each class in the second dimension."""
    return target.shape == preds.shape or target.shape == preds.shape[:1] + preds.shape[2:]


def batch_format(entry: Counterpart, metric: Metric) -> BatchFormat:
    """The function that makes a batch of TorchMetrics one of assay.

    Args:
        entry: of the class in TorchMetrics.
        metric: the metric of assay that counts it.
    """
    form, ignored = _format(entry, metric), getattr(metric, "ignore_index", None)
    leaves_out = form in (_any_scores, _scores, _class_scores) or entry.name in _OF_COUNTED_ROWS
    return OfCountedRows(form, ignored) if leaves_out and ignored is not None else form


def _format(entry: Counterpart, metric: Metric) -> BatchFormat:
    name = entry.name
    of_labels = hasattr(metric, "threshold")
    if name in ("BinaryAUROC", "BinaryLogAUC"):
        return _any_scores
    if name.startswith("Binary"):
        return _labels if of_labels else _scores
    if name.startswith("Multiclass"):
        return _class_labels if of_labels else _class_scores
    if name.startswith("Multilabel"):
        return _labels if of_labels else _label_scores
    if name.startswith("Retrieval"):
        return _queries
    if name in ("CramersV", "PearsonsContingencyCoefficient", "TheilsU", "TschuprowsT"):
        return _categories
    if name in ("MaxMetric", "MinMetric", "SumMetric"):
        return _values
    if name == "MeanMetric":
        return _weighted_values if metric.nan_policy == "propagate" else _known_values  # type: ignore[attr-defined]
    if name in ("PearsonCorrCoef", "ConcordanceCorrCoef") and metric.num_outputs > 1:  # type: ignore[attr-defined]
        return _outputs
    if name in ("ExtendedEditDistance", "TranslationEditRate"):
        return _texts_with_references
    if name in ("JensenShannonDivergence", "KLDivergence"):
        return _distributions
    if name == "SpearmanCorrCoef":
        return _floats if metric.num_outputs > 1 else _floats_of_one_output  # type: ignore[attr-defined]
    if name == "ContinuousRankedProbabilityScore":
        return _ensembles
    if getattr(metric, "num_outputs", None) == 1 and not entry.by_shape:
        return _one_output if name in _OF_ONE_OUTPUT else _numbers
    return _as_it_is


def shared(form: BatchFormat) -> BatchFormat:
    """The function that makes the same batches and checks no dtypes: metrics with the same one can share a meter."""
    if isinstance(form, OfCountedRows):
        return replace(form, form=shared(form.form))
    return {_any_scores: _scores, _floats: _as_it_is, _floats_of_one_output: _one_output}.get(form, form)


def keeps(form: BatchFormat, metric: Any, given: Sequence[Tensor], batch: Mapping[str, Any]) -> bool:
    """Whether a function gives tensors as they are, as it did here, for all values that a metric counts.

    The tensors are of such shapes and dtypes. Scores are changed where one is outside [0, 1], which the metric refuses
    unless it takes logits, or the row is left out.
    """
    if len(given) != 2 or not all(map(_is_same, given, batch.values())):
        return False
    if not any(each.is_floating_point() for each in given):
        return True
    if form in (_scores, _class_scores, _label_scores):
        return not getattr(metric, "logits", True) and metric.ignore_index is None
    return form in (_as_it_is, _distributions, _ensembles, _floats, _floats_of_one_output, _numbers, _one_output)


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same numbers, as they have the same memory."""
    where = one.data_ptr(), one.shape, one.stride(), one.dtype
    return where == (other.data_ptr(), other.shape, other.stride(), other.dtype)


def _as_it_is(preds: Any, target: Any) -> dict[str, Any]:
    if isinstance(preds, list) and isinstance(target, list):
        return {"preds": [each or "" for each in preds], "target": _texts(target) if preds else []}
    return {"preds": preds, "target": target}


def _texts(texts: list[Any]) -> list[Any]:
    """Texts, or lists of references; an empty list in the place of a reference is an empty text."""
    return [[reference or "" for reference in each] if isinstance(each, list) else each for each in texts]


def _texts_with_references(preds: Any, target: Any) -> dict[str, Any]:
    """Texts and references; a text without references is left out, as it has no distance."""
    if isinstance(preds, list) and isinstance(target, list) and len(preds) == len(target):
        kept = [k for k, references in enumerate(target) if not isinstance(references, list) or references]
        preds, target = ([each[k] for k in kept] for each in (preds, target))
    return _as_it_is(preds, target)


def _categories(preds: Tensor, target: Tensor) -> dict[str, Any]:
    """Categories, or of rows of scores the one with the largest."""
    preds, target = (each.argmax(1) if each.ndim == 2 else each for each in (preds, target))
    return {"preds": preds, "target": target}


def _labels(preds: Tensor, target: Tensor) -> dict[str, Any]:
    return {"preds": probabilities(preds), "target": labels_of(target)}


def _class_labels(preds: Tensor, target: Tensor) -> dict[str, Any]:
    return {"preds": labels_of(preds) if preds.ndim == target.ndim else preds, "target": labels_of(target)}


def _check_scores(preds: Tensor) -> None:
    """Labels in the place of scores are refused there."""
    if not preds.is_floating_point():
        do = "Pass scores or logits and no labels, or preds.float() if they are scores"
        raise DtypeError(describe("preds", preds.dtype, "scores as floats", do))


def _scores(preds: Tensor, target: Tensor) -> dict[str, Any]:
    _check_scores(preds)
    return _any_scores(preds, target)


def _any_scores(preds: Tensor, target: Tensor) -> dict[str, Any]:
    """Scores, which are not checked there: they may be integers."""
    _check_same_shape(preds, target)
    return {"preds": probabilities(_floating(preds).flatten()), "target": labels_of(target).flatten()}


def _class_scores(preds: Tensor, target: Tensor) -> dict[str, Any]:
    if preds.ndim != target.ndim + 1:
        got = f"{preds.ndim} dimensions with {target.ndim} of target"
        raise ShapeError(describe("preds", got, "one more, of classes", "Pass the scores of all classes, not labels"))
    _check_same_shape(preds[:, 0], target)
    scores = probabilities(preds.movedim(1, -1).flatten(0, -2), Tensor.softmax)
    return {"preds": scores, "target": labels_of(target).flatten()}


def _label_scores(preds: Tensor, target: Tensor) -> dict[str, Any]:
    _check_scores(preds)
    _check_same_shape(preds, target)
    preds, target = (each.movedim(1, -1).flatten(0, -2) for each in (preds, target))
    return {"preds": probabilities(preds), "target": labels_of(target)}


def _numbers(preds: Tensor, target: Tensor) -> dict[str, Any]:
    _check_same_shape(preds, target)
    return {"preds": preds.flatten(), "target": target.flatten()}


def _one_output(preds: Tensor, target: Tensor) -> dict[str, Any]:
    """Numbers of one output: several outputs are refused there without `num_outputs`, and not taken as one."""
    if preds.ndim > 1 and preds.shape[1:] != (1,):
        do = "Pass num_outputs= for several outputs, or preds.flatten(), target.flatten() for one"
        raise ShapeError(describe("preds", f"shape {tuple(preds.shape)}", "(N,) or (N, 1)", do))
    return _numbers(preds, target)


def _floats(preds: Tensor, target: Tensor) -> dict[str, Any]:
    """Floats: ranks of integers are refused there."""
    if not (preds.is_floating_point() and target.is_floating_point()):
        got, expected = f"dtypes {preds.dtype} and {target.dtype}", "floats"
        raise DtypeError(describe("preds and target", got, expected, "Pass preds.float(), target.float()"))
    return {"preds": preds, "target": target}


def _floats_of_one_output(preds: Tensor, target: Tensor) -> dict[str, Any]:
    return _one_output(**_floats(preds, target))


def _ensembles(preds: Tensor, target: Tensor) -> dict[str, Any]:
    """Ensembles of several members; one member is refused there."""
    if preds.ndim == 2 and preds.shape[1] < 2:
        do = "Pass two members or more, or take MeanAbsoluteError of one"
        raise ShapeError(describe("preds", f"{preds.shape[1]} members", "2 or more", do))
    return {"preds": preds, "target": target}


def _distributions(preds: Tensor, target: Tensor) -> dict[str, Any]:
    """Probabilities, or what is in proportion to them, such as integer counts."""
    return {"preds": _floating(preds), "target": _floating(target)}


def _outputs(preds: Tensor, target: Tensor) -> dict[str, Any]:
    """Several outputs; one dimension is one sample."""
    preds, target = (each[None] if each.ndim == 1 else each for each in (preds, target))
    return {"preds": preds, "target": target}


def _queries(preds: Tensor, target: Tensor, indexes: Tensor) -> dict[str, Any]:
    if indexes is None:
        raise ValueError("Argument `indexes` cannot be None")
    indexes, preds, target = _checks._check_retrieval_inputs(indexes, preds, target, allow_non_binary_target=True)
    return {"preds": preds, "target": target, "indexes": indexes}


def _values(value: Any) -> dict[str, Any]:
    return {"preds": _floating(torch.as_tensor(value)).flatten()}


def _weighted_values(value: Any, weight: Any = None) -> dict[str, Any]:
    values = _floating(torch.as_tensor(value))
    rows = values.flatten()
    if weight is None:
        return {"preds": rows, "weights": torch.ones_like(rows)}
    weights = torch.as_tensor(weight, dtype=values.dtype, device=values.device)
    return {"preds": rows, "weights": weights.broadcast_to(values.shape).flatten()}


def _known_values(value: Any, weight: Any = None) -> dict[str, Any]:
    """Values and weights where `nan_strategy` says what becomes of NaN: where either is NaN, the value is."""
    batch = _weighted_values(value, weight)
    if weight is None:
        return batch
    is_nan = batch["preds"].isnan() | batch["weights"].isnan()
    return {"preds": batch["preds"].masked_fill(is_nan, math.nan), "weights": batch["weights"].masked_fill(is_nan, 1)}


def labels_of(values: Tensor) -> Tensor:
    """Labels as integers; a float that is none becomes a label that is invalid.

    Example:
        >>> labels_of(torch.tensor([0.0, 1.0])), labels_of(torch.tensor([0.5])) == NO_LABEL
        (tensor([0, 1]), tensor([True]))
    """
    if not values.is_floating_point():
        return values
    return torch.where(values == values.trunc(), values.long(), NO_LABEL)


def _floating(values: Tensor) -> Tensor:
    return values if values.is_floating_point() else values.float()


def probabilities(scores: Tensor, of_logits: Callable[..., Tensor] | None = None) -> Tensor:
    """Scores, which are taken for logits where one is outside [0, 1]; labels as they are.

    Example:
        >>> probabilities(torch.tensor([0.2, 0.7])), probabilities(torch.tensor([0.0, 2.0]))
        (tensor([0.2000, 0.7000]), tensor([0.5000, 0.8808]))
    """
    if not scores.is_floating_point() or not scores.numel():
        return scores
    if can_read(scores):
        low, high = scores.aminmax()
        if low.item() >= 0 and high.item() <= 1:  # not so where one is NaN; a comparison of tensors takes longer
            return scores
    probable = scores.sigmoid() if of_logits is None else of_logits(scores, 1)
    return torch.where(((scores < 0) | (scores > 1)).any(), probable, scores)


def sample_stats(metric: StatScores, preds: Tensor, target: Tensor) -> list[Tensor]:
    """True and false positives, true and false negatives of each sample, `(N, C)`; `(N,)` of binary data."""
    of, _ = sample_outcomes(metric.labels, Batch(preds.detach(), target, None))
    binary = metric.num_classes is None and metric.num_labels is None
    return [each.squeeze(1) if binary else each for each in (of.tp, of.fp, of.tn, of.fn)]
