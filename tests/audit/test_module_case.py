from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from torch import nn

from assay.audit import audit
from assay.audit.cases.module_case import case_of
from assay.audit.findings.judge import judge
from assay.audit.running.exercise import exercise
from assay.audit.running.targets import find_cases, parse
from assay.audit.watching.collect import Collector
from assay.audit.watching.observations import MOVED, NOT_MOVED, USAGES, unpack
from assay.errors import ConfigError

NETS = Path(__file__).with_name("nets.py")
BUGS = {
    (match[1], number)
    for number, line in enumerate(NETS.read_text("utf-8").splitlines(), 1)
    if (match := re.search(r"# BUG (\S+)$", line))
}
NOT_RUN = 2


def seen(cases, device, engine="auto"):
    lines = []
    target = parse(str(NETS))
    collector = Collector(lines.append, target.roots())
    for case in cases:
        exercise(case, device, USAGES, engine, collector)
    messages = [json.loads(line) for line in lines]
    found = judge(
        [unpack(each["observation"]) for each in messages if each["message"] == "observation"], target.roots()
    )
    unrun = [each["unrun"] for each in messages if each["message"] == "unrun"]
    return [each for each in found if each.severity != "note"], unrun


@pytest.mark.parametrize(("device", "engine"), [("mps", "auto"), ("cuda:1", "auto"), ("xpu", "python")])
def test_the_bugs_of_modules_are_found_and_nothing_else(device, engine):
    found, unrun = seen(find_cases(parse(str(NETS))), device, engine)
    assert {(each.rule, each.line) for each in found} == BUGS
    assert unrun == []


def test_a_plain_tensor_attribute_is_to_be_a_buffer_and_where_it_was_made_is_said():
    (found,), _ = seen(find_cases(parse(f"{NETS}:Positions")), "mps")
    assert "register_buffer" in found.fix
    assert "`self.table`" in found.fix
    (origin,) = found.origins
    assert NETS.read_text("utf-8").splitlines()[origin.line - 1].strip().startswith("self.table = ")


def test_an_instance_of_a_module_is_run():
    (case,) = find_cases(parse(f"{NETS}:net"))
    assert case.batches[0][0].shape == (4, 784)
    assert seen([case], "xpu") == ([], [])


def test_a_module_with_parameters_is_run_moved_and_one_without_in_both_ways():
    cases = {case.name.rpartition(".")[2]: case for case in find_cases(parse(str(NETS)))}
    assert cases["Clean"].usages == (MOVED,)
    assert cases["Shifted"].usages == (MOVED, NOT_MOVED)
    assert "NeedsArguments" not in cases


@pytest.mark.parametrize(
    ("layer", "shape", "dtype"),
    [
        (nn.Linear(7, 2), (4, 7), torch.float32),
        (nn.Conv1d(3, 2, 3), (4, 3, 32), torch.float32),
        (nn.Conv2d(5, 2, 3), (4, 5, 32, 32), torch.float32),
        (nn.Conv3d(1, 2, 3), (4, 1, 16, 16, 16), torch.float32),
        (nn.Embedding(9, 2), (4, 16), torch.int64),
        (nn.GRU(6, 2), (4, 16, 6), torch.float32),
        (nn.BatchNorm1d(11), (4, 11), torch.float32),
        (nn.LayerNorm([3, 5]), (4, 16, 3, 5), torch.float32),
        (nn.Sequential(nn.Flatten(), nn.Linear(49, 2)), (4, 49), torch.float32),
        (nn.ReLU(), (4, 16), torch.float32),
    ],
)
def test_inputs_are_found_by_the_first_layer(layer, shape, dtype):
    ((given, *_), *_) = case_of(layer, "layer").batches
    assert (given.shape, given.dtype) == (shape, dtype)


def test_inputs_may_be_given():
    batch = case_of(nn.Embedding(3, 2), "layer", ["8x5:int32"]).batches[0]
    assert (batch[0].shape, batch[0].dtype) == ((8, 5), torch.int32)
    assert int(batch[0].max()) < 3


@pytest.mark.parametrize("text", ["8x", "x8", "8*3", "8:float31", "8x3:torch", "-1x2"])
def test_an_input_that_cannot_be_read_is_named(text):
    with pytest.raises(ConfigError, match="input: got ") as error:
        case_of(nn.ReLU(), "layer", [text])
    assert repr(text) in str(error.value)
    assert "8x16:int64" in str(error.value)


def test_inputs_that_do_not_fit_are_said_with_the_error():
    case = case_of(nn.Linear(3, 2), "layer", ["2x13"])
    for part in ("2x13", "RuntimeError", "--input"):
        assert part in case.why_not


def test_a_module_that_needs_arguments_is_said():
    (case,) = find_cases(parse(f"{NETS}:NeedsArguments"))
    for part in ("NeedsArguments", "width", "Name an instance"):
        assert part in case.why_not


@pytest.mark.exhaustive  # a whole audit
def test_the_whole_audit_of_a_module_with_inputs():
    result = audit(f"{NETS}:Masked", ["mps"], inputs=["2x12"])
    (found,) = result.findings
    assert (found.rule, found.code.startswith("return self.linear(values) @ mask")) == ("mixed-devices", True)
    assert "`mask` was made on cpu" in found.origins[0].what
    refused = audit(f"{NETS}:Masked", ["mps"], inputs=["2x13"])
    assert (refused.findings, refused.exit_code()) == ((), NOT_RUN)
