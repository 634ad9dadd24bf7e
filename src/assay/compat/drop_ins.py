"""What stands for each name of another library: a class on assay's counts, or the library's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.migrate.table import library

FAMILIES = {
    "ComplexScaleInvariantSignalNoiseRatio": "complex_scale_invariant_signal_noise_ratio",
    "DiceScore": "dice_score",
    "ErrorRelativeGlobalDimensionlessSynthesis": "error_relative_global_dimensionless_synthesis",
    "GeneralizedDiceScore": "generalized_dice_score",
    "HausdorffDistance": "hausdorff_distance",
    "MeanIoU": "mean_iou",
    "MultiScaleStructuralSimilarityIndexMeasure": "multiscale_structural_similarity_index_measure",
    "PeakSignalNoiseRatio": "peak_signal_noise_ratio",
    "PermutationInvariantTraining": "",
    "RelativeAverageSpectralError": "relative_average_spectral_error",
    "RootMeanSquaredErrorUsingSlidingWindow": "root_mean_squared_error_using_sliding_window",
    "ScaleInvariantSignalDistortionRatio": "scale_invariant_signal_distortion_ratio",
    "ScaleInvariantSignalNoiseRatio": "scale_invariant_signal_noise_ratio",
    "SignalDistortionRatio": "signal_distortion_ratio",
    "SignalNoiseRatio": "signal_noise_ratio",
    "SourceAggregatedSignalDistortionRatio": "source_aggregated_signal_distortion_ratio",
    "SpatialCorrelationCoefficient": "spatial_correlation_coefficient",
    "SpectralAngleMapper": "spectral_angle_mapper",
    "StructuralSimilarityIndexMeasure": "structural_similarity_index_measure",
    "TotalVariation": "total_variation",
    "UniversalImageQualityIndex": "universal_image_quality_index",
    "VisualInformationFidelity": "visual_information_fidelity",
}
"""Names of TorchMetrics whose arguments are others in assay, and which are counted all the same: classes and functions.

The function is empty where it stays TorchMetrics' own.
"""

OTHER_ARGUMENTS = {
    "ROUGEScore": "one ROUGEScore(rouge, measure) for each value of the dictionary",
    "SQuAD": "SQuAD('f1') and SQuAD('exact_match'), fractions of predictions and questions in the same order",
}
OTHER_ARGUMENTS |= {
    "rouge_score": OTHER_ARGUMENTS["ROUGEScore"],
    "squad": OTHER_ARGUMENTS["SQuAD"],
}
"""Names of TorchMetrics whose metrics have other arguments or values in assay, and what assay has."""

ADAPTED = ("MetricCollection", "Running")
"""Names of TorchMetrics that are no metrics of their own, and are changed for those on assay's counts."""

QUERY_FUNCTIONS = {
    "retrieval_auroc": "RetrievalAUROC",
    "retrieval_average_precision": "RetrievalMAP",
    "retrieval_fall_out": "RetrievalFallOut",
    "retrieval_hit_rate": "RetrievalHitRate",
    "retrieval_normalized_dcg": "RetrievalNormalizedDCG",
    "retrieval_precision": "RetrievalPrecision",
    "retrieval_precision_recall_curve": "RetrievalPrecisionRecallCurve",
    "retrieval_r_precision": "RetrievalRPrecision",
    "retrieval_recall": "RetrievalRecall",
    "retrieval_reciprocal_rank": "RetrievalMRR",
}
"""The functions of TorchMetrics of one query, and the class that measures what each does."""

IGNITE_COUNTED = {
    **dict.fromkeys(("CommonObjectDetectionMetrics", "ObjectDetectionAvgPrecisionRecall"), "MeanAveragePrecision"),
    **dict.fromkeys(("IoU", "JaccardIndex", "mIoU"), "JaccardIndex"),
    **dict.fromkeys(("DiceCoefficient", "MultiLabelConfusionMatrix"), "ConfusionMatrix"),
    **{name: name for name in ("CalinskiHarabaszScore", "DaviesBouldinScore", "SilhouetteScore")},
    **{name: name for name in ("DemographicParityDifference", "Entropy", "HSIC", "InceptionScore")},
    **{name: name for name in ("MaximumMeanDiscrepancy", "MutualInformation", "SelectionRate")},
    "ClassificationReport": "F1Score",
    "Fbeta": "FBetaScore",
    "GeometricAverage": "GeometricMean",
    "HitRate": "RetrievalHitRate",
    "Loss": "Mean",
    "MeanAveragePrecision": "AveragePrecision",
    "NDCG": "RetrievalNormalizedDCG",
    "PSNR": "PeakSignalNoiseRatio",
    "SSIM": "StructuralSimilarityIndexMeasure",
    "SubgroupAccuracyDifference": "AccuracyDifference",
    "SubgroupDifference": "GroupDifference",
    "SubgroupMetric": "ByGroup",
    "cmAccuracy": "Accuracy",
    "cmPrecision": "Precision",
    "cmRecall": "Recall",
}
"""Names of Ignite that assay counts, though the code that `assay migrate` writes is not the same; and what each is."""

IGNITE_GENERAL = (
    *("BatchFiltered", "BatchWise", "EpochMetric", "EpochWise", "Frequency", "GpuInfo", "Metric", "MetricGroup"),
    *("MetricUsage", "MetricsLambda", "RunningAverage", "RunningBatchWise", "RunningEpochWise"),
    *("SingleEpochRunningBatchWise", "VariableAccumulation"),
)
"""Names of Ignite that are no metrics of predictions, and work beside these as they are."""


@dataclass(frozen=True)
class DropIn:
    """What stands for a name.

    Attributes:
        name: the class or function of the library.
        assay: the metric of assay that counts; empty where it is the library's own.
        instead: what assay has in its place, where it is the library's own.
        tasks: the classes that `task=` chooses from.
    """

    name: str
    assay: str = ""
    instead: str = ""
    tasks: tuple[str, ...] = ()


def drop_ins(name: str) -> Mapping[str, DropIn]:
    """What stands for the names of a library, by name; what is missing is the library's own.

    Args:
        name: "torchmetrics" or "ignite".

    Example:
        >>> drop_ins("torchmetrics")["BinaryF1Score"].assay, drop_ins("ignite")["Loss"].assay
        ('F1Score', '')
    """
    return {"torchmetrics": _of_torchmetrics, "ignite": _of_ignite}[name]()


def _of_torchmetrics() -> dict[str, DropIn]:
    table = library("torchmetrics")
    found = {name: DropIn(name, instead=instead) for name, instead in table.without.items()}
    for name, entry in table.entries.items():
        instead = OTHER_ARGUMENTS.get(name, "")
        found[name] = DropIn(name, "" if instead else entry.assay, instead, entry.tasks)
    for name, kind in QUERY_FUNCTIONS.items():
        found[name] = DropIn(name, table.entries[kind].assay)
    for name, function in FAMILIES.items():
        found |= {each: DropIn(each, name) for each in (name, function) if each}
    return found


def _of_ignite() -> dict[str, DropIn]:
    table = library("ignite")
    found = {name: DropIn(name, instead=instead) for name, instead in table.without.items()}
    found |= {name: DropIn(name, entry.assay) for name, entry in table.entries.items()}
    found |= {name: DropIn(name, assay) for name, assay in IGNITE_COUNTED.items()}
    return found | {name: DropIn(name) for name in IGNITE_GENERAL}
