"""Parity names the operator that is wrong, and nothing where a device gives the CPU's values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from assay.audit.parity import compare, compare_runs
from assay.errors import CapacityError, ConfigError, InputError
from assay.pretend import PretendError, pretend
from assay.pretend.native_engine.build import why_not
from thinning import one_of_each

pytestmark = pytest.mark.skipif(bool(why_not()), reason=f"the native engine cannot be built: {why_not()}")
DEVICES = ("mps", "cuda:1", "xpu")
MODES = ("lockstep", "free")
HERE = str(Path(__file__))


class Fault(TorchDispatchMode):
    """Makes one operator wrong, on devices and not on the CPU."""

    def __init__(self, operator: str, wrong: Callable[[Any], Any]) -> None:
        super().__init__()
        self.operator, self.wrong, self.times = operator, wrong, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        parts = result if isinstance(result, tuple | list) else (result,)
        device = next((part.device for part in parts if isinstance(part, Tensor)), torch.device("cpu"))
        if func.name() != self.operator or device == torch.device("cpu"):
            return result
        self.times += 1
        return self.wrong(result)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.LayerNorm(16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> list[float]:
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def line_of(text: str) -> int:
    return next(at for at, line in enumerate(Path(HERE).read_text().splitlines(), 1) if line.strip() == text)


@pytest.fixture
def training() -> tuple[Any, ...]:
    torch.manual_seed(3)
    model = Net()
    return model, torch.optim.Adam(model.parameters()), torch.randn(5, 8), torch.randint(3, (5,))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("device", DEVICES)
def test_a_training_step_on_a_device_with_the_values_of_the_cpu_agrees(training, device, mode):
    parity = compare(train, *training, device=device, mode=mode)
    assert parity.divergences == ()
    assert parity.agrees
    assert parity.engine == "native"
    assert parity.compared > 40
    assert parity.results == 2


def test_other_operators_of_a_device_are_noted(training):
    parity = compare(train, *training, device="cuda")
    told = {note.operator: note.why for note in parity.notes}
    assert "the CPU ran aten::bernoulli_.float" in told["aten::native_dropout"]
    assert any("_foreach_add_" in operator for operator in told)


FAULTS = {
    "forward, in a module": (
        "aten::native_layer_norm",
        lambda out: (out[0] * 1.001, *out[1:]),
        ("value", "return self.head(self.layers(x))", "Net.layers.2", False),
    ),
    "outside of modules": (
        "aten::nll_loss_forward",
        lambda out: (out[0] + 0.1, out[1]),
        ("value", "loss = F.cross_entropy(model(x), y)", "", False),
    ),
    "backward": (
        "aten::threshold_backward",
        lambda out: out + 0.001,
        ("value", "return self.head(self.layers(x))", "Net.layers.3", True),
    ),
    "backward, outside of modules": (
        "aten::nll_loss_backward",
        lambda out: out * 2,
        ("value", "loss = F.cross_entropy(model(x), y)", "", True),
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FAULTS)
@one_of_each(lambda name, **_: name)
def test_the_operator_that_is_wrong_is_named_first(training, name, device, mode):
    operator, wrong, (kind, line, module, backward) = FAULTS[name]
    with Fault(operator, wrong) as fault:
        parity = compare(train, *training, device=device, mode=mode)
    assert fault.times >= 2
    first = parity.first
    assert first is not None
    assert not parity.agrees
    assert (first.kind, first.operator) == (kind, operator)
    assert (first.file, first.line) == (HERE, line_of(line))
    assert (first.module, first.backward) == (module, backward)
    assert first.difference is not None
    assert operator in str(parity)


def test_lockstep_names_all_that_are_wrong_and_nothing_else(training):
    with Fault("aten::native_layer_norm", lambda out: (out[0] * 1.001, *out[1:])), Fault("aten::relu", lambda x: x + 1):
        parity = compare(train, *training, device="mps")
    assert [found.operator for found in parity.divergences] == ["aten::native_layer_norm", "aten::relu"]
    assert [found.count for found in parity.divergences] == [2, 2]


def test_in_free_mode_the_others_are_its_consequences(training):
    with Fault("aten::native_layer_norm", lambda out: (out[0] * 1.001, *out[1:])):
        parity = compare(train, *training, device="mps", mode="free")
    assert parity.first.operator == "aten::native_layer_norm"
    assert len(parity.divergences) > 3


def test_lockstep_says_which_is_nearer_to_float64():
    with Fault("aten::exp", lambda x: x * 1.01):
        parity = compare(torch.exp, torch.linspace(0, 1, 5), device="mps")
    assert parity.first.difference.nearer == "cpu"
    assert "The CPU is nearer to float64" in parity.first.why


@pytest.mark.parametrize("mode", MODES)
def test_what_other_operators_of_the_device_compute_is_compared_where_the_runs_meet(training, mode):
    with Fault("aten::_foreach_sqrt", lambda out: [x * 3 for x in out]) as fault:
        parity = compare(train, *training, device="cuda", mode=mode)
    assert fault.times
    assert parity.first.operator == "aten::addmm"
    assert parity.first.kind == ("operand" if mode == "lockstep" else "value")
    assert mode == "free" or "_foreach" in parity.first.why


def test_a_view_with_other_values_shows_in_the_operator_after_it():
    def program(x: Tensor) -> Tensor:
        y = x * 2
        return y.t().sum()

    with Fault("aten::t", lambda view: view + 1):
        parity = compare(program, torch.ones(2, 3), device="mps")
    assert (parity.first.kind, parity.first.operator) == ("operand", "aten::sum")
    assert "though no operator before it diverged" in parity.first.why


def test_a_value_read_by_the_host_is_compared():
    class Reads(Fault):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            wrong = func.name() == self.operator and args[0].device != torch.device("cpu")
            return result + 0.5 if wrong else result

    with Reads("aten::_local_scalar_dense", lambda x: x):
        parity = compare(lambda x: x.sum().item(), torch.ones(3), device="mps")
    assert parity.first.operator == "aten::_local_scalar_dense"
    assert (parity.first.difference.cpu, parity.first.difference.device) == (3.0, 3.5)


def test_another_shape_is_named():
    with Fault("aten::relu", lambda x: x[:1]):
        parity = compare(torch.relu, torch.ones(3), device="mps")
    assert parity.first.kind == "shape"
    assert parity.first.why == "shape (3,) on the CPU, (1,) on the device"


def wide_on_the_cpu(x: Tensor, device: torch.device, large: float) -> Tensor:
    y = x.to(torch.float64 if device == torch.device("cpu") else torch.float32)
    return (y / 3 + large) - large


def test_another_dtype_is_noted_as_long_as_the_values_agree():
    parity = compare(wide_on_the_cpu, torch.ones(3), torch.device("cpu"), 1.0, device="mps")
    assert parity.agrees
    noted = [note for note in parity.notes if note.kind == "dtype"]
    assert [note.why for note in noted] == ["torch.float64 on the CPU, torch.float32 on the device"] * 3


def test_float64_on_the_cpu_and_float32_on_the_device_diverge_where_float32_is_not_enough():
    parity = compare(wide_on_the_cpu, torch.ones(3), torch.device("cpu"), 1e4, device="mps", mode="free")
    assert parity.first.operator == "aten::sub.Tensor"
    assert parity.first.difference.dtypes == ("float64", "float32")
    assert parity.first.difference.relative > 1.3e-6


@pytest.mark.parametrize(("factor", "agrees"), [(1.01, True), (1.05, False)])
def test_bfloat16_has_its_own_tolerance(factor, agrees):
    with Fault("aten::mul.Tensor", lambda x: x * factor) as fault:
        parity = compare(lambda x: x * x, torch.full((3,), 1.5, dtype=torch.bfloat16), device="cuda")
    assert fault.times
    assert parity.agrees is agrees


def test_the_caller_may_set_the_tolerance():
    def off(**tolerance: float) -> bool:
        with Fault("aten::exp", lambda x: x * 1.01):
            return compare(torch.exp, torch.ones(3), device="mps", **tolerance).agrees

    assert not off()
    assert off(relative=0.02, absolute=0.0)


def test_random_numbers_are_those_of_the_cpu():
    def program(x: Tensor) -> Tensor:
        noise = torch.rand(3, device=x.device)
        chosen = torch.multinomial(x, 2) + torch.randperm(2, device=x.device)
        return F.dropout(x + noise) + chosen.sum()

    for device in DEVICES:
        parity = compare(program, torch.ones(3), device=device)
        assert parity.agrees, parity
        assert parity.random >= 3


def test_a_number_made_from_what_only_the_device_draws_is_not_compared():
    parity = compare(lambda x: F.dropout(x).sum().item(), torch.ones(100), device="cuda")
    assert parity.divergences == ()
    assert [note.operator for note in parity.notes] == ["aten::native_dropout"]


def test_nan_is_equal_to_nan_and_results_may_be_trees():
    def program(x: Tensor) -> dict[str, Any]:
        return {"a": [x.log(), (x > 0)], "b": (x.long(), x.numpy(force=True), 3, "text", None)}

    parity = compare(program, torch.tensor([-1.0, 2.0]), device="cuda")
    assert parity.agrees, parity
    assert parity.results == 5


def test_results_that_leave_torch_are_compared():
    def program(x: Tensor, device: torch.device) -> np.ndarray:
        return (x * 2).numpy(force=True) + (device != torch.device("cpu"))

    parity = compare(program, torch.ones(2), torch.device("cpu"), device="mps")
    assert [found.kind for found in parity.divergences] == ["result"]
    assert "[0]: 2.0 on the CPU, 3.0 on the device" in parity.first.why


def test_integers_are_equal_or_they_are_not():
    with Fault("aten::add.Tensor", lambda x: x + (x > 10**15)):
        parity = compare(lambda x: x + 1, torch.tensor([2**60, 3]), device="cuda")
    assert parity.first.difference.absolute == 1
    assert parity.first.difference.ulps is None


def test_in_place_operators_views_and_expanded_tensors():
    def program(x: Tensor) -> Tensor:
        y = x.clone()
        y[0].mul_(2)
        y[:, 1] = 7
        y.t().add_(1)
        buffer = x.new_empty(3, 4)
        buffer[1:] = y[:1].expand(2, 4)
        return buffer[1:].sum(0, keepdim=True).expand(3, 4) * y[:1]

    for mode in MODES:
        assert compare(program, torch.randn(2, 4), device="mps", mode=mode).agrees
        with Fault("aten::mul_.Tensor", lambda x: x.add_(1)):
            parity = compare(program, torch.randn(2, 4), device="mps", mode=mode)
        assert parity.first.operator == "aten::mul_.Tensor"


def test_what_is_written_into_out_is_compared():
    def program(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        torch.exp(x, out=out)
        return out + 1

    assert compare(program, torch.ones(3), device="mps").agrees
    with Fault("aten::exp.out", lambda x: x.mul_(2)):
        parity = compare(program, torch.ones(3), device="mps")
    assert [found.operator for found in parity.divergences] == ["aten::exp.out"]


def test_an_operator_that_the_device_lacks_is_told_with_its_line():
    parity = compare(lambda x: torch.linalg.eigvals(x * 2), torch.eye(3), device="mps")
    assert parity.first.kind == "error"
    assert parity.first.operator == "aten::linalg_eig"
    assert "is not currently implemented for the MPS device" in parity.first.why
    assert parity.first.file == HERE
    assert parity.compared == 1


def test_a_module_that_was_not_moved_is_an_error_of_the_device():
    model = nn.Linear(3, 2)
    parity = compare(lambda x: model(x), torch.ones(1, 3), device="cuda")
    assert parity.first.kind == "error"
    assert "Expected all tensors to be on the same device" in parity.first.why
    assert parity.first.module == "Linear"


def test_an_error_of_the_program_itself_is_told_with_its_line():
    def program(device: torch.device) -> None:
        if device != torch.device("cpu"):
            raise ValueError("no such device")

    parity = compare(program, torch.device("cpu"), device="mps")
    assert parity.first.why == "ValueError: no such device"
    assert parity.first.line == line_of('raise ValueError("no such device")')


def test_the_callers_things_stay_as_they_are(training):
    model, optimizer, x, y = training
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    compare(train, model, optimizer, x, y, device="cuda")
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not optimizer.state
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_method_is_moved_with_its_object():
    class Trainer:
        def __init__(self) -> None:
            self.model = nn.Linear(3, 1)

        def to(self, device: torch.device) -> Trainer:
            self.model.to(device)
            return self

        def loss(self, x: Tensor) -> Tensor:
            return self.model(x).sum()

    assert compare(Trainer().loss, torch.ones(2, 3), device="xpu").agrees


def test_an_optimizer_that_has_run_before_is_moved():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.ones(2, 3), torch.zeros(2, dtype=torch.long)
    train(model, optimizer, x, y)
    assert compare(train, model, optimizer, x, y, device="cuda").agrees


def test_a_pretend_device_that_is_open_can_be_used():
    with pretend("cuda", count=2) as machine:
        parity = compare(torch.exp, torch.ones(3), device=machine)
        assert (parity.device, parity.engine) == ("cuda:1", "native")
        assert machine.syncs == []  # looking at values is not seen
        with pytest.raises(ConfigError, match=r"device: got cuda while a pretend device is open.*Pass what"):
            compare(torch.exp, torch.ones(3), device="cuda")


def test_the_engine_without_a_compiler_is_refused():
    with pytest.raises(PretendError, match=r"got the engine 'python', which hides the operators"):
        compare(torch.exp, torch.ones(3), device="mps", engine="python")


def test_what_cannot_be_compared_says_so():
    with pytest.raises(InputError, match=r"the run on the CPU: got RuntimeError: .*Fix it on the CPU first"):
        compare(lambda x: x @ x, torch.ones(2, 3), device="mps")
    with pytest.raises(InputError, match=r"the arguments: got RuntimeError: Only Tensors created explicitly"):
        compare(torch.exp, torch.ones(2, requires_grad=True) * 2, device="mps")
    with pytest.raises(ConfigError, match=r"mode: got 'strict', expected 'lockstep' or 'free'"):
        compare(torch.exp, torch.ones(2), device="mps", mode="strict")
    with pytest.raises(ConfigError, match=r"the tolerance: got relative=0.1, absolute=None, expected both or neither"):
        compare(torch.exp, torch.ones(2), device="mps", relative=0.1)
    with pytest.raises(CapacityError, match=r"after 0 operators.*Pass a smaller batch"):
        compare(torch.exp, torch.ones(2000), device="mps", limit=1000)


def test_a_program_that_finds_a_device_on_the_cpu_is_refused():
    def make(device: torch.device) -> Callable[[], Tensor]:
        return lambda: torch.ones(3, device=machine.device) + 1

    with (
        pretend("mps") as machine,
        pytest.raises(InputError, match=r"got a tensor on mps:0, expected tensors on the CPU"),
    ):
        compare_runs(make, target="elsewhere", device=machine)


def test_nothing_compared_is_not_agreement():
    assert not compare(lambda: None, device="mps").agrees
