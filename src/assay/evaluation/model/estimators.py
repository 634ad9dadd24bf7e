"""Estimators as scikit-learn has them, as models: which of their methods predicts, and their classes as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.data.labels import class_numbers
from assay.devices.placement import to_host
from assay.errors import ConfigError, describe
from assay.metrics.base import Metric
from assay.metrics.classification.label_metrics import LabelMetric

PREDICT, PROBABILITIES, DECISIONS = "predict", "predict_proba", "decision_function"


def is_estimator(model: Any) -> bool:
    """Whether a model is an estimator: it predicts, and is no module and no class."""
    return not isinstance(model, nn.Module | type) and hasattr(model, PREDICT) and hasattr(model, "get_params")


def classes_of(estimator: Any) -> tuple[Any, ...]:
    """The classes of a classifier in the order of its outputs; empty for others, and where a row has several labels."""
    classes = getattr(estimator, "classes_", None)
    if classes is None or isinstance(classes, list) or getattr(estimator, "multilabel_", False):
        return ()
    return tuple(np.asarray(classes).tolist())


class EstimatorModel:
    """An estimator as a function of a batch.

    Classes that it predicts become their places in `classes_`, and the probabilities of two classes that of the second
    one, unless a metric has `num_classes`. An estimator that predicts anything else gives it as it is.

    Args:
        estimator: what was fitted.
        metrics: what measures it, which decides over the method: see `method_for`.

    Raises:
        ConfigError: it has not the method that the metrics need.
    """

    def __init__(self, estimator: Any, metrics: Sequence[Metric]) -> None:
        parts = [part for metric in metrics for part in _parts(metric)]
        self.estimator, self.method = estimator, method_for(estimator, parts)
        self.classes = classes_of(estimator)
        _check_task(parts, len(self.classes))
        tasks = [getattr(each, name, None) for each in parts for name in ("num_classes", "num_labels")]
        self.is_binary = not any(tasks)

    def __call__(self, inputs: Any) -> Any:
        """The predictions for a batch of inputs: a tensor on the CPU, or strings as they are."""
        given = to_host(inputs).numpy() if isinstance(inputs, Tensor) else inputs
        outputs = getattr(self.estimator, self.method)(given)
        if isinstance(outputs, list):  # one array of probabilities for each label
            outputs = np.stack([each[:, 1] for each in outputs], 1)
        array = np.asarray(outputs)
        if self.method == PREDICT and self.classes and array.ndim == 1:
            array = class_numbers(array, self.classes, "preds")
        if self.method == PROBABILITIES and self.is_binary and array.shape[1:] == (2,):
            array = array[:, 1]
        return array.tolist() if array.dtype.kind in "OUS" else torch.from_numpy(np.ascontiguousarray(array))


def method_for(estimator: Any, metrics: Sequence[Metric]) -> str:
    """The method of an estimator that gives what metrics take.

    `predict` where none of them is of the scores of classes; else `decision_function` for metrics with `logits=True`
    and `predict_proba` for others, or the one that there is where the metrics take either.

    Raises:
        ConfigError: some metrics take logits and some probabilities, or the estimator has no such method.
    """
    of_classes = [each for each in metrics if each.inputs == "labels"]
    of_scores = [each for each in of_classes if not _takes_labels(each)]
    if not of_scores:
        return PREDICT
    said = {
        bool(getattr(each, "logits", False)): type(each).__name__
        for each in of_classes
        if hasattr(each, "logits") and not (isinstance(each, LabelMetric) and each.num_classes is not None)
    }
    name, what = type(estimator).__name__, type(of_scores[0]).__name__
    if len(said) > 1:
        got = f"{said[True]} with logits=True and {said[False]} without"
        raise ConfigError(describe("metrics", got, "the same for all", "Pass one of the two"))
    wanted = (DECISIONS,) if True in said else (PROBABILITIES,) if said else (PROBABILITIES, DECISIONS)
    for method in wanted:
        if hasattr(estimator, method):
            return method
    do = "Pass logits=True to the metrics" if hasattr(estimator, DECISIONS) else "Measure its labels, as accuracy does"
    if wanted == (DECISIONS,) and hasattr(estimator, PROBABILITIES):
        do = "Leave logits out"
    raise ConfigError(describe("model", f"{name} without {wanted[0]}", f"scores, which {what} takes", do))


def _check_task(metrics: Sequence[Metric], count: int) -> None:
    """Raise where a metric is for two classes and an estimator has more."""
    for each in metrics if count > 2 else ():
        if getattr(each, "num_classes", 0) is None and getattr(each, "num_labels", None) is None:
            name = type(each).__name__
            do = f"Pass {name}(num_classes={count})"
            raise ConfigError(describe("metrics", f"{name}() of two classes", f"{count}, as the model has", do))


def _takes_labels(metric: Metric) -> bool:
    """Whether a metric is computed from the labels that an estimator predicts."""
    return isinstance(metric, LabelMetric) and metric.threshold == 0.5 and getattr(metric, "top_k", 1) == 1


def _parts(metric: Metric) -> Iterator[Metric]:
    """A metric, or those that it is made of."""
    parts = [each for each in (getattr(metric, "metric", None), *getattr(metric, "operands", ())) if each is not None]
    if not any(isinstance(each, Metric) for each in parts):
        yield metric
    for each in parts:
        if isinstance(each, Metric):
            yield from _parts(each)
