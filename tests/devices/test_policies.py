from __future__ import annotations

import pytest
import torch

from assay.devices import SelfTest, available, default_device, policy
from assay.devices import policies as module
from assay.devices.assign import assign
from assay.devices.kinds import DEVICES, KINDS
from assay.devices.selftest import SelfTestOutcome
from assay.errors import ConfigError
from assay.pretend import pretend

RENAMED = [name for name, kind in KINDS.items() if kind.renamed]


def pretend_tested(monkeypatch, *, passed):
    bad = (
        SelfTestOutcome("shift", True),
        SelfTestOutcome("scatter_add_", passed, "" if passed else "1 of 7 numbers are wrong"),
    )
    monkeypatch.setattr(module, "self_test", lambda device: SelfTest(device, bad))


@pytest.mark.parametrize(
    "device", [*(name for name in DEVICES if name not in RENAMED), "cuda:1", "meta", "privateuseone", "mtia"]
)
def test_every_device_gets_every_decision_with_a_reason(device):
    made = policy(device)
    assert made.device == torch.device(device)
    assert made.accumulate.value == torch.int64
    assert made.read_on.value == torch.device("cpu")
    assert all(decision.reason for decision in made.decisions.values())


@pytest.mark.parametrize("device", RENAMED)
def test_a_device_of_an_adapter_that_was_not_imported_is_refused_by_the_name_of_the_adapter(device):
    with pytest.raises(
        ConfigError, match=rf"device: got '{device}:1'.*Import torch_{device}, which brings it to torch"
    ):
        policy(f"{device}:1")
    with pytest.raises(ConfigError, match=f"Import torch_{device}"):
        assign(device, set())


def test_gaudi_rounds_float64_and_may_cast_int64_so_both_are_kept_away_from_it():
    made = policy("hpu")
    assert made.widest_float.value == torch.float32
    assert made.tally_on.value == torch.device("cpu")  # there is none here, so its self-test fails
    assert "Practices_for_Model_Training_on_Gaudi" in made.widest_float.reason


def test_it_is_made_once():
    assert policy("cuda:1") is policy(torch.device("cuda", 1))


def test_it_prints_a_line_a_decision():
    lines = str(policy("cpu")).splitlines()
    assert lines[0] == "policy on cpu"
    assert "  chunk_elements = 131072: the temporaries of a chunk stay in the cache of one core" in lines
    assert len(lines) == 1 + len(policy("cpu").decisions)


def test_chunks_fit_the_cache_on_the_host_and_keep_launches_few_elsewhere():
    assert policy("cpu").chunk_elements.value == 131_072
    assert policy("cuda").chunk_elements.value == 2**24


def test_apple_gpus_get_no_float64_and_no_asynchronous_copies():
    made = policy("mps")
    assert made.widest_float.value == torch.float32
    assert made.non_blocking.value is False
    assert "139550" in made.non_blocking.reason


def test_cuda_keeps_float64_inputs_and_copies_asynchronously_from_pinned_memory():
    made = policy("cuda")
    assert made.widest_float.value == torch.float64
    assert made.non_blocking.value is True


def test_int64_scatter_is_trusted_where_the_facts_say_so():
    assert policy("cuda:1").tally_on.value == torch.device("cuda:1")


def test_where_the_facts_leave_it_open_a_passed_self_test_decides(monkeypatch):
    pretend_tested(monkeypatch, passed=True)
    made = module._tally_on(torch.device("mps"))
    assert made.value == torch.device("mps")
    assert made.reason.startswith("int64 scatter passed the self-test here")


def test_where_the_self_test_fails_batches_are_counted_on_the_host(monkeypatch):
    pretend_tested(monkeypatch, passed=False)
    made = module._tally_on(torch.device("mps"))
    assert made.value == torch.device("cpu")
    assert made.reason == "the self-test failed on mps (scatter_add_), so batches are counted on the CPU"


def test_a_device_that_runs_nothing_says_why():
    assert policy("privateuseone").tally_on.value == torch.device("cpu")
    assert policy("privateuseone").tally_on.reason.startswith("nothing runs on privateuseone here (")


def test_a_device_that_was_absent_is_asked_again_where_it_is_pretended():
    assert policy("mps").tally_on.value == torch.device("cpu")
    with pretend("mps"):
        assert policy("mps").tally_on.value == torch.device("mps")
    assert policy("mps").tally_on.value == torch.device("cpu")


def test_meta_tensors_stay_where_they_are():
    assert policy("meta").tally_on.value == torch.device("meta")


@pytest.mark.parametrize(
    ("device", "wish", "cuda", "release", "allowed", "why"),
    [
        ("cuda", "", "13.0", (3, 9), True, "one launch"),
        ("cuda:1", "0", "13.0", (3, 9), False, "ASSAY_TRITON=0"),
        ("cuda", "", "13.0", (3, 3), False, "triton 3.3 is too old (pip install"),
        ("cuda", "", "13.0", (0, 0), False, 'triton is not installed (pip install "assay[cuda]")'),
        ("cuda", "", None, (3, 9), False, "for NVIDIA GPUs"),  # a pretend device
        ("mps", "", "13.0", (3, 9), False, "for NVIDIA GPUs"),
        ("cpu", "", "13.0", (3, 9), False, "for NVIDIA GPUs"),
        ("cpu", "interpreter", None, (3, 9), True, "which is slow"),
    ],
)
def test_kernels_in_triton_are_for_nvidia_gpus_that_have_it(monkeypatch, device, wish, cuda, release, allowed, why):
    monkeypatch.setenv("ASSAY_TRITON", wish)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(module, "_triton_release", lambda: release)
    decision = module._triton(torch.device(device))
    assert decision.value is allowed
    assert why in decision.reason


@pytest.mark.parametrize(("has", "widest"), [(True, torch.float64), (False, torch.float32)])
def test_an_intel_card_is_asked_for_float64(monkeypatch, has, widest):
    class Properties:
        has_fp64 = has

    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda device: Properties)
    assert module._widest_float(torch.device("xpu")).value == widest


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_what_a_device_can_hold(dtype):
    assert module.can_hold(torch.device("cpu"), dtype)
    assert not module.can_hold(torch.device("mps"), dtype)
    assert module.can_hold(torch.device("mps"), torch.float32)


def test_the_machine_has_a_cpu_first():
    assert available()[0] == torch.device("cpu")


def test_the_default_is_the_first_accelerator(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    assert available() == [torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")]
    assert default_device() == torch.device("cuda:0")


def test_without_an_accelerator_the_default_is_the_cpu(monkeypatch):
    def raises():  # as torch 2.6 does
        raise RuntimeError("Cannot access accelerator device when none is available.")

    monkeypatch.setattr(torch.accelerator, "current_accelerator", raises)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert available() == [torch.device("cpu")]
    assert default_device() == torch.device("cpu")
