"""A program goes on after what the device refuses, so that one audit reports all of it."""

from __future__ import annotations

import pytest

from assay.audit import audit

FIVE = """
import torch
device = torch.device({device!r})
net = torch.nn.Linear(4, 3).to(device)
x = torch.rand(8, 4, device=device)
weights = torch.arange(3.0)
scaled = net(x) * weights
spare = torch.zeros(3).{method}()
labels = torch.randint(0, 3, (8,))
loss = torch.nn.functional.cross_entropy(scaled, labels)
loss.backward()
for step in range(5):
    print((x * step).sum().item())
host = net.weight.detach().to("cpu", non_blocking=True) + 1
"""
RULES = [
    ("mixed-devices", 7),
    ("hard-coded-device", 8),
    ("mixed-devices", 10),
    ("device-sync", 13),
    ("non-blocking-copy", 14),
]
HANDLED = """
import torch
x = torch.rand(3, device="mps")
try:
    x + torch.ones(3)
except RuntimeError:
    way = "other"
assert way == "other"
y = x.double()
z = torch.frexp(x)
print(torch.linalg.eigh(torch.eye(3, device="mps"))[0] + torch.ones(3))
"""


def rules_and_lines(result) -> list[tuple[str, int]]:
    return sorted({(found.rule, found.line) for found in result.findings}, key=lambda each: each[1])


@pytest.mark.parametrize(
    ("device", "method", "engine"), [("mps", "cuda", "auto"), ("cuda", "xpu", "auto"), ("xpu", "cuda", "python")]
)
@pytest.mark.exhaustive
def test_five_bugs_are_found_in_one_audit(tmp_path, device, method, engine):
    script = tmp_path / "five.py"
    script.write_text(FIVE.format(device=device, method=method))
    result = audit(str(script), [device], engine=engine)
    assert rules_and_lines(result) == RULES
    assert [part for part in result.unrun if not part.known] == []


@pytest.mark.exhaustive
def test_what_the_program_handles_is_raised_and_other_refusals_are_passed(tmp_path):
    script = tmp_path / "handled.py"
    script.write_text(HANDLED)
    result = audit(str(script), ["mps"])
    found = [(each.rule, each.severity, each.line) for each in result.findings]
    assert ("mixed-devices", "note", 5) in found
    assert {("dtype-missing", "error", 9), ("operator-missing", "error", 10), ("mixed-devices", "error", 11)} <= {
        *found
    }
    assert ("operator-missing", "error", 11) in found


WRITTEN = """
import torch
x = torch.ones(3, dtype=torch.bfloat16, device="mps")
x.add_(torch.ones(3, device="mps"), alpha=2)
assert x.tolist() == [3.0, 3.0, 3.0]
torch.ones(3).pin_memory().to("mps")
print(torch.linalg.eigvals(torch.eye(3, device="mps")))
"""


@pytest.mark.exhaustive
def test_what_is_written_in_place_is_written_when_the_program_goes_on(tmp_path):
    script = tmp_path / "written.py"
    script.write_text(WRITTEN)
    result = audit(str(script), ["mps"])
    assert [part for part in result.unrun if not part.known] == []
    refused = [found for found in rules_and_lines(result) if found[0] != "device-sync"]  # printing waits
    assert refused == [("dtype-missing", 4), ("operator-missing", 6), ("operator-missing", 7)]
