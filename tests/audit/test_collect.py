from __future__ import annotations

import json
import threading

import pytest
import torch

from assay.audit.watching.collect import UNSUPPORTED, Collector
from assay.audit.watching.error_frames import operands_of, stack_of
from assay.audit.watching.observations import AS_IT_IS, MOVED, AuditRun, Observation, unpack
from assay.audit.watching.source_code import where
from assay.pretend import PretendError
from assay.pretend.events import Event, Frame

RUN = AuditRun("Accuracy", "mps", MOVED, "update", 2)
SCRIPT = AuditRun("train.py", "mps", AS_IT_IS, "script")
HERE = (Frame(__file__, 1, "update"),)


class Sent:
    """What a collector sends."""

    def __init__(self):
        self.lines = []
        self.collector = Collector(self.lines.append)

    def messages(self, kind):
        return [message for message in map(json.loads, self.lines) if message["message"] == kind]

    @property
    def seen(self):
        return [unpack(message["observation"]) for message in self.messages("observation")]

    @property
    def unrun(self):
        return [message["unrun"]["why"] for message in self.messages("unrun")]


def event(kind, why="it happened", **details):
    return Event(kind, details.pop("operator", "aten::op"), "mps:0", why, details.pop("stack", HERE), **details)


def test_a_million_times_is_a_few_lines_and_the_count_is_right():
    sent = Sent()
    with sent.collector.phase(RUN):
        for _ in range(1000):
            sent.collector.event(event("sync"))
    assert len(sent.seen) == 1
    assert [message["count"] for message in sent.messages("count")] == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]


def test_other_lines_devices_and_phases_are_counted_apart():
    sent = Sent()
    for run in (RUN, SCRIPT):
        with sent.collector.phase(run):
            sent.collector.event(event("sync"))
            sent.collector.event(event("sync", stack=(Frame(__file__, 2, "update"),)))
    assert len(sent.seen) == 4


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_refusal_that_ends_a_phase_is_told_from_one_that_was_handled(wrapped):
    sent = Sent()
    text = "Expected all tensors to be on the same device, but found at least two devices"
    with pytest.raises(RuntimeError), sent.collector.phase(RUN):  # noqa: PT012
        sent.collector.event(event("dtype", "Cannot convert a MPS Tensor to float64 dtype"))
        sent.collector.event(event("devices", text))
        if wrapped:
            raise RuntimeError("the library says more") from RuntimeError(text + "!")
        raise RuntimeError(text)
    assert [(seen.kind, seen.raised) for seen in sent.seen] == [("devices", True), ("dtype", False)]


def test_an_operator_of_python_hides_the_type_error_of_a_dtype():
    sent = Sent()
    with pytest.raises(TypeError), sent.collector.phase(RUN):  # noqa: PT012
        sent.collector.event(event("dtype", "Cannot convert a MPS Tensor to float64 dtype"))
        raise TypeError("unsupported operand type(s) for *: 'Tensor' and 'Tensor'")
    assert [(seen.kind, seen.raised) for seen in sent.seen] == [("dtype", True)]


def test_an_error_that_nothing_explains_is_one_of_the_device_where_the_cpu_had_none():
    sent = Sent()
    with pytest.raises(KeyError), sent.collector.phase(RUN):
        raise KeyError("mps")
    ((seen,), unrun) = sent.seen, sent.unrun
    assert (seen.kind, seen.what, unrun) == ("error", "KeyError: 'mps'", [])
    assert (
        where(seen.stack).function
        == test_an_error_that_nothing_explains_is_one_of_the_device_where_the_cpu_had_none.__name__
    )


def test_of_a_script_it_must_name_the_device():
    for error, found in (
        (KeyError("name"), False),
        (TypeError("can't convert mps:0 device type tensor to numpy"), True),
    ):
        sent = Sent()
        with pytest.raises(type(error)), sent.collector.phase(SCRIPT):
            raise error
        assert [seen.kind for seen in sent.seen] == (["error"] if found else [])
        assert (sent.unrun, sent.collector.stopped) == ([], True)  # a further run goes on where the CPU can do it


def test_the_last_run_of_a_script_says_what_stopped_it():
    sent = Sent()
    sent.collector.goes_on = True
    with pytest.raises(KeyError), sent.collector.phase(SCRIPT):
        raise KeyError("name")
    assert (sent.seen, sent.unrun) == ([], ["stopped with KeyError: 'name' at " + sent.unrun[0].rpartition(" at ")[2]])


def test_with_the_wrapper_engine_it_must_name_the_device():
    sent = Sent()
    sent.collector.engine = "python"
    with pytest.raises(RuntimeError), sent.collector.phase(RUN):
        raise RuntimeError("Cannot set version_counter for inference tensor")
    assert sent.seen == []
    assert sent.unrun[0].startswith("stopped with RuntimeError: Cannot set version_counter")


def test_what_cannot_be_simulated_is_no_finding():
    sent = Sent()
    with pytest.raises(PretendError), sent.collector.phase(RUN):
        raise PretendError("graphs: got one")
    with pytest.raises(RuntimeError), sent.collector.phase(RUN):  # noqa: PT012
        sent.collector.event(event(UNSUPPORTED, "has no CPU kernel to borrow"))
        raise RuntimeError("has no CPU kernel to borrow")
    assert sent.seen == []
    assert sent.unrun[0] == "cannot be simulated: graphs: got one"
    assert sent.unrun[1].startswith("cannot be simulated: has no CPU kernel to borrow at ")


def test_a_copy_that_its_function_waits_for_is_whole():
    copy = event("copy", operator="aten::copy_", source="cuda:0", target="cpu", non_blocking=True)
    wait = event("sync", operator="torch.cuda.synchronize")
    elsewhere = event("sync", operator="torch.cuda.synchronize", stack=(Frame(__file__, 1, "other"),))
    for after, waited in ((wait, True), (elsewhere, False), (event("sync"), False)):
        sent = Sent()
        with sent.collector.phase(RUN):
            sent.collector.event(copy)
            sent.collector.event(after)
        assert [seen.waited for seen in sent.seen if seen.kind == "copy"] == [waited]


def test_the_operands_are_read_from_the_frame_of_the_error():
    class Holder:
        def __init__(self):
            self.total = torch.zeros(2, dtype=torch.int64)

        @property
        def costly(self):
            raise AssertionError("properties are not run")

        def fails(self, preds):
            return self.total + preds.sum(-1) + self.costly

    with pytest.raises(RuntimeError) as caught:
        Holder().fails(torch.ones(3, 3))
    frame = next(each for each in stack_of(caught.value) if each.function.endswith("fails"))
    assert operands_of(caught.value, frame) == (("self.total", "int64 on cpu"), ("preds", "float32 on cpu"))
    assert operands_of(caught.value, None) == ()


def test_a_kernel_of_triton_that_finds_no_driver_was_not_audited():
    """Triton looks for ``libcuda.so`` when a kernel is launched: its ``triton.backends.nvidia.driver`` asserts."""
    triton, program = {"__name__": "triton.backends.nvidia.driver"}, {"__name__": "spikes"}
    exec("def launch():\n    raise AssertionError('libcuda.so cannot found!')", triton)
    exec("def forward(launch):\n    launch()", program)
    sent = Sent()
    with pytest.raises(AssertionError), sent.collector.phase(RUN):
        program["forward"](triton["launch"])
    with pytest.raises(AssertionError), sent.collector.phase(RUN):
        program["forward"](lambda: exec("assert False", {"__name__": "spikes"}))
    assert sent.unrun == ["cannot be simulated: a Triton kernel needs the driver of a real GPU"]
    assert [each.kind for each in sent.seen] == ["error"]


def test_no_thread_sends_a_count_before_what_it_counts():
    sent, seen = Sent(), Observation("sync", SCRIPT, "waits", "aten::nonzero", (Frame("a.py", 3, "f"),))
    others = []

    def send(line):
        if json.loads(line)["message"] == "observation":  # another thread sees the same before this line is written
            others.append(threading.Thread(target=sent.collector.add, args=(seen,)))
            others[0].start()
            others[0].join(0.2)
        sent.lines.append(line)

    sent.collector.send = send
    sent.collector.add(seen)
    others[0].join()
    assert [json.loads(line)["message"] for line in sent.lines] == ["observation", "count"]
