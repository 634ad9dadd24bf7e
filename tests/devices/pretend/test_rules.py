"""The rules of devices that are not there agree with what the installed torch says of itself."""

from __future__ import annotations

import pytest
import torch

from assay.devices.pretend.conditions import CONDITIONS
from assay.devices.pretend.rules import DEVICES, rules
from assay.devices.pretend.table import derive, table
from assay.errors import ConfigError


@pytest.fixture(params=DEVICES)
def rule(request):
    return rules(request.param)


def test_operators_that_mps_lacks():
    missing = [
        row.name for row in table().values() if "CPU" in row.kernels and not rules("mps").operator(row.name).available
    ]
    assert (
        len(missing) == 184
    )  # 187 by the yaml; linalg_lu_solve (2) has a kernel from Python, embedding_renorm_ goes to the CPU
    assert "aten::frexp.Tensor_out" in missing


def test_every_fact_names_an_operator_of_torch_and_a_known_condition(rule):
    known = {name.removeprefix("aten::") for name in table()}
    short = {name.partition(".")[0] for name in known}
    for topic in ("waits", "nondeterministic"):
        for fact in rule.facts.get(topic, ()):
            assert not set(fact["operators"]) - known - short
            assert fact["when"] in CONDITIONS
            assert fact["source"]


def test_unknown_devices_are_refused():
    with pytest.raises(ConfigError, match=r"^device: got 'tpu', expected one of cuda, mps, xpu\. Name one of these\.$"):
        rules("tpu")


def test_text_of_a_nondeterministic_operator(rule):
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError) as caught:
            torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    finally:
        torch.use_deterministic_algorithms(False)
    assert str(caught.value) == rule.texts["deterministic"].format(operator="put_")


def test_a_table_that_was_kept_is_the_table_that_is_derived():
    assert list(table().values()) == derive()
