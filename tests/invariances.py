"""Changes of samples that the definitions of some metrics do not see, and for which metrics each one holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.metrics.classification.label_metrics import LabelMetric
from assay.metrics.classification.operating_points import OperatingPointMetric
from assay.metrics.samples import (
    binary,
    binary_logits,
    distributions,
    documents,
    meshes,
    multiclass,
    multiclass_logits,
    multilabel,
    output_pairs,
    pairs,
    positive_pairs,
    query_rows,
    signals,
    sources,
    spectra,
    tokens,
    vectors,
)
from laws import IGNORED, Case, Data, counts_pairs, many_classes, wide, wide_values


@dataclass(frozen=True)
class Invariance:
    """A change of the samples that the definition of some metrics does not see.

    Attributes:
        change: gives the samples before and after; None for cases that this says nothing about.
        exactly: for which of the other cases no bit of the value changes.
        nearly: for which cases only the rounding of terms changes.
    """

    change: Callable[[Case, Data], tuple[Data, Data] | None]
    exactly: Callable[[Case], bool]
    nearly: Callable[[Case], bool] = lambda case: False


def _named(case: Case, *names: str) -> bool:
    return type(case.metric).__name__ in names


def _option(case: Case, name: str) -> Any:
    return getattr(case.metric, name, None)


def _add_a_constant_to_each_row(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Of all scores of a row; no sum is rounded."""
    if case.draw not in (multiclass_logits, tokens, many_classes):
        return None
    constant = torch.arange(data.count).remainder(7) * 8 - 20.0
    return data, data._replace(preds=data.preds + constant.view(-1, *(1,) * (data.preds.ndim - 1)))


def _map_scores(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Through a strictly increasing function that rounds none of them."""
    decides = isinstance(case.metric, LabelMetric) and _option(case, "num_classes") is None
    if (
        decides
        or _named(case, "ByGroup", "CriticalSuccessIndex", "GroupDifference", "PerOutput")
        or getattr(case.metric, "exact_up_to", EXACT) < EXACT
        or getattr(case.metric, "thresholds", None) is not None
    ):
        return None
    if case.draw in (binary_logits, pairs, output_pairs, documents, query_rows):
        return data, data._replace(preds=data.preds**3)
    return (data, data._replace(preds=data.preds**2)) if case.draw in (binary, multiclass, multilabel) else None


def _of_pairs(case: Case) -> bool:
    """Whether a prediction is compared with a target in the same unit."""
    return case.draw in (pairs, output_pairs, positive_pairs, vectors, signals, sources, spectra, meshes)


def _map_each_affinely(case: Case, data: Data) -> tuple[Data, Data] | None:
    return (data, data._replace(preds=2 * data.preds + 3, target=4 * data.target + 1)) if _of_pairs(case) else None


def _map_both_affinely(case: Case, data: Data) -> tuple[Data, Data] | None:
    return (data, data._replace(preds=2 * data.preds + 3, target=2 * data.target + 3)) if _of_pairs(case) else None


def _shift_predictions(case: Case, data: Data) -> tuple[Data, Data] | None:
    return (
        (data, data._replace(preds=data.preds + 3)) if _of_pairs(case) or case.draw in (documents, query_rows) else None
    )


def _scale_predictions(case: Case, data: Data) -> tuple[Data, Data] | None:
    unclear = _named(case, "CriticalSuccessIndex")  # depends on where the threshold is
    some = (_of_pairs(case) or case.draw in (distributions, documents, query_rows)) and not unclear
    return (data, data._replace(preds=4 * data.preds)) if some else None


def _swap(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Predictions and targets."""
    if case.draw in (wide, many_classes) or _option(case, "top_k") not in (None, 1) or data.target is None:
        return None
    if case.metric.family == "fairness" and (_option(case, "num_classes") or _option(case, "num_labels")):
        return None  # of so few samples in each class and group, the worst rate is often 0 or 1
    if isinstance(case.metric, LabelMetric) and _option(case, "logits"):
        return None  # labels are no logits
    if isinstance(case.metric, LabelMetric) and data.preds.dtype.is_floating_point:
        preds = data.preds.argmax(1) if _option(case, "num_classes") else (data.preds > 0.5).long()
        data = data._replace(preds=preds)
    if case.raw:
        alike = case.metric.inputs in ("strings", "tags")
    else:
        alike = data.preds.shape == data.target.shape and data.preds.dtype == data.target.dtype
    if not alike or _option(case, "ignore_index") is not None:
        return None
    return data, data._replace(preds=data.target, target=data.preds)


def _repeat(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Every sample twice."""
    unclear = _named(case, "PerceptualPathLength", "Quantile") or case.draw in (wide, wide_values, documents)
    return None if unclear else (data, data.rows([*range(data.count)] * 2))


def _double_weights(case: Case, data: Data) -> tuple[Data, Data] | None:
    unclear = _named(case, "Quantile") or case.draw in (wide, wide_values)
    return None if data.weights is None or unclear else (data, data._replace(weights=2 * data.weights))


def _renumber(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Classes or labels. Rows with equal scores are left out: of these, the lowest class is decided for."""
    classes, ignored = _option(case, "num_classes"), _option(case, "ignore_index")
    if _option(case, "criteria") == "overlap":
        return None  # two of three labels are of any others
    if _option(case, "num_labels"):
        return data, data.map(lambda x: x.roll(1, 1) if x.ndim > 1 else x)
    if classes is None or case.draw is many_classes or ignored not in (None, IGNORED) or data.target is None:
        return None
    if case.raw:
        return None
    if data.preds.dtype.is_floating_point:
        data = data.rows(data.preds.sort(1).values.diff(dim=1).flatten(1).gt(0).all(1))
    assert data.target is not None
    target = torch.where(data.target == IGNORED, IGNORED, (data.target + 1) % classes)
    preds = data.preds.roll(1, 1) if data.preds.dtype.is_floating_point else (data.preds + 1) % classes
    return data, data._replace(preds=preds, target=target)


EXACT = 1 << 20
_COUNTS = ("CanberraDistance", "ClassReport", "MinkowskiDistance", "StatScores", "Sum", "WaveHedgesDistance")


def _unchanged(*changes: str) -> Callable[[Case], bool]:
    """Whether the class of a metric declares one of these changes."""
    return lambda case: any(change in case.metric.unchanged_by for change in changes)


def _is_symmetric(case: Case) -> bool:
    if _option(case, "multidim_average") == "samplewise" and case.draw is multiclass:
        return True  # a sample with one label is right or wrong
    average = _option(case, "average")
    if _named(case, "Precision", "StatScores"):  # pooled over classes, each wrong answer is of two of them
        return bool(_option(case, "num_classes")) and average in ("micro", *["macro"] * _named(case, "StatScores"))
    if _named(case, "HammingDistance"):  # of classes: one less the mean recall
        return _option(case, "num_classes") is None
    if _named(case, "PanopticQuality"):  # of categories that are all known
        return 7 in case.metric.stuffs
    if _named(case, "VMeasureScore"):
        return _option(case, "beta") == 1
    if _option(case, "weight_type") == "linear":
        return True
    squared = _option(case, "power") == 0 and not _named(case, "D2TweedieScore")
    return ("swap" in case.metric.unchanged_by and average != "weighted") or squared


def _compares_kernels(case: Case) -> bool:
    return _named(case, "HSIC", "MaximumMeanDiscrepancy")


def _is_a_total(case: Case) -> bool:
    table = _named(case, "ConfusionMatrix") and _option(case, "normalize") is None
    smooths = _option(case, "smooth") or _option(case, "smooth_method") not in (None, "none")  # what is few
    smooths = smooths or _option(case, "normalization") == "l2"  # divided by a norm, which grows
    counts = _named(case, *_COUNTS) and _option(case, "multidim_average") != "samplewise"  # which is a mean
    return table or smooths or counts or _option(case, "reduction") == "sum" or bool(_option(case, "ddof"))


def _is_affine(case: Case) -> bool:
    """Whether the class declares it, or an option makes it hold."""
    squared = _named(case, "D2TweedieScore") and _option(case, "power") == 0
    return squared or _option(case, "normalization") in ("range", "std") or _unchanged("affine", "common affine")(case)


def _counts_samples(case: Case) -> bool:
    others = _option(case, "adjusted") or _option(case, "variant") == "a" or _named(case, "CalibrationCurve")
    return _is_a_total(case) or counts_pairs(case) or bool(others)


_BY_CLASS = ("ClassReport", "ConfusionMatrix", "DETCurve", "PrecisionRecallCurve", "ROC", "TopKMultilabelAccuracy")


def _numbers_classes(case: Case) -> bool:
    """Whether the value has a place for each class, or depends on how far apart they are."""
    apart = _named(case, "CohenKappa") and _option(case, "weights") is not None
    several = _named(case, *_BY_CLASS) or isinstance(case.metric, OperatingPointMetric)
    each = hasattr(case.metric, "average") and _option(case, "average") is None
    each = each or _option(case, "per_class") or _option(case, "weight_type") == "square"
    return apart or several or each or _option(case, "multiclass_mode") == "one-vs-all"


INVARIANCES = {
    "a constant per row of scores": Invariance(
        _add_a_constant_to_each_row, lambda case: _option(case, "multiclass_mode") != "one-vs-all"
    ),
    "an increasing function of the scores": Invariance(
        _map_scores,
        lambda case: _unchanged("increasing")(case) or isinstance(case.metric, LabelMetric),
    ),
    "scale and shift of each": Invariance(_map_each_affinely, _unchanged("affine")),
    "scale and shift of both": Invariance(_map_both_affinely, _is_affine),
    "shift of the predictions": Invariance(_shift_predictions, _unchanged("affine", "shift")),
    "scale of the predictions": Invariance(_scale_predictions, _unchanged("affine", "scale")),
    "predictions and targets swapped": Invariance(
        _swap, lambda case: _is_symmetric(case) or _compares_kernels(case), _compares_kernels
    ),
    "every sample twice": Invariance(_repeat, lambda case: not _counts_samples(case)),
    "weights times 2": Invariance(_double_weights, lambda case: not _is_a_total(case) and not counts_pairs(case)),
    "other numbers of classes": Invariance(
        _renumber,
        lambda case: not _numbers_classes(case),
        lambda case: bool(_option(case, "logits")) and not _numbers_classes(case),
    ),
}


def comparable(tree: Any) -> list[Tensor]:
    """The tensors of a value without thresholds, which are scores."""
    if isinstance(tree, dict):
        return [leaf for branch in tree.values() for leaf in comparable(branch)]
    if hasattr(tree, "_fields"):
        tree = [getattr(tree, name) for name in tree._fields if not name.startswith("threshold")]
    if isinstance(tree, Tensor):
        return [tree]
    return [leaf for branch in tree for leaf in comparable(branch)]
