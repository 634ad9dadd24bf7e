"""Calls of spikingjelly."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("IFNode", "LIFNode", "ParametricLIFNode", "QIFNode", "EIFNode", "IzhikevichNode"):
        yield instance(f"spikingjelly.activation_based.neuron.{n}", uniform(3, 4))
    yield instance("spikingjelly.activation_based.encoding.PoissonEncoder", uniform(3, 4))
    yield instance("spikingjelly.activation_based.encoding.LatencyEncoder", uniform(3, 4), T=5)
