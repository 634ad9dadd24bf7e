"""The metrics of PyTorch Ignite as audit cases.

An Ignite metric has no ``to``: users give ``device=`` when they make it, so "moved first" makes it anew. ``update``
takes one tuple, as an engine gives it.

Source: https://github.com/pytorch/ignite, ``ignite/metrics``, release 0.5.5.
"""

from __future__ import annotations

import importlib
import operator
from typing import Any

import torch
from torch.nn import functional

from assay.audit.other_libraries import inputs
from assay.audit.other_libraries.descriptions import Get, LibraryMetrics, MetricSpec, plain, variants

CLASSES: dict[str, Any] = {"num_classes": inputs.CLASSES}
EVEN = (8, 8, 8)  # the accumulated value keeps the shape of a batch


def _rounded(draw: inputs.Draw) -> inputs.Draw:
    """Ignite takes predicted labels, not probabilities, for binary and multilabel data."""

    def drawn(g: torch.Generator, n: int) -> inputs.Batch:
        preds, *others = draw(g, n)
        return preds.round().long(), *others

    return drawn


def _column(g: torch.Generator, n: int) -> inputs.Batch:
    """Predictions and targets with a second dimension of one."""
    return tuple(values[:, None] for values in inputs.positive(g, n))


def _classification() -> list[MetricSpec]:
    binary, multilabel = _rounded(inputs.binary), _rounded(inputs.multilabel)
    labels: dict[str, Any] = {"is_multilabel": True}
    rows = []
    for name in ("Precision", "Recall"):
        averages = ({"average": average} for average in (False, True, "micro", "weighted"))
        rows += variants(name, inputs.multiclass, *averages)
        rows += variants(name, binary, {})
        rows += variants(name, multilabel, labels, labels | {"average": True}, labels | {"average": "samples"})
    return [
        *rows,
        MetricSpec("Accuracy", inputs.multiclass),
        MetricSpec("Accuracy", binary, {"skip_unrolling": True}),
        MetricSpec("Accuracy", multilabel, labels),
        *variants("ClassificationReport", inputs.multiclass, {}, {"output_dict": True}),
        *variants("ConfusionMatrix", inputs.multiclass, CLASSES, CLASSES | {"average": "samples"}),
        MetricSpec("MultiLabelConfusionMatrix", multilabel, {"num_classes": inputs.LABELS}),
        *(MetricSpec(name, inputs.multiclass, make=_of_confusion(name)) for name in ("IoU", "mIoU", "JaccardIndex")),
        MetricSpec("DiceCoefficient", inputs.multiclass, make=_of_confusion("DiceCoefficient")),
        MetricSpec("Fbeta", inputs.multiclass, make=lambda get, device: get("Fbeta")(beta=2.0, device=device)),
        MetricSpec("TopKCategoricalAccuracy", inputs.multiclass, {"k": 2}),
        MetricSpec("CohenKappa", _rounded(inputs.binary)),
        MetricSpec("CohenKappa", inputs.multiclass_labels, CLASSES),
        MetricSpec("MatthewsCorrCoef", inputs.multiclass_labels),
        *plain(inputs.binary, "", ["AveragePrecision", "PrecisionRecallCurve", "ROC_AUC", "RocCurve"]),
        *variants("MeanAveragePrecision", inputs.multiclass, {}, {"class_mean": "micro"}),
        MetricSpec("MeanAveragePrecision", inputs.multilabel, labels),
        MetricSpec("HitRate", inputs.ranking, {"top_k": [1, 3]}),
        MetricSpec("NDCG", inputs.ranking, {"top_k": [1, 3]}),
    ]


def _of_confusion(name: str) -> Any:
    def make(get: Get, device: torch.device) -> Any:
        return get(name)(get("ConfusionMatrix")(inputs.CLASSES, device=device))

    return make


def _regression() -> list[MetricSpec]:
    pairs = (
        "CanberraMetric FractionalAbsoluteError FractionalBias GeometricMeanAbsoluteError "
        "GeometricMeanRelativeAbsoluteError KendallRankCorrelation ManhattanDistance MaximumAbsoluteError "
        "MeanAbsoluteRelativeError MeanError MeanNormalizedBias MedianAbsoluteError MedianAbsolutePercentageError "
        "MedianRelativeAbsoluteError PearsonCorrelation R2Score SpearmanRankCorrelation WaveHedgesDistance"
    )
    return [
        *plain(_column, "regression.", pairs.split()),
        *plain(inputs.regression, "", ["MeanAbsoluteError", "MeanSquaredError", "RootMeanSquaredError"]),
        *plain(inputs.regression_outputs, "", ["CosineSimilarity", "MeanPairwiseDistance"]),
        *plain(inputs.regression_outputs, "", ["HSIC", "MaximumMeanDiscrepancy"]),
        *plain(inputs.many_logits, "", ["JSDivergence", "KLDivergence"]),
        *plain(inputs.multiclass, "", ["Entropy", "MutualInformation"]),
    ]


def _epoch_metric(get: Get, device: torch.device) -> Any:
    return get("EpochMetric")(
        lambda preds, target: float((preds - target).abs().mean()), device=device, check_compute_fn=False
    )


def _group(get: Get, device: torch.device) -> Any:
    loss = get("Loss")(functional.nll_loss, device=device)
    return get("MetricGroup")({"accuracy": get("Accuracy")(device=device), "loss": loss})


def _combined(get: Get, device: torch.device) -> Any:
    precision = get("Precision")(average=False, device=device)
    recall = get("Recall")(average=False, device=device)
    return get("MetricsLambda")(lambda p, r: (2 * p * r / (p + r + 1e-9)).mean(), precision, recall)


def _by_group(name: str) -> Any:
    def make(get: Get, device: torch.device) -> Any:
        return get(f"fairness.{name}")(get("Accuracy")(device=device), groups=[0, 1], device=device)

    return make


def _with_features(name: str) -> Any:
    def make(get: Get, device: torch.device) -> Any:
        return get(name)(num_features=3, feature_extractor=inputs.FeatureExtractor(), device=device)

    return make


def _combinations() -> list[MetricSpec]:
    groups = {"groups": [0, 1]}
    return [
        MetricSpec("Loss", inputs.multiclass, {"loss_fn": functional.nll_loss}),
        MetricSpec("EpochMetric", inputs.regression, make=_epoch_metric),
        MetricSpec("MetricGroup", inputs.multiclass, make=_group),
        MetricSpec("MetricsLambda", inputs.multiclass, make=_combined),
        MetricSpec("RunningAverage", inputs.number, {"output_transform": lambda loss: loss}),
        MetricSpec("Average", inputs.values, sizes=EVEN),
        MetricSpec("GeometricAverage", inputs.positive_values, sizes=EVEN),
        MetricSpec("VariableAccumulation", inputs.values, {"op": operator.add}, sizes=EVEN),
        MetricSpec("Frequency", why_not="reads the clock, so its value differs from run to run"),
        MetricSpec("fairness.SubgroupAccuracyDifference", inputs.multiclass_groups, groups),
        MetricSpec("fairness.DemographicParityDifference", inputs.multiclass_groups, groups),
        MetricSpec("fairness.SubgroupMetric", inputs.multiclass_groups, make=_by_group("SubgroupMetric")),
        MetricSpec("fairness.SubgroupDifference", inputs.multiclass_groups, make=_by_group("SubgroupDifference")),
        MetricSpec("fairness.SelectionRate", inputs.multiclass),
    ]


def _others() -> list[MetricSpec]:
    scores = ["CalinskiHarabaszScore", "DaviesBouldinScore", "SilhouetteScore"]
    return [
        *plain(inputs.clustered, "clustering.", scores),
        *plain(inputs.images, "", ["PSNR", "SSIM"], data_range=1.0),
        MetricSpec("SSIM", inputs.images, {"data_range": 1.0, "gaussian": False}),
        MetricSpec("FID", inputs.images, make=_with_features("FID")),
        MetricSpec("InceptionScore", inputs.one_image, make=_with_features("InceptionScore")),
        MetricSpec("Perplexity", inputs.language_classes_first),
        *variants("Bleu", inputs.tokens, {}, {"average": "micro"}),
        *plain(inputs.tokens, "", ["Rouge", "RougeL", "RougeN"]),
        MetricSpec("CharacterErrorRate", inputs.sentences),
        MetricSpec("CommonObjectDetectionMetrics", inputs.ignite_detections, needs=("torchvision",)),
        MetricSpec("ObjectDetectionAvgPrecisionRecall", inputs.ignite_detections, needs=("torchvision",)),
        MetricSpec("GpuInfo", why_not="reads the driver with pynvml; takes no tensors"),
        MetricSpec("Metric", why_not="a base class"),
    ]


def _sync(metric: Any) -> Any:
    """Ignite keeps for good what it found about the processes at first use: what it found here must not stay."""
    utils = importlib.import_module("ignite.distributed.utils")
    before = {name: getattr(utils, name) for name in ("_model", "_need_to_sync")}
    try:
        return metric.compute()
    finally:
        for name, value in before.items():
            setattr(utils, name, value)


LIBRARY = LibraryMetrics(
    "ignite.metrics",
    (*_classification(), *_regression(), *_combinations(), *_others()),
    options=lambda device: {"device": device},
    update=lambda metric, batch: metric.update(batch if len(batch) > 1 else batch[0]),
    rebuilds=True,
    sync=_sync,
    hidden=("_result",),
)
