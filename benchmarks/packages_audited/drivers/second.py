from benchmarks.packages_audited.calls import case, function, instance, labels, method, named, noise, uniform
import torch


def pgd():
    attack = named("captum.robust.PGD")(torch.nn.Linear(4, 3))
    return lambda x, y: attack.perturb(
        x, radius=0.1, step_size=0.05, step_num=2, target=y, random_start=True, norm="L2"
    )


def frozen():
    layer = named("blitz.modules.BayesianLinear")(4, 3, bias=False)
    layer.freeze = True
    return layer


def warp():
    return named("catalyst.contrib.losses.recsys.WARPLoss")()


def optimizers(module):
    import inspect, importlib

    library = importlib.import_module(module)
    for name in sorted(dir(library)):
        thing = getattr(library, name)
        if inspect.isclass(thing) and issubclass(thing, torch.optim.Optimizer) and thing is not torch.optim.Optimizer:
            yield case(f"{module}.{name}", lambda thing=thing: Step(thing), (noise(8, 4),))


class Step(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.net = torch.nn.Linear(4, 4)
        self.kind = kind

    def forward(self, x):
        optimizer = self.kind(self.net.parameters())
        for _ in range(3):

            def closure():
                optimizer.zero_grad()
                loss = self.net(x).pow(2).mean()
                loss.backward(create_graph=True) if "hess" in self.kind.__name__.lower() else loss.backward()
                return loss

            loss = closure()
            try:
                optimizer.step()
            except TypeError as error:
                if "closure" not in str(error) and "NoneType" not in str(error):
                    raise
                optimizer.step(closure)
        return self.net.weight.detach().clone()


def audit_cases():
    yield case("blitz.modules.BayesianLinear", frozen, (noise(2, 4),))
    yield (
        function("catalyst.contrib.losses.triplet._get_anchor_positive_triplet_mask", labels(3, 6))
        if False
        else instance("catalyst.contrib.losses.triplet.TripletLoss", noise(6, 4), labels(2, 6))
    )
    yield case("catalyst.contrib.losses.recsys.WARPLoss", warp, (noise(4, 6), torch.eye(6)[:4]))
    yield function(
        "catalyst.metrics.functional._average_precision.binary_average_precision", uniform(8, 3), labels(2, 8, 3)
    )
    yield function("catalyst.metrics.functional._auc.auc", uniform(8, 3), labels(2, 8, 3))
    yield function("catalyst.metrics.functional._mrr.reciprocal_rank", uniform(8, 3), labels(2, 8, 3).float(), k=2)
    yield function("catalyst.metrics.functional._ndcg.ndcg", uniform(8, 3), labels(2, 8, 3).float(), topk=[2])
    yield function("catalyst.metrics.functional._hitrate.hitrate", uniform(8, 3), labels(2, 8, 3).float(), topk=[2])
    for n in ("BarlowTwinsLoss",):
        yield instance(f"catalyst.contrib.losses.{n}", noise(6, 4), noise(6, 4))
    for n in ("DiceLoss", "IoULoss", "TrevskyLoss", "FocalTrevskyLoss", "FocalLossBinary"):
        yield instance(
            f"catalyst.contrib.losses.{n}",
            uniform(2, 3, 8, 8),
            labels(2, 2, 3, 8, 8).float(),
            **({"alpha": 0.5} if "Trev" in n else {}),
        )
    yield instance("catalyst.contrib.layers.ArcFace", noise(4, 8), labels(3, 4), in_features=8, out_features=3)
    yield instance("catalyst.contrib.layers.CurricularFace", noise(4, 8), labels(3, 4), in_features=8, out_features=3)
    yield instance("catalyst.contrib.layers.CosFace", noise(4, 8), labels(3, 4), in_features=8, out_features=3)
    yield function("differentiable_robot_model.utils.exp_map_so3", noise(3))
    yield function("differentiable_robot_model.spatial_vector_algebra.x_rot", noise(1))
    yield function(
        "differentiable_robot_model.se3_so3_util.getHomogeneousTransformMatrixFromAxes",
        noise(3),
        noise(3),
        noise(3),
        noise(3),
    )
    yield instance("lpips.L2", uniform(1, 3, 16, 16), uniform(1, 3, 16, 16), colorspace="RGB", use_gpu=False)
    yield function("neuralop.utils.spectrum_2d", noise(2, 64), 8)
    yield function("norse.torch.functional.encode.signed_poisson_encode", uniform(2, 4), 5)
    yield function("norse.torch.functional.encode.poisson_encode", uniform(2, 4), 5)
    yield function("norse.torch.functional.encode.population_encode", uniform(4), 5)
    yield function("norse.torch.functional.encode.spike_latency_encode", uniform(5, 2, 4))
    for n in ("DPLSTM", "DPGRU", "DPRNN"):
        yield instance(f"opacus.layers.{n}", noise(5, 2, 4), input_size=4, hidden_size=3)
    yield instance(
        "opacus.layers.DPMultiheadAttention", noise(5, 2, 4), noise(5, 2, 4), noise(5, 2, 4), embed_dim=4, num_heads=2
    )
    yield function("piq.isc.inception_score", noise(20, 5))
    yield method("piq.KID", "compute_metric", noise(20, 5), noise(20, 5), subset_size=10)
    yield method("piq.FID", "compute_metric", noise(20, 5), noise(20, 5))
    yield method("piq.MSID", "compute_metric", noise(20, 5), noise(20, 5))
    yield method("piq.PR", "compute_metric", noise(20, 5), noise(20, 5))
    for n in (
        "ssim",
        "fsim",
        "vif_p",
        "gmsd",
        "multi_scale_gmsd",
        "haarpsi",
        "mdsi",
        "vsi",
        "srsim",
        "dss",
        "psnr",
        "information_weighted_ssim",
    ):
        yield function(f"piq.{n}", uniform(1, 3, 192, 192), uniform(1, 3, 192, 192).flip(3))
    yield (
        function("piq.brisque", uniform(1, 3, 96, 96))
        if False
        else function("piq.total_variation", uniform(1, 3, 96, 96))
    )
    yield function("pycox.models.loss.nll_pmf_cr", noise(4, 2, 5), labels(5, 4), labels(3, 4))
    yield function(
        "pycox.models.loss.rank_loss_deephit_cr", noise(4, 2, 5), labels(5, 4), labels(3, 4), uniform(4, 4), sigma=0.1
    )
    yield function("pycox.models.loss.nll_logistic_hazard", noise(4, 5), labels(5, 4), labels(2, 4).float())
    yield function("pycox.models.loss.bce_surv_loss", noise(4, 5), labels(5, 4), labels(2, 4).float())
    yield function("pycox.models.loss.nll_mtlr", noise(4, 5), labels(5, 4), labels(2, 4).float())
    yield function("pycox.models.loss.cox_ph_loss", noise(4), uniform(4), labels(2, 4).float())
    yield function("pypose.function.geometry.svdstf", noise(6, 3), noise(6, 3))
    yield function("pypose.function.geometry.svdtf", noise(6, 3), noise(6, 3))
    yield function("pypose.function.geometry.random_filter", noise(6, 3), 3)
    yield function("pypose.function.geometry.voxel_filter", noise(6, 3), [0.5, 0.5, 0.5])
    yield function("pypose.function.geometry.knn_filter", noise(6, 3), 2)
    yield function("pypose.function.geometry.nbr_filter", noise(6, 3), 1, 2.0)
    yield function("pypose.function.spline.chspline", noise(1, 5, 3), 0.2)
    yield function("pypose.lietensor.convert.euler2SO3", noise(2, 3))
    yield function("pypose.lietensor.convert.mat2SO3", torch.eye(3)[None])
    a, b = uniform(1, 3, 192, 192), uniform(1, 3, 192, 192).flip(3)
    for path in ("fsim_arch.fsim", "vsi_arch.vsi", "gmsd_arch.gmsd", "vif_arch.vif_p"):
        yield function(f"pyiqa.archs.{path}", a, b)
    yield instance("pyiqa.archs.ssim_arch.SSIM", a, b)
    yield instance("pyiqa.archs.ssim_arch.MS_SSIM", a, b)
    yield instance("pyiqa.archs.ssim_arch.CW_SSIM", a, b)
    yield instance("pyiqa.archs.vif_arch.VIF", a, b)
    yield instance("pyiqa.archs.mad_arch.MAD", a, b)
    yield instance("pyiqa.archs.nlpd_arch.NLPD", a, b)
    yield instance("pyiqa.archs.psnr_arch.PSNR", a, b)
    yield instance("pyiqa.archs.fsim_arch.FSIM", a, b)
    yield instance("pyiqa.archs.vsi_arch.VSI", a, b)
    yield instance("pyiqa.archs.gmsd_arch.GMSD", a, b)
    for n in (
        "psnr",
        "ssim",
        "ms_ssim",
        "vif",
        "gmsd",
        "nlpd",
        "vsi",
        "mad",
        "cw_ssim",
        "brisque",
        "niqe",
        "ilniqe",
        "piqe",
    ):
        pass
    yield instance("auraloss.freq.MultiResolutionSTFTLoss", noise(2, 1, 8192), noise(2, 1, 8192).flip(2))
    yield instance(
        "auraloss.freq.STFTLoss",
        noise(2, 1, 8192),
        noise(2, 1, 8192).flip(2),
        perceptual_weighting=True,
        sample_rate=44100,
    )
    yield instance("auraloss.freq.MelSTFTLoss", noise(2, 1, 8192), noise(2, 1, 8192).flip(2), sample_rate=44100)
    yield instance("auraloss.freq.RandomResolutionSTFTLoss", noise(2, 1, 40000), noise(2, 1, 40000).flip(2))
    yield instance(
        "auraloss.freq.SumAndDifferenceSTFTLoss",
        noise(2, 2, 8192),
        noise(2, 2, 8192).flip(2),
        fft_sizes=[256],
        hop_sizes=[64],
        win_lengths=[256],
    )
    for n in ("ESRLoss", "DCLoss", "LogCoshLoss", "SNRLoss", "SISDRLoss", "SDSDRLoss"):
        yield instance(f"auraloss.time.{n}", noise(2, 1, 512), noise(2, 1, 512).flip(2))
    yield instance("auraloss.perceptual.FIRFilter", noise(2, 1, 512), noise(2, 1, 512).flip(2), filter_type="aw")
    for n in ("dct", "idct", "dct1", "idct1", "dct_2d"):
        yield function(f"torch_dct.{n}", noise(4, 8))
    yield instance(
        "focal_loss.focal_loss.FocalLoss",
        uniform(8, 3).softmax(1),
        labels(3, 8),
        gamma=2.0,
        weights=torch.tensor([1.0, 2.0, 1.0]),
    )
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
