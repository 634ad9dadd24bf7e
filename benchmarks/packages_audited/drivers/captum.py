"""Calls of captum."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import Net, case, labels, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case(
        "captum.attr.IntegratedGradients",
        lambda: Net(
            lambda: torch.nn.Linear(4, 3),
            lambda m, x, y: named("captum.attr.IntegratedGradients")(m).attribute(x, target=y),
        ),
        (noise(2, 4), labels(3, 2)),
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
