from benchmarks.packages_audited.calls import case, function, instance, labels, method, named, noise, uniform
import torch

E = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])


def audit_cases():
    yield instance("alias_free_torch.UpSample1d", noise(2, 3, 16))
    yield instance("alias_free_torch.DownSample1d", noise(2, 3, 16))
    yield (
        instance("ema_pytorch.EMA", model=torch.nn.Linear(2, 2))
        if False
        else function("sparsemax.Sparsemax", -1)
        if False
        else instance("sparsemax.Sparsemax", noise(3, 5), dim=-1)
    )
    for n in ("sparsemax", "entmax15", "normmax_bisect", "sparsemax_bisect", "entmax_bisect", "budget_bisect"):
        kw = {"budget": 2} if n.startswith("budget") else {}
        yield function(f"entmax.{n}", noise(3, 5), **kw)
    for n in ("SparsemaxLoss", "Entmax15Loss", "EntmaxBisectLoss"):
        yield instance(f"entmax.{n}", noise(3, 5), labels(5, 3))
    yield instance("geomloss.SamplesLoss", noise(6, 3), noise(6, 3).flip(0), loss="sinkhorn")
    yield instance("geomloss.SamplesLoss", noise(6, 3), noise(6, 3).flip(0), loss="energy")
    for n in ("Leaky", "Synaptic", "Alpha", "Lapicque", "RLeaky", "RSynaptic", "SLSTM"):
        kw = {
            "Leaky": {"beta": 0.9},
            "Synaptic": {"alpha": 0.9, "beta": 0.8},
            "Alpha": {"alpha": 0.9, "beta": 0.8},
            "Lapicque": {"beta": 0.9},
            "RLeaky": {"beta": 0.9, "linear_features": 4},
            "RSynaptic": {"alpha": 0.9, "beta": 0.8, "linear_features": 4},
            "SLSTM": {"input_size": 4, "hidden_size": 4},
        }[n]
        yield instance(f"snntorch.{n}", uniform(3, 4), **kw)
    yield instance("snntorch.Leaky", uniform(3, 4), beta=0.9, inhibition=True, init_hidden=False)
    yield function("snntorch.spikegen.rate", uniform(3, 4), num_steps=5)
    yield function("snntorch.spikegen.latency", uniform(3, 4), num_steps=5)
    yield function("snntorch.spikegen.delta", uniform(3, 4))
    yield function(
        "snntorch.spikegen.targets_rate", labels(3, 4), num_classes=3, num_steps=5, correct_rate=0.8, incorrect_rate=0.2
    )
    yield function("snntorch.spikegen.targets_latency", labels(3, 4), num_classes=3, num_steps=5)
    yield function(
        "snntorch.spikegen.targets_convert",
        labels(3, 4),
        num_classes=3,
        code="rate",
        num_steps=5,
        correct_rate=0.8,
        incorrect_rate=0.2,
    )
    yield function("snntorch.spikegen.from_one_hot", torch.eye(3))
    yield function("snntorch.spikegen.rate_interpolate", torch.tensor([1, 3]), 5)
    for n in (
        "ce_rate_loss",
        "ce_count_loss",
        "ce_max_membrane_loss",
        "ce_temporal_loss",
        "mse_count_loss",
        "mse_temporal_loss",
        "mse_membrane_loss",
    ):
        yield instance(f"snntorch.functional.{n}", uniform(5, 4, 3).round(), labels(3, 4))
    yield function("snntorch.functional.accuracy_rate", uniform(5, 4, 3).round(), labels(3, 4))
    yield function("snntorch.functional.accuracy_temporal", uniform(5, 4, 3).round(), labels(3, 4))
    yield case(
        "snntorch.functional.state_quant",
        lambda: named("snntorch.functional.state_quant")(num_bits=4),
        (uniform(4, 3),),
    )
    yield case(
        "snntorch.functional.l1_rate_sparsity",
        lambda: named("snntorch.functional.reg.l1_rate_sparsity")(),
        (uniform(4, 3),),
    )
    for n in ("IFNode", "LIFNode", "ParametricLIFNode", "QIFNode", "EIFNode", "IzhikevichNode"):
        yield instance(f"spikingjelly.activation_based.neuron.{n}", uniform(3, 4))
    yield instance("spikingjelly.activation_based.encoding.PoissonEncoder", uniform(3, 4))
    yield instance("spikingjelly.activation_based.encoding.LatencyEncoder", uniform(3, 4), T=5)
    for n in ("NeuNorm",):
        pass
    yield function("torch_pitch_shift.pitch_shift", noise(1, 1, 16000), 1.5, 16000)
    for n in (
        "Gain",
        "PolarityInversion",
        "LowPassFilter",
        "HighPassFilter",
        "BandPassFilter",
        "BandStopFilter",
        "AddColoredNoise",
        "PeakNormalization",
        "Shift",
        "ShuffleChannels",
        "TimeInversion",
        "PitchShift",
        "SpliceOut",
        "Padding",
        "Identity",
    ):
        kw = {"p": 1.0, "output_type": "dict"}
        if n in (
            "AddColoredNoise",
            "PitchShift",
            "LowPassFilter",
            "HighPassFilter",
            "BandPassFilter",
            "BandStopFilter",
        ):
            kw["sample_rate"] = 16000
        yield (
            instance(f"torch_audiomentations.{n}", noise(2, 2, 16000), **kw)
            if n not in ("PitchShift",)
            else instance(f"torch_audiomentations.{n}", noise(1, 1, 16000), **kw)
        )
    yield instance("torch_stoi.NegSTOILoss", noise(1, 16000), noise(1, 16000).flip(1), sample_rate=16000)
    for n in ("resample_frac",):
        yield function(f"julius.{n}", noise(2, 64), 4, 5)
    yield function("julius.lowpass_filter", noise(2, 512), 0.1)
    yield instance("julius.BandPassFilter", noise(2, 512), cutoff_low=0.1, cutoff_high=0.2)
    yield instance("julius.SplitBands", noise(2, 2048), sample_rate=16000, n_bands=4)
    yield function("julius.fft_conv1d", noise(1, 1, 512), noise(1, 1, 64))
    for n in ("STFT", "MelSpectrogram", "MFCC", "Gammatonegram", "CQT1992v2", "CQT2010v2", "VQT", "iSTFT", "VQT"):
        kw = {}
        if n == "STFT":
            kw = {"n_fft": 256}
        if n in ("CQT2010v2", "VQT"):
            kw = {"n_bins": 24}
        if n == "Griffin_Lim":
            yield instance("nnAudio.features.Griffin_Lim", uniform(1, 129, 20), n_fft=256, n_iter=2)
            continue
        yield (
            instance(f"nnAudio.features.{n}", noise(1, 22050), **kw)
            if n not in ("iSTFT",)
            else instance("nnAudio.features.STFT", noise(1, 8192), n_fft=256, output_format="Complex")
        )
    for n in ("angular_loss",):
        pass
    for n in ("SparsePoly",):
        pass
    yield function("torchdiffeq.odeint", lambda t, y: -y, uniform(3), torch.linspace(0, 1, 5))
    for m in (
        "dopri8",
        "bosh3",
        "adaptive_heun",
        "euler",
        "midpoint",
        "rk4",
        "explicit_adams",
        "implicit_adams",
        "fehlberg2",
    ):
        yield function("torchdiffeq.odeint", lambda t, y: -y, uniform(3), torch.linspace(0, 1, 5), method=m)
    yield function("torchcde.linear_interpolation_coeffs", uniform(2, 6, 3))
    yield function("torchcde.hermite_cubic_coefficients_with_backward_differences", uniform(2, 6, 3))
    yield function("torchcde.natural_cubic_coeffs", uniform(2, 6, 3))
    yield (
        function("torchcde.logsig_windows", uniform(2, 6, 3), 2, 3.0)
        if False
        else function(
            "torchcde.rectilinear_interpolation_coeffs" if False else "torchcde.linear_interpolation_coeffs",
            uniform(2, 6, 3),
            rectilinear=0,
        )
    )
    yield function(
        "torchcde.natural_cubic_coeffs",
        torch.where(uniform(2, 6, 3) > 0.8, torch.tensor(float("nan")), uniform(2, 6, 3)),
    )
    yield case(
        "torchcde.CubicSpline",
        lambda: (
            lambda c: named("torchcde.CubicSpline")(named("torchcde.natural_cubic_coeffs")(c)).evaluate(
                torch.tensor(1.5)
            )
        ),
        (uniform(2, 6, 3),),
    )
    yield case(
        "torchcde.LinearInterpolation",
        lambda: (
            lambda c: named("torchcde.LinearInterpolation")(
                named("torchcde.linear_interpolation_coeffs")(c)
            ).derivative(torch.tensor(1.5))
        ),
        (uniform(2, 6, 3),),
    )
    for n in ("ssim", "ms_ssim"):
        yield function(f"pytorch_msssim.{n}", uniform(1, 3, 192, 192), uniform(1, 3, 192, 192).flip(3), data_range=1)
    for n in (
        "FGSM",
        "PGD",
        "BIM",
        "CW",
        "PGDL2",
        "EOTPGD",
        "FFGSM",
        "TPGD",
        "MIFGSM",
        "NIFGSM",
        "SINIFGSM",
        "VMIFGSM",
        "VNIFGSM",
        "DIFGSM",
        "TIFGSM",
        "RFGSM",
        "APGD",
        "APGDT",
        "FAB",
        "Square",
        "DeepFool",
        "OnePixel",
        "SparseFool",
        "GN",
        "UPGD",
        "Jitter",
        "PGDRS",
        "PGDRSL2",
        "Pixle",
        "SPSA",
        "JSMA",
        "PIFGSM",
        "PIFGSMPP",
    ):

        def attack(n=n):
            class Attack(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.net = torch.nn.Sequential(
                        torch.nn.Conv2d(3, 2, 3),
                        torch.nn.AdaptiveAvgPool2d(2),
                        torch.nn.Flatten(),
                        torch.nn.Linear(8, 10),
                    )

                def forward(self, x, y):
                    kw = (
                        {"steps": 2}
                        if n
                        not in (
                            "FGSM",
                            "FFGSM",
                            "GN",
                            "Square",
                            "OnePixel",
                            "FAB",
                            "JSMA",
                            "EADL1",
                            "EADEN",
                            "Pixle",
                            "PIFGSM",
                            "PIFGSMPP",
                        )
                        else {}
                    )
                    if n in ("EADL1", "EADEN"):
                        kw = {"max_iterations": 2, "binary_search_steps": 1}
                    if n == "OnePixel":
                        kw = {"steps": 1, "popsize": 3}
                    if n == "Square":
                        kw = {"n_queries": 3}
                    if n == "FAB":
                        kw = {"steps": 2, "n_classes": 10}
                    if n == "Pixle":
                        kw = {"restarts": 1, "max_iterations": 2}
                    if n == "SPSA":
                        kw = {"nb_iter": 1, "nb_sample": 4}
                    if n == "JSMA":
                        kw = {"theta": 1.0, "gamma": 0.01}
                    return named(f"torchattacks.{n}")(self.net, **kw)(x, y)

            return Attack()

        yield case(f"torchattacks.{n}", attack, (uniform(2, 3, 16, 16), labels(10, 2)))
