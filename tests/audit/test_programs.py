"""Small programs with device bugs as public projects had them: what is found, at which line, and the first cause.

A line with ``# BUG rule`` is where a finding must point, one with ``# FROM rule`` where its first cause is. There must
be no other finding.
"""

from __future__ import annotations

import ast
import gc
import json
import re
import sys
from pathlib import Path

import pytest
import torch

from assay.audit.findings.judge import judge
from assay.audit.running.targets import parse
from assay.audit.running.worker import Job, work
from assay.audit.watching.collect import Collector
from assay.audit.watching.observations import unpack
from assay.pretend import pretend
from thinning import one_of_each

FOLDER = Path(__file__).with_name("programs")
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))
DEVICE = {"of_the_first_gpu": "cuda:1"}
UNRUN = {
    "compiled": ["torch.compile: its graphs ran with the backend 'eager'; code written for the device did not"],
}
FIXES = {
    "moved_by_name": "Replace the name in `torch.nn.Linear(4, 2).cuda()`",
    "named_far_away": "take the device from the tensors that come in",
    "timed_on_one_kind": "by what torch.accelerator has for every kind of GPU",
    "never_used": "Replace `torch.cuda.is_available()`: torch.accelerator.is_available()",
    "loaded_where_it_was": 'map_location="cpu"',
    "precision_of_one_kind": "torch.autocast(device_type=x.device.type)",
    "generator_of_the_host": "a generator of the device that it fills",
    "generator_beside_a_statement": "a generator of the device that it fills",
    "pinned_on_the_device": "only tensors in host memory can be pinned",
    "plain_attribute": "Register `self.table` with register_buffer",
    "left_behind": "Make `table` on the device of the inputs",
    "gathered_on_the_cpu": "Make `outputs` on the device of the inputs",
    "group_of_one_kind": "Leave the backend out",
    "of_the_first_gpu": "Make `offsets` on the device of the inputs",
    "branch_of_one_kind": "instead of asking `values.is_cuda`",
    "compiled": "the inputs' device is the one to use",
    "shuffled_on_the_host": "a generator of the device that it fills",
    "wide_by_default": "Use float32 in `",
}


def marked(name, word):
    lines = (FOLDER / f"{name}.py").read_text("utf-8").splitlines()
    return {(rule, line) for line, text in enumerate(lines, 1) for rule in re.findall(rf"# {word} (\S+)", text)}


@pytest.fixture
def audited(monkeypatch, tmp_path):
    """The findings and what was not run, of the first run and of the second that it asks for: all in this process."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setenv("CHECKPOINT", str(tmp_path / "checkpoint.pt"))
    with pretend("cuda"):
        torch.save(torch.nn.Linear(3, 1).cuda().state_dict(), tmp_path / "checkpoint.pt")

    def run(name, device, engine="auto"):
        gc.collect()  # no tensor of an earlier test is taken for one of this program
        path, lines = str(FOLDER / f"{name}.py"), []
        second = ""
        for _ in range(2):
            target, begun = parse(path), len(lines)
            job = Job(path, device, ("moved first",), engine, (), second=second)
            work(job, target, Collector(lines.append, target.roots()))
            second = next((each["how"] for each in map(json.loads, lines[begun:]) if each["message"] == "again"), "")
            if not second:
                break
        messages = [json.loads(line) for line in lines]
        seen = [unpack(each["observation"]) for each in messages if each["message"] == "observation"]
        unrun = [each["unrun"]["why"] for each in messages if each["message"] == "unrun"]
        return judge(seen), unrun

    yield run
    torch.set_default_device(None)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, which are part of these bugs
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", PROGRAMS)
@one_of_each(lambda name: DEVICE.get(name, "mps"))
def test_the_bugs_of_a_program_are_found_at_their_lines_with_the_first_cause(name, audited, capsys):
    found, unrun = audited(name, DEVICE.get(name, "mps"))
    found = [each for each in found if each.severity != "note"]
    assert {(each.rule, each.line) for each in found} == marked(name, "BUG")
    assert unrun == UNRUN.get(name, [])
    causes = {(each.rule, origin.line) for each in found for origin in each.origins}
    assert marked(name, "FROM") <= causes
    assert any(FIXES[name] in each.fix for each in found), [each.fix for each in found]


def test_every_program_is_here_and_cites_where_the_bug_was_seen():
    assert set(FIXES) == set(PROGRAMS)
    for name in PROGRAMS:
        text = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text("utf-8")))
        assert re.search(r"modelled on \S+", text), name
