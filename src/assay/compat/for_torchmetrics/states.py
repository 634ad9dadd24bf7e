"""The states of TorchMetrics' classes, from what assay has counted of the same samples.

They are computed when they are read, and writing to them changes nothing that was counted. A state is listed where the
counts say it exactly. Sums are those of exact arithmetic, rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.compat.for_torchmetrics.values import placed
from assay.errors import InvalidValuesError, describe
from assay.metrics.exact_arithmetic import rounded
from assay.metrics.output_metrics import XX, XY, YY
from assay.tally.sums.exact import Number
from assay.tally.sums.terms import PREDS, TARGET, AbsoluteError, AbsoluteValue, Term

Read = Callable[[Any, Any], Any]
"""A state, of what the tally computes and the metric in the place of that of TorchMetrics.

None where the counts do not say it."""


def state_of(metric: Any, name: str, counted_as: str, arguments: Mapping[str, Any]) -> Any:
    """A state of TorchMetrics' class, on the device of the last batch; floats are in the dtype of values.

    Args:
        metric: the metric in the place of that of TorchMetrics.
        name: of the state.
        counted_as: the name of the metric in its meter.
        arguments: with which it was made.

    Raises:
        AttributeError: the counts do not say it.
        InvalidValuesError: labels, scores or weights were counted that have no value.
    """
    family = getattr(type(metric), "family", None)
    reads = _reads_of(metric.entry.name) if family is None else family.states
    found = None
    if name in reads:
        with_data = metric.meter.rows > 0
        found = _read(metric, name, counted_as, reads[name]) if with_data else _without_data(metric, name, arguments)
    if found is None:
        got = "a state of TorchMetrics' class"
        do = f"Read metric_state, or take the class from {metric.original.__module__} to have its states"
        what = f"{type(metric).__name__}.{name}"
        raise AttributeError(describe(what, got, "what assay has counted, in `meter`", do))
    dtype = torch.float64 if metric.entry.name in _IN_FLOAT64 else metric.dtype
    return placed(found, dtype, metric.device)


def _reads_of(name: str) -> Mapping[str, Read]:
    """How the states of a class of TorchMetrics are read."""
    if name.startswith("Retrieval"):
        return _DOCUMENTS
    return STATES.get(name.removeprefix("Binary").removeprefix("Multiclass").removeprefix("Multilabel"), {})


def _read(metric: Any, name: str, counted_as: str, read: Read) -> Any:
    tally, state = metric.meter.plan.state_of(counted_as, metric.meter.states())
    for problem in tally.invalid_values(state):
        if problem.fatal:
            got = f"{problem.count} of the {problem.what}"
            raise InvalidValuesError(describe(name, got, "none", "Correct or leave out those samples"))
    return read(tally.compute(state), metric)


def _without_data(metric: Any, name: str, arguments: Mapping[str, Any]) -> Any:
    """The state of an empty metric of TorchMetrics; where another network would be made for it, that of lists only."""
    family = getattr(type(metric), "family", None)
    if family is not None and (family.run or family.construct):
        return None if metric.entry.name in _IN_FLOAT64 else []
    return getattr(metric.original(**arguments), name)


def _floats(numbers: Iterable[Number]) -> Tensor:
    return torch.tensor([rounded(each) for each in numbers], dtype=torch.float64, device="cpu")


def _of_outputs(numbers: Iterable[Number], metric: Any) -> Tensor:
    """A number of each output, `(num_outputs,)`; `()` of a class that takes their number from the data and has one."""
    values = _floats(numbers)
    return values.squeeze(0) if metric.entry.by_shape and len(values) == 1 else values


def _sum(*terms: tuple[int, Term]) -> Read:
    """The sum of terms, each times a factor, of each output."""

    def read(totals: Any, metric: Any) -> Tensor:
        sums = zip(*(totals[term] for _, term in terms), strict=True)
        return _of_outputs((sum(k * x for (k, _), x in zip(terms, of, strict=True)) for of in sums), metric)

    return read


SQUARED_ERROR = _sum((1, XX), (-2, XY), (1, YY))


def alone(read: Read) -> Read:
    """A state of one output, of shape `()`."""
    return lambda counts, metric: read(counts, metric).sum()


def _own_term(totals: Any, metric: Any) -> Tensor:
    """The sum of the term of assay's metric, of each output."""
    (term,) = metric.described().terms
    return _of_outputs(totals[term], metric)


def count(totals: Any, metric: Any) -> Tensor:
    return torch.tensor(totals.count[0], device="cpu")


def count_of_rows(totals: Any, metric: Any) -> Tensor:
    return torch.tensor(totals.count, device="cpu")


def as_float(read: Read) -> Read:
    return lambda counts, metric: read(counts, metric).double()


def _weight(totals: Any, metric: Any) -> Tensor:
    return _floats(totals.weight).sum()


def row_sum(k: int = 0, unit: Fraction = Fraction(1)) -> Read:
    """What rows give in one place, in a unit."""
    return lambda totals, metric: _floats([totals.sums[0][k] * unit]).sum()


def _row_sums(totals: Any, metric: Any) -> Tensor:
    """What rows give: of several classes a vector."""
    values = _floats(totals.sums[0])
    return values.sum() if len(values) == 1 else values


def _n_grams(place: int) -> Read:
    """What is counted of n-grams of each order: those in common, or those of the predictions."""

    def read(totals: Any, metric: Any) -> Tensor:
        first = 2 + place * metric.n_gram
        return _floats(totals.sums[0][first : first + metric.n_gram])

    return read


def _central(left: Term, right: Term, product: Term) -> Read:
    """`sum((left - mean(left)) * (right - mean(right)))`."""

    def read(totals: Any, metric: Any) -> Tensor:
        sums = zip(totals[product], totals[left], totals[right], totals.count, strict=True)
        return _of_outputs((xy - x * y / n for xy, x, y, n in sums), metric)

    return read


def _mean(term: Term) -> Read:
    return lambda totals, metric: _of_outputs((x / n for x, n in zip(totals[term], totals.count, strict=True)), metric)


def _count_of_outputs(totals: Any, metric: Any) -> Tensor:
    return _floats(map(Fraction, totals.count))


_CORRELATION = {
    "mean_x": _mean(PREDS),
    "mean_y": _mean(TARGET),
    "var_x": _central(PREDS, PREDS, XX),
    "var_y": _central(TARGET, TARGET, YY),
    "corr_xy": _central(PREDS, TARGET, XY),
    "n_total": _count_of_outputs,
}


def _outcomes(place: int) -> Read:
    """True positives, false positives, true negatives or false negatives: of each class, or of all together."""

    def read(counts: Any, metric: Any) -> Tensor:
        of_classes: Tensor = metric.described().compute(counts)[place]
        pools = metric.entry.name.startswith("Multiclass") and metric.average == "micro" and metric.top_k == 1
        return of_classes.sum().view(1) if pools else of_classes.view(-1)

    return read


def _confusion(counts: Any, metric: Any) -> Tensor:
    """The matrix, or one of each label."""
    matrices = torch.from_numpy(np.array(counts.values, np.int64))
    return matrices if metric.entry.name.startswith("Multilabel") else matrices[0]


def _confusion_by_threshold(rankings: Any, metric: Any) -> Tensor | None:
    """The matrix of each class at each threshold, which rise."""
    if not all(each.at_thresholds for each in rankings) or not _are_of_classes(rankings, metric):
        return None
    tables = []
    for each in rankings:
        above = np.stack([each.alarms, each.hits], -1)[each.points][::-1]  # predicted as positive, by true label
        below = np.array([each.num_negatives, each.num_positives]) - above
        tables.append(np.stack([below, above], -1))
    return torch.from_numpy(tables[0] if metric.entry.name.startswith("Binary") else np.stack(tables, 1))


def _are_of_classes(rankings: Any, metric: Any) -> bool:
    """Whether there is a ranking of each class, and they are not pooled."""
    described = metric.described()
    several = getattr(described, "num_classes", None) or getattr(described, "num_labels", None)
    return len(rankings) == (several or 1)


def _samples(rankings: Any, metric: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The scores and labels `(classes, N)` of samples that are kept; of several labels also those that are ignored."""
    kept = [each.samples for each in rankings]
    if None in kept or not _are_of_classes(rankings, metric):
        return None
    scores, labels = (np.stack(each) for each in zip(*(samples() for samples in kept), strict=True))
    counted = (labels >= 0).all(0) if not metric.entry.name.startswith("Multilabel") else slice(None)
    return scores[:, counted], labels[:, counted]


def _scores(rankings: Any, metric: Any) -> list[Tensor] | None:
    found = _samples(rankings, metric)
    if found is None:
        return None
    scores = torch.from_numpy(found[0])
    return [scores[0] if metric.entry.name.startswith("Binary") else scores.T]


def _labels(rankings: Any, metric: Any) -> list[Tensor] | None:
    found = _samples(rankings, metric)
    if found is None:
        return None
    labels = torch.from_numpy(found[1]).long()
    if metric.entry.name.startswith("Multilabel"):
        return [labels.T if metric.ignore_index is None else labels.masked_fill(labels < 0, metric.ignore_index).T]
    return [labels[0] if metric.entry.name.startswith("Binary") else labels.argmax(0)]


def _argument(name: str, *, is_table: bool = False) -> Read:
    """The samples of an argument, as one tensor `(N, num_outputs)`; of one output `(N,)` unless it `is_table`."""

    def read(samples: Any, metric: Any) -> list[Tensor]:
        values = torch.from_numpy(np.array(samples[name])).T
        return [values if is_table or values.shape[1] > 1 else values[:, 0]]

    return read


def _documents(column: str) -> Read:
    """What is kept of documents in one column, in the order of their queries."""

    def read(queries: Any, metric: Any) -> list[Tensor]:
        values = torch.from_numpy(np.array(queries.columns[column]))
        of_labels = column == "relevance" and not metric.allow_non_binary_target
        return [values.long() if of_labels or not values.is_floating_point() else values]

    return read


_IN_FLOAT64 = ("FrechetInceptionDistance",)
"""Classes whose states are in float64, and no lists."""

_OUTCOMES = {name: _outcomes(place) for place, name in enumerate(("tp", "fp", "tn", "fn"))}
_MATRIX = {"confmat": _confusion}
_OF_SCORES = {"preds": _scores, "target": _labels, "confmat": _confusion_by_threshold}
_DOCUMENTS = {"indexes": _documents("indexes"), "preds": _documents("scores"), "target": _documents("relevance")}
_MEASURES = {"measures": _row_sums, "total": count_of_rows}
_EDITS = {"errors": row_sum(0), "total": row_sum(1)}
_N_GRAMS = {
    "preds_len": row_sum(0),
    "target_len": row_sum(1),
    "numerator": _n_grams(0),
    "denominator": _n_grams(1),
}

STATES: Mapping[str, Mapping[str, Read]] = {
    "SumMetric": {"sum_value": alone(_sum((1, PREDS)))},
    "MeanMetric": {"mean_value": alone(_sum((1, PREDS))), "weight": _weight},
    "MaxMetric": {"max_value": lambda counts, metric: torch.tensor(float(counts.largest), device="cpu")},
    "MinMetric": {"min_value": lambda counts, metric: torch.tensor(float(counts.smallest), device="cpu")},
    **dict.fromkeys(("Accuracy", "F1Score", "FBetaScore", "HammingDistance", "NegativePredictiveValue"), _OUTCOMES),
    **dict.fromkeys(("Precision", "Recall", "Specificity", "StatScores"), _OUTCOMES),
    **dict.fromkeys(("CohenKappa", "ConfusionMatrix", "JaccardIndex", "MatthewsCorrCoef"), _MATRIX),
    **dict.fromkeys(("AUROC", "AveragePrecision", "LogAUC", "PrecisionRecallCurve", "ROC"), _OF_SCORES),
    **dict.fromkeys(("PrecisionAtFixedRecall", "RecallAtFixedPrecision"), _OF_SCORES),
    **dict.fromkeys(("SensitivityAtSpecificity", "SpecificityAtSensitivity"), _OF_SCORES),
    "ExactMatch": {
        "correct": lambda counts, metric: torch.tensor([counts.right], device="cpu"),
        "total": lambda counts, metric: torch.tensor([counts.right + counts.wrong], device="cpu"),
    },
    "HingeLoss": _MEASURES,
    "MeanSquaredError": {"sum_squared_error": SQUARED_ERROR, "total": count},
    "MeanAbsoluteError": {"sum_abs_error": _own_term, "total": count},
    "MeanAbsolutePercentageError": {"sum_abs_per_error": alone(_own_term), "total": as_float(count)},
    "SymmetricMeanAbsolutePercentageError": {"sum_abs_per_error": alone(_own_term), "total": as_float(count)},
    "WeightedMeanAbsolutePercentageError": {
        "sum_abs_error": alone(_sum((1, AbsoluteError()))),
        "sum_scale": alone(_sum((1, AbsoluteValue("target")))),
    },
    "MeanSquaredLogError": {"sum_squared_log_error": alone(_own_term), "total": count},
    "MinkowskiDistance": {"minkowski_dist_sum": alone(_own_term)},
    "LogCoshError": {"sum_log_cosh_error": _own_term, "total": count},
    "ExplainedVariance": {
        "sum_target": _sum((1, TARGET)),
        "sum_squared_target": _sum((1, YY)),
        "sum_error": _sum((1, TARGET), (-1, PREDS)),
        "sum_squared_error": SQUARED_ERROR,
        "num_obs": as_float(count),
    },
    "R2Score": {
        "sum_error": _sum((1, TARGET)),
        "sum_squared_error": _sum((1, YY)),
        "residual": SQUARED_ERROR,
        "total": count,
    },
    "PearsonCorrCoef": _CORRELATION,
    "ConcordanceCorrCoef": _CORRELATION,
    "RelativeSquaredError": {
        "sum_error": _sum((1, TARGET)),
        "sum_squared_error": _sum((1, YY)),
        "residual": SQUARED_ERROR,
        "total": count,
    },
    "SpearmanCorrCoef": {name: _argument(name) for name in ("preds", "target")},
    "KendallRankCorrCoef": {name: _argument(name, is_table=True) for name in ("preds", "target")},
    "KLDivergence": _MEASURES,
    "JensenShannonDivergence": _MEASURES,
    "WordErrorRate": _EDITS,
    "CharErrorRate": _EDITS,
    **dict.fromkeys(("BLEUScore", "SacreBLEUScore"), _N_GRAMS),
    "Perplexity": {"total_log_probs": row_sum(), "count": as_float(count_of_rows)},
}
"""By the name of the class, without its task."""
