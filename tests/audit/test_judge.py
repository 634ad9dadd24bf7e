from __future__ import annotations

from dataclasses import replace

import pytest

from assay.audit.findings.judge import JUDGES, judge, relative
from assay.audit.findings.rulebook import rules
from assay.audit.watching.collect import UNSUPPORTED
from assay.audit.watching.observations import AS_IT_IS, MOVED, NOT_MOVED, OBSERVATIONS, AuditRun, Observation
from assay.audit.watching.source_code import SITES
from assay.pretend.events import KINDS, Frame

LINE = Frame("/site/lib/metric.py", 7, "Metric.update")
UPDATE = AuditRun("Accuracy", "cuda:1", MOVED, "update", 2)
SCRIPT = AuditRun("train.py", "cuda:1", AS_IT_IS, "script")


def told(seen):
    return [(found.rule, found.severity) for found in judge([seen])]


def observation(kind, run=UPDATE, **details):
    return Observation(kind, run, details.pop("what", "it happened"), stack=details.pop("stack", (LINE,)), **details)


def test_every_kind_of_observation_has_a_judge_and_every_rule_a_kind():
    assert set(JUDGES) == set(KINDS) - {UNSUPPORTED} | set(OBSERVATIONS)


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("devices", "mixed-devices"),
        ("dtype", "dtype-missing"),
        ("operator", "operator-missing"),
        ("deterministic", "nondeterministic"),
        ("error", "device-error"),
    ],
)
def test_a_refusal_is_an_error_if_it_got_through_and_a_note_if_it_was_handled(kind, rule):
    assert told(observation(kind, raised=True)) == [(rule, "error")]
    assert told(observation(kind)) == [(rule, "note")]


def test_a_metric_that_nobody_moved_and_that_says_so_is_a_warning():
    not_moved = replace(UPDATE, usage=NOT_MOVED)
    assert told(observation("devices", not_moved, raised=True)) == [("mixed-devices", "warning")]
    assert told(observation("dtype", not_moved, raised=True)) == [("dtype-missing", "error")]


@pytest.mark.parametrize("phase", ["build", "move", "first update", "compute", "sync"])
def test_waiting_matters_in_updates_and_not_elsewhere(phase):
    assert told(observation("sync")) == [("device-sync", "warning")]
    assert told(observation("sync", replace(UPDATE, phase=phase))) == []


@pytest.mark.parametrize(("count", "times"), [(1, "0.5 times"), (2, "once"), (4, "2 times"), (9, "4.5 times")])
def test_waits_are_told_per_update(count, times):
    (found,) = judge([observation("sync", count=count)])
    assert found.what == f"it happened, {times} an update"


@pytest.mark.parametrize(
    ("function", "count", "expected"),
    [
        ("main", 1, []),
        ("main", 2, []),
        ("main", 3, [("device-sync", "note")]),
        ("Model.forward", 1, [("device-sync", "warning")]),
        ("training_step", 1, [("device-sync", "warning")]),
    ],
)
def test_in_a_script_waiting_matters_in_steps_and_a_little_in_loops(function, count, expected):
    stack = (Frame("/site/lib/helper.py", 1, "helper"), Frame("train.py", 3, function))
    assert told(observation("sync", SCRIPT, stack=stack, count=count)) == expected


@pytest.mark.parametrize(
    ("source", "target", "run", "found"),
    [
        ("cuda:1", "cuda:0", UPDATE, True),
        ("cpu", "cuda:0", UPDATE, True),
        ("cpu", "cuda:1", UPDATE, False),
        ("cuda:0", "cuda:1", UPDATE, False),
        ("cuda:1", "cuda:0", SCRIPT, True),
        ("cpu", "cuda:0", SCRIPT, False),  # a script may use the default on purpose
        ("cpu", "cuda:0", replace(UPDATE, device="cuda"), False),
        ("cuda:1", "cuda:0", replace(UPDATE, device="cuda:0"), False),
    ],
)
def test_what_lands_on_the_default_device(source, target, run, found):
    seen = observation("copy", run, source=source, target=target)
    assert told(seen) == ([("moved-to-default-device", "error")] if found else [])


@pytest.mark.parametrize(
    ("source", "target", "waited", "found"),
    [
        ("cuda:1", "cpu", False, True),
        ("cuda:1", "cpu", True, False),
        ("cpu", "cuda:1", False, False),
        ("cpu", "mps:0", False, True),
        ("mps:0", "cpu", False, True),
    ],
)
def test_which_non_blocking_copies_may_corrupt(source, target, waited, found):
    seen = observation("copy", source=source, target=target, non_blocking=True, waited=waited)
    assert told(seen) == ([("non-blocking-copy", "warning")] if found else [])
    assert told(replace(seen, non_blocking=False)) == []


def test_the_same_line_is_one_finding():
    runs = [replace(UPDATE, device=device, subject=name) for device in ("mps", "xpu") for name in ("A", "B")]
    handled = observation("dtype", replace(UPDATE, device="xpu", subject="C"), what="handled")
    (found,) = judge([handled, *(observation("dtype", run, raised=True, operator="aten::to") for run in runs)])
    assert found.devices == ("xpu", "mps")
    assert found.subjects == ("C", "A", "B")
    assert (found.count, found.severity, found.what) == (5, "error", "it happened")  # the most severe speaks
    assert found.operators == ("aten::to",)


def test_other_lines_and_other_rules_are_other_findings_most_severe_first():
    later = (replace(LINE, line=9),)
    seen = [observation("sync"), observation("sync", stack=later), observation("devices", stack=later, raised=True)]
    assert [(found.rule, found.line) for found in judge(seen)] == [
        ("mixed-devices", 9),
        ("device-sync", 7),
        ("device-sync", 9),
    ]


def test_the_line_is_the_innermost_of_the_target():
    stack = (Frame("/site/helpers/apply.py", 2, "apply"), LINE, Frame("/site/lib/other.py", 9, "outer"))
    (found,) = judge([observation("sync", stack=stack)], ("/site/lib/",))
    assert found.where == "/site/lib/metric.py:7"
    (anywhere,) = judge([observation("sync", stack=stack)])
    assert anywhere.where == "/site/helpers/apply.py:2"


def test_a_observation_without_a_line_is_a_finding_without_one():
    (found,) = judge([observation("sync", stack=())])
    assert (found.file, found.line, found.code, found.fix) == ("", 0, "", rules()["device-sync"].fix)


def test_the_mend_names_the_operand_that_strays():
    operands = (("self.total", "int64 on cpu"), ("preds", "float32 on cuda:1"))
    (found,) = judge([observation("devices", raised=True, operands=operands)])
    assert found.fix == "Make `self.total` on the device of the inputs (device=...), or bring it there with .to(...)"
    assert found.what == "it happened\n`self.total` is int64 on cpu, `preds` is float32 on cuda:1"


def test_the_mend_names_the_expression_and_fits_the_operator(tmp_path):
    file = tmp_path / "m.py"
    file.write_text("def update(self, x):\n    y = x[x > 0]\n    z = x.to('cpu')\n")
    masked = observation("sync", stack=(Frame(str(file), 2, "update"),), operator="aten::index.Tensor")
    (found,) = judge([masked])
    assert found.fix.startswith("Use torch.where, or weights of 0 and 1, instead of `x[x > 0]`")
    copied = observation("sync", stack=(Frame(str(file), 3, "update"),), operator="aten::copy_", source="mps:0")
    (found,) = judge([copied])
    assert found.fix == "Keep `x.to('cpu')` on the device, and read it once, at the end"
    arrives = observation("sync", stack=(Frame(str(file), 3, "update"),), operator="aten::copy_", source="cpu")
    (found,) = judge([arrives])
    assert found.fix.startswith("Keep what `x.to('cpu')` copies on the device from the start")
    (found,) = judge([replace(arrives, elements=1)])
    assert found.fix.startswith("Make the number of `x.to('cpu')` on the device: torch.full")


def test_waits_of_an_installed_library_are_notes_in_a_script_that_calls_it():
    library, own = Frame(f"{SITES[0]}lib/model.py", 7, "Model.forward"), Frame("/me/train.py", 3, "main")
    assert told(observation("sync", SCRIPT, stack=(library, own))) == [("device-sync", "note")]
    assert told(observation("sync", SCRIPT, stack=(replace(own, function="Net.forward"), library, own))) == [
        ("device-sync", "warning")
    ]
    assert told(observation("sync", stack=(library, own))) == [("device-sync", "warning")]  # of a metric, no script


def test_a_script_may_bring_its_batches_to_the_device():
    main = (Frame("train.py", 3, "main"),)
    assert told(observation("sync", SCRIPT, stack=main, source="cpu", target="cuda:1", count=99)) == []
    assert told(observation("sync", SCRIPT, stack=main, source="cuda:1", target="cpu", count=99)) == [
        ("device-sync", "note")
    ]


def test_minor_observations_are_notes():
    assert told(observation("result", minor=True)) == [("result-elsewhere", "note")]
    assert told(observation("result")) == [("result-elsewhere", "warning")]


def test_paths_are_shown_short(tmp_path):
    assert relative(str(tmp_path / "a.py"), tmp_path) == "a.py"
    assert relative("/x/dist-packages/lib/a.py", tmp_path) == "lib/a.py"
    assert relative("/x/a.py", tmp_path) == "/x/a.py"
