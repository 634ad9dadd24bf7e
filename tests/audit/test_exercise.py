from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from assay.audit import Case
from assay.audit.findings.judge import judge
from assay.audit.findings.suppress import suppressed
from assay.audit.running.exercise import exercise
from assay.audit.running.targets import find_cases, load, parse
from assay.audit.tensor_trees import mapped
from assay.audit.watching.collect import Collector
from assay.audit.watching.observations import MOVED, NOT_MOVED, USAGES, unpack
from thinning import one_of_each

BUGGY = Path(__file__).with_name("buggy.py")
MARKED = [
    (number, match[1])
    for number, line in enumerate(BUGGY.read_text().splitlines(), 1)
    if (match := re.search(r"# BUG (\S+)$", line))
]
WHERE = {  # which devices have the bug
    "dtype-missing": ("mps",),
    "operator-missing": ("mps",),
    "moved-to-default-device": ("cuda:1",),
    "cpu-collective": ("cuda:1", "xpu"),
}
DEVICES = ("mps", "cuda:1", "xpu")


def seen(cases, device, usages=USAGES, engine="native"):
    """What an audit of these cases says on one device: findings, and what was not run."""
    lines = []
    target = parse(str(BUGGY) + ":Metric")
    collector = Collector(lines.append, target.roots())
    for case in cases:
        exercise(case, device, usages, engine, collector)
    messages = [json.loads(line) for line in lines]
    observations = {
        each["number"]: unpack(each["observation"]) for each in messages if each["message"] == "observation"
    }
    for each in messages:
        if each["message"] == "count":
            observations[each["number"]] = replace(observations[each["number"]], count=each["count"])
    unrun = [each["unrun"] for each in messages if each["message"] == "unrun"]
    return judge(observations.values(), target.roots()), unrun


def audited(name, device, usages=USAGES, engine="native"):
    return seen(find_cases(parse(f"{BUGGY}:{name}")), device, usages, engine)


def class_at(line):
    above = BUGGY.read_text().splitlines()[:line]
    return [match[1] for text in above if (match := re.match(r"class (\w+)", text))][-1]


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("line", "rule"), MARKED, ids=[f"{rule}-{line}" for line, rule in MARKED])
@one_of_each(lambda line, **_: line)
def test_each_bug_is_found_at_its_line_and_nothing_else(line, rule, device, engine):
    findings, unrun = audited(class_at(line), device, engine=engine)
    assert unrun == []
    expected = {(rule, line)} if device in WHERE.get(rule, DEVICES) else set()
    if (rule, device) == ("operator-missing", "xpu"):
        expected = {("operator-fallback", line)}
    if rule == "device-error":
        findings = [found for found in findings if found.rule != "device-sync"]  # it stops there
    assert {(found.rule, found.line) for found in findings} == expected
    assert all(found.file == str(BUGGY) for found in findings)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_metric_without_a_bug_has_no_finding(device, engine):
    assert audited("Metric", device, engine=engine) == ([], [])


def test_every_rule_that_metrics_can_break_is_here():
    from assay.audit import rules

    scripts_only = {"operator-fallback", "suppression", "hard-coded-device", "map-location"}
    assert {rule for _, rule in MARKED} == set(rules()) - scripts_only


def test_the_finding_says_what_happened_and_what_mends_it():
    ((found,), _) = audited("MixedDevices", "cuda:1")
    assert found.code == "self.right = self.right + (preds.sum(0) * weights).sum().long()  # BUG mixed-devices"
    assert found.what.splitlines() == [
        "Expected all tensors to be on the same device, but found at least two devices, cuda:1 and cpu!",
        "`self.right` is int64 on cuda:1, `preds` is float32 on cuda:1, `weights` is int64 on cpu",
    ]
    assert found.fix.startswith("Make `weights` on the device of the inputs (device=...)")
    assert found.function == "MixedDevices.update"
    assert (found.devices, found.usages, found.severity) == (("cuda:1",), USAGES, "error")
    assert found.count == 2


def test_collectives_are_seen_in_a_metric_that_keeps_the_value_it_read():
    ((found,), _) = audited("KeepsItsValue", "cuda:1")
    assert (found.rule, found.phases, found.function) == ("cpu-collective", ("sync",), "CpuCollective.compute")
    assert found.what == "all_reduce is given a CPU tensor of shape (1,); nccl takes tensors of cuda only"


def test_waits_are_counted_per_update():
    ((found,), _) = audited("DeviceSync", "mps")
    assert found.what.endswith(", once an update")
    assert found.count == 4  # in two usages: three updates, of which the first may make states
    assert found.fix == "Keep `(target < 0).any()` on the device as a tensor, and read it once, at the end"


def test_an_error_that_the_code_handles_is_a_note():
    ((found,), _) = audited("Handled", "mps")
    assert (found.rule, found.severity) == ("dtype-missing", "note")
    assert found.what.endswith("(the code handled the error)")


def test_a_zero_dimensional_result_on_the_host_matters_less():
    class Reads:
        def update(self, preds, target):
            pass

        def to(self, device):
            return self

        def compute(self):
            return torch.tensor(1.0)

    batches = load(parse(str(BUGGY))).BATCHES
    ((found,), _) = seen([Case("Reads", Reads, batches)], "mps")
    assert (found.rule, found.severity, found.usages) == ("result-elsewhere", "note", (MOVED,))
    (none, _) = seen([Case("Reads", Reads, batches, computes_on_cpu=True)], "mps")
    assert none == []


def test_the_usage_can_be_chosen():
    class Holds:
        def __init__(self):
            self.sum = torch.zeros(4)

        def to(self, device):
            self.sum = self.sum.to(device)

        def update(self, preds, target):
            self.sum = self.sum + preds.sum(0)

        def compute(self):
            return self.sum.sum()

    batches = load(parse(str(BUGGY))).BATCHES
    case = Case("Holds", Holds, batches)
    assert seen([case], "xpu", (MOVED,)) == ([], [])
    ((found,), _) = seen([case], "xpu", (NOT_MOVED,))
    assert (found.rule, found.severity) == ("mixed-devices", "warning")
    assert found.fix.endswith("or move the object to the device before it is fed")


def test_what_does_not_run_on_the_cpu_is_not_audited():
    case = Case("buggy.NeedsArguments", load(parse(str(BUGGY))).NeedsArguments, ())
    findings, (unrun,) = seen([case], "mps")
    assert findings == []
    assert unrun["why"].startswith("does not run on the CPU: TypeError: ")
    assert not unrun["known"]


@pytest.mark.parametrize("device", DEVICES)
def test_inputs_in_float64_are_float32_where_the_device_lacks_it(device):
    case = next(find_cases(parse(f"{BUGGY}:Float32Counter")))
    assert case.batches
    wide = replace(case, batches=mapped(case.batches, lambda tensor: tensor.double()))
    findings, unrun = seen([wide], device)
    assert unrun == []
    assert [finding.rule for finding in findings] == ["float32-counter"]


def test_an_update_that_needs_gradients_is_audited_as_any_other():
    """An attack, or an optimizer that steps, goes backward in its update, in each of the audit's runs."""

    class Slope:
        def update(self, values):
            values = values.detach().requires_grad_()
            (self.slope,) = torch.autograd.grad(values.pow(2).sum(), values)

        def compute(self):
            return self.slope

    found, unrun = seen([Case("Slope", Slope, ((torch.ones(3),),))], "cuda:1", (MOVED,))
    assert (found, unrun) == ([], [])


def test_states_of_generators_are_on_the_cpu_and_no_finding():
    """Reversible layers keep them, to draw the same numbers again in the backward pass."""

    class Replay:
        def update(self, values):
            self.cpu, self.device = torch.get_rng_state(), torch.cuda.get_rng_state_all()
            self.image = torch.zeros(4, 4, dtype=torch.uint8)
            self.sum = values.sum()

        def compute(self):
            return self.sum

    found, unrun = seen([Case("Replay", Replay, ((torch.ones(3),),))], "cuda:1", (MOVED,))
    assert [each.what for each in found] == ["The state `image` is on cpu, the inputs are on cuda:1"]
    assert unrun == []


def test_a_case_that_says_why_not_is_listed():
    findings, (unrun,) = seen(list(find_cases(parse(f"{BUGGY}")))[-1:], "mps")
    assert findings == []
    assert unrun == {
        "subject": "buggy.NeedsArguments",
        "device": "",
        "usage": "",
        "why": "it needs to know the classes",
        "known": True,
    }


def test_a_class_that_needs_arguments_says_how_to_give_a_case():
    _, (unrun,) = audited("NeedsArguments", "mps")
    assert "missing 1 required positional argument: 'classes'" in unrun["why"]
    assert unrun["why"].endswith("Give a case that builds it by a function audit_cases() in its module.")


def test_comments_explain_findings_if_they_give_a_reason():
    findings, _ = audited("Allowed", "cuda:1")
    told = {found.line: (found.rule, found.suppressed) for found in suppressed(findings)}
    lines = BUGGY.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("class Allowed")) + 3
    assert told[start] == ("device-sync", "a check that is worth it")
    assert told[start + 3] == ("device-sync", "twice")
    bad = [found for found in suppressed(findings) if found.line == start + 5]
    assert [(found.rule, found.suppressed) for found in bad] == [("device-sync", ""), ("suppression", "")]
    assert bad[1].what == "The comment gives no reason"
