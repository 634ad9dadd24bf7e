"""Every metric of assay on devices that are not there: no finding, no wait in an update, and the CPU's bits."""

from __future__ import annotations

import pytest
import torch

from assay.audit import audit
from assay.audit.cases.own import cases
from assay.devices import policy
from assay.devices.placement import move
from laws import Data, bits, feed, public_metrics
from tally_laws import TALLY_CASES
from thinning import every

DEVICES = ("mps", "cuda:1", "xpu")
STAGES = (0, 1 << 21)


@pytest.mark.devices(*DEVICES)
@every([case for case in TALLY_CASES if not case.raw])
def test_no_update_waits_or_is_refused_and_every_bit_is_the_cpus(case, device, pretended):
    events = pretended.events if pretended else []  # a real device notes none, and its bits count as well
    batches = case.data(1, 33), case.data(2, 20)
    expected = bits(case.counted(*batches))
    policy(device)  # the self-test of a device at its first use reads what it computed
    there = [Data(*(move(each, device) for each in batch)) for batch in batches]
    for stage_bytes in STAGES:
        events.clear()
        meter = feed(case.meter(stage_bytes), *there)
        assert [str(event) for event in events] == []
        counted_on = device if case.metric.inputs == "boxes" or not case.raw else torch.device("cpu")
        assert list(meter.device_states()) == [counted_on]
        states = [value for state in meter.device_states()[counted_on] for value in state.values()]
        assert {value.device for value in states if isinstance(value, torch.Tensor)} <= {counted_on}
        events.clear()
        assert bits(meter) == expected
        assert {event.kind for event in events} <= {"copy", "sync"}  # reading is on the CPU


def test_the_audit_has_a_case_for_every_metric():
    named = {case.name.removeprefix("assay.metrics.").partition("(")[0] for case in cases()}
    assert named == set(public_metrics())


@pytest.mark.exhaustive  # it takes half a minute
@pytest.mark.parametrize("name", DEVICES)
def test_the_audit_of_assay_finds_nothing(name):
    result = audit("assay", [name])
    assert result.findings == ()
    assert result.unrun == ()
    assert result.subjects == len(list(cases()))
