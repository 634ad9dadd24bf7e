"""The metrics of TorchEval as audit cases.

Source: https://github.com/pytorch/torcheval, ``torcheval/metrics``, release 0.0.7.
"""

from __future__ import annotations

from typing import Any

import torch

from assay.audit.peers import inputs
from assay.audit.peers.table import Get, Library, Row, plain, variants

CLASSES: dict[str, Any] = {"num_classes": inputs.CLASSES}
LABELS: dict[str, Any] = {"num_labels": inputs.LABELS}
WEIGHT = ("weight",)


def _classification() -> list[Row]:
    binary = (
        "Accuracy AUPRC AUROC BinnedAUPRC BinnedAUROC BinnedPrecisionRecallCurve ConfusionMatrix F1Score Precision "
        "PrecisionRecallCurve"
    )
    multiclass = "AUPRC AUROC BinnedAUPRC BinnedAUROC BinnedPrecisionRecallCurve PrecisionRecallCurve ConfusionMatrix"
    multilabel = "AUPRC BinnedAUPRC BinnedPrecisionRecallCurve PrecisionRecallCurve"
    macro = CLASSES | {"average": "macro"}
    return [
        *plain(inputs.binary, "Binary", binary.split()),
        Row("BinaryRecall", inputs.binary),
        Row("BinaryRecallAtFixedPrecision", inputs.binary, {"min_precision": 0.5}),
        Row("BinaryAUROC", inputs.binary_weighted, label="weighted"),
        *plain(inputs.binary_float, "Binary", ["NormalizedEntropy"]),
        Row("BinaryNormalizedEntropy", inputs.binary_weighted, keywords=WEIGHT, label="weighted"),
        *plain(inputs.multiclass, "Multiclass", multiclass.split(), **CLASSES),
        *plain(inputs.multiclass, "Multiclass", ["Accuracy", "F1Score", "Precision", "Recall"]),
        *plain(inputs.multiclass, "Multiclass", ["Accuracy", "F1Score", "Precision", "Recall"], **macro),
        *variants("MulticlassAccuracy", inputs.multiclass, macro | {"k": 2}),
        *variants("MulticlassBinnedAUPRC", inputs.multiclass, CLASSES | {"optimization": "memory"}),
        *plain(inputs.multilabel, "Multilabel", multilabel.split(), **LABELS),
        *variants("MultilabelBinnedAUPRC", inputs.multilabel, LABELS | {"optimization": "memory"}),
        Row("MultilabelRecallAtFixedPrecision", inputs.multilabel, LABELS | {"min_precision": 0.5}),
        *variants("MultilabelAccuracy", inputs.multilabel, {}, {"criteria": "hamming"}),
        Row("TopKMultilabelAccuracy", inputs.multilabel, {"k": 2}),
    ]


def _feature_distance(get: Get, device: torch.device) -> Any:
    return get("FrechetInceptionDistance")(model=inputs.Features(), feature_dim=3, device=device)


def _others() -> list[Row]:
    windows = {"max_num_updates": 2}
    return [
        Row("AUC", inputs.curve),
        *plain(inputs.values, "", ["Cat", "Max", "Mean", "Min", "Sum"]),
        *plain(inputs.clicks, "", ["ClickThroughRate"]),
        *(Row(name, inputs.weighted_values, keywords=WEIGHT, label="weighted") for name in ("Mean", "Sum")),
        *plain(inputs.regression, "", ["MeanSquaredError", "R2Score"]),
        *plain(inputs.regression_outputs, "", ["MeanSquaredError", "R2Score"], multioutput="raw_values"),
        Row("MeanSquaredError", inputs.regression_weighted, keywords=("sample_weight",), label="weighted"),
        *plain(inputs.logits, "", ["HitRate", "ReciprocalRank"], k=2),
        Row("RetrievalPrecision", inputs.binary, {"k": 3}),
        Row("WeightedCalibration", inputs.binary_weighted),
        Row("WindowedBinaryAUROC", inputs.binary, {"max_num_samples": 20}),
        Row("WindowedBinaryNormalizedEntropy", inputs.binary_float, windows),
        Row("WindowedClickThroughRate", inputs.clicks, windows),
        Row("WindowedMeanSquaredError", inputs.regression, windows),
        Row("WindowedWeightedCalibration", inputs.binary_weighted, windows),
        Row("PeakSignalNoiseRatio", inputs.images),
        Row(
            "FrechetInceptionDistance",
            inputs.real_and_fake,
            make=_feature_distance,
            sizes=inputs.TURNS,
            needs=("torchvision",),
        ),
        Row("FrechetAudioDistance", why_not="needs torchaudio"),
        Row("Perplexity", inputs.language),
        Row("Perplexity", inputs.language, {"ignore_index": 0}),
        Row("BLEUScore", inputs.translations, {"n_gram": 4}),
        *plain(inputs.sentences, "", ["WordErrorRate", "WordInformationLost", "WordInformationPreserved"]),
        Row("Throughput", lambda g, n: (n, 0.5)),
        Row("Metric", why_not="a base class"),
    ]


LIBRARY = Library("torcheval.metrics", (*_classification(), *_others()), hidden=("_state_name_to_default",))
