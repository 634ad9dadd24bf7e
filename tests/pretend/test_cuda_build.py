"""Pretend devices on the build of torch that ``pip install torch`` gives on Linux: with CUDA, and no GPU there.

``ASSAY_CUDA_BUILD`` names the Python of an environment that has it; ``make test-cuda-build`` makes one.
"""

from __future__ import annotations

import os
import subprocess

import pytest

OTHER = os.environ.get("ASSAY_CUDA_BUILD", "")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not OTHER, reason="ASSAY_CUDA_BUILD names no other Python")]

TRAINS = """
import torch
from torch import nn
from assay.pretend import pretend

def trained(where):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(where)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.ones(5, 3).to(where)), torch.zeros(5).long().to(where)).backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]

expected = trained("cpu")
for _ in range(2):
    with pretend({kind!r}, engine={engine!r}) as device:
        assert torch.get_device_module({kind!r}).is_available()
        assert torch.accelerator.current_accelerator() == torch.device({kind!r})
        got = trained(device.device)
        assert device.syncs
        assert torch.ones(3).pin_memory().is_pinned()
    assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))
assert not torch.cuda.is_available()
print(device.engine)
"""
REFUSED = """
from assay.pretend import pretend
from assay.pretend.errors import PretendError
try:
    with pretend({kind!r}, engine={engine!r}):
        raise SystemExit("it opened")
except PretendError as error:
    print(error)
"""


def run(code: str) -> str:
    """What a piece of code prints there."""
    done = subprocess.run([OTHER, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_other_build_has_cuda_and_no_gpu():
    assert run("import torch; print(torch._C._has_cuda, torch.cuda.is_available())") == "True False\n"


@pytest.mark.parametrize("engine", ["auto", "python"])
@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_a_model_trains_on_the_engine_without_a_compiler(kind: str, engine: str):
    assert run(TRAINS.format(kind=kind, engine=engine)) == "python\n"


@pytest.mark.parametrize(
    ("kind", "engine", "what"),
    [("cuda", "auto", "pretend('cuda')"), ("cuda", "python", "pretend('cuda')"), ("mps", "native", "engine='native'")],
)
def test_what_cannot_be_is_refused_with_the_command_that_helps(kind: str, engine: str, what: str):
    said = run(REFUSED.format(kind=kind, engine=engine))
    assert what in said
    assert "pip install torch==" in said
    assert "--index-url https://download.pytorch.org/whl/cpu" in said
