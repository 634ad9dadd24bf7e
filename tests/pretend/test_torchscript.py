"""TorchScript on a pretend device: its lists of optional tensors are not of the type that C++ makes."""

from __future__ import annotations

import pytest
import torch

from assay.pretend.native_engine.build import why_not
from assay.pretend.session import pretend

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason="the native engine needs a C++ compiler"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning"),
]


def positive(values: torch.Tensor) -> torch.Tensor:
    return values[values > 0]


def test_a_scripted_function_that_indexes_by_a_mask_gives_the_values_and_is_seen_to_wait():
    scripted = torch.jit.script(positive)
    values = torch.tensor([1.0, -2.0, 3.0])
    with pretend("cuda:1", engine="native") as gpu:
        found = scripted(values.to(gpu.device))
        assert [event.operator for event in gpu.syncs if "index" in event.operator] == ["aten::index.Tensor"]
        assert found.device == gpu.device
        assert found.cpu().tolist() == [1.0, 3.0]


def zeroed(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[x > 2] = 0.0
    return x


def test_a_scripted_function_that_writes_through_a_mask_gives_the_values():
    with pretend("cuda", engine="native") as gpu:
        assert torch.jit.script(zeroed)(torch.arange(5.0, device=gpu.device)).tolist() == [0.0, 1.0, 2.0, 0.0, 0.0]
