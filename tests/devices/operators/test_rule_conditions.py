"""When a rule applies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from assay.devices.kinds import ACCELERATORS as DEVICES
from assay.devices.operators.conditions import CONDITIONS, applies
from assay.devices.operators.overloads import overloads
from assay.devices.operators.rules import rules
from assay.errors import ConfigError
from assay.pretend import native_engine

X, MASK, AT = torch.ones(3), torch.tensor([True, False, True]), torch.tensor([0, 2])
META = torch.ones(3, device="meta")
META_MASK, META_AT = MASK.to("meta"), AT.to("meta")


@pytest.mark.parametrize("device", DEVICES)
def test_every_fact_names_operators_of_torch_a_condition_and_a_source(device):
    known = {name.removeprefix("aten::") for name in overloads()}
    known |= {name.partition(".")[0] for name in known} | {"torchvision::nms", "cholesky"}  # which is gone with 2.14
    facts = rules(device).facts
    for fact in (*facts["waits"], *facts.get("nondeterministic", ())):
        assert not set(fact["operators"]) - known
        assert fact["when"] in CONDITIONS
        assert fact["source"]
        assert fact.get("deterministic", "raises") in ("raises", "switches", "ignores")
    assert not set(facts.get("on_cpu", {}).get("operators", ())) - known


@pytest.mark.parametrize(
    ("condition", "arguments", "expected"),
    [
        ("", {}, False),
        ("always", {}, True),
        ("boolean index", {"self": META, "indices": [META_MASK]}, True),
        ("boolean index", {"self": META, "indices": [None, META_MASK.to(torch.uint8)]}, True),
        ("boolean index", {"self": META, "indices": [META_AT]}, False),
        ("boolean index", {"self": META, "indices": [MASK]}, False),  # its positions are found on the CPU
        ("boolean index unless filled", {"self": META, "indices": [META_MASK], "values": META}, True),
        (
            "boolean index unless filled",
            {"self": META, "indices": [META_MASK], "values": X[0]},
            False,
        ),  # becomes masked_fill_
        (
            "boolean index unless filled",
            {"self": META, "indices": [META_MASK], "values": X[0], "accumulate": True},
            True,
        ),
        ("boolean index unless filled", {"self": META, "indices": [META_MASK, META_AT], "values": X[0]}, True),
        ("accumulate", {"accumulate": True}, True),
        ("without accumulate", {}, True),
        ("accumulate of floating point or complex", {"self": X, "accumulate": True}, True),
        ("accumulate of floating point or complex", {"self": AT, "accumulate": True}, False),
        ("accumulate of floating point or complex", {"self": X}, False),
        ("floating point or complex", {"self": AT}, False),
        ("floating point or complex", {"self": AT, "dtype": torch.float32}, True),
        ("floating point or complex", {"self": X.to(torch.complex64)}, True),
        ("floating point", {"self": X.to(torch.complex64)}, False),
        ("weights", {"self": AT}, False),
        ("weights", {"self": AT, "weights": X}, True),
        ("without a range", {"self": X}, True),
        ("without a range", {"self": X, "bins": 3, "min": 0, "max": 1}, False),
        ("without a range", {"self": X, "range": None}, True),
        ("without a range", {"self": X, "range": [0.0, 1.0]}, False),
        ("without output_size", {}, True),
        ("without output_size", {"output_size": 3}, False),
        ("check_errors", {"check_errors": False}, False),
        ("a reduction", {"reduction": 0}, False),
        ("a reduction", {}, True),
        ("reduce is prod", {"reduce": "prod"}, True),
        ("reduce is sum or mean", {"reduce": "mean"}, True),
        ("reduce is sum or mean", {"reduce": "amax"}, False),
        ("mode is max", {"mode": 2}, True),
        ("mode is max", {"mode": 0}, False),
        ("projections", {"hx": [torch.zeros(1, 2, 3), torch.zeros(1, 2, 4)]}, True),
        ("projections", {"hx": [torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)]}, False),
    ],
)
def test_conditions(condition, arguments, expected):
    assert applies(condition, arguments) is expected


def test_unknown_conditions_are_refused():
    with pytest.raises(ConfigError, match=r"^condition: got 'on Sundays', expected one of always, boolean index, "):
        applies("on Sundays", {})


def test_the_native_engine_knows_every_condition():
    source = Path(native_engine.__file__).with_name("rules.cpp")
    known = set(re.findall(r'when == "([\w ]+)"', source.read_text(encoding="utf-8")))
    assert known >= set(CONDITIONS)
