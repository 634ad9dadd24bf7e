"""The metrics of TorchMetrics as audit cases.

Classes that are not exported without an optional package stand here too, under the module that defines them.
Source: https://github.com/Lightning-AI/torchmetrics, ``src/torchmetrics``, release 1.9.0.
"""

from __future__ import annotations

from typing import Any

import torch

from assay.audit.peers import inputs
from assay.audit.peers.table import Get, Library, Row, plain, variants

NO_WEIGHTS = "its network is downloaded"
FACADE = "makes one of the Binary, Multiclass and Multilabel metrics, which are run"
ABSTRACT = "a base class"

TASKS: dict[str, tuple[inputs.Draw, dict[str, Any]]] = {
    "Binary": (inputs.binary, {}),
    "Multiclass": (inputs.multiclass, {"num_classes": inputs.CLASSES}),
    "Multilabel": (inputs.multilabel, {"num_labels": inputs.LABELS}),
}
FLOORS = {
    "PrecisionAtFixedRecall": "min_recall",
    "RecallAtFixedPrecision": "min_precision",
    "SensitivityAtSpecificity": "min_specificity",
    "SpecificityAtSensitivity": "min_sensitivity",
}


def _task_rows() -> list[Row]:
    """The families that exist for several tasks, each with the arguments that lead to other code."""
    counted = "Accuracy F1Score HammingDistance NegativePredictiveValue Precision Recall Specificity"
    curves = "AUROC AveragePrecision EER LogAUC PrecisionRecallCurve ROC"
    rows: list[Row] = []
    for task, (draw, size) in TASKS.items():
        prefix = f"classification.{task}"
        averages: list[dict[str, Any]] = (
            [{}] if task == "Binary" else [{"average": "macro"}, {"average": "micro"}, {"average": None}]
        )
        for name in counted.split():
            rows += variants(prefix + name, draw, *(size | average for average in averages))
        rows += variants(f"{prefix}FBetaScore", draw, size | {"beta": 2.0})
        rows += variants(f"{prefix}StatScores", draw, size)
        rows += plain(draw, prefix, ["JaccardIndex", "MatthewsCorrCoef"], **size)
        rows += variants(f"{prefix}ConfusionMatrix", draw, size, size | {"normalize": "true"})
        for name in curves.split():
            rows += variants(prefix + name, draw, size, size | {"thresholds": 20})
        for name, floor in FLOORS.items():
            rows += variants(prefix + name, draw, size | {floor: 0.5}, size | {floor: 0.5, "thresholds": 20})
        if task != "Multilabel":
            rows += plain(draw, prefix, ["CalibrationError", "CohenKappa", "HingeLoss"], **size)
        if task != "Binary":
            sets = inputs.multiclass_sets if task == "Multiclass" else draw
            rows += [Row(f"{prefix}ExactMatch", sets, size)]
    return rows


def _classification() -> list[Row]:
    classes, labels = TASKS["Multiclass"][1], TASKS["Multilabel"][1]
    prefix = "classification."
    facades = (
        "AUROC Accuracy AveragePrecision CalibrationError CohenKappa ConfusionMatrix EER ExactMatch F1Score FBetaScore "
        "HammingDistance HingeLoss JaccardIndex LogAUC MatthewsCorrCoef NegativePredictiveValue Precision "
        "PrecisionAtFixedRecall PrecisionRecallCurve ROC Recall RecallAtFixedPrecision SensitivityAtSpecificity "
        "Specificity SpecificityAtSensitivity StatScores"
    )
    return [
        *_task_rows(),
        *variants(f"{prefix}MultilabelStatScores", inputs.multilabel_maps, labels | {"multidim_average": "samplewise"}),
        *variants(f"{prefix}BinaryAccuracy", inputs.binary_labels, {"ignore_index": -1}),
        *variants(f"{prefix}MulticlassAccuracy", inputs.multiclass_labels, classes | {"ignore_index": 0}),
        *variants(f"{prefix}MulticlassAccuracy", inputs.multiclass, classes | {"top_k": 2}),
        *variants(f"{prefix}MulticlassAccuracy", inputs.multiclass, classes | {"validate_args": False}),
        *variants(f"{prefix}MulticlassAUROC", inputs.multiclass, classes | {"average": None}),
        *variants(f"{prefix}MulticlassHingeLoss", inputs.multiclass, classes | {"multiclass_mode": "one-vs-all"}),
        *variants(f"{prefix}BinaryAUROC", inputs.binary, {"max_fpr": 0.5}),
        *variants(f"{prefix}BinaryCohenKappa", inputs.binary_labels, {"weights": "linear"}),
        *plain(
            inputs.multilabel,
            f"{prefix}Multilabel",
            ["CoverageError", "RankingAveragePrecision", "RankingLoss"],
            **labels,
        ),
        Row(f"{prefix}BinaryGroupStatRates", inputs.binary_groups, {"num_groups": 2}),
        Row(f"{prefix}BinaryFairness", inputs.binary_groups, {"num_groups": 2}),
        *(Row(prefix + name, why_not=FACADE) for name in facades.split()),
    ]


def _regression() -> list[Row]:
    prefix, outputs = "regression.", {"num_outputs": inputs.OUTPUTS}
    single = (
        "ConcordanceCorrCoef ExplainedVariance KendallRankCorrCoef LogCoshError MeanAbsoluteError "
        "MeanAbsolutePercentageError MeanSquaredError NormalizedRootMeanSquaredError PearsonCorrCoef R2Score "
        "RelativeSquaredError SpearmanCorrCoef SymmetricMeanAbsolutePercentageError TweedieDevianceScore "
        "WeightedMeanAbsolutePercentageError"
    )
    several = "ConcordanceCorrCoef KendallRankCorrCoef LogCoshError MeanSquaredError PearsonCorrCoef SpearmanCorrCoef"
    return [
        *plain(inputs.regression, prefix, single.split()),
        *plain(inputs.regression_outputs, prefix, several.split(), **outputs),
        *variants(f"{prefix}KendallRankCorrCoef", inputs.regression, {"t_test": True}),
        *variants(f"{prefix}NormalizedRootMeanSquaredError", inputs.regression, {"normalization": "range"}),
        *variants(f"{prefix}TweedieDevianceScore", inputs.positive, {"power": 1.5}),
        *plain(inputs.regression_outputs, prefix, ["CosineSimilarity"]),
        Row(f"{prefix}R2Score", inputs.regression_outputs, {"multioutput": "raw_values"}),
        Row(f"{prefix}MeanSquaredLogError", inputs.positive),
        Row(f"{prefix}MinkowskiDistance", inputs.regression, {"p": 3}),
        Row(f"{prefix}CriticalSuccessIndex", inputs.regression, {"threshold": 0.5}),
        Row(f"{prefix}ContinuousRankedProbabilityScore", inputs.ensemble),
        *plain(inputs.distributions, prefix, ["KLDivergence", "JensenShannonDivergence"]),
    ]


def _aggregation() -> list[Row]:
    prefix = "aggregation."
    names = "CatMetric MaxMetric MeanMetric MinMetric RunningMean RunningSum SumMetric"
    return [
        *plain(inputs.values, prefix, names.split()),
        *plain(inputs.values, prefix, ["MeanMetric", "SumMetric"], nan_strategy="disable"),
        Row(f"{prefix}MeanMetric", inputs.weighted_values, {"nan_strategy": "ignore"}),
        Row(f"{prefix}BaseAggregator", why_not=ABSTRACT),
    ]


def _retrieval() -> list[Row]:
    names = (
        "AUROC FallOut HitRate MAP MRR NormalizedDCG Precision PrecisionRecallCurve RPrecision Recall "
        "RecallAtFixedPrecision"
    )
    return [
        *plain(inputs.retrieval, "retrieval.Retrieval", names.split()),
        *plain(inputs.retrieval, "retrieval.Retrieval", ["MAP", "Precision", "Recall"], top_k=2),
        Row("retrieval.RetrievalMAP", inputs.retrieval, {"aggregation": "median"}),
        Row("retrieval.RetrievalPrecision", inputs.retrieval, {"top_k": 9, "adaptive_k": True}),
        Row("retrieval.base.RetrievalMetric", why_not=ABSTRACT),
    ]


def _segmentation() -> list[Row]:
    classes = {"num_classes": inputs.CLASSES}
    index = classes | {"input_format": "index"}
    names = ["DiceScore", "GeneralizedDiceScore", "HausdorffDistance", "MeanIoU"]
    return [
        *plain(inputs.masks, "segmentation.", names, **classes),
        *plain(inputs.index_masks, "segmentation.", names, **index),
        Row("segmentation.MeanIoU", inputs.index_masks, index | {"per_class": True, "include_background": False}),
    ]


def _tables() -> list[Row]:
    by_labels = (
        "AdjustedMutualInfoScore AdjustedRandScore CompletenessScore FowlkesMallowsIndex HomogeneityScore "
        "MutualInfoScore NormalizedMutualInfoScore RandScore VMeasureScore"
    )
    classes = {"num_classes": inputs.CLASSES}
    return [
        *plain(inputs.multiclass_labels, "clustering.", by_labels.split()),
        Row("clustering.ClusterAccuracy", inputs.multiclass_labels, classes, needs=("torch_linear_assignment",)),
        *plain(inputs.clustered, "clustering.", ["CalinskiHarabaszScore", "DaviesBouldinScore", "DunnIndex"]),
        *plain(
            inputs.multiclass_labels,
            "nominal.",
            ["CramersV", "PearsonsContingencyCoefficient", "TheilsU", "TschuprowsT"],
            **classes,
        ),
        Row("nominal.FleissKappa", inputs.ratings),
    ]


def _images() -> list[Row]:
    pairs = (
        "ErrorRelativeGlobalDimensionlessSynthesis RelativeAverageSpectralError "
        "RootMeanSquaredErrorUsingSlidingWindow SpatialCorrelationCoefficient SpectralAngleMapper "
        "SpectralDistortionIndex UniversalImageQualityIndex VisualInformationFidelity"
    )
    data_range = {"data_range": 1.0}
    features: dict[str, Any] = {"feature": inputs.Features()}
    with_features: dict[str, Any] = {"sizes": inputs.TURNS, "keywords": ("real",)}
    return [
        *plain(inputs.images, "image.", pairs.split()),
        *plain(inputs.images, "image.", ["PeakSignalNoiseRatio", "StructuralSimilarityIndexMeasure"], **data_range),
        Row("image.PeakSignalNoiseRatio", inputs.images, {"data_range": (0.0, 1.0), "dim": 1}),
        Row("image.PeakSignalNoiseRatioWithBlockedEffect", inputs.grey_images, data_range),
        Row(
            "image.MultiScaleStructuralSimilarityIndexMeasure",
            inputs.images,
            data_range | {"kernel_size": 3, "sigma": 0.5},
        ),
        Row("image.StructuralSimilarityIndexMeasure", inputs.images, data_range | {"gaussian_kernel": False}),
        Row("image.TotalVariation", inputs.one_image),
        Row("image.SpatialDistortionIndex", inputs.pan_images),
        Row("image.QualityWithNoReference", inputs.pan_images),
        Row("image.fid.FrechetInceptionDistance", inputs.real_and_fake, features, **with_features),
        Row("image.kid.KernelInceptionDistance", inputs.real_and_fake, features | {"subset_size": 8}, **with_features),
        Row("image.MemorizationInformedFrechetInceptionDistance", inputs.real_and_fake, features, **with_features),
        Row("image.inception.InceptionScore", inputs.one_image, features | {"splits": 2}),
        Row("image.lpip.LearnedPerceptualImagePatchSimilarity", needs=("torchvision",), why_not=NO_WEIGHTS),
        Row("image.perceptual_path_length.PerceptualPathLength", why_not=NO_WEIGHTS),
        Row("image.DeepImageStructureAndTextureSimilarity", why_not=NO_WEIGHTS),
        Row("image.arniqa.ARNIQA", why_not=NO_WEIGHTS),
    ]


def _permutation_invariant(get: Get, device: torch.device) -> Any:
    return get("audio.PermutationInvariantTraining")(get("functional.audio.scale_invariant_signal_noise_ratio"))


def _sound() -> list[Row]:
    names = "ScaleInvariantSignalDistortionRatio ScaleInvariantSignalNoiseRatio SignalDistortionRatio SignalNoiseRatio"
    return [
        *plain(inputs.sound, "audio.", names.split()),
        Row("audio.SourceAggregatedSignalDistortionRatio", inputs.speakers),
        Row("audio.ComplexScaleInvariantSignalNoiseRatio", inputs.spectra),
        Row("audio.PermutationInvariantTraining", inputs.speakers, make=_permutation_invariant),
        Row("audio.pesq.PerceptualEvaluationSpeechQuality", why_not="needs pesq, which computes in NumPy on the host"),
        Row(
            "audio.stoi.ShortTimeObjectiveIntelligibility", why_not="needs pystoi, which computes in NumPy on the host"
        ),
        Row("audio.srmr.SpeechReverberationModulationEnergyRatio", why_not="needs gammatone and torchaudio"),
        Row("audio.nisqa.NonIntrusiveSpeechQualityAssessment", why_not=NO_WEIGHTS),
        Row("audio.dnsmos.DeepNoiseSuppressionMeanOpinionScore", why_not=NO_WEIGHTS),
    ]


def _text() -> list[Row]:
    by_pairs = (
        "CharErrorRate EditDistance ExtendedEditDistance MatchErrorRate WordErrorRate WordInfoLost WordInfoPreserved"
    )
    return [
        *plain(inputs.sentences, "text.", by_pairs.split()),
        *plain(inputs.translations, "text.", ["BLEUScore", "CHRFScore", "SacreBLEUScore", "TranslationEditRate"]),
        Row("text.ROUGEScore", inputs.translations, {"rouge_keys": ("rouge1", "rougeL")}),
        Row("text.SQuAD", inputs.answers),
        Row("text.Perplexity", inputs.language),
        Row("text.Perplexity", inputs.language, {"ignore_index": 0}),
        Row("text.bert.BERTScore", why_not=NO_WEIGHTS),
        Row("text.infolm.InfoLM", why_not=NO_WEIGHTS),
    ]


def _detection() -> list[Row]:
    boxes = ("torchvision",)
    overlaps = ["Intersection", "CompleteIntersection", "DistanceIntersection", "GeneralizedIntersection"]
    modules = {"Intersection": "iou", "CompleteIntersection": "ciou", "DistanceIntersection": "diou"}
    segments: dict[str, Any] = {"things": {0, 1}, "stuffs": {6, 7}}
    return [
        *plain(inputs.segments, "detection.", ["PanopticQuality", "ModifiedPanopticQuality"], **segments),
        *(
            Row(f"detection.{modules.get(name, 'giou')}.{name}OverUnion", inputs.detections, needs=boxes)
            for name in overlaps
        ),
        Row("detection.mean_ap.MeanAveragePrecision", inputs.detections, needs=(*boxes, "pycocotools")),
    ]


def _two_tasks(g: torch.Generator, n: int) -> inputs.Batch:
    labels, numbers = inputs.binary(g, n), inputs.regression(g, n)
    return tuple({"label": label, "number": number} for label, number in zip(labels, numbers, strict=True))


def _collection(get: Get, device: torch.device) -> Any:
    size = TASKS["Multiclass"][1]
    return get("MetricCollection")(
        [get(f"classification.Multiclass{name}")(**size) for name in ("Accuracy", "ConfusionMatrix")]
    )


def _wrappers() -> list[Row]:
    def accuracy(get: Get, **options: Any) -> Any:
        return get("classification.MulticlassAccuracy")(num_classes=inputs.CLASSES, **options)

    def error(get: Get) -> Any:
        return get("regression.MeanSquaredError")()

    def tasks(get: Get, device: torch.device) -> Any:
        return get("wrappers.MultitaskWrapper")({"label": get("classification.BinaryAccuracy")(), "number": error(get)})

    return [
        Row("wrappers.BootStrapper", inputs.regression, make=lambda get, _: get("wrappers.BootStrapper")(error(get))),
        Row(
            "wrappers.ClasswiseWrapper",
            inputs.multiclass,
            make=lambda get, _: get("wrappers.ClasswiseWrapper")(accuracy(get, average=None)),
        ),
        Row(
            "wrappers.MinMaxMetric", inputs.multiclass, make=lambda get, _: get("wrappers.MinMaxMetric")(accuracy(get))
        ),
        Row(
            "wrappers.MultioutputWrapper",
            inputs.regression_outputs,
            make=lambda get, _: get("wrappers.MultioutputWrapper")(error(get), inputs.OUTPUTS),
        ),
        Row("wrappers.MultitaskWrapper", _two_tasks, make=tasks),
        Row("wrappers.Running", inputs.regression, make=lambda get, _: get("wrappers.Running")(error(get), window=2)),
        Row(
            "wrappers.BinaryTargetTransformer",
            inputs.positive,
            make=lambda get, _: get("wrappers.BinaryTargetTransformer")(
                get("classification.BinaryAUROC")(), threshold=0.5
            ),
        ),
        Row(
            "wrappers.LambdaInputTransformer",
            inputs.binary,
            make=lambda get, _: get("wrappers.LambdaInputTransformer")(
                get("classification.BinaryAccuracy")(), lambda preds: 1 - preds
            ),
        ),
        Row("wrappers.MetricInputTransformer", why_not=ABSTRACT),
        Row("wrappers.abstract.WrapperMetric", why_not=ABSTRACT),
        Row(
            "metric.CompositionalMetric",
            inputs.regression,
            make=lambda get, _: error(get) + get("regression.MeanAbsoluteError")(),
        ),
        Row("metric.Metric", why_not=ABSTRACT),
        Row("MetricCollection", inputs.multiclass, make=_collection),
    ]


def _others() -> list[Row]:
    return [
        Row("shape.ProcrustesDisparity", inputs.points),
        Row("multimodal.LipVertexError", inputs.meshes, {"mouth_map": [0, 2, 5]}),
        Row("multimodal.clip_score.CLIPScore", why_not=NO_WEIGHTS),
        Row("multimodal.clip_iqa.CLIPImageQualityAssessment", why_not=NO_WEIGHTS),
        Row("video.vmaf.VideoMultiMethodAssessmentFusion", why_not="needs vmaf_torch and einops"),
    ]


LIBRARY = Library(
    "torchmetrics",
    tuple(
        row
        for rows in (
            _classification(),
            _regression(),
            _aggregation(),
            _retrieval(),
            _segmentation(),
            _tables(),
            _images(),
            _sound(),
            _text(),
            _detection(),
            _wrappers(),
            _others(),
        )
        for row in rows
    ),
    hidden=("_cache", "_computed", "_defaults", "_forward_cache"),
)
