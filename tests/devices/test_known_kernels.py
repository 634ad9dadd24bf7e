"""Facts about kernels do not contradict the list of operators that the installed torch carries."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.devices.kinds import ACCELERATORS as DEVICES
from assay.devices.operators import rules as rules_module
from assay.devices.operators.overloads import overloads
from assay.devices.operators.rules import rules
from assay.pretend import pretend


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_said_to_run_on_the_cpu_has_no_kernel(device):
    own = {name for name, overload in overloads().items() if device.upper() in overload.kernels}
    assert rules(device).on_cpu & own == set()


def test_what_a_newer_torch_lists_does_not_run_on_the_cpu(monkeypatch):
    """A release without a list of its own takes over the one before: torch 2.15 has kernels that 2.14 lacked."""
    before = rules_module._quietly("xpu", {})
    name = min(name for name in before if name in overloads())
    newer = overloads() | {name: replace(overloads()[name], kernels=("CPU", "CUDA", "XPU"))}
    monkeypatch.setattr(rules_module, "overloads", lambda: newer)
    assert rules_module._quietly("xpu", {}) == before - {name}


@pytest.mark.parametrize("device", DEVICES)
def test_facts_name_operators_that_some_release_has(device):
    """A name without an overload stands for all; one that no torch has is a mistake. None has cholesky since 2.14."""
    facts, shorts = rules(device).facts, {name.partition(".")[0] for name in overloads()}
    listed = [name for topic in ("waits", "nondeterministic", "dtypes", "refused") for fact in facts.get(topic, ())
              for name in fact["operators"]]  # fmt: skip
    unknown = {name for name in listed if "::" not in name and f"aten::{name}" not in overloads()}
    assert {name for name in unknown if f"aten::{name}" not in shorts} - {"cholesky"} == set()


def test_kernels_of_xpu_are_those_of_the_installed_release():
    has = {
        name: rules("xpu").operator(f"aten::{name}") for name in ("histogram.bin_ct", "dot", "linalg_qr.out", "add.out")
    }
    assert [rule.available for rule in has.values()] == [True] * 4
    of_its_own = "XPU" in overloads()["aten::linalg_qr.out"].kernels  # since 2.15
    on_cpu = {name for name, rule in has.items() if rule.on_cpu} - {"dot"}  # which 2.6 ran there, too
    assert on_cpu == (set() if of_its_own else {"linalg_qr.out"})
    assert not rules("xpu").operator("aten::_cslt_compress").available
    assert rules("mps").operator("aten::col2im").on_cpu is ("MPS" not in overloads()["aten::col2im"].kernels)


def test_a_singular_value_decomposition_runs_on_mps_where_its_kernel_is_listed():
    """Since torch 2.14: pytorch/pytorch#185954. Before, torch ran the whole of it on the CPU."""
    svd, worker = (rules("mps").operator(f"aten::{name}") for name in ("linalg_svd", "_linalg_svd.U"))
    assert svd.on_cpu is not worker.available
    assert svd.available


def test_a_histogram_runs_on_xpu():
    with pretend("xpu") as gpu:
        counts, _ = torch.histogram(torch.rand(8, device=gpu.device), bins=4, range=(0.0, 1.0))
        assert counts.sum().item() == 8
