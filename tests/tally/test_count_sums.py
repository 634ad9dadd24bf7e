"""Sums of counts: of one batch by itself, and added to the exact sums of others."""

from __future__ import annotations

import pytest
import torch

from assay import Meter
from assay.metrics import StringExactMatch, WordErrorRate
from assay.tally.base import Batch
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.sums.count_sums import CountSums
from assay.tally.sums.row_sums import RowSums

CPU = torch.device("cpu")
BATCHES = [
    torch.empty(0, 3, dtype=torch.int64),
    torch.tensor([[0, 2, 1], [3, 2**40, 0], [1, 1, 1]]),
    torch.tensor([[2**62, 0, -5], [2**61, 7, -(2**62)]]),
]


@pytest.mark.parametrize("rows", BATCHES)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_by_itself_has_the_sums_of_all_rows(rows, weighted):
    tally, plain = CountSums(RowNumbers(3), weighted), RowSums(RowNumbers(3), weighted)
    batch = Batch(rows, weights=torch.arange(len(rows)) if weighted else None, compiled=True)
    state, wanted = tally.zero_of_batch(CPU), plain.zero(CPU)
    tally.add(state, batch)
    plain.add(wanted, batch)
    state, wanted = tally.canonicalize(state, len(rows)), plain.canonicalize(wanted, len(rows))
    assert tally.compute(state) == plain.compute(wanted)
    assert not tally.invalid_values(state)
    assert not plain.invalid_values(wanted)


def test_batches_that_are_absorbed_have_the_bits_of_those_that_are_added():
    tally = CountSums(RowNumbers(3))
    total, wanted = tally.zero(CPU), tally.zero(CPU)
    for rows in BATCHES * 2:
        own = tally.zero_of_batch(CPU)
        tally.add(own, Batch(rows, compiled=True))
        tally.absorb(total, own)
        tally.add(wanted, Batch(rows, compiled=True))
    total, wanted = tally.canonicalize(total, 10), tally.canonicalize(wanted, 10)
    assert all(torch.equal(total[name], wanted[name]) for name in wanted)
    tally.absorb(total, wanted)  # a whole state
    assert tally.compute(total).sums[0][0] == 4 * sum(int(rows[:, 0].sum()) for rows in BATCHES)


def test_steps_of_a_meter_are_those_of_updates():
    """A value of a step, an update and a call add up, beside a metric of other rows or alone."""
    preds, target = ["a b c", "d", ""], ["a c", "d e f", "g"]
    for metrics in ({"wer": WordErrorRate()}, {"wer": WordErrorRate(), "exact": StringExactMatch()}):
        meter, updated = Meter(**metrics), Meter(**metrics)
        for _ in range(3):
            assert meter.forward(preds, target)["wer"] == WordErrorRate()(preds, target) == 4 / 6
            meter.update(preds[:1], target[:1])
            updated.update(preds + preds[:1], target + target[:1])
        assert meter.values_of(preds[1:], target[1:])["wer"] == 3 / 4
        assert meter.compute() == updated.compute()
        for state, wanted in zip(meter.states(), updated.states(), strict=True):
            assert all(torch.equal(state[name], wanted[name]) for name in wanted)
