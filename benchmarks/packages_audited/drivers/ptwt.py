"""Calls of ptwt."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield case("ptwt.wavedec", lambda: lambda x: named("ptwt.wavedec")(x, "db2", level=2), (noise(1, 64),))
    yield case("ptwt.MatrixWavedec", lambda: lambda x: named("ptwt.MatrixWavedec")("db2", level=2)(x), (noise(1, 64),))
    yield case(
        "ptwt.cwt", lambda: lambda x: named("ptwt.cwt")(x, torch.arange(1, 5).numpy(), "mexh")[0], (noise(1, 64),)
    )
    yield case(
        "ptwt.WaveletPacket", lambda: lambda x: named("ptwt.WaveletPacket")(x, "db2", maxlevel=2)["aa"], (noise(1, 64),)
    )
    yield case("ptwt.wavedec2", lambda: lambda x: named("ptwt.wavedec2")(x, "haar", level=2)[0], (noise(1, 16, 16),))
