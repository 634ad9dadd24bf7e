from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from assay.audit import audit
from assay.audit.watching.collect import Collector
from assay.audit.watching.error_frames import chain, frames_of
from assay.audit.watching.hard_coded import names_of
from assay.audit.watching.observations import AS_IT_IS, AuditRun
from assay.audit.watching.origins import Origins
from assay.audit.watching.replaced_devices import replace_devices
from assay.audit.watching.source_code import naming, where
from assay.pretend import pretend
from assay.pretend.events import Frame
from thinning import one_of_each


def named_by(call, device="mps"):
    """What the error of a call says of a device that is not there."""
    with pretend(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:
            *_, first = chain(error)
            return names_of(first, frames_of(error), device.partition(":")[0])
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize(
    ("call", "called"),
    [
        (lambda: torch.ones(2).cuda(), ""),
        (lambda: torch.ones(2).to("cuda:0"), ""),
        (lambda: torch.zeros(2, device="cuda"), ""),
        (lambda: torch.nn.Linear(2, 2).cuda(), ""),
        (lambda: torch.set_default_device("cuda") or torch.ones(2), ""),
        (lambda: torch.ones(2).type("torch.cuda.FloatTensor"), ""),
        (lambda: torch.cuda.FloatTensor(2), ""),
        (lambda: torch.cuda.synchronize(), "torch.cuda.synchronize"),
        (lambda: torch.cuda.set_device(0), "torch.cuda.set_device"),
        (lambda: torch.cuda.current_device(), "torch.cuda.current_device"),
        (lambda: torch.cuda.get_device_name(0), "torch.cuda.get_device_name"),
        (lambda: torch.cuda.Event(enable_timing=True), "torch.cuda.Event"),
        (lambda: torch.Generator("cuda"), "torch.Generator"),
    ],
)
def test_the_errors_of_a_device_that_is_not_there_are_known(call, called):
    try:
        assert named_by(call) == ("foreign", "cuda", called)
    finally:
        torch.set_default_device(None)


def test_other_kinds_are_known_on_cuda_and_other_errors_are_not_taken_for_them():
    assert named_by(lambda: torch.ones(2, device="xpu"), "cuda") == ("foreign", "xpu", "")
    assert named_by(lambda: torch.ones(2, device="mps").numpy(), "mps") is None
    assert named_by(lambda: torch.ones(2) + torch.ones(3), "mps") is None


@pytest.mark.parametrize(("device", "engine"), [("mps", "native"), ("xpu", "native"), ("mps", "python")])
def test_every_way_to_name_cuda_leads_to_the_device_there_is(device, engine, tmp_path):
    file = tmp_path / "saved.pt"
    with pretend("cuda"):
        torch.save(torch.ones(2, device="cuda"), file)
    before = torch.cuda.is_available, torch.Generator, torch.set_default_device, torch.autocast.__init__
    with pretend(device, engine=engine) as pretended, replace_devices(pretended, lambda *_: None):
        made = [
            torch.ones(2).cuda(),
            torch.ones(2).to("cuda:0"),
            torch.ones(2).to(device="cuda", dtype=torch.float16),
            torch.zeros(2, device=torch.device("cuda", 1)),
            torch.ones(2).new_zeros(2, device="cuda"),
            torch.ones(2).type("torch.cuda.HalfTensor"),
            torch.nn.Linear(2, 2).to("cuda").weight,
            torch.load(file),
            torch.load(file, map_location="cuda"),
            torch.rand(2, generator=torch.Generator("cuda"), device="cuda"),
        ]
        assert {tensor.device for tensor in made} == {pretended.device}
        assert isinstance(torch.Generator(), torch.Generator)
        torch.cuda.synchronize()
        assert torch.cuda.is_available()  # to the program itself
        with torch.autocast("cuda", dtype=torch.float16):
            assert torch.is_autocast_enabled(device)
    after = torch.cuda.is_available, torch.Generator, torch.set_default_device, torch.autocast.__init__
    assert after == before


def test_what_is_replaced_is_noted_with_its_line():
    noted = []
    with pretend("mps") as pretended, replace_devices(pretended, lambda *each: noted.append(each)):
        torch.ones(2).cuda()
        torch.cuda.synchronize()
    assert [(kind, called) for kind, called, _ in noted] == [("cuda", ""), ("cuda", "torch.cuda.synchronize")]
    assert all(where(stack).file == __file__ for _, _, stack in noted)


def test_a_line_that_an_if_guards_is_not_taken_again(tmp_path):
    file = tmp_path / "guarded.py"
    file.write_text(
        "if torch.cuda.is_available():\n    x.cuda()\ny.cuda()\nz.to(device)\n"  # the third line is one, the fourth not
    )
    sent = []
    collector = Collector(sent.append, run=AuditRun("s", "mps", AS_IT_IS, "script", replaced=True))
    for line in (2, 3, 4):
        collector.named_again("cuda", "", (Frame(str(file), line, "<module>"),))
    assert len(sent) == 1
    assert '"line": 3' in sent[0]


def test_the_line_that_gives_a_name_its_device_is_found(tmp_path):
    file = tmp_path / "far.py"
    file.write_text("other = 1\ndevice = torch.device('cuda')\nmodel.to(device)\nmodel.to('cuda')\n")
    assert [each.line for each in naming(Frame(str(file), 3, ""), "cuda")] == [2]
    assert naming(Frame(str(file), 4, ""), "cuda") == []


def test_origins_are_of_the_first_maker_and_end_with_the_tensor():
    with Origins() as origins:
        first = torch.arange(4.0)
        derived = (first * 2).reshape(2, 2)[0]
        noted = origins.of(derived)
        assert noted == origins.of(first)
        assert noted.how == "made"
        assert noted.lines[0].file == __file__
        count = len(origins._noted)
        del derived, first
        for _ in range(100):
            torch.ones(3)
    assert len(origins._noted) <= count + 100
    assert origins.of(torch.ones(2)) is None


def test_a_tensor_that_is_moved_has_its_origin_where_it_was_moved():
    with pretend("mps", engine="native") as pretended, Origins() as origins:
        there = torch.ones(3, device=pretended.device)
        here = there.cpu() + 1
        assert origins.of(here).how == "moved"
        assert origins.of(here).lines[0].line == origins.of(there).lines[0].line + 1


@pytest.mark.exhaustive  # a whole audit
def test_a_whole_audit_goes_on_after_a_hard_coded_device(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(
        "import torch\n"
        "x = torch.ones(3).cuda()\n"
        "torch.cuda.synchronize()\n"
        "y = torch.arange(3.0)\n"
        "x = x + y\n"
        "print('never reached')\n"
    )
    result = audit(str(file), ["mps"])
    found = {(each.rule, each.line): each for each in result.findings}
    assert set(found) == {("hard-coded-device", 2), ("hard-coded-device", 3), ("mixed-devices", 5)}
    assert [found[key].replaced for key in sorted(found)] == [False, True, True]
    assert [(origin.line, origin.what) for origin in found["mixed-devices", 5].origins] == [(4, "`y` was made on cpu")]
    assert (result.unrun, result.exit_code()) == ((), 1)


@pytest.mark.exhaustive  # a whole audit
def test_a_second_run_that_stops_is_said(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("import torch\nx = torch.ones(3).cuda()\nraise KeyError('name')\n")
    result = audit(str(file), ["mps"])
    assert [(each.rule, each.line) for each in result.findings] == [("hard-coded-device", 2)]
    (part,) = result.unrun
    assert part.why.startswith("after the hard-coded device was replaced: stopped with KeyError")


@one_of_each()
@pytest.mark.parametrize("device", ["npu", "mps"])
def test_every_place_that_is_hard_coded_is_found_in_one_audit(device, tmp_path):
    """open-compass/VLMEvalKit#1549 counts such places by the hundred; here is one of each kind."""
    program = Path(__file__).with_name("names_cuda_everywhere.py")
    marked = {number for number, text in enumerate(program.read_text("utf-8").split("\n"), 1) if "# NAMED" in text}
    found = audit(str(program), on=[device], arguments=[str(tmp_path / "store")])
    named = {finding.line: finding for finding in found.findings if finding.rule == "hard-coded-device"}
    assert set(named) == marked
    others = {finding.rule for finding in found.findings} - {"hard-coded-device"}
    assert others == (set() if device == "npu" else {"operator-missing"})  # mps has no collectives
    (backend,) = (each for each in named.values() if "backend" in each.what)
    assert "hccl for npu" in backend.fix


@pytest.mark.parametrize(
    ("text", "own", "named"),
    [
        ("Expected one of cpu, cuda device type at start of device string: npu", "mps", "npu"),
        ("No module named 'torch.hpu'", "cuda", "hpu"),
        ("No module named 'torch_npu'", "mps", "npu"),
        ("No module named 'torch_sparse'", "mps", None),
        ("Distributed package doesn't have HCCL built in", "hpu", None),  # its own
        ("Distributed package doesn't have HCCL built in", "mps", "npu"),
        ("Distributed package doesn't have XCCL built in", "npu", "xpu"),
    ],
)
def test_errors_name_the_devices_of_adapters(text, own, named):
    mention = names_of(RuntimeError(text), [], own)
    assert mention == (None if named is None else ("foreign", named, ""))


def test_a_scaler_is_reported_at_the_line_of_the_program_and_not_in_a_library(tmp_path):
    program = tmp_path / "scaled.py"
    program.write_text(
        "import torch\nfrom torch.cuda.amp import GradScaler\nGradScaler()\n"
        "(torch.ones(3, device=torch.accelerator.current_accelerator()) * 2).sum()\n"
    )
    (found,) = audit(str(program), on=["mps"]).findings
    assert (found.rule, found.file, found.line) == ("hard-coded-device", str(program), 3)


@pytest.mark.slow
def test_the_hooks_of_accelerate_over_two_devices_are_no_finding(tmp_path):
    pytest.importorskip("accelerate")
    program = tmp_path / "dispatched.py"
    program.write_text(
        "import torch\nfrom accelerate import dispatch_model\n"
        "layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))\n"
        "layers = dispatch_model(layers, device_map={'0': 0, '1': 1})\n"
        "layers(torch.ones(2, 4, device='cuda:0')).sum().item()\n"
    )
    assert audit(str(program), on=["cuda:1"]).findings == ()
