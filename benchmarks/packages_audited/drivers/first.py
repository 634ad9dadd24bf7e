from benchmarks.packages_audited.calls import case, function, instance, labels, method, named, noise, uniform
import torch


def audit_cases():
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
    yield (
        function(
            "monai.metrics.compute_ms_ssim",
            uniform(2, 1, 64, 64),
            uniform(2, 1, 64, 64),
            2,
            kernel_size=3,
            weights=(0.5, 0.5),
        )
        if False
        else instance("monai.metrics.PSNRMetric", uniform(2, 1, 16, 16), uniform(2, 1, 16, 16), max_val=1.0)
    )
    yield (
        instance("monai.metrics.CumulativeAverage")
        if False
        else instance("monai.transforms.RandIntensityRemap", uniform(1, 16, 16), kernel_size=3)
    )
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
    yield instance("generative.losses.PatchAdversarialLoss", noise(2, 1, 8, 8), True, True)
    yield function("catalyst.metrics.functional._focal.sigmoid_focal_loss", noise(8), labels(2, 8))
    yield function("catalyst.metrics.functional._focal.reduced_focal_loss", noise(8), labels(2, 8))
    yield instance("lightly.loss.wmse_loss.Whitening2d", noise(32, 8), num_features=8)
    yield instance("lightly.loss.NTXentLoss", noise(4, 8), noise(4, 8))
    yield instance("lightly.loss.BarlowTwinsLoss", noise(4, 8), noise(4, 8))
    yield instance("lightly.loss.VICRegLoss", noise(4, 8), noise(4, 8))
    yield instance("lightly.loss.DCLLoss", noise(4, 8), noise(4, 8))
    yield instance("lightly.loss.TiCoLoss", noise(4, 8), noise(4, 8))
    yield function("asteroid.dsp.spatial.xcorr", noise(2, 2, 64), noise(2, 2, 32))
    yield function("asteroid.dsp.beamforming.compute_scm", torch.complex(noise(2, 2, 5, 6), noise(2, 2, 5, 6)))
    yield function("asteroid.losses.cluster.deep_clustering_loss", noise(2, 20, 4), labels(3, 2, 4, 5))
    yield instance("asteroid.losses.SingleSrcMultiScaleSpectral", noise(2, 2000), noise(2, 2000))
    yield instance("asteroid.losses.SingleSrcPMSQE", uniform(1, 10, 257), uniform(1, 10, 257))
    yield instance("asteroid.masknn.tac.TAC", noise(2, 3, 8, 4, 5), input_dim=8, hidden_dim=6)
    yield function(
        "asteroid_filterbanks.transforms.phase_centerfreq_correction", noise(2, 5, 6), kernel_size=8, stride=4
    )
    yield (
        instance("asteroid_filterbanks.pcen.PCEN", uniform(2, 128, 10), n_channels=1)
        if False
        else instance("asteroid_filterbanks.pcen.StatefulPCEN", uniform(2, 1, 128, 10))
    )
    yield instance(
        "auton_survival.models.cmhe.cmhe_torch.DeepCMHETorch",
        noise(4, 5),
        labels(2, 4).float(),
        k=2,
        g=2,
        inputdim=5,
        layers=[4],
    )
    yield (
        function("timm.models.nextvit.merge_pre_bn", torch.nn.Linear(2, 2))
        if False
        else instance("timm.models.nextvit.NextViT", noise(1, 3, 64, 64))
        if False
        else instance("timm.loss.JsdCrossEntropy", noise(6, 5), labels(5, 6))
    )
    yield function("allrank.models.losses.listMLE.listMLE", noise(4, 8), labels(3, 4, 8).float())
    yield function("allrank.models.metrics.ndcg", noise(4, 8), labels(3, 4, 8).float())
    yield function("allrank.models.metrics.dcg", noise(4, 8), labels(3, 4, 8).float())
    yield function("allrank.models.metrics.mrr", noise(4, 8), labels(3, 4, 8).float())
    yield instance("TorchCRF.CRF", noise(2, 4, 3), labels(3, 2, 4), torch.ones(2, 4, dtype=torch.bool), num_labels=3)
