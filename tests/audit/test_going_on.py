"""A program goes on after what the device refuses, so that one audit reports all of it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
import torch

from assay.audit import audit
from assay.audit.watching import going_on as module
from assay.audit.watching.going_on import GoingOn
from assay.pretend import pretend

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


OTHER_ERRORS = """
import numpy
import torch
device = torch.device({device!r})
wave, lengths = torch.rand(2, 64, device=device), torch.tensor([3, 2], device=device)
spectrum = torch.stft(wave, 16, window=torch.hann_window(16), return_complex=True)
draw = torch.randperm(4, generator=torch.Generator().manual_seed(0), device=device)
hidden = torch.zeros(1, 2, 5)
out, _ = torch.nn.GRU(3, 5, batch_first=True).to(device)(torch.rand(2, 3, 3, device=device), hidden)
packed = torch.nn.utils.rnn.pack_padded_sequence(out, lengths, batch_first=True)
assert packed.batch_sizes.device.type == "cpu"
counts = numpy.histogram(wave, bins=2)
(gradient,) = torch.autograd.grad(out, out, grad_outputs=torch.ones(2, 3, 5))
rest = wave.sum().numpy()
last = wave + torch.ones(64)
torch.rand(3).reshape(7)
"""
EXPECTED = [
    ("mixed-devices", 6),
    ("device-error", 7),
    ("mixed-devices", 9),
    ("device-error", 10),
    ("device-error", 12),
    ("mixed-devices", 13),
    ("device-error", 14),
    ("mixed-devices", 15),
]


@pytest.mark.parametrize("device", ["mps", "cuda"])
@pytest.mark.exhaustive
def test_a_program_goes_on_after_errors_that_no_refusal_explains(tmp_path, device):
    script = tmp_path / "errors.py"
    script.write_text(OTHER_ERRORS.format(device=device))
    result = audit(str(script), [device])
    seen = [each for each in rules_and_lines(result) if each[0] != "device-sync"]
    assert seen == EXPECTED
    (ended,) = [part.why for part in result.unrun if not part.known]  # by an error of the program's own
    assert "shape '[7]' is invalid" in ended
    stray = next(found for found in result.findings if found.line == 9)
    assert (stray.origins[0].what, stray.origins[0].line) == ("`hidden` was made on cpu", 8)


def test_an_error_that_the_cpu_raises_as_well_is_no_finding(tmp_path):
    script = tmp_path / "wrong.py"
    script.write_text("import torch\nx = torch.rand(3, device='mps')\nx.reshape(7)\n")
    result = audit(str(script), ["mps"])
    assert result.findings == ()
    assert result.exit_code() == 2


SECOND_GPU = """
import torch
device = torch.device("cuda")
net = torch.nn.Linear(4, 3).to(device)
x = torch.rand(8, 4, device=device)
y = net(x) * torch.arange(3.0)
noise = torch.rand(8, 3, generator=torch.Generator(), device=device)
loss = torch.nn.functional.cross_entropy(y + noise, torch.zeros(8).long())
loss.backward()
print((torch.histogram(y.detach(), bins=3)[0] * x[:3, 0]).sum())
"""


@pytest.mark.exhaustive
def test_operands_of_the_first_of_two_devices_stay_there_when_the_program_goes_on(tmp_path):
    script = tmp_path / "first.py"
    script.write_text(SECOND_GPU)
    result = audit(str(script), ["cuda:1"])
    found = [each for each in rules_and_lines(result) if each[0] != "device-sync"]
    assert found == [("mixed-devices", 6), ("device-error", 7), ("mixed-devices", 8), ("operator-missing", 10)]


RESUMED = """
import torch
device = torch.accelerator.current_accelerator()
weight = torch.rand(3, device=device)
state = torch.get_rng_state().to(device)
torch.set_rng_state(state)
torch.random.set_rng_state(state)
with torch.autocast("cuda", dtype=torch.bfloat16):
    print((weight * torch.ones(3)).sum().item())
"""


@pytest.mark.parametrize("device", ["mps", "npu"])
@pytest.mark.exhaustive
def test_states_of_generators_and_what_is_off_are_found_behind_an_error(tmp_path, device):
    """torch shows neither to modes; and autocast of another device is off without an error, so nothing stops there."""
    script = tmp_path / "resumed.py"
    script.write_text(RESUMED)
    result = audit(str(script), [device])
    found = [each for each in rules_and_lines(result) if each[0] != "device-sync"]
    assert found == [("device-error", 6), ("device-error", 7), ("hard-coded-device", 8), ("mixed-devices", 9)]
    assert [part for part in result.unrun if not part.known] == []


COLLECTIVE = """
import torch
import torch.distributed as dist
dist.init_process_group({backend!r}, init_method="file://{store}", rank=0, world_size=1)
device = torch.device({device!r})
total = torch.ones(3, device=device)
dist.all_reduce(total)
dist.all_reduce(torch.ones(3))
dist.all_reduce(torch.ones(3), group=dist.new_group(backend="gloo"))
places = [torch.zeros(3, device=device)]
dist.all_gather(places, total + 1)
assert places[0].tolist() == [2.0, 2.0, 2.0]
print(total + torch.ones(3))
"""


@pytest.mark.parametrize(
    ("device", "backend", "expected"),
    [
        ("cuda", "nccl", [("cpu-collective", 8), ("mixed-devices", 13)]),
        ("mps", "gloo", [("operator-missing", 7), ("operator-missing", 11), ("mixed-devices", 13)]),
    ],
)
@pytest.mark.exhaustive
def test_collectives_of_the_device_run_and_those_that_it_refuses_are_found(tmp_path, device, backend, expected):
    script = tmp_path / "collective.py"
    script.write_text(COLLECTIVE.format(device=device, backend=backend, store=tmp_path / "store"))
    result = audit(str(script), [device])
    assert [each for each in rules_and_lines(result) if each[0] != "device-sync"] == expected
    assert [part for part in result.unrun if not part.known] == []


INFERENCE = """
import torch
x = torch.eye(3, device="mps")
with torch.inference_mode():
    values = torch.linalg.eigvals(x)
    total = torch.zeros(3, device="mps")
    total.put_(torch.tensor([1], device="mps"), torch.tensor([5.0], device="mps"))
    assert total.tolist() == [0.0, 5.0, 0.0]
    print((total + torch.ones(3)).sum().item())
"""


@pytest.mark.exhaustive
def test_a_program_goes_on_in_inference_mode(tmp_path):
    """Tensors that are made there have no version, by which writing in place is seen elsewhere."""
    script = tmp_path / "inference.py"
    script.write_text(INFERENCE)
    result = audit(str(script), ["mps"])
    found = [each for each in rules_and_lines(result) if each[0] != "device-sync"]
    assert found == [("operator-missing", 5), ("operator-missing", 7), ("mixed-devices", 9)]
    assert [part for part in result.unrun if not part.known] == []


REFUSED = """
import torch
import torch.distributed as dist
dist.init_process_group("hccl", init_method="file://{store}", rank=0, world_size=1)
device = torch.accelerator.current_accelerator()
total = torch.ones(3, device=device)
dist.all_reduce(torch.ones(3, dtype=torch.float64, device=device))
dist.all_reduce(torch.ones(3))
places = [torch.zeros(3)]
dist.all_gather(places, total + 1)
assert places[0].tolist() == [2.0, 2.0, 2.0]
print((total + torch.ones(3)).sum().item())
"""


@pytest.mark.exhaustive
def test_a_program_goes_on_after_collectives_that_the_backend_of_an_adapter_refuses(tmp_path):
    script = tmp_path / "refused.py"
    script.write_text(REFUSED.format(store=tmp_path / "store"))
    result = audit(str(script), ["npu"])
    assert {7, 8, 10, 12} == {line for rule, line in rules_and_lines(result) if rule != "device-sync"}
    assert [part for part in result.unrun if not part.known] == []


def test_a_further_run_that_ends_its_process_is_reported(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, signal, torch\ntorch.rand(3, device='mps') + torch.ones(3)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = audit(str(script), ["mps"])
    assert rules_and_lines(result) == [("mixed-devices", 2)]
    assert [part.why.partition(": ")[2] for part in result.unrun] == ["ended by signal SIGKILL"]


@pytest.mark.parametrize("device", ["npu", "xpu"])
@pytest.mark.exhaustive
def test_a_program_goes_on_with_a_layer_that_was_left_on_the_cpu(tmp_path, device):
    script = tmp_path / "left.py"
    script.write_text(
        f"import torch\nx = torch.rand(2, 3, device={device!r})\nlayer = torch.nn.Linear(3, 3)\n"
        "y = layer(x)\ny.sum().backward()\nassert layer.weight.grad is not None\ny + torch.ones(3)\n"
    )
    result = audit(str(script), [device])
    assert rules_and_lines(result) == [("mixed-devices", 4), ("mixed-devices", 7)]


@pytest.fixture
def going_on(monkeypatch):
    """Opens it in this process, where a program of a few lines costs no other one; refusals are not explained."""
    monkeypatch.setattr(module, "_may_be_handled", lambda frame: False)  # what runs the tests may stand in a try
    with ExitStack() as opened:
        yield lambda name: opened.enter_context(
            GoingOn(opened.enter_context(pretend(name)), lambda error: "", lambda error: None)
        )


def test_a_call_of_the_first_of_two_devices_stays_there(going_on):
    going_on("cuda:1")
    first = torch.ones(3, device="cuda:0")
    assert (first + torch.ones(3)).device == torch.device("cuda:0")
    assert (torch.ones(3, device="cuda:1") + torch.ones(3)).device == torch.device("cuda:1")


def test_of_a_call_that_wants_one_tensor_on_the_cpu_the_rest_stays(going_on):
    going_on("mps")
    rows, lengths = torch.ones(2, 3, 5, device="mps"), torch.tensor([3, 2], device="mps")
    packed = torch.nn.utils.rnn.pack_padded_sequence(rows, lengths, batch_first=True)
    assert (packed.data.device.type, packed.batch_sizes.device.type) == ("mps", "cpu")
    assert packed.batch_sizes.tolist() == [2, 2, 1]


def test_what_a_collective_writes_is_written_although_no_version_says_so(going_on, monkeypatch):
    def all_reduce(tensor):
        if tensor.device.type != "cpu":
            raise RuntimeError("no backend for tensors of this device")
        tensor.numpy()[:] = 5

    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    going_on("mps")
    total = torch.ones(3, device="mps")
    torch.distributed.all_reduce(total)
    assert (total.device.type, total.tolist()) == ("mps", [5, 5, 5])
