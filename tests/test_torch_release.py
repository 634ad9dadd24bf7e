"""What holds on every release of torch that is named as tried, and on its builds for the CPU and for CUDA.

``make test-torch TORCH=2.14.1`` runs it with another release than the pinned one. Where a build has a device itself,
that kind is not pretended.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from assay import Accuracy, audit, evaluate
from assay.devices.policies import available
from assay.pretend import pretend
from assay.pretend.torch_patches import real_devices

KINDS = [kind for kind in ("cuda", "mps", "xpu") if kind not in real_devices()]
SCRIPT = """
import torch
device = torch.accelerator.current_accelerator()
net = torch.nn.Linear(2, 2).to(device)
optimizer = torch.optim.Adam(net.parameters())
net(torch.ones(3, 2, device=device)).sum().backward()
optimizer.step()
torch.arange(3) + net(torch.ones(3, 2, device=device))[:, 0]
"""


def trained(device) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        labels = torch.zeros(5, dtype=torch.int64, device=device)
        nn.functional.cross_entropy(model(torch.ones(5, 3, device=device)), labels).backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]


def test_the_machine_has_a_cpu():
    assert available()[0] == torch.device("cpu")


def test_a_model_is_evaluated_on_the_cpu():
    data = [(torch.eye(3), torch.tensor([0, 1, 1]))] * 4
    report = evaluate(nn.Identity(), data, {"accuracy": Accuracy(num_classes=3)}, device="cpu", progress=False)
    assert "0.6667" in report.to_markdown()


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_trains_and_is_measured_as_on_the_cpu(kind):
    expected = trained("cpu")
    with pretend(kind) as there:
        assert torch.accelerator.is_available()
        assert torch.accelerator.current_accelerator() == torch.device(kind)
        got = trained(there.device)
        measured = Accuracy(num_classes=3)(
            torch.eye(3, device=there.device), torch.tensor([0, 1, 1], device=there.device)
        )
        assert float(measured) == pytest.approx(2 / 3)
    assert all(torch.equal(one, other) for one, other in zip(expected, got, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.exhaustive
def test_a_script_with_an_optimizer_is_audited(kind, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    result = audit.audit(str(script), [kind])
    assert [(found.rule, found.line) for found in result.findings] == [("mixed-devices", 8)]
    assert result.unrun == ()
