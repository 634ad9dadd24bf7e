"""The metrics of TorchMetrics as audit cases.

Classes that are not exported without an optional package stand here too, under the module that defines them.
Source: https://github.com/Lightning-AI/torchmetrics, ``src/torchmetrics``, release 1.9.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from assay.audit.other_libraries import inputs
from assay.audit.other_libraries.descriptions import Get, LibraryMetrics, Make, MetricSpec, plain, variants

NO_WEIGHTS = "its network is downloaded"
FACADE = "makes one of the Binary, Multiclass and Multilabel metrics, which are run"
ABSTRACT = "a base class"
IN_NUMPY = "which computes in NumPy on the CPU"

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


def _task_rows() -> list[MetricSpec]:
    """The families that exist for several tasks, each with the arguments that lead to other code."""
    counted = "Accuracy F1Score HammingDistance NegativePredictiveValue Precision Recall Specificity"
    curves = "AUROC AveragePrecision EER LogAUC PrecisionRecallCurve ROC"
    rows: list[MetricSpec] = []
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
            rows += [MetricSpec(f"{prefix}ExactMatch", sets, size)]
    return rows


def _classification() -> list[MetricSpec]:
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
        MetricSpec(f"{prefix}BinaryGroupStatRates", inputs.binary_groups, {"num_groups": 2}),
        MetricSpec(f"{prefix}BinaryFairness", inputs.binary_groups, {"num_groups": 2}),
        *(MetricSpec(prefix + name, why_not=FACADE) for name in facades.split()),
    ]


def _regression() -> list[MetricSpec]:
    prefix, outputs = "regression.", {"num_outputs": inputs.OUTPUTS}
    single = (
        "ConcordanceCorrCoef ExplainedVariance KendallRankCorrCoef LogCoshError MeanAbsoluteError "
        "MeanAbsolutePercentageError MeanSquaredError NormalizedRootMeanSquaredError PearsonCorrCoef R2Score "
        "RelativeSquaredError SpearmanCorrCoef SymmetricMeanAbsolutePercentageError TweedieDevianceScore "
        "WeightedMeanAbsolutePercentageError"
    )
    pairs = "ConcordanceCorrCoef KendallRankCorrCoef LogCoshError MeanSquaredError PearsonCorrCoef SpearmanCorrCoef"
    return [
        *plain(inputs.regression, prefix, single.split()),
        *plain(inputs.regression_outputs, prefix, pairs.split(), **outputs),
        *variants(f"{prefix}KendallRankCorrCoef", inputs.regression, {"t_test": True}),
        *variants(f"{prefix}NormalizedRootMeanSquaredError", inputs.regression, {"normalization": "range"}),
        *variants(f"{prefix}TweedieDevianceScore", inputs.positive, {"power": 1.5}),
        *plain(inputs.regression_outputs, prefix, ["CosineSimilarity"]),
        MetricSpec(f"{prefix}R2Score", inputs.regression_outputs, {"multioutput": "raw_values"}),
        MetricSpec(f"{prefix}MeanSquaredLogError", inputs.positive),
        MetricSpec(f"{prefix}MinkowskiDistance", inputs.regression, {"p": 3}),
        MetricSpec(f"{prefix}CriticalSuccessIndex", inputs.regression, {"threshold": 0.5}),
        MetricSpec(f"{prefix}ContinuousRankedProbabilityScore", inputs.ensemble),
        *plain(inputs.distributions, prefix, ["KLDivergence", "JensenShannonDivergence"]),
    ]


def _aggregation() -> list[MetricSpec]:
    prefix = "aggregation."
    names = "CatMetric MaxMetric MeanMetric MinMetric RunningMean RunningSum SumMetric"
    return [
        *plain(inputs.values, prefix, names.split()),
        *plain(inputs.values, prefix, ["MeanMetric", "SumMetric"], nan_strategy="disable"),
        MetricSpec(f"{prefix}MeanMetric", inputs.weighted_values, {"nan_strategy": "ignore"}),
        MetricSpec(f"{prefix}BaseAggregator", why_not=ABSTRACT),
    ]


def _retrieval() -> list[MetricSpec]:
    names = (
        "AUROC FallOut HitRate MAP MRR NormalizedDCG Precision PrecisionRecallCurve RPrecision Recall "
        "RecallAtFixedPrecision"
    )
    return [
        *plain(inputs.retrieval, "retrieval.Retrieval", names.split()),
        *plain(inputs.retrieval, "retrieval.Retrieval", ["MAP", "Precision", "Recall"], top_k=2),
        MetricSpec("retrieval.RetrievalMAP", inputs.retrieval, {"aggregation": "median"}),
        MetricSpec("retrieval.RetrievalPrecision", inputs.retrieval, {"top_k": 9, "adaptive_k": True}),
        MetricSpec("retrieval.base.RetrievalMetric", why_not=ABSTRACT),
    ]


def _segmentation() -> list[MetricSpec]:
    classes = {"num_classes": inputs.CLASSES}
    index = classes | {"input_format": "index"}
    names = ["DiceScore", "GeneralizedDiceScore", "HausdorffDistance", "MeanIoU"]
    return [
        *plain(inputs.masks, "segmentation.", names, **classes),
        *plain(inputs.index_masks, "segmentation.", names, **index),
        MetricSpec(
            "segmentation.MeanIoU", inputs.index_masks, index | {"per_class": True, "include_background": False}
        ),
    ]


def _tables() -> list[MetricSpec]:
    by_labels = (
        "AdjustedMutualInfoScore AdjustedRandScore CompletenessScore FowlkesMallowsIndex HomogeneityScore "
        "MutualInfoScore NormalizedMutualInfoScore RandScore VMeasureScore"
    )
    classes = {"num_classes": inputs.CLASSES}
    return [
        *plain(inputs.multiclass_labels, "clustering.", by_labels.split()),
        MetricSpec("clustering.ClusterAccuracy", inputs.multiclass_labels, classes, needs=("torch_linear_assignment",)),
        *plain(inputs.clustered, "clustering.", ["CalinskiHarabaszScore", "DaviesBouldinScore", "DunnIndex"]),
        *plain(
            inputs.multiclass_labels,
            "nominal.",
            ["CramersV", "PearsonsContingencyCoefficient", "TheilsU", "TschuprowsT"],
            **classes,
        ),
        MetricSpec("nominal.FleissKappa", inputs.ratings),
    ]


def _images() -> list[MetricSpec]:
    pairs = (
        "ErrorRelativeGlobalDimensionlessSynthesis RelativeAverageSpectralError "
        "RootMeanSquaredErrorUsingSlidingWindow SpatialCorrelationCoefficient SpectralAngleMapper "
        "SpectralDistortionIndex UniversalImageQualityIndex VisualInformationFidelity"
    )
    data_range = {"data_range": 1.0}
    features: dict[str, Any] = {"feature": inputs.FeatureExtractor()}
    compare_features: dict[str, dict[str, Any]] = {
        "fid.FrechetInceptionDistance": {},
        "kid.KernelInceptionDistance": {"subset_size": 8},
        "MemorizationInformedFrechetInceptionDistance": {},
    }
    return [
        *plain(inputs.images, "image.", pairs.split()),
        *plain(inputs.images, "image.", ["PeakSignalNoiseRatio", "StructuralSimilarityIndexMeasure"], **data_range),
        MetricSpec("image.PeakSignalNoiseRatio", inputs.images, {"data_range": (0.0, 1.0), "dim": 1}),
        MetricSpec("image.PeakSignalNoiseRatioWithBlockedEffect", inputs.grey_images, data_range),
        MetricSpec(
            "image.MultiScaleStructuralSimilarityIndexMeasure",
            inputs.images,
            data_range | {"kernel_size": 3, "sigma": 0.5},
        ),
        MetricSpec("image.StructuralSimilarityIndexMeasure", inputs.images, data_range | {"gaussian_kernel": False}),
        MetricSpec("image.TotalVariation", inputs.one_image),
        MetricSpec("image.SpatialDistortionIndex", inputs.pan_images),
        MetricSpec("image.QualityWithNoReference", inputs.pan_images),
        *(
            MetricSpec(f"image.{name}", inputs.real_and_fake, features | more, sizes=inputs.TURNS, keywords=("real",))
            for name, more in compare_features.items()
        ),
        MetricSpec("image.inception.InceptionScore", inputs.one_image, features | {"splits": 2}),
        MetricSpec("image.lpip.LearnedPerceptualImagePatchSimilarity", needs=("torchvision",), why_not=NO_WEIGHTS),
        MetricSpec("image.perceptual_path_length.PerceptualPathLength", why_not=NO_WEIGHTS),
        MetricSpec("image.DeepImageStructureAndTextureSimilarity", why_not=NO_WEIGHTS),
        MetricSpec("image.arniqa.ARNIQA", why_not=NO_WEIGHTS),
    ]


def _permutation_invariant(get: Get, device: torch.device) -> Any:
    return get("audio.PermutationInvariantTraining")(get("functional.audio.scale_invariant_signal_noise_ratio"))


def _sound() -> list[MetricSpec]:
    names = "ScaleInvariantSignalDistortionRatio ScaleInvariantSignalNoiseRatio SignalDistortionRatio SignalNoiseRatio"
    return [
        *plain(inputs.sound, "audio.", names.split()),
        MetricSpec("audio.SourceAggregatedSignalDistortionRatio", inputs.speakers),
        MetricSpec("audio.ComplexScaleInvariantSignalNoiseRatio", inputs.spectra),
        MetricSpec("audio.PermutationInvariantTraining", inputs.speakers, make=_permutation_invariant),
        MetricSpec("audio.pesq.PerceptualEvaluationSpeechQuality", why_not=f"needs pesq, {IN_NUMPY}"),
        MetricSpec("audio.stoi.ShortTimeObjectiveIntelligibility", why_not=f"needs pystoi, {IN_NUMPY}"),
        MetricSpec("audio.srmr.SpeechReverberationModulationEnergyRatio", why_not="needs gammatone and torchaudio"),
        MetricSpec("audio.nisqa.NonIntrusiveSpeechQualityAssessment", why_not=NO_WEIGHTS),
        MetricSpec("audio.dnsmos.DeepNoiseSuppressionMeanOpinionScore", why_not=NO_WEIGHTS),
    ]


def _text() -> list[MetricSpec]:
    by_pairs = (
        "CharErrorRate EditDistance ExtendedEditDistance MatchErrorRate WordErrorRate WordInfoLost WordInfoPreserved"
    )
    return [
        *plain(inputs.sentences, "text.", by_pairs.split()),
        *plain(inputs.translations, "text.", ["BLEUScore", "CHRFScore", "SacreBLEUScore", "TranslationEditRate"]),
        MetricSpec("text.ROUGEScore", inputs.translations, {"rouge_keys": ("rouge1", "rougeL")}),
        MetricSpec("text.SQuAD", inputs.answers),
        MetricSpec("text.Perplexity", inputs.language),
        MetricSpec("text.Perplexity", inputs.language, {"ignore_index": 0}),
        MetricSpec("text.bert.BERTScore", why_not=NO_WEIGHTS),
        MetricSpec("text.infolm.InfoLM", why_not=NO_WEIGHTS),
    ]


def _detection() -> list[MetricSpec]:
    boxes = ("torchvision",)
    overlaps = ["Intersection", "CompleteIntersection", "DistanceIntersection", "GeneralizedIntersection"]
    modules = {"Intersection": "iou", "CompleteIntersection": "ciou", "DistanceIntersection": "diou"}
    segments: dict[str, Any] = {"things": {0, 1}, "stuffs": {6, 7}}
    return [
        *plain(inputs.segments, "detection.", ["PanopticQuality", "ModifiedPanopticQuality"], **segments),
        *(
            MetricSpec(f"detection.{modules.get(name, 'giou')}.{name}OverUnion", inputs.detections, needs=boxes)
            for name in overlaps
        ),
        MetricSpec("detection.mean_ap.MeanAveragePrecision", inputs.detections, needs=(*boxes, "pycocotools")),
    ]


def _two_tasks(g: torch.Generator, n: int) -> inputs.Batch:
    labels, numbers = inputs.binary(g, n), inputs.regression(g, n)
    return tuple({"label": label, "number": number} for label, number in zip(labels, numbers, strict=True))


def _collection(get: Get, device: torch.device) -> Any:
    size = TASKS["Multiclass"][1]
    return get("MetricCollection")(
        [get(f"classification.Multiclass{name}")(**size) for name in ("Accuracy", "ConfusionMatrix")]
    )


def _wrapping(name: str, make: Callable[[Any, Get], Any]) -> Make:
    return lambda get, _: make(get(f"wrappers.{name}"), get)


def _wrappers() -> list[MetricSpec]:
    def accuracy(get: Get, **options: Any) -> Any:
        return get("classification.MulticlassAccuracy")(num_classes=inputs.CLASSES, **options)

    def binary(get: Get, name: str) -> Any:
        return get(f"classification.Binary{name}")()

    def error(get: Get) -> Any:
        return get("regression.MeanSquaredError")()

    wrap: dict[str, tuple[inputs.Draw, Callable[[Any, Get], Any]]] = {  # the class, and how its metrics are made
        "BootStrapper": (inputs.regression, lambda cls, get: cls(error(get))),
        "ClasswiseWrapper": (inputs.multiclass, lambda cls, get: cls(accuracy(get, average=None))),
        "MinMaxMetric": (inputs.multiclass, lambda cls, get: cls(accuracy(get))),
        "MultioutputWrapper": (inputs.regression_outputs, lambda cls, get: cls(error(get), inputs.OUTPUTS)),
        "MultitaskWrapper": (
            _two_tasks,
            lambda cls, get: cls({"label": binary(get, "Accuracy"), "number": error(get)}),
        ),
        "Running": (inputs.regression, lambda cls, get: cls(error(get), window=2)),
        "BinaryTargetTransformer": (inputs.positive, lambda cls, get: cls(binary(get, "AUROC"), threshold=0.5)),
        "LambdaInputTransformer": (
            inputs.binary,
            lambda cls, get: cls(binary(get, "Accuracy"), lambda preds: 1 - preds),
        ),
    }
    return [
        *(MetricSpec(f"wrappers.{name}", draw, make=_wrapping(name, make)) for name, (draw, make) in wrap.items()),
        MetricSpec("wrappers.MetricInputTransformer", why_not=ABSTRACT),
        MetricSpec("wrappers.abstract.WrapperMetric", why_not=ABSTRACT),
        MetricSpec(
            "metric.CompositionalMetric",
            inputs.regression,
            make=lambda get, _: error(get) + get("regression.MeanAbsoluteError")(),
        ),
        MetricSpec("metric.Metric", why_not=ABSTRACT),
        MetricSpec("MetricCollection", inputs.multiclass, make=_collection),
    ]


def _others() -> list[MetricSpec]:
    return [
        MetricSpec("shape.ProcrustesDisparity", inputs.points),
        MetricSpec("multimodal.LipVertexError", inputs.meshes, {"mouth_map": [0, 2, 5]}),
        MetricSpec("multimodal.clip_score.CLIPScore", why_not=NO_WEIGHTS),
        MetricSpec("multimodal.clip_iqa.CLIPImageQualityAssessment", why_not=NO_WEIGHTS),
        MetricSpec("video.vmaf.VideoMultiMethodAssessmentFusion", why_not="needs vmaf_torch and einops"),
    ]


PARTS = (
    *(_classification, _regression, _aggregation, _retrieval, _segmentation, _tables),
    *(_images, _sound, _text, _detection, _wrappers, _others),
)
LIBRARY = LibraryMetrics(
    "torchmetrics",
    tuple(row for part in PARTS for row in part()),
    hidden=("_cache", "_computed", "_defaults", "_forward_cache"),
)
