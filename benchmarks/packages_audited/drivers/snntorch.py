"""Calls of snntorch."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, function, instance, labels, named, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
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
