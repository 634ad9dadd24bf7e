"""What a real device would say of a call, decided without a device."""

from __future__ import annotations

import pytest
import torch

from assay.devices.operators.rules import Nondeterminism, OperatorRule
from assay.pretend.operand_checks import (
    Operand,
    check_of,
    clash,
    nondeterminism,
    waits,
    way_of_copy,
    wrapper_of,
)


def here(name: str, dim: int = 1, *, written: bool = False) -> Operand:
    return Operand(name, "cpu", dim, 3 if dim else 1, written)


def there(name: str, dim: int = 1, device: str = "cuda:1") -> Operand:
    return Operand(name, device, dim, 3 if dim else 1)


TWO = "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and {}!"
INDEXED = "indices should be either on cpu or on the same device as the indexed tensor ({})"


@pytest.mark.parametrize(
    ("operands", "text"),
    [
        ([there("self"), there("other")], ""),
        ([here("self"), here("other")], ""),
        ([there("self"), here("other")], TWO.format("cpu")),
        ([here("self"), there("other")], TWO.format("cpu")),
        ([there("self"), there("other", device="cuda:0")], TWO.format("cuda:0")),
        ([there("self"), here("other", 0)], ""),
        ([here("self", 0), there("other")], ""),
        ([here("self", 0, written=True), there("other")], TWO.format("cpu")),
        ([there("self"), there("other", 0, "cuda:0")], TWO.format("cuda:0")),
        ([there("self"), here("a", 0), here("b", 0)], "Trying to pass too many CPU scalars to non-CPU kernel!"),
    ],
)
def test_an_iterator_lets_one_number_in_host_memory_mix(operands: list[Operand], text: str):
    assert clash("iterator", operands) == text


@pytest.mark.parametrize(
    ("operands", "got"),
    [
        ([there("self"), here("mat2")], "mat2 is on cpu, different from other tensors on cuda:1"),
        ([here("self"), there("mat2")], "mat2 is on cuda:1, different from other tensors on cpu"),
        ([there("self"), here("mat2", 0)], "mat2 is on cpu, different from other tensors on cuda:1"),
    ],
)
def test_the_wrapper_of_a_kernel_lets_nothing_mix(operands: list[Operand], got: str):
    assert clash("all", operands, wrapper="wrapper_CUDA_mm") == (
        f"Expected all tensors to be on the same device, but got {got} "
        "(when checking argument in method wrapper_CUDA_mm)"
    )


@pytest.mark.parametrize(
    ("operands", "text"),
    [
        ([there("self"), here("indices")], ""),
        ([there("self"), there("indices", device="cuda:0")], INDEXED.format("cuda:1")),
        ([here("self"), there("indices")], INDEXED.format("cpu")),
        ([there("self"), there("indices"), here("values", 0)], ""),
        ([there("self"), there("indices"), here("values")], TWO.format("cpu")),
    ],
)
def test_indices_may_be_in_host_memory(operands: list[Operand], text: str):
    assert clash("index", operands) == text


def test_a_kernel_that_looks_for_itself_says_so_in_its_own_words():
    assert clash("placeholder", [there("self"), here("other")], placeholder="Placeholder!") == "Placeholder!"
    assert clash("placeholder", [there("self"), here("other", 0)], placeholder="Placeholder!") == ""
    assert clash("placeholder", [there("self"), Operand("other", "cpu", 1, 0)], placeholder="Placeholder!") == ""
    assert clash("none", [there("self"), here("other")], placeholder="Placeholder!") == ""


@pytest.mark.parametrize(
    ("rule", "composite", "placeholder", "check"),
    [
        (OperatorRule("aten::mm", checks_devices=True), False, False, "all"),
        (OperatorRule("aten::add.Tensor", iterates=True), False, True, "iterator"),
        (OperatorRule("aten::index.Tensor", iterates=True, check="index"), False, False, "index"),
        (OperatorRule("aten::_index_put_impl_", checks_devices=True, check="index"), False, False, "index"),
        (OperatorRule("aten::mm"), False, True, "placeholder"),
        (OperatorRule("aten::mm"), False, False, "none"),
        (OperatorRule("aten::stack"), True, True, "none"),
        (OperatorRule("mine::op", known=False), False, True, "none"),
        (OperatorRule("aten::frexp.Tensor_out", available=False), False, True, "none"),
    ],
)
def test_the_check_follows_from_the_rule(rule: OperatorRule, composite: bool, placeholder: bool, check: str):
    assert check_of(rule, composite=composite, placeholder=placeholder) == check


@pytest.mark.parametrize(
    ("name", "structured", "out", "wrapper"),
    [
        ("aten::mm", True, False, "wrapper_CUDA_mm"),
        ("aten::mm.out", True, True, "wrapper_CUDA_mm_out_out"),
        ("aten::bincount", False, False, "wrapper_CUDA__bincount"),
        ("aten::scatter_add.out", True, True, "wrapper_CUDA_scatter_add_out_out"),
        ("aten::repeat_interleave.Tensor", False, False, "wrapper_CUDA_Tensor_repeat_interleave"),
    ],
)
def test_wrappers_are_named_as_torchgen_names_them(name: str, structured: bool, out: bool, wrapper: str):
    assert wrapper_of(name, "CUDA", structured=structured, out=out) == wrapper


INDEX = OperatorRule("aten::index.Tensor", waits="boolean index: positions are counted")
MASK = torch.tensor([True, False])


def test_the_host_waits_where_the_rule_says_so():
    assert waits(INDEX, {"self": MASK, "indices": [MASK]}) == "positions are counted"
    assert waits(INDEX, {"self": MASK, "indices": [None, MASK.byte()]}) == "positions are counted"
    assert waits(INDEX, {"self": MASK, "indices": [torch.tensor([1])]}) == ""
    assert waits(OperatorRule("aten::add.Tensor"), {}) == ""


@pytest.mark.parametrize(
    ("deterministic", "asked", "warn_only", "noted", "alerts"),
    [
        ("raises", False, False, True, False),
        ("raises", True, False, False, True),
        ("raises", True, True, True, True),
        ("switches", False, False, True, False),
        ("switches", True, False, False, False),
        ("ignores", True, False, True, False),
    ],
)
def test_what_is_not_deterministic_is_noted_or_alerted(
    deterministic: str, asked: bool, warn_only: bool, noted: bool, alerts: bool
):
    rule = OperatorRule("aten::x", nondeterminism=(Nondeterminism("x_cuda", "always", deterministic),))
    (verdict,) = nondeterminism(rule, {}, deterministic=asked, warn_only=warn_only)
    assert (verdict.named, verdict.noted, verdict.alerts) == ("x_cuda", noted, alerts)


def test_a_way_that_does_not_apply_is_not_named():
    rule = OperatorRule("aten::x", nondeterminism=(Nondeterminism("x_cuda", "weights", "raises"),))
    assert list(nondeterminism(rule, {"weights": None}, deterministic=True, warn_only=False)) == []


def test_copies_have_the_names_of_the_facts():
    assert way_of_copy("cpu", pinned=False, non_blocking=False) == "to host"
    assert way_of_copy("mps:0", pinned=False, non_blocking=True) == "to device, non_blocking"
    assert way_of_copy("cuda:1", pinned=True, non_blocking=True) == "to device, pinned, non_blocking"
