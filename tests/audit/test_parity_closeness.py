"""How far values may lie apart: tolerances, and the difference that is reported."""

from __future__ import annotations

import json
import re

import pytest
import torch

from assay._records import encode
from assay.audit.parity import tolerances
from assay.audit.parity.closeness import ValueDifference, difference


def test_tolerances_are_those_of_torch_testing():
    for dtype, allowed in tolerances().items():
        theirs = torch.testing._comparison.default_tolerances(dtype)
        if theirs != (0.0, 0.0):
            assert (allowed.relative, allowed.absolute) == theirs
        else:
            assert allowed.relative == 2.0 ** -int(re.search(r"e\dm(\d)", str(dtype))[1]), dtype
        assert allowed.source
    assert torch.float32 in tolerances()
    assert torch.int64 not in tolerances()


@pytest.mark.parametrize(
    ("cpu", "device", "ulps"),
    [
        (torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0 + 2**-10]), 2**13),
        (torch.tensor([0.0, -1e-3]), torch.tensor([0.0, 1e-3]), 2 * int(torch.tensor(1e-3).view(torch.int32))),
        (torch.tensor([0.0, 1.0]).bfloat16(), torch.tensor([0.0, 1.0625]).bfloat16(), 8),
        (torch.tensor([0.0, 1.0]).double(), torch.tensor([0.0, 1.5]).double(), 2**51),
        (torch.tensor([0.0, torch.inf]), torch.tensor([0.0, 3e38]), None),
        (torch.tensor([0.0, torch.nan]), torch.tensor([0.0, 1.0]), None),
        (torch.tensor([1j, 1j]), torch.tensor([1j, 2j]), None),
        (torch.tensor([0.0, 1.0]).to_sparse(), torch.tensor([0.0, 2.0]).to_sparse(), 2**23),
        (torch.tensor([False, True]), torch.tensor([False, False]), None),
    ],
)
def test_a_difference_tells_the_element_and_the_distance(cpu, device, ulps):
    found = difference(cpu, device)
    assert found is not None
    assert (found.where, found.ulps, found.outside, found.elements) == ((1,), ulps, 1, 2)
    assert difference(cpu, cpu.clone()) is None


@pytest.mark.parametrize(
    ("cpu", "device", "values"),
    [
        (torch.tensor([True]), torch.tensor([False]), ("True", "False")),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 3j]), ("(1+2j)", "(1+3j)")),
        (torch.tensor([2**62 + 1]), torch.tensor([2**62]), (2**62 + 1, 2**62)),
        (torch.tensor([1.0]), torch.tensor([float("inf")]), (1.0, float("inf"))),
    ],
)
def test_a_difference_of_any_dtype_goes_through_json(cpu, device, values):
    apart = difference(cpu, device)
    assert (apart.cpu, apart.device) == values
    again = ValueDifference.from_data(json.loads(json.dumps(encode(apart))), "difference")
    assert (again.cpu, again.device, again.absolute) == (apart.cpu, apart.device, apart.absolute)


def test_the_worst_element_is_told():
    cpu, device = torch.ones(3, 4), torch.ones(3, 4)
    device[2, 1], device[0, 0] = 1.5, 1.1
    assert difference(cpu, device).where == (2, 1)
    assert str(difference(cpu, device)).startswith("[2, 1]: 1.0 on the CPU, 1.5 on the device (0.5 apart, relative 0.5")


def test_the_distance_of_integers_is_exact():
    assert difference(torch.tensor([2**62 + 1]), torch.tensor([2**62])).absolute == 1
