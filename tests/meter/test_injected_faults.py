"""Faults of a pretended device: which of them counts find in themselves. docs/proof.md has the table of all of them."""

from __future__ import annotations

import warnings

import pytest
from benchmarks.proof.faults import KINDS
from benchmarks.proof.outcomes import outcomes
from benchmarks.proof.rounding import OtherRounding
from benchmarks.proof.soak import soak

from assay.errors import AssayWarning
from assay.pretend import pretend
from laws import feed
from tally_laws import TALLY_CASES
from thinning import every

OF_TENSORS = [case for case in TALLY_CASES if not case.raw]
OF_INPUTS = {"argmax is wrong"}
"""Kinds of faults that only change what is counted."""
OF_STATES = [kind for kind in KINDS if kind.name not in OF_INPUTS]


@pytest.fixture(scope="module", autouse=True)
def mps():
    with pretend("mps"):
        yield


def missed(case, kinds, strikes, stage_bytes=0):
    """The faults that struck where values become counts, changed them, and were neither found nor reported."""
    found = outcomes(case, kinds, strikes, stage_bytes)
    return [(kind.name, call) for kind, call, each in found if each.result == "missed" and each.counts]


@every(OF_TENSORS, kind=lambda case: (type(case.tally), case.weighted))
def test_no_fault_in_the_counting_gives_a_wrong_number(case):
    assert not missed(case, OF_STATES, (2,))


@every(OF_TENSORS, kind=lambda case: (type(case.tally), case.weighted))
def test_a_device_that_rounds_otherwise_is_not_accused(case):
    """All rows are in the first flush, which the CPU counts once more."""
    data = case.data(1, 24).map(lambda each: each.to("mps"))
    with warnings.catch_warnings(), OtherRounding("mps"):
        warnings.simplefilter("ignore", AssayWarning)
        meter = feed(case.meter(), *(data.rows(slice(k, k + 8)) for k in range(0, 24, 8)))
        meter.states()
        assert meter.counts.recounted() == (3, 3)


@pytest.mark.slow
def test_sound_updates_raise_no_alarm():
    done, recounted, changed = soak(5000)
    assert done >= 5000
    assert recounted > 0
    assert changed > 0


@pytest.mark.slow
@pytest.mark.parametrize("stage_bytes", [0, 1 << 21])
def test_no_fault_in_the_counting_of_any_tally_gives_a_wrong_number(stage_bytes):
    found = {str(case): missed(case, OF_STATES, (None, 1, 2, 3, 5, 8), stage_bytes) for case in OF_TENSORS}
    assert not {name: each for name, each in found.items() if each}


def test_faults_are_injected_and_found():
    (case,) = [case for case in OF_TENSORS if str(case).startswith("Accuracy(num_classes=4), multiclass and")]
    results = {(kind.name, call): each.result for kind, call, each in outcomes(case, KINDS, (None, 1))}
    assert {results[kind.name, call] for kind in KINDS[:3] for call in (None, 1)} <= {"law", "fingerprint"}
    assert results["argmax is wrong", None] == "recount"
