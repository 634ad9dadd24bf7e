"""scikit-learn: metrics as scorers of `cross_validate` and `GridSearchCV`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.data.labels import class_numbers
from assay.errors import ConfigError, describe
from assay.evaluation.model.estimators import DECISIONS, PROBABILITIES, EstimatorModel, classes_of
from assay.meter import Meter
from assay.metrics.base import Metric, named_numbers
from assay.metrics.parsing import as_metrics


class Scorer:
    """What scikit-learn calls with an estimator and data; made by `scorer`.

    Attributes:
        metrics: the metrics as they were given.
    """

    def __init__(self, metrics: Any) -> None:
        self.metrics = metrics

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float | dict[str, float]:
        """The score of a fitted estimator, or those of several metrics by name.

        Args:
            estimator: what predicts.
            X: its inputs.
            y: the targets.
            sample_weight: one weight a sample.

        Raises:
            ConfigError: a value is no single number, or the estimator has no method that the metrics need.
        """
        classes = classes_of(estimator)
        found: dict[str, Any] = _by_name(self.metrics, estimator, len(classes))
        meter = Meter(weighted=sample_weight is not None, stage_bytes=0, **found)
        preds = EstimatorModel(estimator, list(meter.metrics.values()))(X)
        values = meter.values_of(preds, class_numbers(y, classes, "y") if classes else y, weights=sample_weight)
        scores = dict(_score(name, meter.metrics[name], value) for name, value in values.items())
        return next(iter(scores.values())) if len(scores) == 1 else scores

    def __repr__(self) -> str:
        return f"scorer({self.metrics!r})"


def _by_name(metrics: Any, estimator: Any, classes: int) -> dict[str, Any]:
    """The metrics by name; those that are text are of as many classes as the estimator has."""
    defaults: dict[str, Any] = {"num_classes": classes} if classes > 2 else {}
    if hasattr(estimator, DECISIONS) and not hasattr(estimator, PROBABILITIES):
        defaults["logits"] = True
    listed = [metrics] if isinstance(metrics, Metric) else metrics
    opened = as_metrics(listed, {}, defaults)
    return dict(opened) if isinstance(opened, Mapping) else {type(each).__name__: each for each in opened}


def _score(name: str, metric: Metric, value: Any) -> tuple[str, float]:
    """The name and the number that scikit-learn maximizes: an error is negated, as its own scorers do."""
    numbers = [number for _, number in named_numbers(name, value)]
    if len(numbers) != 1 or metric.higher_is_better is None:
        got = "no direction in which it is better" if len(numbers) == 1 else f"{len(numbers)} numbers"
        do = "Leave it out, or average over classes"
        raise ConfigError(describe(f"scorer: {name}", got, "one number that is better when it is higher or lower", do))
    return (name, numbers[0]) if metric.higher_is_better else (f"neg_{name}", -numbers[0])


def scorer(metrics: str | Metric | Sequence[Metric | str] | Mapping[str, Metric | str]) -> Scorer:
    """Metrics of assay as `scoring=` of scikit-learn: of `cross_validate`, `cross_val_score`, `GridSearchCV`.

    An estimator predicts once for all metrics: probabilities where one needs scores, else labels. Metrics that are
    written as text are of as many classes as the estimator has. The names of errors, of which lower is better, begin
    with `neg_`, and their values are negated, as those of scikit-learn are.

    Args:
        metrics: one metric or several: as text ("accuracy,f1:average=macro"), as objects, or by name.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.model_selection import cross_validate
        >>> x, y = load_iris(return_X_y=True)
        >>> found = cross_validate(LogisticRegression(max_iter=500), x, y, scoring=scorer("accuracy,logloss"), cv=3)
        >>> sorted(name for name in found if name.startswith("test_"))
        ['test_accuracy', 'test_neg_logloss']
    """
    return Scorer(metrics)
