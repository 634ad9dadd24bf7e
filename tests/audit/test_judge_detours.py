"""A copy to the CPU and on to the default device, on one line, is a move between devices, in a script, too."""

from __future__ import annotations

from dataclasses import replace

from assay.audit.findings.judge import judge
from assay.audit.watching.observations import AS_IT_IS, AuditRun, Observation
from assay.pretend.events import Frame

RUN = AuditRun("train.py", "cuda:1", AS_IT_IS, "script")


def copy(source: str, target: str, line: int) -> Observation:
    return Observation("copy", RUN, source=source, target=target, stack=(Frame("train.py", line, "main"),))


def moved(*seen: Observation) -> list[tuple[str, str]]:
    found = judge(seen)
    return [(each.where, each.what) for each in found if each.rule == "moved-to-default-device"]


def test_a_detour_through_the_host_that_ends_on_the_default_device_is_found():
    text = "A tensor goes from cuda:1 to cuda:0, the default"
    assert moved(copy("cuda:1", "cpu", 3), copy("cpu", "cuda:0", 3)) == [("train.py:3", text)]


def test_copies_on_two_lines_and_detours_that_come_back_are_none():
    assert moved(copy("cuda:1", "cpu", 3), copy("cpu", "cuda:0", 4)) == []
    assert moved(copy("cuda:1", "cpu", 3), copy("cpu", "cuda:1", 3)) == []


def test_a_detour_over_the_default_device_that_ends_on_the_right_one_is_none():
    """``made_on_cpu.type(x.type()).to(x.device)``: ``torch.cuda.FloatTensor`` is the default device."""
    update = replace(RUN, phase="update")
    first, last = replace(copy("cpu", "cuda:0", 3), run=update), replace(copy("cuda:0", "cuda:1", 3), run=update)
    assert moved(first, last) == []
    found = [("train.py:3", "A tensor goes from cpu to cuda:0, the default")]
    assert moved(first) == found
    assert moved(first, replace(last, stack=(Frame("train.py", 4, "main"),))) == found
    assert moved(first, replace(last, target="cuda:2")) == found


def test_a_program_that_says_to_which_device_a_tensor_goes_means_it():
    seen = replace(copy("cuda:1", "cuda:0", 3), named=True)
    assert moved(seen) == []
    assert moved(replace(seen, run=replace(RUN, phase="update"))) == [
        ("train.py:3", "A tensor goes from cuda:1 to cuda:0, the default")
    ]
