"""Inference mode on a pretend device: what is an inference tensor there, and what is not, is as on the CPU."""

from __future__ import annotations

import pytest
import torch

from assay.pretend.native_engine.build import why_not
from assay.pretend.session import pretend

pytestmark = pytest.mark.skipif(bool(why_not()), reason="the native engine needs a C++ compiler")

WAYS = {
    "slice": lambda x: x[1:],
    "new dimension": lambda x: x[None],
    "reshape": lambda x: x.reshape(-1),
    "transpose": lambda x: x.T,
    "conjugate of a view": lambda x: torch.view_as_complex(x).conj()[1:],
    "new tensor": lambda x: x + 1,
    "view of a new tensor": lambda x: (x + 1)[None],
}


@pytest.mark.parametrize("way", WAYS)
def test_views_of_ordinary_tensors_are_ordinary_and_new_tensors_are_not(way):
    made = {}
    with pretend("cuda:1", engine="native") as gpu:
        for device in ("cpu", gpu.device):
            values = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], device=device, requires_grad=True)
            with torch.inference_mode():
                made[str(device)] = WAYS[way](values)
        host, pretended = made.values()
        assert pretended.is_inference() == host.is_inference()
        assert pretended.requires_grad == host.requires_grad
        assert pretended.is_conj() == host.is_conj()
        assert pretended.detach().cpu().tolist() == host.detach().tolist()


def test_a_view_in_inference_mode_writes_into_its_base():
    with pretend("cuda:1", engine="native") as gpu:
        values = torch.zeros(4, device=gpu.device)
        with torch.inference_mode():
            values[1:3].add_(1)
        assert values.tolist() == [0, 1, 1, 0]
