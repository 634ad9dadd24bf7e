from benchmarks.packages_audited.calls import case, function, instance, labels, method, named, noise, uniform
import torch


class Net(torch.nn.Module):
    """Wraps a function of a module's own, so that what it makes is moved."""

    def __init__(self, make, call):
        super().__init__()
        self.inner, self.call = make(), call

    def forward(self, *inputs):
        return self.call(self.inner, *inputs)


def spd():
    x = noise(2, 3, 3)
    return torch.complex(x @ x.mT + 3 * torch.eye(3), torch.zeros(2, 3, 3))


def ood(name):
    def make():
        return lambda s, y: named("pytorch_ood.metrics.functional." + name)(s, y)

    return case(f"pytorch_ood.metrics.functional.{name}", make, (uniform(8), torch.tensor([0, 1, -1, 2, -1, 0, 1, -1])))


def pair(n):
    return (uniform(1, 3, 192, 192), uniform(1, 3, 192, 192).flip(3))


def variational(name, **kw):
    def make():
        gp = __import__("gpytorch")

        class Model(gp.models.ApproximateGP):
            def __init__(self):
                d = gp.variational.CholeskyVariationalDistribution(4)
                strategy = getattr(gp.variational, name)(self, noise(4, 2), d, **kw)
                super().__init__(strategy)
                self.mean_module = gp.means.ConstantMean()
                self.covar_module = gp.kernels.ScaleKernel(gp.kernels.RBFKernel())

            def forward(self, x):
                return gp.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

        return Net(Model, lambda m, x: m(x).mean)

    return case(f"gpytorch.variational.{name}", make, (noise(5, 2),))


def kernel(name, **kw):
    return case(
        f"gpytorch.kernels.{name}",
        lambda: Net(lambda: named(f"gpytorch.kernels.{name}")(**kw), lambda k, x: k(x).to_dense()),
        (noise(5, 2),),
    )


def audit_cases():
    yield function("pyro.distributions.asymmetriclaplace._logerfc", noise(4))
    yield case(
        "pyro.distributions.Stable",
        lambda: (
            lambda a, b, v: (
                named("pyro.distributions.stable_log_prob.StableLogProb")
                and named("pyro.distributions.StableWithLogProb")(a, b).log_prob(v)
            )
        ),
        (torch.full((2,), 1.5), torch.zeros(2), noise(2)),
    )
    yield case(
        "pyro.distributions.Empirical",
        lambda: lambda s, w, v: named("pyro.distributions.Empirical")(s, w).log_prob(v),
        (torch.arange(4.0), torch.zeros(4), torch.tensor(1.0)),
    )
    yield case(
        "pyro.distributions.SoftAsymmetricLaplace",
        lambda: (
            lambda v: named("pyro.distributions.SoftAsymmetricLaplace")(
                torch.zeros_like(v), torch.ones_like(v)
            ).log_prob(v)
        ),
        (noise(3),),
    )
    for n, kw in (
        ("effective_sample_size", {}),
        ("gelman_rubin", {}),
        ("split_gelman_rubin", {}),
        ("autocorrelation", {}),
        ("autocovariance", {}),
        ("waic", {}),
        ("quantile", {"probs": [0.1, 0.5]}),
        ("pi", {"prob": 0.5}),
        ("hpdi", {"prob": 0.5}),
        ("fit_generalized_pareto", {}),
        ("resample", {"num_samples": 3}),
    ):
        args = (
            (noise(4, 8).abs(),)
            if n not in ("fit_generalized_pareto", "pi", "hpdi", "quantile", "resample")
            else (noise(40).abs(),)
        )
        yield function(f"pyro.ops.stats.{n}", *args, **kw)
    yield function("pyro.ops.stats.crps_empirical", noise(5, 4), noise(4))
    yield case(
        "pyro.contrib.mue.missingdatahmm.MissingDataDiscreteHMM",
        lambda: (
            lambda a, b, c, x: named("pyro.contrib.mue.missingdatahmm.MissingDataDiscreteHMM")(
                a.log_softmax(-1), b.log_softmax(-1), c.log_softmax(-1)
            ).log_prob(x)
        ),
        (noise(2), noise(2, 2), noise(2, 4), torch.eye(4)),
    )
    yield case(
        "pyro.contrib.mue.missingdatahmm.MissingDataDiscreteHMM.filter",
        lambda: (
            lambda a, b, c, x: named("pyro.contrib.mue.missingdatahmm.MissingDataDiscreteHMM")(
                a.log_softmax(-1), b.log_softmax(-1), c.log_softmax(-1)
            ).filter(x)
        ),
        (noise(2), noise(2, 2), noise(2, 4), torch.eye(4)),
    )
    yield case(
        "pyro.contrib.mue.missingdatahmm.MissingDataDiscreteHMM.map_states",
        lambda: (
            lambda a, b, c, x: named("pyro.contrib.mue.missingdatahmm.MissingDataDiscreteHMM")(
                a.log_softmax(-1), b.log_softmax(-1), c.log_softmax(-1)
            ).map_states(x)
        ),
        (noise(2), noise(2, 2), noise(2, 4), torch.eye(4)),
    )
    yield case(
        "pyro.contrib.mue.missingdatahmm.MissingDataDiscreteHMM.smooth",
        lambda: (
            lambda a, b, c, x: named("pyro.contrib.mue.missingdatahmm.MissingDataDiscreteHMM")(
                a.log_softmax(-1), b.log_softmax(-1), c.log_softmax(-1)
            ).smooth(x)
        ),
        (noise(2), noise(2, 2), noise(2, 4), torch.eye(4)),
    )
    yield function("pyro.contrib.epidemiology.util.compute_bin_probs", uniform(3), num_quant_bins=4)
    yield function("timm.task.evaluator._average_precision", uniform(8, 3), labels(2, 8, 3))
    yield function("timm.loss.class_weights.compute_class_weights", torch.tensor([3.0, 4.0]), 10, method="neg_pos")
    for n in (
        "LabelSmoothingCrossEntropy",
        "SoftTargetCrossEntropy",
        "BinaryCrossEntropy",
        "AsymmetricLossMultiLabel",
        "AsymmetricLossSingleLabel",
    ):
        y = labels(5, 4) if n in ("LabelSmoothingCrossEntropy", "AsymmetricLossSingleLabel") else uniform(4, 5)
        yield instance(f"timm.loss.{n}", noise(4, 5), y)
    yield (
        instance("timm.models.csatv2.LearnableDct2d", noise(1, 3, 16, 16), 8)
        if False
        else case(
            "timm.models.csatv2.Dct2d", lambda: named("timm.models.csatv2.LearnableDct2d")(8), (noise(1, 3, 16, 16),)
        )
    )
    yield function("asteroid.dsp.beamforming.stable_solve", spd(), spd())
    yield function("asteroid.dsp.beamforming.stable_cholesky", spd())
    yield function("asteroid.dsp.beamforming.generalized_eigenvalue_decomposition", spd(), spd())
    for n in (
        "SCMBeamformer",
        "MVDRBeamformer",
        "SDWMWFBeamformer",
        "GEVBeamformer",
        "GEVDBeamformer",
        "RTFMVDRBeamformer",
    ):
        if n in ("SCMBeamformer", "RTFMVDRBeamformer"):
            continue
        c = torch.complex(noise(1, 2, 5, 6), noise(1, 2, 6, 5).mT)
        scm = torch.einsum("bmft,bnft->bmnf", c, c.conj()) + torch.eye(2)[None, :, :, None]
        yield instance(f"asteroid.dsp.beamforming.{n}", c, scm, scm)
    yield function(
        "ema_pytorch.post_hoc_ema.solve_weights",
        torch.tensor([1.0, 2.0, 3.0]),
        torch.tensor([1.0, 2.0, 3.0]),
        torch.tensor([2.0]),
        torch.tensor([2.0]),
    )
    yield function("denoising_diffusion_pytorch.classifier_free_guidance.project", noise(2, 3, 4), noise(2, 3, 4))
    yield case(
        "denoising_diffusion_pytorch.GaussianDiffusion",
        lambda: named("denoising_diffusion_pytorch.GaussianDiffusion")(
            named("denoising_diffusion_pytorch.Unet")(dim=8, dim_mults=(1, 2), flash_attn=False),
            image_size=16,
            timesteps=4,
        ),
        (uniform(1, 3, 16, 16),),
    )
    yield case(
        "denoising_diffusion_pytorch.GaussianDiffusion1D",
        lambda: named("denoising_diffusion_pytorch.GaussianDiffusion1D")(
            named("denoising_diffusion_pytorch.Unet1D")(dim=8, dim_mults=(1, 2), channels=3), seq_length=16, timesteps=4
        ),
        (uniform(1, 3, 16),),
    )
    yield instance("generative.metrics.FIDMetric", noise(16, 8), noise(16, 8))
    yield instance("generative.metrics.MMDMetric", noise(4, 1, 8, 8), noise(4, 1, 8, 8))
    yield function("geoopt.manifolds.lorentz.math.arcosh", uniform(4) + 1)
    yield case(
        "geoopt.Lorentz.dist",
        lambda: Net(lambda: named("geoopt.Lorentz")(), lambda m, x, y: m.dist(m.projx(x), m.projx(y))),
        (noise(3, 4), noise(3, 4)),
    )
    yield case(
        "geoopt.PoincareBall.dist",
        lambda: Net(lambda: named("geoopt.PoincareBall")(), lambda m, x, y: m.dist(m.projx(x), m.projx(y))),
        (noise(3, 4), noise(3, 4)),
    )
    yield case(
        "geoopt.Sphere.dist",
        lambda: Net(lambda: named("geoopt.Sphere")(), lambda m, x, y: m.dist(m.projx(x), m.projx(y))),
        (noise(3, 4), noise(3, 4)),
    )
    yield case(
        "geoopt.Stiefel.projx", lambda: Net(lambda: named("geoopt.Stiefel")(), lambda m, x: m.projx(x)), (noise(4, 3),)
    )
    yield case(
        "geoopt.SymmetricPositiveDefinite.dist",
        lambda: Net(lambda: named("geoopt.SymmetricPositiveDefinite")(), lambda m, x, y: m.dist(x, y)),
        (torch.eye(3)[None] * 2, torch.eye(3)[None] * 3),
    )
    for n in (
        "VariationalStrategy",
        "UnwhitenedVariationalStrategy",
        "BatchDecoupledVariationalStrategy",
        "CiqVariationalStrategy",
        "LargeBatchVariationalStrategy",
    ):
        yield variational(n)
    for n, kw in (
        ("RBFKernel", {}),
        ("MaternKernel", {}),
        ("PeriodicKernel", {}),
        ("RQKernel", {}),
        ("CosineKernel", {}),
        ("LinearKernel", {}),
        ("PolynomialKernel", {"power": 2}),
        ("PolynomialKernelGrad", {"power": 2}),
        ("RBFKernelGrad", {}),
        ("RBFKernelGradGrad", {}),
        ("Matern52KernelGrad", {}),
        ("SpectralMixtureKernel", {"num_mixtures": 2, "ard_num_dims": 2}),
        ("SpectralDeltaKernel", {"num_dims": 2}),
        ("ArcKernel", {"base_kernel": None}),
        ("CylindricalKernel", None),
        ("HammingIMQKernel", {"vocab_size": 2}),
        ("PiecewisePolynomialKernel", {}),
        ("ConstantKernel", {}),
        ("GaussianSymmetrizedKLKernel", {}),
    ):
        if n in ("ArcKernel", "CylindricalKernel", "HammingIMQKernel"):
            continue
        yield kernel(n, **kw)
    yield method("piq.FID", "compute_metric", noise(20, 5), noise(20, 5))
    for n in ("r_precision", "mean_average_precision"):
        pass
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
    for n in ("auroc", "aupr", "fpr_at_tpr", "autc", "roc_curve"):
        yield ood(n)
    yield case(
        "pytorch_ood.metrics.functional.calibration_error",
        lambda: lambda c, y: named("pytorch_ood.metrics.functional.calibration_error")(c, y),
        (uniform(20), labels(2, 20)),
    )
    yield instance("pytorch_ood.loss.DeepSVDDLoss", noise(4, 5), labels(3, 4), n_dim=5)
    yield instance(
        "pytorch_ood.loss.IILoss", noise(6, 5), torch.tensor([0, 1, 2, 0, 1, 2]), num_classes=3, n_embedding=5
    )
    yield instance("pytorch_ood.loss.CenterLoss", noise(4, 5), labels(3, 4), n_classes=3, n_dim=5)
    yield instance("pytorch_ood.loss.CACLoss", noise(4, 3), labels(3, 4), n_classes=3)
    yield instance("pytorch_ood.loss.EntropicOpenSetLoss", noise(4, 3), torch.tensor([0, 1, -1, 2]))
    yield (
        instance("pytorch_ood.loss.ObjectosphereLoss", noise(4, 3), noise(4, 5), torch.tensor([0, 1, -1, 2]))
        if False
        else instance("pytorch_ood.loss.OutlierExposureLoss", noise(4, 3), torch.tensor([0, 1, -1, 2]))
    )
    yield instance("pytorch_ood.loss.EnergyRegularizedLoss", noise(4, 3), torch.tensor([0, 1, -1, 2]))
    yield (
        case(
            "captum.attr._utils.stat.Var",
            lambda: (
                lambda x: named("captum.attr._utils.summarizer.Summarizer")(
                    [named("captum.attr._utils.stat.Var")()]
                ).update(x)
            ),
            (noise(3),),
        )
        if False
        else case(
            "captum.attr.IntegratedGradients",
            lambda: Net(
                lambda: torch.nn.Linear(4, 3),
                lambda m, x, y: named("captum.attr.IntegratedGradients")(m).attribute(x, target=y),
            ),
            (noise(2, 4), labels(3, 2)),
        )
    )
    for n, kw in (
        ("Saliency", {}),
        ("InputXGradient", {}),
        ("DeepLift", {}),
        ("GradientShap", {"baselines": True}),
        ("FeatureAblation", {}),
        ("FeaturePermutation", {}),
        ("ShapleyValueSampling", {"n_samples": 2}),
        ("ShapleyValues", {}),
        ("KernelShap", {"n_samples": 8}),
        ("Lime", {"n_samples": 8}),
        ("Occlusion", {"sliding_window_shapes": (2,)}),
        ("LRP", {}),
        ("GuidedBackprop", {}),
        ("Deconvolution", {}),
    ):

        def run(m, x, y, n=n, kw=kw):
            kw = {"baselines": x * 0} if "baselines" in kw else kw
            return named(f"captum.attr.{n}")(m).attribute(x, target=y, **kw)

        yield case(
            f"captum.attr.{n}",
            lambda run=run: Net(
                lambda: torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)), run
            ),
            (noise(3, 4), labels(3, 3)),
        )
    yield case(
        "captum.attr.NoiseTunnel",
        lambda: Net(
            lambda: torch.nn.Linear(4, 3),
            lambda m, x, y: named("captum.attr.NoiseTunnel")(named("captum.attr.Saliency")(m)).attribute(
                x, nt_type="vargrad", nt_samples=2, target=y
            ),
        ),
        (noise(2, 4), labels(3, 2)),
    )
    yield case(
        "captum.robust.PGD.L2",
        lambda: Net(
            lambda: torch.nn.Linear(4, 3),
            lambda m, x, y: named("captum.robust.PGD")(m).perturb(x, 0.1, 0.05, 2, y, random_start=True, norm="L2"),
        ),
        (noise(4, 4), labels(3, 4)),
    )
    yield case(
        "captum.robust.FGSM",
        lambda: Net(lambda: torch.nn.Linear(4, 3), lambda m, x, y: named("captum.robust.FGSM")(m).perturb(x, 0.1, y)),
        (noise(4, 4), labels(3, 4)),
    )
    yield case(
        "torch_uncertainty.layers.MaskedLinear",
        lambda: named("torch_uncertainty.layers.MaskedLinear")(8, 4, num_estimators=2, scale=2.0),
        (noise(4, 8),),
    )
    yield case(
        "torch_uncertainty.layers.PackedLinear",
        lambda: named("torch_uncertainty.layers.PackedLinear")(8, 4, alpha=2, num_estimators=2),
        (noise(4, 8),),
    )
    yield case(
        "torch_uncertainty.layers.BatchLinear",
        lambda: named("torch_uncertainty.layers.BatchLinear")(8, 4, num_estimators=2),
        (noise(4, 8),),
    )
    yield case(
        "torch_uncertainty.layers.BayesLinear",
        lambda: named("torch_uncertainty.layers.BayesLinear")(8, 4),
        (noise(4, 8),),
    )
    yield case(
        "torch_uncertainty.losses.FocalLoss",
        lambda: named("torch_uncertainty.losses.FocalLoss")(gamma=2.0),
        (noise(4, 3), labels(3, 4)),
    )
    for n, a in (("compute_mode", 0),):
        pass
    yield function("torchopt.linalg.ns.ns_inv" if False else "torch_dct.dct_3d", noise(2, 3, 4))
    yield (
        function("monai.networks.utils.normalize_transform", torch.tensor([4, 4]))
        if False
        else case(
            "monai.networks.utils.normalize_transform",
            lambda: lambda x: named("monai.networks.utils.normalize_transform")((4, 4), device=x.device, dtype=x.dtype),
            (noise(2),),
        )
    )
    yield case(
        "monai.networks.layers.AffineTransform",
        lambda: named("monai.networks.layers.AffineTransform")(spatial_size=(8, 8)),
        (noise(1, 1, 8, 8), torch.eye(3)[None]),
    )
    yield function("monai.transforms.utils.distance_transform_edt", labels(2, 1, 8, 8).float())
    yield function(
        "monai.networks.blocks.warp.Warp" if False else "monai.networks.utils.to_norm_affine",
        torch.eye(3)[None],
        (4, 4),
        (4, 4),
    )
    yield instance("monai.networks.blocks.Warp", noise(1, 1, 8, 8), noise(1, 2, 8, 8))
    yield instance(
        "torchkbnufft.KbNufft", torch.complex(noise(1, 1, 8, 8), noise(1, 1, 8, 8)), noise(2, 16), im_size=(8, 8)
    )
    yield instance(
        "torchkbnufft.KbInterp", torch.complex(noise(1, 1, 8, 8), noise(1, 1, 8, 8)), noise(2, 16), im_size=(8, 8)
    )
    for n in ("gcd", "cov"):
        pass
    yield function("roma.special_procrustes", noise(2, 3, 3))
    yield function("roma.symmatrix_to_projective_point", torch.eye(4)[None] + 0.1)
    yield function(
        "roma.special_procrustes_unitquat" if False else "roma.rigid_points_registration",
        noise(1, 6, 3),
        noise(1, 6, 3),
    )
    yield function("torchaudio.functional.phaser", uniform(1, 800), 8000)
    yield function("torchaudio.functional.flanger", uniform(1, 1, 800), 8000)
    for n, a in (
        ("dither", ()),
        ("contrast", ()),
        ("overdrive", ()),
        ("dcshift", (0.1,)),
        ("preemphasis", ()),
        ("deemphasis", ()),
    ):
        yield function(f"torchaudio.functional.{n}", uniform(1, 800), *a)
    for n, a in (
        ("lowpass_biquad", (8000, 1000.0)),
        ("equalizer_biquad", (8000, 1000.0, 3.0)),
        ("allpass_biquad", (8000, 1000.0)),
        ("riaa_biquad", (44100,)),
        ("treble_biquad", (8000, 3.0)),
        ("bass_biquad", (8000, 3.0)),
        ("band_biquad", (8000, 1000.0)),
        ("bandreject_biquad", (8000, 1000.0)),
        ("gain", ()),
        ("detect_pitch_frequency", (8000,)),
        ("vad", (8000,)),
        ("speed", (8000, 1.1)),
        ("resample", (8000, 6000)),
    ):
        yield function(f"torchaudio.functional.{n}", noise(1, 4000), *a)
    for n in ("fbank", "mfcc", "spectrogram"):
        yield function(f"torchaudio.compliance.kaldi.{n}", noise(1, 4000))
    yield function("torchaudio.functional.mask_along_axis", noise(1, 8, 8), 3, 0.0, 1)
    yield function("torchaudio.functional.edit_distance", labels(3, 4), labels(3, 4))
    yield function("torchaudio.functional.fftconvolve", noise(1, 64), noise(1, 16))
    yield function("torchaudio.functional.add_noise", noise(1, 64), noise(1, 64), torch.tensor([3.0]))
    yield function(
        "torchaudio.functional.barkscale_fbanks" if False else "torchaudio.functional.filter_waveform",
        noise(1, 64),
        noise(2, 8),
    )
    for n, kw, x in (
        ("MelSpectrogram", {}, noise(1, 4000)),
        ("MFCC", {}, noise(1, 4000)),
        ("LFCC", {}, noise(1, 4000)),
        ("Spectrogram", {}, noise(1, 4000)),
        ("InverseMelScale", {"n_stft": 65, "n_mels": 32}, uniform(1, 32, 6)),
        ("GriffinLim", {"n_fft": 128, "n_iter": 2}, uniform(1, 65, 6)),
        ("TimeStretch", {"fixed_rate": 1.1, "n_freq": 65}, torch.complex(noise(1, 65, 6), noise(1, 65, 6))),
        ("SpectralCentroid", {"sample_rate": 8000}, noise(1, 4000)),
        ("PitchShift", {"sample_rate": 8000, "n_steps": 2}, noise(1, 4000)),
        ("Fade", {"fade_in_len": 10, "fade_out_len": 10}, noise(1, 400)),
        ("SlidingWindowCmn", {}, noise(1, 50, 8)),
        ("FrequencyMasking", {"freq_mask_param": 4}, noise(1, 16, 8)),
        (
            "SpecAugment",
            {"n_time_masks": 1, "time_mask_param": 2, "n_freq_masks": 1, "freq_mask_param": 2},
            noise(1, 16, 8),
        ),
        ("Loudness", {"sample_rate": 8000}, noise(1, 8000)),
        ("Vol", {"gain": 0.5}, noise(1, 40)),
        ("ComputeDeltas", {}, noise(1, 8, 20)),
        ("MuLawEncoding", {}, uniform(1, 40)),
        ("MuLawDecoding", {}, labels(256, 1, 40)),
        ("AmplitudeToDB", {}, uniform(1, 40)),
        ("SpeedPerturbation", {"orig_freq": 8000, "factors": [1.1]}, noise(1, 400)),
        ("PSD", {}, torch.complex(noise(2, 5, 6), noise(2, 5, 6))),
        ("RNNTLoss", None, None),
    ):
        if kw is not None:
            yield instance(f"torchaudio.transforms.{n}", x, **kw)
    yield instance(
        "torchaudio.transforms.MVDR",
        torch.complex(noise(2, 5, 6), noise(2, 6, 5).mT),
        uniform(5, 6),
        uniform(5, 6).flip(0),
    )
