"""Calls of monai."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, function, instance, labels, method, named, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield instance("monai.losses.PatchAdversarialLoss", noise(2, 1, 8, 8), True, True)
    yield method("monai.losses.PatchAdversarialLoss", "get_zero_tensor", noise(2, 1, 8, 8))
    yield instance("monai.losses.DiceLoss", uniform(2, 3, 8, 8), uniform(2, 3, 8, 8), weight=2.0)
    yield instance("monai.losses.DiceFocalLoss", uniform(2, 3, 8, 8), uniform(2, 3, 8, 8))
    yield instance("monai.losses.DiceCELoss", uniform(2, 3, 8, 8), uniform(2, 3, 8, 8))
    yield instance("monai.losses.GeneralizedDiceLoss", uniform(2, 3, 8, 8), uniform(2, 3, 8, 8))
    yield instance("monai.losses.HausdorffDTLoss", uniform(2, 1, 8, 8), uniform(2, 1, 8, 8).round())
    yield instance("monai.losses.TverskyLoss", uniform(2, 3, 8, 8), uniform(2, 3, 8, 8))
    yield instance("monai.losses.LocalNormalizedCrossCorrelationLoss", uniform(2, 1, 8, 8, 8), uniform(2, 1, 8, 8, 8))
    yield instance("monai.losses.GlobalMutualInformationLoss", uniform(2, 1, 8, 8, 8), uniform(2, 1, 8, 8, 8))
    yield instance("monai.losses.BendingEnergyLoss", uniform(2, 3, 8, 8, 8))
    yield instance("monai.losses.DiffusionLoss", uniform(2, 3, 8, 8, 8))
    yield instance("monai.losses.SSIMLoss", uniform(2, 1, 16, 16), uniform(2, 1, 16, 16), spatial_dims=2)
    yield instance("monai.losses.ContrastiveLoss", uniform(2, 8), uniform(2, 8))
    yield instance("monai.losses.BarlowTwinsLoss", uniform(4, 8), uniform(4, 8))
    yield instance("monai.losses.SoftclDiceLoss", uniform(2, 2, 16, 16), uniform(2, 2, 16, 16))
    yield instance("monai.losses.JukeboxLoss", uniform(2, 1, 16, 16), uniform(2, 1, 16, 16), spatial_dims=2)
    yield instance("monai.losses.NACLLoss", uniform(2, 3, 8, 8), labels(3, 2, 8, 8), classes=3, dim=2)
    yield instance("monai.losses.AsymmetricUnifiedFocalLoss", uniform(2, 2, 8, 8), labels(2, 2, 2, 8, 8).float())
    for name in (
        "compute_hausdorff_distance",
        "compute_average_surface_distance",
        "compute_iou",
        "compute_generalized_dice",
    ):
        yield function(f"monai.metrics.{name}", uniform(1, 2, 8, 8).round(), uniform(1, 2, 8, 8).round())
    yield function(
        "monai.metrics.compute_surface_dice",
        uniform(1, 2, 8, 8).round(),
        uniform(1, 2, 8, 8).round(),
        class_thresholds=[1.0],
    )
    yield function("monai.metrics.compute_panoptic_quality", labels(3, 8, 8), labels(3, 8, 8))
    yield function("monai.metrics.compute_roc_auc", uniform(8), labels(2, 8))
    yield function("monai.metrics.compute_average_precision", uniform(8), labels(2, 8))
    yield function("monai.metrics.compute_froc_curve_data", uniform(8), uniform(8), 2, 3)
    yield instance("monai.metrics.FIDMetric", noise(16, 8), noise(16, 8))
    yield instance("monai.metrics.MMDMetric", noise(4, 1, 8, 8), noise(4, 1, 8, 8))
    yield instance("monai.metrics.SSIMMetric", uniform(2, 1, 16, 16), uniform(2, 1, 16, 16), spatial_dims=2)
    yield instance("monai.metrics.PSNRMetric", uniform(2, 1, 16, 16), uniform(2, 1, 16, 16), max_val=1.0)
    yield instance("monai.transforms.RandIntensityRemap", uniform(1, 16, 16), kernel_size=3)
    for name in (
        "LabelToContour",
        "ScaleIntensity",
        "NormalizeIntensity",
        "KeepLargestConnectedComponent",
        "DetectEnvelope",
        "GaussianSmooth",
        "GaussianSharpen",
        "MedianSmooth",
        "HistogramNormalize",
        "SobelGradients",
        "RemoveSmallObjects",
        "GibbsNoise",
        "SavitzkyGolaySmooth",
    ):
        arguments = {"SavitzkyGolaySmooth": {"window_length": 5, "order": 2}}.get(name, {})
        yield instance(f"monai.transforms.{name}", uniform(1, 16, 16), **arguments)
    yield instance(
        "monai.transforms.ScaleIntensityRangePercentiles", uniform(1, 16, 16), lower=1, upper=99, b_min=0, b_max=1
    )
    yield instance(
        "monai.transforms.GridDistortion",
        uniform(1, 16, 16),
        num_cells=2,
        distort_steps=[(1.0, 1.1, 1.0), (1.0, 1.2, 1.0)],
    )
    yield instance("monai.transforms.RandGridDistortion", uniform(1, 16, 16), prob=1.0)
    yield instance("monai.transforms.RandAffine", uniform(1, 16, 16), prob=1.0, rotate_range=0.3)
    yield instance(
        "monai.transforms.Rand2DElastic", uniform(1, 16, 16), spacing=(4, 4), magnitude_range=(1, 2), prob=1.0
    )
    yield instance("monai.transforms.RandHistogramShift", uniform(1, 16, 16), prob=1.0)
    yield instance("monai.transforms.RandBiasField", uniform(1, 16, 16), prob=1.0)
    yield instance("monai.transforms.RandKSpaceSpikeNoise", uniform(1, 16, 16), prob=1.0)
    yield instance("monai.transforms.Spacing", uniform(1, 16, 16), pixdim=(2, 2))
    yield instance("monai.transforms.Rotate", uniform(1, 16, 16), angle=0.3)
    yield instance("monai.transforms.Zoom", uniform(1, 16, 16), zoom=1.3)
    yield instance("monai.transforms.SignalRandDrop", noise(1, 64))
    yield instance("monai.transforms.SignalRandAddGaussianNoise", noise(1, 64))
    yield instance("monai.transforms.SignalRandAddSine", noise(1, 64))
    yield instance("monai.networks.layers.HilbertTransform", noise(1, 64), axis=1)
    yield instance("monai.networks.layers.SavitzkyGolayFilter", noise(2, 1, 64), window_length=5, order=2)
    yield instance("monai.networks.layers.GaussianFilter", noise(1, 1, 8, 8), spatial_dims=2, sigma=1.0)
    yield case(
        "monai.networks.utils.normalize_transform",
        lambda: lambda x: named("monai.networks.utils.normalize_transform")((4, 4), device=x.device, dtype=x.dtype),
        (noise(2),),
    )
    yield case(
        "monai.networks.layers.AffineTransform",
        lambda: named("monai.networks.layers.AffineTransform")(spatial_size=(8, 8)),
        (noise(1, 1, 8, 8), torch.eye(3)[None]),
    )
    yield function("monai.transforms.utils.distance_transform_edt", labels(2, 1, 8, 8).float())
    yield function("monai.networks.utils.to_norm_affine", torch.eye(3)[None], (4, 4), (4, 4))
    yield instance("monai.networks.blocks.Warp", noise(1, 1, 8, 8), noise(1, 2, 8, 8))
