"""Calls of pytorch_tabnet."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, function, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("pytorch_tabnet.sparsemax.sparsemax", noise(2, 4))
    yield case(
        "pytorch_tabnet.TabNet",
        lambda: named("pytorch_tabnet.tab_network.TabNet")(
            input_dim=4, output_dim=2, group_attention_matrix=torch.eye(4)
        ),
        (noise(8, 4),),
    )
