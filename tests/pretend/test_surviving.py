"""Threads, processes, what comes after the block, and two devices at once."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch
from torch import nn

from assay.errors import AssayError, ConfigError
from assay.pretend import pretend
from assay.pretend.errors import PretendError

KINDS = ("cuda", "mps", "xpu")


def in_thread(function) -> object:
    """What a function gives in another thread."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    (result,) = results
    if isinstance(result, BaseException):
        raise result
    return result


def test_other_threads_see_the_device(there):
    x = in_thread(lambda: torch.zeros(2, device=there.device) + 1)
    assert x.device == there.device
    assert in_thread(lambda: (x * 2).tolist()) == [2, 2]
    assert in_thread(lambda: torch.ones(2).to(there.device).device) == there.device


def test_other_threads_have_a_current_device_of_their_own(cuda):
    torch.cuda.set_device(1)
    assert in_thread(torch.cuda.current_device) == 0
    assert in_thread(lambda: torch.zeros(1, device="cuda").device) == torch.device("cuda:0")
    assert in_thread(lambda: torch.cuda.set_device(0)) is None
    assert torch.cuda.current_device() == 1
    torch.cuda.set_device(0)


def test_other_threads_are_refused_the_same(there):
    x = torch.ones(2, device=there.device)
    with pytest.raises(RuntimeError, match="same device"):
        in_thread(lambda: x + torch.ones(2))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_of_the_device(kind: str, engine: str):
    with pretend(kind, engine=engine):
        assert torch.get_device_module(kind).is_available()
    assert not torch.get_device_module(kind).is_available()
    with pytest.raises((AssertionError, RuntimeError), match=rf"(?i){kind}|pretend"):
        torch.zeros(2, device=kind)
    with pytest.raises((AssertionError, RuntimeError), match=rf"(?i){kind}|pretend"):
        torch.zeros(2).to(kind)
    assert torch.zeros(2).add(1).tolist() == [1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_device_can_come_again(kind: str, engine: str):
    for _ in range(3):
        with pretend(kind, engine=engine) as there:
            assert (torch.ones(2, device=there.device) + 1).tolist() == [2, 2]
            assert there.syncs != []
        assert len(there.events) > 0


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_the_device_can_come_again_after_a_program_was_exported(kind: str, engine: str):
    with pretend(kind, engine=engine):
        pass
    torch.export.export(torch.nn.Linear(2, 2), (torch.ones(3, 2),))  # FakeTensorMode replaces the guard of CUDA
    with pretend(kind, engine=engine) as device:
        assert torch.ones(2, device=device.device).sum().item() == 2


def test_devices_of_all_kinds_in_turn(engine: str):
    for kind in (*KINDS, *reversed(KINDS)):
        with pretend(kind, engine=engine) as there:
            assert nn.Linear(2, 2).to(there.device).weight.device == there.device


@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_that_outlives_its_device_says_so(kind: str, engine: str):
    with pretend(kind, engine=engine) as there:
        x = torch.ones(2, device=there.device)
    for use in (lambda: x + 1, lambda: x.sum(), lambda: x.mul_(2), lambda: x @ x):
        with pytest.raises(RuntimeError, match="pretend"):
            use()
    assert str(x.device) == str(there.device)
    assert x.shape == (2,)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_can_be_used_again_when_its_device_comes_back(kind: str, engine: str):
    with pretend(kind, engine=engine) as there:
        x = torch.ones(2, device=there.device)
    with pretend(kind, engine=engine):
        assert (x + 1).tolist() == [2, 2]


def test_tensors_that_outlive_their_device_can_be_thrown_away(engine: str):
    with pretend("cuda", engine=engine) as there:
        kept = [torch.ones(1000, device=there.device) for _ in range(10)]
        graph = (torch.ones(2, device=there.device, requires_grad=True) * 2).sum()
    del kept, graph
    assert torch.ones(2).sum().item() == 2


def test_an_exception_closes_the_device(engine: str):
    def fails() -> None:
        with pretend("cuda", engine=engine) as there:
            torch.ones(1 // 0, device=there.device)

    with pytest.raises(ZeroDivisionError):
        fails()
    assert not torch.cuda.is_available()
    with pretend("mps", engine=engine) as there:
        assert torch.ones(1, device=there.device).device == there.device


def test_a_device_in_a_device_is_refused(engine: str):
    with pretend("cuda", engine=engine) as there:
        with pytest.raises(PretendError, match="one at a time"), pretend("mps", engine=engine):
            pass
        assert torch.ones(1, device=there.device).item() == 1


def test_an_index_means_as_many_devices(engine: str):
    with pretend("cuda:1", engine=engine) as there:
        assert (there.type, there.count, str(there.device)) == ("cuda", 2, "cuda:1")
        assert torch.cuda.current_device() == 0
        assert torch.cuda.device_count() == 2


@pytest.mark.parametrize(
    ("device", "count"), [("tpu", None), ("cuda:x", None), ("mps:1", None), ("mps", 2), ("cuda:2", 2)]
)
def test_devices_that_cannot_be_are_refused(device: str, count: int | None):
    with pytest.raises(AssayError, match="got"), pretend(device, count=count):
        pass


def test_no_mode_is_left_on_the_stack(there):
    with torch.inference_mode():
        x = torch.ones(2, device=there.device)
        assert (x.is_inference(), (x + 1).tolist()) == (True, [2, 2])
    with torch.no_grad():
        assert not (torch.ones(2, device=there.device, requires_grad=True) * 2).requires_grad


@pytest.mark.exhaustive  # it starts a process
def test_a_process_that_ends_inside_ends_well():
    code = """
import torch
from assay.pretend import pretend
with pretend("cuda"):
    raise SystemExit(int((torch.ones(2, device="cuda") + 1).sum().item()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (4, "")


def test_importing_pretend_needs_no_torch():
    code = "import sys, assay.pretend; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_names_and_types_of_results(there):
    x = torch.tensor([[3.0, 1.0], [2.0, 4.0]], device=there.device)
    top = x.max(dim=1)
    assert type(top).__name__ == "max"
    assert top.values.tolist() == [3, 4]
    parameter = nn.Parameter(x)
    assert isinstance(parameter, nn.Parameter)
    assert parameter.device == there.device
    assert isinstance(copied := parameter.detach().clone(), torch.Tensor)
    assert copied.device == there.device


@pytest.mark.exhaustive  # it starts a process
def test_a_tensor_of_a_device_that_did_not_come_back_ends_no_process():
    code = """
import torch
from assay.pretend import pretend
with pretend("cuda:1") as gpu:
    x = torch.ones(2, device=gpu.device, requires_grad=True)
with pretend("cuda"):
    try:
        (x + 1).sum().backward()
    except RuntimeError as error:
        assert "invalid device ordinal" in str(error)
    assert x.cpu().tolist() == [1, 1]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("device", "count"), [("mps:1", None), ("cuda:16", None), ("cuda", 1.5), ("cuda", "2")])
def test_devices_and_counts_that_cannot_be_are_said(device: str, count: object):
    expected = "at most (mps:0|cuda:15)" if count is None else "expected 1 to 16"
    with pytest.raises(ConfigError, match=expected), pretend(device, count=count):
        pass
