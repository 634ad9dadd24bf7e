"""The metrics of TorchEval as audit cases.

Source: https://github.com/pytorch/torcheval, ``torcheval/metrics``, release 0.0.7.
"""

from __future__ import annotations

from typing import Any

import torch

from assay.audit.other_libraries import inputs
from assay.audit.other_libraries.descriptions import Get, LibraryMetrics, MetricSpec, plain, variants

CLASSES: dict[str, Any] = {"num_classes": inputs.CLASSES}
LABELS: dict[str, Any] = {"num_labels": inputs.LABELS}
WEIGHT = ("weight",)


def _classification() -> list[MetricSpec]:
    binary = (
        "Accuracy AUPRC AUROC BinnedAUPRC BinnedAUROC BinnedPrecisionRecallCurve ConfusionMatrix F1Score Precision "
        "PrecisionRecallCurve"
    )
    multiclass = "AUPRC AUROC BinnedAUPRC BinnedAUROC BinnedPrecisionRecallCurve PrecisionRecallCurve ConfusionMatrix"
    multilabel = "AUPRC BinnedAUPRC BinnedPrecisionRecallCurve PrecisionRecallCurve"
    macro = CLASSES | {"average": "macro"}
    return [
        *plain(inputs.binary, "Binary", binary.split()),
        MetricSpec("BinaryRecall", inputs.binary),
        MetricSpec("BinaryRecallAtFixedPrecision", inputs.binary, {"min_precision": 0.5}),
        MetricSpec("BinaryAUROC", inputs.binary_weighted, label="weighted"),
        *plain(inputs.binary_float, "Binary", ["NormalizedEntropy"]),
        MetricSpec("BinaryNormalizedEntropy", inputs.binary_weighted, keywords=WEIGHT, label="weighted"),
        *plain(inputs.multiclass, "Multiclass", multiclass.split(), **CLASSES),
        *plain(inputs.multiclass, "Multiclass", ["Accuracy", "F1Score", "Precision", "Recall"]),
        *plain(inputs.multiclass, "Multiclass", ["Accuracy", "F1Score", "Precision", "Recall"], **macro),
        *variants("MulticlassAccuracy", inputs.multiclass, macro | {"k": 2}),
        *variants("MulticlassBinnedAUPRC", inputs.multiclass, CLASSES | {"optimization": "memory"}),
        *plain(inputs.multilabel, "Multilabel", multilabel.split(), **LABELS),
        *variants("MultilabelBinnedAUPRC", inputs.multilabel, LABELS | {"optimization": "memory"}),
        MetricSpec("MultilabelRecallAtFixedPrecision", inputs.multilabel, LABELS | {"min_precision": 0.5}),
        *variants("MultilabelAccuracy", inputs.multilabel, {}, {"criteria": "hamming"}),
        MetricSpec("TopKMultilabelAccuracy", inputs.multilabel, {"k": 2}),
    ]


def _feature_distance(get: Get, device: torch.device) -> Any:
    return get("FrechetInceptionDistance")(model=inputs.FeatureExtractor(), feature_dim=3, device=device)


def _others() -> list[MetricSpec]:
    windows = {"max_num_updates": 2}
    return [
        MetricSpec("AUC", inputs.curve),
        *plain(inputs.values, "", ["Cat", "Max", "Mean", "Min", "Sum"]),
        *plain(inputs.clicks, "", ["ClickThroughRate"]),
        *(MetricSpec(name, inputs.weighted_values, keywords=WEIGHT, label="weighted") for name in ("Mean", "Sum")),
        *plain(inputs.regression, "", ["MeanSquaredError", "R2Score"]),
        *plain(inputs.regression_outputs, "", ["MeanSquaredError", "R2Score"], multioutput="raw_values"),
        MetricSpec("MeanSquaredError", inputs.regression_weighted, keywords=("sample_weight",), label="weighted"),
        *plain(inputs.logits, "", ["HitRate", "ReciprocalRank"], k=2),
        MetricSpec("RetrievalPrecision", inputs.binary, {"k": 3}),
        MetricSpec("WeightedCalibration", inputs.binary_weighted),
        MetricSpec("WindowedBinaryAUROC", inputs.binary, {"max_num_samples": 20}),
        MetricSpec("WindowedBinaryNormalizedEntropy", inputs.binary_float, windows),
        MetricSpec("WindowedClickThroughRate", inputs.clicks, windows),
        MetricSpec("WindowedMeanSquaredError", inputs.regression, windows),
        MetricSpec("WindowedWeightedCalibration", inputs.binary_weighted, windows),
        MetricSpec("PeakSignalNoiseRatio", inputs.images),
        MetricSpec(
            "FrechetInceptionDistance",
            inputs.real_and_fake,
            make=_feature_distance,
            sizes=inputs.TURNS,
            needs=("torchvision",),
        ),
        MetricSpec("FrechetAudioDistance", why_not="needs torchaudio"),
        MetricSpec("Perplexity", inputs.language),
        MetricSpec("Perplexity", inputs.language, {"ignore_index": 0}),
        MetricSpec("BLEUScore", inputs.translations, {"n_gram": 4}),
        *plain(inputs.sentences, "", ["WordErrorRate", "WordInformationLost", "WordInformationPreserved"]),
        MetricSpec("Throughput", lambda g, n: (n, 0.5)),
        MetricSpec("Metric", why_not="a base class"),
    ]


LIBRARY = LibraryMetrics("torcheval.metrics", (*_classification(), *_others()), hidden=("_state_name_to_default",))
