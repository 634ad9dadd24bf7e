"""The case that gave rise to plans: 4-bit weights on an Apple GPU whose torch lacks the operator that packs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from assay.audit.running.runner import audit
from assay.pretend import pretend
from assay.pretend.native_engine.build import why_not
from assay.quantize import plan
from assay.quantize.kernels import KERNELS
from quantize.models import language_model, some_ids

EXAMPLE = Path(__file__).parents[2] / "examples" / "regressions" / "operator_that_was_missing.py"
RELEASE = "2.4"
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}  # of the largest output
native = pytest.mark.skipif(bool(why_not()), reason="the native engine needs a C++ compiler")


def apart(found, expected):
    """The largest difference over the largest output."""
    return float((found.float() - expected.float()).abs().max() / expected.float().abs().max())


@native
def test_a_direct_call_fails_there():
    with pretend("mps", release=RELEASE), pytest.raises(NotImplementedError, match="_convert_weight_to_int4pack"):
        torch.ops.aten._convert_weight_to_int4pack(torch.zeros(32, 64, dtype=torch.int32, device="mps"), 2)


@native
@pytest.mark.parametrize("dtype", TOLERANCES)
@torch.no_grad()
def test_it_is_planned_packed_elsewhere_and_runs_with_the_results_of_the_cpu(dtype):
    assert not any(name.startswith("PYTORCH_ENABLE") for name in os.environ)
    model = language_model(dtype=dtype)
    made = plan(model, "int4", device="mps", release=RELEASE)
    said = next(note for note in made.notes if "_convert_weight_to_int4pack" in note)
    assert "torch 2.4 has no kernel of _convert_weight_to_int4pack for mps; it is not needed" in said
    made.apply(model)
    expected = model(some_ids())
    with pretend("mps", release=RELEASE) as device:
        model.to("mps")
        ids = some_ids().to("mps")
        device.events.clear()
        found = model(ids)
        assert found.device.type == "mps"
        assert [str(event) for event in device.events] == []  # nothing goes back to the CPU
        assert apart(found.cpu(), expected) <= TOLERANCES[dtype]
        assert model.blocks[0].mix.integers.to("cpu").equal(plan_again(dtype))


def plan_again(dtype):
    """The integers of one layer of the same model, made on the CPU."""
    model = language_model(dtype=dtype)
    return plan(model, "int4", device="cpu").apply(model).blocks[0].mix.integers


@native
@pytest.mark.exhaustive  # a whole audit
def test_the_audit_shows_what_a_direct_call_does_and_finds_nothing_in_a_plan(monkeypatch):
    monkeypatch.setenv("ASSAY_PRETEND_TORCH", RELEASE)
    direct = audit(f"{EXAMPLE}:quantize", on=["mps"])
    assert [found.rule for found in direct.findings] == ["operator-missing"]
    assert "'aten::_convert_weight_to_int4pack' is not currently implemented" in direct.findings[0].what
    planned = audit(f"{EXAMPLE}:planned", on=["mps", "cuda:1", "xpu"])
    assert (planned.findings, planned.unrun, planned.exit_code()) == ((), (), 0)


@pytest.mark.devices("cpu", "mps", "cuda:1", "xpu")
@pytest.mark.parametrize("scheme", ["int8", "int4", "int4:g32:sym", "int3:g64", "int8:dynamic"])
@torch.no_grad()
def test_a_plan_made_on_the_device_is_what_runs_there(device, pretended, scheme, monkeypatch):
    model = language_model(dtype=torch.bfloat16)
    made = plan(model, {"gate": "int8", "embedding:*": "int8", "*": scheme}, device=str(device))
    made.apply(model)
    expected = model(some_ids())
    called: list[tuple[str, int]] = []
    for kernel in KERNELS.values():
        original = kernel.matmul
        monkeypatch.setattr(
            kernel, "matmul", lambda x, packed, p=kernel, o=original: called.append((p.name, len(x))) or o(x, packed)
        )
    model.to(device)
    ids = some_ids().to(device)
    if pretended:
        pretended.events.clear()
    found = model(ids)
    assert {each.kind for each in (pretended.events if pretended else ())} <= set()
    linear = [layer for layer in made.quantized if layer.kind == "linear"]
    runs = [next(name for first, name in reversed(layer.kernels) if first <= 6) for layer in linear]
    assert called == [(name, 6) for name in runs]
    assert apart(found.cpu(), expected) <= TOLERANCES[torch.bfloat16]


@pytest.mark.parametrize("engine", [pytest.param("native", marks=native), "python"])
@pytest.mark.parametrize("name", ["mps", "cuda:1", "xpu"])
@torch.no_grad()
def test_a_model_that_is_on_the_device_gets_the_integers_of_the_cpu(name, engine):
    expected = plan(language_model(), "int4, int8", device="cpu").apply(language_model())
    with pretend(name, engine=engine) as there:
        model = language_model().to(there.device)
        plan(model, "int4, int8", device=str(there.device)).apply(model)
        assert model.head.integers.to("cpu").equal(expected.head.integers)
        found = model(some_ids().to(there.device))
        assert found.device.type == there.type
        assert apart(found.cpu(), expected(some_ids())) <= TOLERANCES[torch.float32]
