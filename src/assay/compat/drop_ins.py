"""What stands for each name of another library: a class on assay's counts, or the library's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.migrate.table import library

FAMILIES = {
    "ARNIQA": "",
    "BinaryFairness": "",
    "BinaryGroupStatRates": "binary_groups_stat_rates",
    "CLIPScore": "",
    "CalinskiHarabaszScore": "calinski_harabasz_score",
    "ClusterAccuracy": "cluster_accuracy",
    "CompleteIntersectionOverUnion": "",
    "ComplexScaleInvariantSignalNoiseRatio": "complex_scale_invariant_signal_noise_ratio",
    "DaviesBouldinScore": "davies_bouldin_score",
    "DeepImageStructureAndTextureSimilarity": "",
    "DeepNoiseSuppressionMeanOpinionScore": "",
    "DiceScore": "dice_score",
    "DistanceIntersectionOverUnion": "",
    "DunnIndex": "dunn_index",
    "ErrorRelativeGlobalDimensionlessSynthesis": "error_relative_global_dimensionless_synthesis",
    "FleissKappa": "fleiss_kappa",
    "FrechetInceptionDistance": "",
    "GeneralizedDiceScore": "generalized_dice_score",
    "GeneralizedIntersectionOverUnion": "",
    "HausdorffDistance": "hausdorff_distance",
    "InceptionScore": "",
    "IntersectionOverUnion": "",
    "KernelInceptionDistance": "",
    "LearnedPerceptualImagePatchSimilarity": "",
    "LipVertexError": "lip_vertex_error",
    "MeanAveragePrecision": "",
    "MeanIoU": "mean_iou",
    "MemorizationInformedFrechetInceptionDistance": "",
    "ModifiedPanopticQuality": "modified_panoptic_quality",
    "MultiScaleStructuralSimilarityIndexMeasure": "multiscale_structural_similarity_index_measure",
    "NonIntrusiveSpeechQualityAssessment": "",
    "PanopticQuality": "panoptic_quality",
    "PeakSignalNoiseRatio": "peak_signal_noise_ratio",
    "PeakSignalNoiseRatioWithBlockedEffect": "peak_signal_noise_ratio_with_blocked_effect",
    "PerceptualEvaluationSpeechQuality": "",
    "PermutationInvariantTraining": "",
    "ProcrustesDisparity": "procrustes_disparity",
    "QualityWithNoReference": "quality_with_no_reference",
    "ROUGEScore": "rouge_score",
    "RelativeAverageSpectralError": "relative_average_spectral_error",
    "RootMeanSquaredErrorUsingSlidingWindow": "root_mean_squared_error_using_sliding_window",
    "SQuAD": "squad",
    "ScaleInvariantSignalDistortionRatio": "scale_invariant_signal_distortion_ratio",
    "ScaleInvariantSignalNoiseRatio": "scale_invariant_signal_noise_ratio",
    "ShortTimeObjectiveIntelligibility": "",
    "SignalDistortionRatio": "signal_distortion_ratio",
    "SignalNoiseRatio": "signal_noise_ratio",
    "SourceAggregatedSignalDistortionRatio": "source_aggregated_signal_distortion_ratio",
    "SpatialCorrelationCoefficient": "spatial_correlation_coefficient",
    "SpatialDistortionIndex": "spatial_distortion_index",
    "SpectralAngleMapper": "spectral_angle_mapper",
    "SpectralDistortionIndex": "spectral_distortion_index",
    "SpeechReverberationModulationEnergyRatio": "",
    "StructuralSimilarityIndexMeasure": "structural_similarity_index_measure",
    "TotalVariation": "total_variation",
    "UniversalImageQualityIndex": "universal_image_quality_index",
    "VisualInformationFidelity": "visual_information_fidelity",
}
"""Classes of TorchMetrics whose arguments are others in assay, and their functions; empty where none is counted."""

_OTHER_NAMES = {
    "BinaryFairness": "GroupStatRates",
    "BinaryGroupStatRates": "GroupStatRates",
    "DiceScore": "MeanDice",
    "EER": "ROC",
    "FrechetInceptionDistance": "FrechetDistance",
    **dict.fromkeys(
        (
            *("ARNIQA", "CLIPScore", "DeepImageStructureAndTextureSimilarity", "DeepNoiseSuppressionMeanOpinionScore"),
            *("LearnedPerceptualImagePatchSimilarity", "NonIntrusiveSpeechQualityAssessment"),
            *("PerceptualEvaluationSpeechQuality", "ShortTimeObjectiveIntelligibility"),
            "SpeechReverberationModulationEnergyRatio",
        ),
        "PerSample",
    ),
    **dict.fromkeys(("BinaryEER", "MulticlassEER", "MultilabelEER"), "ROC"),
}
"""The metrics of assay that count classes of other names."""

EQUAL_ERROR_RATES = {f"{task}EER": f"{task}ROC" for task in ("Binary", "Multiclass", "Multilabel")}
"""Classes of TorchMetrics that read the curve of another one, which assay counts."""

FAMILY_FUNCTIONS = {function: name for name, function in FAMILIES.items() if function} | {
    "binary_eer": "BinaryEER",
    "binary_fairness": "BinaryFairness",
    "demographic_parity": "BinaryFairness",
    "eer": "EER",
    "equal_opportunity": "BinaryFairness",
    "multiclass_eer": "MulticlassEER",
    "multilabel_eer": "MultilabelEER",
}
"""The functions of TorchMetrics whose classes are in `FAMILIES` or `EQUAL_ERROR_RATES`, and these classes."""

FUNCTIONS_ALONE = {
    **dict.fromkeys(
        (
            *("arniqa", "clip_score", "deep_image_structure_and_texture_similarity"),
            *("learned_perceptual_image_patch_similarity", "deep_noise_suppression_mean_opinion_score"),
            *("non_intrusive_speech_quality_assessment", "perceptual_evaluation_speech_quality"),
            *("short_time_objective_intelligibility", "speech_reverberation_modulation_energy_ratio"),
        ),
        "PerSample",
    ),
    "complete_intersection_over_union": "CompleteIntersectionOverUnion",
    "cramers_v_matrix": "CramersV",
    "distance_intersection_over_union": "DistanceIntersectionOverUnion",
    "generalized_intersection_over_union": "GeneralizedIntersectionOverUnion",
    "intersection_over_union": "IntersectionOverUnion",
    "mean_average_precision": "MeanAveragePrecision",
    "pearsons_contingency_coefficient_matrix": "PearsonsContingencyCoefficient",
    **dict.fromkeys(("PerceptualPathLength", "perceptual_path_length"), "PerceptualPathLength"),
    "permutation_invariant_training": "PermutationInvariantTraining",
    "theils_u_matrix": "TheilsU",
    "tschuprows_t_matrix": "TschuprowsT",
}
"""Functions of TorchMetrics without a class, a class that runs one, and the metric of assay that has its numbers."""

PAIRWISE = tuple(
    f"pairwise_{name}"
    for name in (
        *("cosine_similarity", "euclidean_distance", "linear_similarity"),
        *("manhattan_distance", "minkowski_distance"),
    )
)
"""Functions of TorchMetrics of each pair of rows."""

RUNNING = {"RunningMean": "Mean", "RunningSum": "Sum"}
"""Aggregates of TorchMetrics over the last updates, and what assay counts in each."""

ADAPTED = ("BootStrapper", "MetricCollection", "MinMaxMetric", "MultioutputWrapper", "Running", *PAIRWISE)
"""Names of TorchMetrics that are no metrics of their own, and are changed here."""

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
    "SubgroupAccuracyDifference": "SubgroupAccuracyDifference",
    "SubgroupDifference": "GroupDifference",
    "SubgroupMetric": "ByGroup",
    "cmAccuracy": "Accuracy",
    "cmPrecision": "Precision",
    "cmRecall": "Recall",
}
"""Names of Ignite that assay counts, though the code that `assay migrate` writes is not the same; and what each is."""

IGNITE_ON_COUNTS = (
    *("DiceCoefficient", "IoU", "JaccardIndex", "SubgroupDifference", "SubgroupMetric"),
    *("cmAccuracy", "cmPrecision", "cmRecall", "mIoU"),
)
"""Those of them that are Ignite's own code for metrics that it is given, which assay counts."""

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
        ('F1Score', 'Mean')
    """
    return {"torchmetrics": _of_torchmetrics, "ignite": _of_ignite}[name]()


def _of_torchmetrics() -> dict[str, DropIn]:
    table = library("torchmetrics")
    found = {name: DropIn(name, instead=instead) for name, instead in table.without.items()}
    for name, entry in table.entries.items():
        found[name] = DropIn(name, entry.assay, tasks=entry.tasks)
    for name, kind in QUERY_FUNCTIONS.items():
        found[name] = DropIn(name, table.entries[kind].assay)
    classes = dict.fromkeys([*FAMILIES, *EQUAL_ERROR_RATES])
    found |= {name: DropIn(name, _OTHER_NAMES.get(name, name)) for name in classes}
    found["EER"] = DropIn("EER", tasks=tuple(EQUAL_ERROR_RATES))
    found |= {name: DropIn(name, assay) for name, assay in (FUNCTIONS_ALONE | RUNNING).items()}
    functions = FAMILY_FUNCTIONS.items()
    return found | {function: DropIn(function, _OTHER_NAMES.get(name, name)) for function, name in functions}


def _of_ignite() -> dict[str, DropIn]:
    table = library("ignite")
    found = {name: DropIn(name, instead=instead) for name, instead in table.without.items()}
    found |= {name: DropIn(name, entry.assay) for name, entry in table.entries.items()}
    found |= {name: DropIn(name, assay) for name, assay in IGNITE_COUNTED.items()}
    return found | {name: DropIn(name) for name in IGNITE_GENERAL}
