"""What a report shows in addition to its metrics: matrix, curves, reliability, a table of classes, residuals.

Which of them can be shown is known from the metrics: how many classes or labels there are, at which score something is
positive, and whether scores are logits, is what they say, and nothing is guessed from the data. Details are read from
the same tallies as the metrics, so most of them cost nothing while samples are counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.errors import AssayError, ConfigError, describe
from assay.meter.plots import curves, reliability
from assay.meter.values import Readings
from assay.metrics import (
    AUROC,
    ROC,
    AveragePrecision,
    BrierScore,
    CalibrationCurve,
    CalibrationError,
    ClassReport,
    ConfusionMatrix,
    LogLoss,
    Metric,
    PrecisionRecallCurve,
)
from assay.metrics.classification.label_metrics import LabelMetric
from assay.metrics.classification.probabilities import ConfidenceMetric
from assay.metrics.classification.ranking_metric import RankingMetric
from assay.report import (
    ConfusionPlot,
    Distribution,
    Plot,
    Residuals,
    Samples,
    Series,
    Table,
)

MOST_CLASSES = 100
MOST_CURVES = 20
_MATRIX, _TABLE, _BINS, _ERROR = "details.matrix", "details.table", "details.bins", "details.error"
_ROC, _AUROC, _PR, _AP = "details.roc", "details.auroc", "details.pr", "details.ap"


@dataclass(frozen=True)
class Diagnostics:
    """What is shown in addition to the metrics.

    Attributes:
        metrics: what is counted for that, under names of their own.
        classes: the names of the classes or labels, or their numbers; none where nothing is classified.
        named: their names where they were given.
        single: whether there are two classes, and scores are those of the second.
        plain: whether samples have one weight.
    """

    metrics: Mapping[str, Metric] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    single: bool = False
    plain: bool = True

    def figures(self, readings: Readings) -> tuple[list[Table], list[Plot], list[str]]:
        """Tables, plots, and notes on what could not be read of all that was counted."""
        results, notes = _read(readings, self.metrics)
        tables: list[Table] = []
        plots: list[Plot] = []
        if _TABLE in results:
            columns = ("class", "precision", "recall", "F1", "support")
            tables.append(Table("Per class", columns, tuple(map(tuple, results[_TABLE].rows(self.classes)))))
        if _MATRIX in results and not results[_MATRIX].is_floating_point():
            plots.append(ConfusionPlot("Confusion matrix", self.classes, tuple(map(tuple, results[_MATRIX].tolist()))))
        if _BINS in results:
            bins, error = results[_BINS], results.get(_ERROR)
            plots.append(reliability("Reliability", bins, None if error is None else float(error)))
            if self.plain:
                plots.append(self._distribution(bins))
        roc = "ROC" if self.single else "ROC, each class against the rest"
        plots += self._curves(roc, "roc", results.get(_ROC), results.get(_AUROC))
        plots += self._curves("Precision and recall", "pr", results.get(_PR), results.get(_AP))
        return tables, plots, notes

    def _distribution(self, bins: Any) -> Distribution:
        """How scores are spread, from the bins of the reliability diagram."""
        counts = np.asarray(bins.counts)
        yes = np.rint(np.where(counts > 0, bins.accuracy, 0.0) * counts).astype(np.int64)
        names = (f"of {self.classes[1]}", f"of {self.classes[0]}") if self.single else ("right", "wrong")
        axis = "score" if self.single else "confidence"
        title = "Scores" if self.single else "Confidence of right and wrong decisions"
        both = (Series(name, _plain(each)) for name, each in zip(names, (yes, counts - yes), strict=True))
        return Distribution(title, _plain(bins.edges), tuple(both), axis)

    def _curves(self, title: str, kind: str, points: Any, areas: Any) -> list[Plot]:
        if points is None or areas is None:
            return []
        return [curves(title, kind, points, self.classes, [float(areas)] if self.single else areas.tolist())]


def choose_diagnostics(
    metrics: Mapping[str, Metric], weighted: bool, classes: Sequence[str], wanted: bool
) -> Diagnostics:
    """Which details the metrics allow.

    Args:
        metrics: those that are measured.
        weighted: whether samples have weights.
        classes: names of the classes, for reports.
        wanted: whether details are wanted; names are checked in any case.

    Raises:
        ConfigError: there are more or fewer names than classes.
    """
    detecting = any(each.inputs == "boxes" for each in metrics.values())
    metrics = {name: each for name, each in metrics.items() if each.inputs == "labels" and hasattr(each, "num_classes")}
    shapes = {(getattr(each, "num_classes", None), getattr(each, "num_labels", None)) for each in metrics.values()}
    if not shapes and detecting:
        return Diagnostics(classes=tuple(map(str, classes)), named=tuple(map(str, classes)))
    if len(shapes) != 1:
        if classes:
            got = f"{len(classes)} names for metrics of {'different numbers of' if shapes else 'no'} classes"
            raise ConfigError(describe("classes", got, "metrics that agree on the classes", "Leave the names out"))
        return Diagnostics()
    ((num_classes, num_labels),) = shapes
    count = num_classes or num_labels or 2
    if classes and len(classes) != count:
        got, expected = f"{len(classes)} names", f"{count}, one for each class"
        raise ConfigError(describe("classes", got, expected, "Name all classes in the order of their numbers"))
    named = tuple(map(str, classes))
    names = named or tuple(map(str, range(count)))
    single = num_classes is None and num_labels is None
    if not wanted:
        return Diagnostics({}, names, named, single, not weighted)
    shape: dict[str, Any] = {"num_classes": num_classes, "num_labels": num_labels}
    added = {**_of_labels(metrics, shape, count), **_of_bins(metrics, shape), **_of_ranks(metrics, shape, count)}
    return Diagnostics(added, names, named, single, not weighted)


def _first(metrics: Mapping[str, Metric], *kinds: type) -> Any:
    return next((metric for metric in metrics.values() if isinstance(metric, kinds)), None)


def _of_labels(metrics: Mapping[str, Metric], shape: dict[str, Any], count: int) -> dict[str, Metric]:
    """Those of decisions: where a metric says how they are made, or where they are the highest score."""
    source_metric = _first(metrics, LabelMetric)
    if count > MOST_CLASSES or (source_metric is None and shape["num_classes"] is None):
        return {}
    how = (
        {name: getattr(source_metric, name) for name in ("threshold", "logits", "ignore_index")}
        if source_metric is not None
        else {}
    )
    added: dict[str, Metric] = {}
    is_shown = any(isinstance(each, ConfusionMatrix) and each.normalize is None for each in metrics.values())
    if shape["num_labels"] is None and not is_shown:
        added[_MATRIX] = ConfusionMatrix(**shape, **how)
    if count > 2 and _first(metrics, ClassReport) is None:
        added[_TABLE] = ClassReport(**shape, **how)
    return added


def _of_bins(metrics: Mapping[str, Metric], shape: dict[str, Any]) -> dict[str, Metric]:
    """Those of probabilities: where a metric says whether scores are logits."""
    source_metric = _first(metrics, ConfidenceMetric, RankingMetric, LogLoss, BrierScore)
    if source_metric is None or shape["num_labels"] is not None:
        return {}
    how = {
        "num_classes": shape["num_classes"],
        "ignore_index": source_metric.ignore_index,
        "logits": source_metric.logits,
        "n_bins": getattr(source_metric, "n_bins", 15),
    }
    return {_BINS: CalibrationCurve(**how), _ERROR: CalibrationError(**how)}


def _of_ranks(metrics: Mapping[str, Metric], shape: dict[str, Any], count: int) -> dict[str, Metric]:
    """Those of rankings: where a metric keeps scores anyway."""
    source_metric = _first(metrics, RankingMetric)
    if source_metric is None or count > MOST_CURVES:
        return {}
    how = {name: getattr(source_metric, name) for name in ("ignore_index", "logits", "exact", "exact_up_to")} | shape
    areas = {_AUROC: AUROC(**how, average=None), _AP: AveragePrecision(**how, average=None)}
    return {_ROC: ROC(**how), _PR: PrecisionRecallCurve(**how), **areas}


def _read(readings: Readings, metrics: Mapping[str, Metric]) -> tuple[dict[str, Any], list[str]]:
    """What can be read; a detail that cannot is no reason to lose the rest."""
    results: dict[str, Any] = {}
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(AssayError):
            return readings.values(metrics), notes
        for name in metrics:
            try:
                results.update(readings.values([name]))
            except AssayError as error:
                notes.append(f"Details: {error}")
    return results, notes


def residuals(samples: Samples | None, metrics: Mapping[str, Metric]) -> list[Plot]:
    """What a regression leaves, where predictions and targets were kept."""
    classified = any(hasattr(metric, "num_classes") for metric in metrics.values())
    if classified or samples is None or samples.decision is None or samples.target is None or not len(samples):
        return []
    preds, target = samples.decision.values, samples.target.values
    if preds.dtype.kind != "f" or target.dtype.kind not in "fi":
        return []
    return [Residuals.sampled("Residuals", preds, target)]


def _plain(values: Any) -> tuple[Any, ...]:
    return tuple(values.tolist())
