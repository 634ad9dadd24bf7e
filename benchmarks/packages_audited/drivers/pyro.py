"""Calls of pyro."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, function, named, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
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
