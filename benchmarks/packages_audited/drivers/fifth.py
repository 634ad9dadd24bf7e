from benchmarks.packages_audited.calls import case, function, instance, labels, method, named, noise, uniform
import torch


class Net(torch.nn.Module):
    def __init__(self, make, call):
        super().__init__()
        self.inner, self.call = make(), call

    def forward(self, *inputs):
        return self.call(self.inner, *inputs)


class Step(torch.nn.Module):
    def __init__(self, kind, arguments):
        super().__init__()
        self.net = torch.nn.Linear(4, 4)
        self.kind, self.arguments = kind, arguments

    def forward(self, x):
        optimizer = self.kind(self.net.parameters(), **self.arguments)

        def closure():
            optimizer.zero_grad()
            loss = self.net(x).pow(2).mean()
            loss.backward()
            return loss

        for _ in range(3):
            loss = closure()
            optimizer.step()
        return self.net.weight.detach().clone()


def optimizer(path, **arguments):
    return case(path, lambda: Step(named(path), arguments), (noise(8, 4),))


N, T, V = 12, None, None
LOG = noise(12)
EVENT = labels(2, 12).bool()
TIME = uniform(12) * 10


def surv(kind, what):
    def run(m, l, e, t):
        metric = named(f"torchsurv.metrics.{kind}")()
        metric(l, e, t)
        return what(metric)

    return lambda: Net(torch.nn.Identity, run)


def vit(module, name, x, **kw):
    return instance(f"vit_pytorch.{module}.{name}", x, **kw)


def audit_cases():
    for what in ("confidence_interval", "p_value"):
        for m in ("blanche",):
            yield case(
                f"torchsurv.metrics.auc.Auc.{what}({m})",
                surv("auc.Auc", lambda a, what=what, m=m: getattr(a, what)(method=m)),
                (LOG, EVENT, TIME),
            )
        for m in ("noether",):
            yield case(
                f"torchsurv.metrics.cindex.ConcordanceIndex.{what}({m})",
                surv("cindex.ConcordanceIndex", lambda a, what=what, m=m: getattr(a, what)(method=m)),
                (LOG, EVENT, TIME),
            )
    yield case("torchsurv.metrics.auc.Auc.integral", surv("auc.Auc", lambda a: a.integral()), (LOG, EVENT, TIME))
    yield case(
        "torchsurv.metrics.brier_score.BrierScore",
        lambda: Net(torch.nn.Identity, lambda m, s, e, t: named("torchsurv.metrics.brier_score.BrierScore")()(s, e, t)),
        (uniform(12, 12), EVENT, TIME),
    )
    yield function("torchsurv.loss.cox.neg_partial_log_likelihood", LOG, EVENT, TIME)
    yield function(
        "torchsurv.loss.weibull.neg_log_likelihood_weibull" if False else "torchsurv.loss.weibull.neg_log_likelihood",
        noise(12, 2),
        EVENT,
        TIME,
    )
    yield function(
        "torchsurv.stats.kaplan_meier.KaplanMeierEstimator" if False else "torchsurv.stats.ipcw.get_ipcw", EVENT, TIME
    )
    yield case(
        "torchsurv.stats.kaplan_meier.KaplanMeierEstimator",
        lambda: Net(
            torch.nn.Identity,
            lambda m, e, t: (lambda k: (k(e, t), k.predict(t))[1])(
                named("torchsurv.stats.kaplan_meier.KaplanMeierEstimator")()
            ),
        ),
        (EVENT, TIME),
    )
    for n in (
        "BinaryDiceLoss",
        "BinaryFocalLoss",
        "BinaryBiTemperedLogisticLoss",
        "TverskyLoss",
        "FocalTverskyLoss",
        "LovaszHingeLoss",
        "SoftF1Loss",
        "LDAMLoss",
        "JaccardLoss",
        "BiTemperedLogisticLoss",
        "FocalCosineLoss",
        "BCELoss",
        "BCEFocalLoss",
        "DiceLoss",
    ):
        kw = {
            "LDAMLoss": {"num_class_list": [3, 3, 3]},
            "DiceLoss": {"mode": "binary"},
            "JaccardLoss": {"mode": "binary"},
            "BinaryBiTemperedLogisticLoss": {"t1": 0.8, "t2": 1.2},
            "BiTemperedLogisticLoss": {"t1": 0.8, "t2": 1.2},
        }.get(n, {})
        if n in ("LDAMLoss",):
            args = (noise(4, 3), labels(3, 4))
        elif n in ("FocalCosineLoss",):
            args = (noise(4, 3), labels(3, 4))
        elif n == "BiTemperedLogisticLoss":
            args = (noise(4, 3), torch.eye(3)[labels(3, 4)])
        else:
            args = (uniform(2, 1, 8, 8), labels(2, 2, 1, 8, 8).float())
        yield instance(f"pytorch_optimizer.loss.{n}", *args, **kw)
    yield (
        instance("torch_ema.ExponentialMovingAverage", parameters=[])
        if False
        else case(
            "torch_ema.ExponentialMovingAverage",
            lambda: Net(
                lambda: torch.nn.Linear(4, 4),
                lambda m, x: (lambda e: (m(x).sum().backward(), e.update(), e.shadow_params[0])[2])(
                    named("torch_ema.ExponentialMovingAverage")(m.parameters(), 0.9)
                ),
            ),
            (noise(2, 4),),
        )
    )
    for n in ("JaccardLoss", "DiceLoss", "TverskyLoss", "LovaszLoss", "FocalLoss"):
        for mode in ("binary", "multiclass"):
            y = labels(2, 2, 1, 8, 8) if mode == "binary" else labels(3, 2, 8, 8)
            x = noise(2, 1, 8, 8) if mode == "binary" else noise(2, 3, 8, 8)
            yield case(
                f"segmentation_models_pytorch.losses.{n}({mode})",
                lambda n=n, mode=mode: named(f"segmentation_models_pytorch.losses.{n}")(mode=mode),
                (x, y),
            )
    yield instance("segmentation_models_pytorch.losses.MCCLoss", uniform(2, 1, 8, 8), labels(2, 2, 1, 8, 8).float())
    yield instance(
        "segmentation_models_pytorch.losses.SoftCrossEntropyLoss",
        noise(2, 3, 8, 8),
        labels(3, 2, 8, 8),
        smooth_factor=0.1,
    )
    yield function(
        "segmentation_models_pytorch.metrics.get_stats",
        labels(3, 2, 8, 8),
        labels(3, 2, 8, 8),
        mode="multiclass",
        num_classes=3,
    )
    yield (
        instance("DISTS_pytorch.DISTS", uniform(1, 3, 64, 64), uniform(1, 3, 64, 64).flip(3), load_weights=False)
        if False
        else case(
            "DISTS_pytorch.L2pooling",
            lambda: named("DISTS_pytorch.DISTS_pt.L2pooling")(channels=3),
            (uniform(1, 3, 16, 16),),
        )
    )
    img = uniform(1, 3, 32, 32)
    common = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}
    for m, n in (
        ("vit", "ViT"),
        ("simple_vit", "SimpleViT"),
        ("deepvit", "DeepViT"),
        ("parallel_vit", "ViT"),
        ("vit_for_small_dataset", "ViT"),
        ("rvt", "RvT"),
        ("learnable_memory_vit", "ViT"),
        ("simple_vit_with_patch_dropout", "SimpleViT"),
        ("simple_vit_with_register_tokens", "SimpleViT"),
        ("simple_vit_with_qk_norm", "SimpleViT"),
        ("simple_vit_with_value_residual", "SimpleViT"),
        ("simple_vit_with_hyper_connections", "SimpleViT"),
        ("simple_vit_with_fft", "SimpleViT"),
        ("normalized_vit", "nViT"),
        ("jumbo_vit", "JumboViT"),
        ("local_vit", "LocalViT"),
        ("ats_vit", "ViT"),
        ("cait", "CaiT"),
        ("scalable_vit", "ScalableViT"),
    ):
        kw = dict(common)
        if m == "ats_vit":
            kw["max_tokens_per_depth"] = (8,)
        if m == "cait":
            kw["cls_depth"] = 1
        if m == "simple_vit_with_fft":
            kw["freq_patch_size"] = 8
        if m == "normalized_vit":
            kw = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}
        if m == "jumbo_vit":
            kw.update(num_jumbo_cls=1, jumbo_cls_k=2, jumbo_ff_mult=2)
        if m == "scalable_vit":
            continue
        yield case(f"vit_pytorch.{m}.{n}", lambda m=m, n=n, kw=kw: named(f"vit_pytorch.{m}.{n}")(**kw), (img,))
    yield case(
        "vit_pytorch.na_vit.NaViT",
        lambda: Net(lambda: named("vit_pytorch.na_vit.NaViT")(**common), lambda m, x: m([list(x)])),
        (img,),
    )
    yield case(
        "vit_pytorch.mae.MAE",
        lambda: named("vit_pytorch.mae.MAE")(encoder=named("vit_pytorch.vit.ViT")(**common), decoder_dim=8),
        (img,),
    )
    yield case(
        "vit_pytorch.simmim.SimMIM",
        lambda: named("vit_pytorch.simmim.SimMIM")(encoder=named("vit_pytorch.vit.ViT")(**common), masking_ratio=0.5),
        (img,),
    )
    yield case(
        "vit_pytorch.mpp.MPP",
        lambda: named("vit_pytorch.mpp.MPP")(transformer=named("vit_pytorch.vit.ViT")(**common), patch_size=8, dim=16),
        (img,),
    )
    yield case(
        "vit_pytorch.mp3.MP3",
        lambda: named("vit_pytorch.mp3.MP3")(
            vit=named("vit_pytorch.mp3.ViT")(
                num_classes=5, image_size=32, patch_size=8, dim=16, depth=1, heads=2, mlp_dim=16
            ),
            masking_ratio=0.5,
        ),
        (img,),
    )
    for n, k in (
        ("VectorQuantize", {"dim": 8, "codebook_size": 16}),
        ("ResidualVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2}),
        ("GroupedResidualVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2, "groups": 2}),
        ("RandomProjectionQuantizer", {"dim": 8, "codebook_size": 16, "codebook_dim": 4, "num_codebooks": 2}),
        ("FSQ", {"levels": [4, 4], "dim": 8}),
        ("ResidualFSQ", {"levels": [4, 4], "dim": 8, "num_quantizers": 2}),
        ("LFQ", {"dim": 8, "codebook_size": 16}),
        ("ResidualLFQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2}),
        ("LatentQuantize", {"levels": [4, 4], "dim": 8}),
        ("SimVQ", {"dim": 8, "codebook_size": 16}),
        ("ResidualSimVQ", {"dim": 8, "codebook_size": 16, "num_quantizers": 2}),
        ("BinaryMapper", {"bits": 4}),
    ):
        x = (
            noise(2, 5, 8)
            if n not in ("LatentQuantize", "BinaryMapper")
            else (noise(2, 8, 4, 4) if n == "LatentQuantize" else noise(2, 4))
        )
        yield instance(f"vector_quantize_pytorch.{n}", x, **k)
    for k in (
        {"use_cosine_sim": True},
        {"orthogonal_reg_weight": 1.0},
        {"learnable_codebook": True, "ema_update": False},
        {"kmeans_init": True},
        {"threshold_ema_dead_code": 2},
        {"rotation_trick": True},
        {"directional_reparam": True},
        {"stochastic_sample_codes": True},
        {"commitment_use_cross_entropy_loss": True},
        {"affine_param": True},
    ):
        yield case(
            f"vector_quantize_pytorch.VectorQuantize({next(iter(k))})",
            lambda k=k: named("vector_quantize_pytorch.VectorQuantize")(dim=8, codebook_size=16, **k),
            (noise(2, 5, 8),),
        )
    for k in (
        {},
        {"rotary_pos_emb": True},
        {"alibi_pos_bias": True},
        {"rel_pos_bias": True},
        {"use_rmsnorm": True},
        {"ff_glu": True},
        {"attn_num_mem_kv": 2},
        {"attn_talking_heads": True},
        {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": False},
        {"rotary_xpos": True},
        {"attn_qk_norm": True},
        {"macaron": True},
        {"sandwich_norm": True},
        {"shift_tokens": 1},
        {"attn_sparse_topk": 2},
        {"residual_attn": True},
        {"resi_dual": True},
        {"attn_data_dependent_alibi": True},
    ):
        yield case(
            f"x_transformers.TransformerWrapper({next(iter(k), '')})",
            lambda k=k: named("x_transformers.TransformerWrapper")(
                num_tokens=10,
                max_seq_len=16,
                attn_layers=named("x_transformers.Decoder")(dim=16, depth=1, heads=2, **k),
            ),
            (labels(10, 2, 8),),
        )
    yield instance(
        "local_attention.LocalAttention",
        noise(1, 2, 8, 4),
        noise(1, 2, 8, 4),
        noise(1, 2, 8, 4),
        dim=4,
        window_size=4,
        causal=True,
    )
    yield case(
        "performer_pytorch.PerformerLM",
        lambda: named("performer_pytorch.PerformerLM")(
            num_tokens=10, max_seq_len=16, dim=16, depth=1, heads=2, causal=True
        ),
        (labels(10, 1, 8),),
    )
    yield case(
        "performer_pytorch.SelfAttention",
        lambda: named("performer_pytorch.SelfAttention")(dim=16, heads=2, causal=False),
        (noise(1, 8, 16),),
    )
    yield instance("linformer.Linformer", noise(1, 8, 16), dim=16, seq_len=8, depth=1, k=4, heads=2)
    yield case(
        "linformer.LinformerLM",
        lambda: named("linformer.LinformerLM")(
            num_tokens=10, dim=16, seq_len=8, depth=1, k=4, heads=2, reversible=True
        ),
        (labels(10, 1, 8),),
    )
    yield case(
        "rotary_embedding_torch.RotaryEmbedding",
        lambda: Net(
            lambda: named("rotary_embedding_torch.RotaryEmbedding")(dim=4), lambda m, q: m.rotate_queries_or_keys(q)
        ),
        (noise(1, 2, 8, 4),),
    )
    yield case(
        "rotary_embedding_torch.RotaryEmbedding(pixel)",
        lambda: Net(
            lambda: named("rotary_embedding_torch.RotaryEmbedding")(dim=4, freqs_for="pixel"),
            lambda m, q: m.get_axial_freqs(4, 4),
        ),
        (noise(1),),
    )
    yield function("torch_fidelity.metric_isc.isc_features_to_metric", noise(20, 5), splits=2)
    yield function("torch_fidelity.metric_fid.fid_features_to_statistics", noise(20, 5))
    yield function(
        "torch_fidelity.metric_kid.kid_features_to_metric",
        noise(20, 5),
        noise(20, 5),
        kid_subsets=2,
        kid_subset_size=10,
    )
    yield function(
        "torch_fidelity.metric_prc.prc_features_to_metric",
        noise(20, 5),
        noise(20, 5),
        prc_neighborhood=2,
        prc_batch_size=10,
    )
    yield function("entmax.sparsemax", noise(2, 3))
    for n in ("NSF", "MAF", "NICE", "GMM", "CNF", "NAF", "UNAF", "SOSPF", "NCSF", "BPF", "GF"):
        yield case(
            f"zuko.flows.{n}",
            lambda n=n: Net(
                lambda: (
                    named(f"zuko.flows.{n}")(features=3, context=2) if n != "GMM" else named("zuko.mixtures.GMM")(3, 2)
                ),
                lambda f, x, c: f(c).log_prob(x),
            ),
            (uniform(4, 3), noise(4, 2)),
        )
        yield case(
            f"zuko.flows.{n}.rsample",
            lambda n=n: Net(
                lambda: (
                    named(f"zuko.flows.{n}")(features=3, context=2) if n != "GMM" else named("zuko.mixtures.GMM")(3, 2)
                ),
                lambda f, c: f(c).rsample() if f(c).has_rsample else f(c).sample(),
            ),
            (noise(4, 2),),
        )
    yield case(
        "torchbnn.BayesLinear",
        lambda: named("torchbnn.BayesLinear")(prior_mu=0, prior_sigma=0.1, in_features=4, out_features=3),
        (noise(2, 4),),
    )
    yield case(
        "torchbnn.BayesConv2d",
        lambda: named("torchbnn.BayesConv2d")(
            prior_mu=0, prior_sigma=0.1, in_channels=3, out_channels=3, kernel_size=3
        ),
        (noise(2, 3, 8, 8),),
    )
    yield case(
        "torchbnn.BKLLoss",
        lambda: Net(
            lambda: torch.nn.Sequential(
                named("torchbnn.BayesLinear")(prior_mu=0, prior_sigma=0.1, in_features=4, out_features=3)
            ),
            lambda m, x: named("torchbnn.BKLLoss")()(m),
        ),
        (noise(2, 4),),
    )
    for n in ("LinearReparameterization", "LinearFlipout"):
        yield case(
            f"bayesian_torch.layers.{n}",
            lambda n=n: named(f"bayesian_torch.layers.{n}")(in_features=4, out_features=3),
            (noise(2, 4),),
        )
    for n in ("Conv2dReparameterization", "Conv2dFlipout"):
        yield case(
            f"bayesian_torch.layers.{n}",
            lambda n=n: named(f"bayesian_torch.layers.{n}")(in_channels=3, out_channels=2, kernel_size=3),
            (noise(2, 3, 8, 8),),
        )
    for n in ("LSTMReparameterization", "LSTMFlipout"):
        yield case(
            f"bayesian_torch.layers.{n}",
            lambda n=n: named(f"bayesian_torch.layers.{n}")(in_features=4, out_features=3),
            (noise(2, 5, 4),),
        )
    yield case(
        "pytorch_wavelets.DWTForward",
        lambda: named("pytorch_wavelets.DWTForward")(J=2, wave="db2"),
        (noise(1, 1, 16, 16),),
    )
    yield case(
        "pytorch_wavelets.DTCWTForward", lambda: named("pytorch_wavelets.DTCWTForward")(J=2), (noise(1, 1, 16, 16),)
    )
    yield case("ptwt.wavedec", lambda: lambda x: named("ptwt.wavedec")(x, "db2", level=2), (noise(1, 64),))
    yield case("ptwt.MatrixWavedec", lambda: lambda x: named("ptwt.MatrixWavedec")("db2", level=2)(x), (noise(1, 64),))
    yield case(
        "ptwt.cwt", lambda: lambda x: named("ptwt.cwt")(x, torch.arange(1, 5).numpy(), "mexh")[0], (noise(1, 64),)
    )
    yield case(
        "ptwt.WaveletPacket", lambda: lambda x: named("ptwt.WaveletPacket")(x, "db2", maxlevel=2)["aa"], (noise(1, 64),)
    )
    yield case("ptwt.wavedec2", lambda: lambda x: named("ptwt.wavedec2")(x, "haar", level=2)[0], (noise(1, 16, 16),))
    for n in (
        "UPGrad",
        "MGDA",
        "PCGrad",
        "CAGrad",
        "GradDrop",
        "IMTLG",
        "Krum",
        "NashMTL",
        "AlignedMTL",
        "DualProj",
        "GradVac",
        "Mean",
        "Random",
        "Sum",
        "TrimmedMean",
        "ConFIG",
        "CRMOGM",
        "FairGrad",
        "PCD",
    ):
        kw = {
            "CAGrad": {"c": 0.5},
            "Krum": {"n_byzantine": 1},
            "NashMTL": {"n_tasks": 4},
            "TrimmedMean": {"trim_number": 1},
        }.get(n, {})
        yield instance(f"torchjd.aggregation.{n}", noise(4, 6), **kw)
    yield case(
        "torchsde.sdeint",
        lambda: Net(lambda: Sde(), lambda m, y: named("torchsde.sdeint")(m, y, torch.linspace(0, 1, 3), dt=0.25)),
        (noise(2, 3),),
    )
    yield case(
        "torchsde.BrownianInterval",
        lambda: lambda x: named("torchsde.BrownianInterval")(t0=0.0, t1=1.0, size=(2, 3), device=x.device)(0.1, 0.5),
        (noise(1),),
    )
    yield function("chronos.utils.interpolate_quantiles", [0.1, 0.5], [0.2, 0.4, 0.6], noise(2, 3))
    yield function("chronos.utils.weighted_quantile", [0.1, 0.5], [0.2, 0.4, 0.6], noise(2, 3))
    yield function(
        "bert_score.utils.length_to_mask" if False else "e3nn.o3.spherical_harmonics", [0, 1, 2], noise(4, 3), True
    )
    yield function("e3nn.o3.matrix_to_angles", torch.eye(3)[None])
    yield function("e3nn.o3.wigner_D", 1, noise(2), noise(2), noise(2))
    yield case("e3nn.o3.Linear", lambda: named("e3nn.o3.Linear")("2x0e+1x1o", "1x0e+1x1o"), (noise(3, 5),))
    yield case(
        "e3nn.o3.FullyConnectedTensorProduct",
        lambda: named("e3nn.o3.FullyConnectedTensorProduct")("1x0e+1x1o", "1x0e+1x1o", "1x0e+1x1o"),
        (noise(3, 4), noise(3, 4)),
    )
    yield case("e3nn.o3.ToS2Grid", lambda: named("e3nn.o3.ToS2Grid")(2, 6), (noise(3, 9),))
    yield case(
        "e3nn.nn.Gate",
        lambda: named("e3nn.nn.Gate")("2x0e", [torch.relu], "1x0e", [torch.sigmoid], "1x1o"),
        (noise(3, 6),),
    )
    yield case("e3nn.nn.BatchNorm", lambda: named("e3nn.nn.BatchNorm")("2x0e+1x1o"), (noise(4, 5),))
    yield case(
        "e3nn.io.SphericalTensor",
        lambda: lambda v: named("e3nn.io.SphericalTensor")(2, 1, -1).with_peaks_at(v),
        (noise(2, 3),),
    )
    yield case(
        "e3nn.io.SphericalTensor.sum_of_diracs",
        lambda: lambda v: named("e3nn.io.SphericalTensor")(2, 1, -1).sum_of_diracs(v, v.norm(dim=-1)),
        (noise(2, 3),),
    )
    yield case(
        "e3nn.io.SphericalTensor.find_peaks",
        lambda: lambda v: named("e3nn.io.SphericalTensor")(2, 1, -1).find_peaks(v, res=20),
        (noise(9),),
    )
    yield function("e3nn.math.soft_one_hot_linspace", uniform(4), 0.0, 1.0, 5, "bessel", True)
    for n in ("TimeSeries",):
        pass
    yield case(
        "efficientnet_pytorch.EfficientNet",
        lambda: named("efficientnet_pytorch.EfficientNet").from_name("efficientnet-b0"),
        (uniform(1, 3, 64, 64),),
    )
    yield (
        function("xitorch.linalg.solve", noise(2))
        if False
        else case(
            "xitorch.interpolate.Interp1D",
            lambda: lambda x, y, q: named("xitorch.interpolate.Interp1D")(x, y)(q),
            (torch.linspace(0, 1, 6), noise(6), uniform(4)),
        )
    )
    yield case(
        "torchmin.minimize",
        lambda: lambda x: named("torchmin.minimize")(lambda z: (z**2).sum(), x, method="bfgs").x,
        (noise(3),),
    )
    yield case(
        "torchmin.minimize(newton-exact)",
        lambda: lambda x: named("torchmin.minimize")(lambda z: (z**2).sum(), x, method="newton-exact").x,
        (noise(3),),
    )
    yield case(
        "torchmin.minimize(l-bfgs)",
        lambda: lambda x: named("torchmin.minimize")(lambda z: (z**2).sum(), x, method="l-bfgs").x,
        (noise(3),),
    )
    yield case(
        "torchmin.least_squares", lambda: lambda x: named("torchmin.least_squares")(lambda z: z - 1, x).x, (noise(3),)
    )
    yield function(
        "pytorch_kinematics.transforms.matrix_to_quaternion" if False else "pytorch_kinematics.matrix_to_quaternion",
        torch.eye(3)[None],
    )
    yield function("pytorch_kinematics.quaternion_to_matrix", noise(2, 4))
    yield function(
        "pytorch_kinematics.axis_angle_to_matrix" if False else "pytorch_kinematics.euler_angles_to_matrix",
        noise(2, 3),
        "XYZ",
    )
    yield function("torchcrepe.core.infer" if False else "pytorch_tabnet.sparsemax.sparsemax", noise(2, 4))
    yield case(
        "pytorch_tabnet.TabNet",
        lambda: named("pytorch_tabnet.tab_network.TabNet")(
            input_dim=4, output_dim=2, group_attention_matrix=torch.eye(4)
        ),
        (noise(8, 4),),
    )
    yield optimizer("lion_pytorch.Lion")
    yield optimizer("adabelief_pytorch.AdaBelief", print_change_log=False)
    yield optimizer("prodigyopt.Prodigy")
    for n in ("AdamWScheduleFree", "SGDScheduleFree", "RAdamScheduleFree"):
        yield case(
            f"schedulefree.{n}",
            lambda n=n: Step(lambda p: (lambda o: (o.train(), o)[1])(named(f"schedulefree.{n}")(p, lr=0.1)), {}),
            (noise(8, 4),),
        )
    for n in (
        "A2GradExp",
        "A2GradInc",
        "A2GradUni",
        "AccSGD",
        "AdaBelief",
        "AdaBound",
        "AdaMod",
        "Adafactor",
        "AggMo",
        "Apollo",
        "DiffGrad",
        "Lamb",
        "LARS",
        "MADGRAD",
        "NovoGrad",
        "PID",
        "QHAdam",
        "QHM",
        "RAdam",
        "Ranger",
        "RangerQH",
        "RangerVA",
        "SGDP",
        "SGDW",
        "SWATS",
        "Shampoo",
        "Yogi",
        "AdamP",
    ):
        yield optimizer(f"torch_optimizer.{n}", **({"lr": 0.01} if n in ("Adafactor",) else {}))
    for n in (
        "AdaBelief",
        "AdaBound",
        "AdaDelta",
        "AdaFactor",
        "AdaHessian",
        "AdaLOMO",
        "AdaMax",
        "AdaMod",
        "AdaNorm",
        "AdaPNM",
        "AdaShift",
        "AdaSmooth",
        "AdaTAM",
        "Adai",
        "Adalite",
        "AdamC",
        "AdamG",
        "AdamMini",
        "AdamP",
        "AdamS",
        "AdamW",
        "Adan",
        "AdEMAMix",
        "AggMo",
        "Aida",
        "AliG",
        "Amos",
        "AvaGrad",
        "DAdaptAdaGrad",
        "DAdaptAdam",
        "DAdaptAdan",
        "DAdaptLion",
        "DAdaptSGD",
        "DiffGrad",
        "EmoNavi",
        "EXAdam",
        "FAdam",
        "FOCUS",
        "Fromage",
        "FTRL",
        "GaLore",
        "Grams",
        "Gravity",
        "Kate",
        "Kron",
        "LaProp",
        "Lamb",
        "LARS",
        "Lion",
        "MADGRAD",
        "MARS",
        "MSVAG",
        "Muon",
        "Nero",
        "NovoGrad",
        "PAdam",
        "PID",
        "PNM",
        "Prodigy",
        "QHAdam",
        "QHM",
        "RACS",
        "RAdam",
        "Ranger",
        "Ranger21",
        "Ranger25",
        "SCION",
        "SCIONLight",
        "SGDP",
        "SGDSaI",
        "SGDW",
        "SM3",
        "SOAP",
        "SPAM",
        "SPlus",
        "SRMM",
        "SWATS",
        "ScalableShampoo",
        "ScheduleFreeAdamW",
        "ScheduleFreeRAdam",
        "ScheduleFreeSGD",
        "Shampoo",
        "SignSGD",
        "SimplifiedAdEMAMix",
        "SophiaH",
        "StableAdamW",
        "StableSPAM",
        "TAM",
        "TRAC",
        "Tiger",
        "VSGD",
        "Yogi",
        "bSAM",
        "GrokFastAdamW",
        "AdaGC",
        "AdaGO",
        "Conda",
        "Ano",
        "BCOS",
    ):
        kw = {
            "Ranger21": {"num_iterations": 10},
            "AdamMini": None,
            "AdaHessian": None,
            "AdaLOMO": None,
            "SophiaH": None,
            "AliG": None,
            "TRAC": None,
            "Muon": None,
            "AdaGO": None,
            "bSAM": None,
        }.get(n, {})
        if kw is None:
            continue
        yield optimizer(f"pytorch_optimizer.{n}", **kw)


class Sde(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def f(self, t, y):
        return -y

    def g(self, t, y):
        return torch.ones_like(y) * 0.1
