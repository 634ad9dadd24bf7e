"""Operators that torch sends to the CPU as a whole on Apple GPUs, though elsewhere they are made of others."""

from __future__ import annotations

import pytest
import torch

from assay.devices.operators.rules import rules
from assay.pretend.native_engine.build import why_not
from assay.pretend.session import pretend

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason="the native engine needs a C++ compiler"),
    pytest.mark.skipif(rules("mps").operator("aten::_linalg_svd").available, reason="mps has a kernel since 2.14"),
]


@pytest.mark.filterwarnings("ignore:The operator .aten..linalg_svd")
def test_svd_runs_on_the_cpu_and_is_seen_to():
    # The warning is what people with Apple GPUs see: pytorch/pytorch#125537.
    matrix = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    with pretend("mps", engine="native") as mps:
        u, values, vh = torch.linalg.svd(matrix.to(mps.device))
        assert [event.operator for event in mps.events if event.kind == "fallback"] == ["aten::linalg_svd"]
        assert values.device == u.device == vh.device == mps.device
        assert values.tolist() == [2.0, 1.0]


def test_singular_values_alone_are_refused():
    with pretend("mps", engine="native") as mps:
        with pytest.raises(NotImplementedError, match=r"The operator 'aten::_linalg_svd.U' is not currently"):
            torch.linalg.svdvals(torch.eye(2, device=mps.device))
        assert [event.operator for event in mps.events if event.kind == "operator"] == ["aten::_linalg_svd"]
