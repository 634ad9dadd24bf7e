"""Calls of pytorch_metric_learning."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, instance, labels, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in (
        "HistogramLoss",
        "ManifoldLoss",
        "LargeMarginSoftmaxLoss",
        "DynamicSoftMarginLoss",
        "SmoothAPLoss",
        "SoftTripleLoss",
        "MarginLoss",
        "ProxyAnchorLoss",
        "ProxyNCALoss",
        "ArcFaceLoss",
        "CosFaceLoss",
        "SphereFaceLoss",
        "SubCenterArcFaceLoss",
        "NormalizedSoftmaxLoss",
        "TripletMarginLoss",
        "ContrastiveLoss",
        "NTXentLoss",
        "SupConLoss",
        "MultiSimilarityLoss",
        "CircleLoss",
        "LiftedStructureLoss",
        "GeneralizedLiftedStructureLoss",
        "NPairsLoss",
        "NCALoss",
        "FastAPLoss",
        "InstanceLoss",
        "TupletMarginLoss",
        "AngularLoss",
        "PNPLoss",
        "RankedListLoss",
        "SignalToNoiseRatioContrastiveLoss",
        "ThresholdConsistentMarginLoss",
        "VICRegLoss",
        "IntraPairVarianceLoss",
    ):
        kw = {}
        if n in (
            "LargeMarginSoftmaxLoss",
            "SoftTripleLoss",
            "ProxyAnchorLoss",
            "ProxyNCALoss",
            "ArcFaceLoss",
            "CosFaceLoss",
            "SphereFaceLoss",
            "SubCenterArcFaceLoss",
            "NormalizedSoftmaxLoss",
        ):
            kw = {"num_classes": 4, "embedding_size": 8}
        if n == "HistogramLoss":
            kw = {"n_bins": 10}
        if n == "ManifoldLoss":
            kw = {"l": 8, "K": 4}
        if n == "RankedListLoss":
            kw = {"margin": 0.4, "Tn": 10}
        y = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
        args = (
            (noise(8, 8),)
            if n in ("ManifoldLoss",)
            else (noise(8, 8), None, None, noise(8, 8).flip(0))
            if n == "VICRegLoss"
            else (noise(8, 8), y)
        )
        yield instance(f"pytorch_metric_learning.losses.{n}", *args, **kw)
    for n in (
        "MultiSimilarityMiner",
        "BatchHardMiner",
        "BatchEasyHardMiner",
        "AngularMiner",
        "PairMarginMiner",
        "TripletMarginMiner",
        "UniformHistogramMiner",
        "DistanceWeightedMiner",
        "HDCMiner",
        "EmbeddingsAlreadyPackagedAsTriplets",
    ):
        kw = {}
        if n == "UniformHistogramMiner":
            kw = {"num_bins": 10, "pos_per_bin": 2, "neg_per_bin": 2}
        yield instance(
            f"pytorch_metric_learning.miners.{n}",
            noise(9 if "Trip" in n else 8, 8),
            torch.tensor([0, 0, 1, 1, 2, 2, 3, 3, 0])[: 9 if "Trip" in n else 8],
            **kw,
        )
    yield case(
        "pytorch_metric_learning.utils.accuracy_calculator.precision_at_k",
        lambda: (
            lambda knn, gt: named("pytorch_metric_learning.utils.accuracy_calculator.precision_at_k")(
                knn, gt[:, None], 2, False, False, torch.eq
            )
        ),
        (labels(3, 6, 4), labels(3, 6)),
    )
    yield case(
        "pytorch_metric_learning.utils.accuracy_calculator.mean_average_precision",
        lambda: (
            lambda knn, gt: named("pytorch_metric_learning.utils.accuracy_calculator.mean_average_precision")(
                knn, gt[:, None], False, False, torch.eq, torch.ones_like(knn, dtype=torch.bool)
            )
        ),
        (labels(3, 6, 4), labels(3, 6)),
    )
