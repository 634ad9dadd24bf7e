"""Whole audits: a process for each device, which may crash, loop, or end itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assay.audit import audit
from assay.audit.running.targets import parse
from assay.errors import ConfigError

pytestmark = pytest.mark.exhaustive  # each test starts processes
BUGGY = Path(__file__).with_name("buggy.py")
FOUND, NOT_RUN = 1, 2


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.write_text("import torch\n" + text)
        return path

    return write


def rules_and_lines(result):
    return [(found.rule, found.line) for found in result.findings]


def test_a_script_that_finds_its_device_by_itself(script):
    path = script(
        "device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else 'cpu'\n"
        "x = torch.ones(3, device=device)\n"
        "y = x + torch.ones(3)\n"
    )
    result = audit(str(path), ["mps", "xpu"])
    (found,) = result.findings
    assert (found.rule, found.line, found.file) == ("mixed-devices", 4, str(path))
    assert found.devices == ("mps", "xpu")
    assert found.usages == ("as it is",)
    assert found.what.endswith("`x` is float32 on mps:0")
    assert result.unrun == ()
    assert result.exit_code() == FOUND


def test_a_clean_script_has_no_finding_and_exit_code_0(script):
    path = script("x = torch.ones(3, device='cuda')\nprint(float(x.sum()))\n")
    result = audit(str(path), ["cuda"])
    assert (result.findings, result.unrun, result.exit_code()) == ((), (), 0)


def test_a_script_that_uses_no_device_is_not_reported_as_passed(script):
    result = audit(str(script("print(torch.ones(3).sum())\n")), ["mps"])
    (part,) = result.unrun
    assert "no tensor was seen on mps:0" in part.why
    assert result.exit_code() == NOT_RUN


def test_arguments_of_a_script_name_the_device(script):
    path = script(
        "import sys\n"
        "assert sys.argv[1:] == ['--device', 'cuda:1', 'a b']\n"
        "x = torch.ones(3, device=sys.argv[2])\n"
        "y = x.cpu().cuda()\n"
        "z = x.to('cuda')\n"
    )
    result = audit(str(path), ["cuda:1"], arguments=["--device", "{device}", "a b"])
    assert rules_and_lines(result) == [("moved-to-default-device", 5), ("moved-to-default-device", 6)]


def test_what_was_found_before_a_crash_is_kept(script):
    path = script("import os\nx = torch.ones(3, device='mps')\nfor k in range(9):\n    x.sum().item()\nos.abort()\n")
    result = audit(str(path), ["mps"])
    ((rule, line),) = rules_and_lines(result)
    assert (rule, line) == ("device-sync", 5)
    assert result.findings[0].severity == "note"
    assert result.findings[0].count == 8  # counts are sent when they double
    (part,) = result.unrun
    assert part.why.startswith("ended by signal SIGABRT")
    assert result.exit_code() == NOT_RUN
    assert result.exit_code("note") == FOUND


def test_an_endless_loop_is_stopped_and_its_findings_are_kept(script):
    path = script(
        "x = torch.ones(3, device='cuda')\ndef forward():\n    return x.sum().item()\nwhile True:\n    forward()\n"
    )
    result = audit(str(path), ["cuda"], timeout=5.0)
    assert rules_and_lines(result) == [("device-sync", 4)]
    assert result.findings[0].severity == "warning"
    assert [part.why for part in result.unrun] == ["did not end within 5 s (--timeout); it was stopped there"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import sys\nsys.exit(3)\n", "ended itself with exit code 3"),
        ("import os\nprint('last words')\nos._exit(4)\n", "ended itself with exit code 4"),
        ("raise KeyError('name')\n", "stopped with KeyError: 'name' at "),
        ("def f(:\n", "stopped with SyntaxError"),
        ("import no_such_module_at_all\n", "stopped with ModuleNotFoundError"),
    ],
)
def test_a_script_that_ends_early_says_how(script, text, why):
    result = audit(str(script(text)), ["mps"])
    assert any(part.why.startswith(why) for part in result.unrun), result.unrun
    assert result.exit_code() == NOT_RUN


@pytest.mark.parametrize(("name", "definition"), [("run", "def run():"), ("", "def audit(device):")])
def test_a_module_may_choose_the_device_while_it_is_imported(script, name, definition):
    text = "DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
    path = script(f"{text}{definition}\n    return torch.ones(3, device=DEVICE) + torch.ones(3)\n")
    result = audit(f"{path}:{name}" if name else str(path), ["cuda"])
    assert rules_and_lines(result) == [("mixed-devices", 4)]
    assert result.unrun == ()


def test_what_lies_beside_a_file_with_a_metric_can_be_imported(script):
    script("STEP = 2\n", "beside_the_audited.py")
    metric = "    def __init__(self): self.s = 0\n    def update(self, x): self.s = self.s + x.sum() * STEP\n"
    path = script(f"from beside_the_audited import STEP\nclass M:\n{metric}    def compute(self): return self.s\n")
    result = audit(f"{path}:M", ["mps"])
    assert (result.findings, result.unrun) == ((), ())


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_a_time_in_which_nothing_can_run_is_refused(seconds):
    with pytest.raises(ConfigError, match="timeout: got "):
        audit(str(BUGGY), ["mps"], timeout=seconds)


def test_exit_code_0_of_a_script_is_no_failure(script):
    result = audit(str(script("import sys\nx = torch.ones(2, device='xpu')\nsys.exit(0)\n")), ["xpu"])
    assert (result.unrun, result.exit_code()) == ((), 0)


def test_a_module_may_define_what_is_audited(script):
    path = script(
        "def audit(device):\n"
        "    x = torch.ones(3, device=device)\n"
        "    return x.double()\n"
        "if __name__ == '__main__':\n"
        "    raise SystemExit('it is not run as a script')\n"
    )
    result = audit(str(path), ["mps", "cuda:1"])
    assert rules_and_lines(result) == [("dtype-missing", 4)]
    assert result.findings[0].devices == ("mps",)
    assert result.unrun == ()


def test_a_function_of_a_file(script):
    path = script("def step():\n    return torch.ones(3, device='cuda:1') + torch.ones(3, device='cuda')\n")
    result = audit(f"{path}:step", ["cuda:1"])
    assert rules_and_lines(result) == [("mixed-devices", 3)]


def test_a_file_may_give_cases():
    result = audit(str(BUGGY), ["mps"])
    assert {found.rule for found in result.findings} == {"mixed-devices"}
    assert [(part.subject, part.known) for part in result.unrun] == [("buggy.NeedsArguments", True)]
    assert result.subjects == 3


def test_a_case_that_kills_its_process_does_not_stop_the_others(script):
    path = script(
        "import os\n"
        "from assay.audit import Case\n"
        "class Good:\n"
        "    def update(self, x):\n"
        "        self.x = x.item()\n"
        "    def compute(self):\n"
        "        return self.x\n"
        "class Bad(Good):\n"
        "    def update(self, x):\n"
        "        if x.device.type != 'cpu':\n"
        "            os.abort()\n"
        "def audit_cases():\n"
        "    batches = ((torch.ones(1),),) * 2\n"
        "    for name, cls in (('first', Good), ('bad', Bad), ('last', Good)):\n"
        "        yield Case(name, cls, batches, move=lambda metric, device: metric)\n"
    )
    # Bad has no value on the CPU to compare with, so it gets one
    path.write_text(
        path.read_text().replace("            os.abort()\n", "            os.abort()\n        self.x = 1\n")
    )
    result = audit(str(path), ["mps"])
    (part,) = result.unrun
    assert part.subject == "bad"
    assert part.why.startswith("ended by signal SIGABRT")
    (found,) = result.findings
    assert found.subjects == ("first", "last")


def test_rules_can_be_chosen():
    assert audit(str(BUGGY), ["mps"], only=["device-sync"]).findings == ()
    left = audit(str(BUGGY), ["mps"], without=["mixed-devices"])
    assert (left.findings, left.exit_code()) == ((), 0)


def test_a_metric_of_a_library_is_audited_with_the_inputs_that_come_with_assay():
    result = audit("torchmetrics:MeanSquaredError", ["cuda:1"])
    (found,) = result.findings
    assert found.file.endswith(os.path.join("torchmetrics", "regression", "mse.py"))
    assert found.code == "self.sum_squared_error += sum_squared_error"
    assert found.usages == ("not moved",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("no_such_package", ["mps"]),
            "target: got 'no_such_package', expected a Python file or a module that can be imported",
        ),
        (("no/such/file.py", ["mps"]), "target: got no/such/file.py, which is no file"),
        ((str(BUGGY.parent), ["mps"]), "target: got the folder "),
        ((str(BUGGY), []), "on: got no device"),
        ((str(BUGGY), ["tpu"]), "device: got 'tpu', expected mps, cuda, cuda:1, xpu"),
        ((str(BUGGY), ["cuda:x"]), "device: got 'cuda:x'"),
    ],
)
def test_what_cannot_be_audited_is_said_before_anything_runs(arguments, message):
    with pytest.raises(ConfigError) as error:
        audit(*arguments)
    assert str(error.value).startswith(message)


def test_wrong_options_are_named():
    with pytest.raises(ConfigError, match=r"^rule: got 'sync', expected one of mixed-devices, "):
        audit(str(BUGGY), ["mps"], only=["sync"])
    with pytest.raises(ConfigError, match=r"^usage: got 'moved', expected 'moved first' or 'not moved'"):
        audit(str(BUGGY), ["mps"], usages=["moved"])


def test_a_class_that_is_no_metric_is_said(script):
    (part,) = audit(f"{script('class Net: pass')}:Net", ["mps"]).unrun
    assert (
        ":Net, which is none, expected a class with update and compute, or a torch.nn.Module. For anything else, define"
        in part.why
    )


def test_a_name_that_is_not_there_is_said():
    (part,) = audit(f"{BUGGY}:Missing", ["mps"]).unrun
    assert part.why.startswith("target: got 'Missing', expected a name in ")


def test_an_engine_that_cannot_be_had_is_said_once(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", str(tmp_path / "no compiler"))
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    result = audit(str(BUGGY), ["mps"], engine="native")
    (part,) = result.unrun
    assert part.why.startswith("the engine of pretend devices: got no C++ compiler, expected g++ or clang++")
    assert result.exit_code() == NOT_RUN


def test_how_far_it_is_can_be_followed():
    steps = []
    audit(str(BUGGY), ["xpu"], progress=steps.append)
    assert [(step.done, step.total) for step in steps] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [step.subject for step in steps] == ["buggy.Metric", "buggy.MixedDevices", "buggy.NeedsArguments", ""]


def test_a_file_that_only_defines_metrics_has_them_audited(tmp_path):
    file = tmp_path / "metrics_of_mine.py"
    file.write_text(
        '"""Mine."""\n'
        "import torch\n"
        "CLASSES = 3\n"
        "class Total:\n"
        "    def __init__(self): self.total = torch.zeros(())\n"
        "    def update(self, preds, target): self.total = self.total + preds.sum().item()\n"
        "    def compute(self): return self.total\n"
    )
    result = audit(str(file), on=["mps"])
    assert ("device-sync", 6) in [(found.rule, found.line) for found in result.open]
    assert result.unrun == ()


def test_an_object_that_cannot_be_moved_has_its_tensors_moved(tmp_path):
    file = tmp_path / "plain.py"
    file.write_text(
        "import torch\n"
        "class Total:\n"
        "    def __init__(self):\n"
        "        self.total = torch.zeros(3)\n"
        "    def update(self, preds, target):\n"
        "        self.total += preds.sum()\n"
        "    def compute(self):\n"
        "        return self.total.double().mean()\n"
    )
    found = {(each.rule, each.line, each.usages) for each in audit(str(file), on=["mps"]).open}
    assert ("mixed-devices", 6, ("not moved",)) in found
    assert ("dtype-missing", 8, ("moved first",)) in found


def test_hits_are_seen_to_be_counted_and_sums_of_scores_are_not(tmp_path):
    file = tmp_path / "counters.py"
    file.write_text(
        "import torch\n"
        "class Hits:\n"
        "    def __init__(self):\n"
        "        self.state = torch.zeros(())\n"
        "    def to(self, device):\n"
        "        self.state = self.state.to(device)\n"
        "    def update(self, preds, target):\n"
        "        self.state += (preds == target).sum()\n"
        "    def compute(self):\n"
        "        return self.state\n"
        "class Scores(Hits):\n"
        "    def update(self, preds, target):\n"
        "        self.state += preds.sum()\n"
    )
    counters = [each for each in audit(str(file), on=["mps"]).open if each.rule == "float32-counter"]
    assert [each.subjects for each in counters] == [("counters.Hits",)]


def test_an_empty_folder_does_not_hide_a_library(tmp_path, monkeypatch):
    (tmp_path / "torchmetrics").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse("torchmetrics").module == "torchmetrics"
    with pytest.raises(ConfigError, match="the folder"):
        parse(str(tmp_path))


def test_rules_that_are_all_ignored_are_no_audit():
    with pytest.raises(ConfigError, match="rules: got none that is left"):
        audit("assay:Accuracy", on=["mps"], only=["device-sync"], without=["device-sync"])


def test_findings_of_a_file_with_a_hook_may_be_in_the_libraries_it_calls(tmp_path):
    file = tmp_path / "with_a_hook.py"
    file.write_text("class Net: pass\ndef audit(device): pass\n")
    assert parse(str(file)).roots() == ()
    file.write_text("class Net: pass\n")
    assert parse(str(file)).roots() == (str(file),)


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_a_clean_script_that_copies_and_keeps_nothing_passes(script, engine):
    path = script("def main():\n    x = torch.rand(4, 3, device='mps')\n    (x * 2).sum()\nmain()\n")
    result = audit(str(path), ["mps"], engine=engine)
    assert (result.findings, result.unrun, result.exit_code()) == ((), (), 0)
