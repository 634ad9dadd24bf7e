"""What holds of every metric of raw samples, such as strings, besides the laws of all metrics."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from assay.errors import ConfigError, InputError
from assay.meter import Meter
from assay.metrics import Accuracy, WordErrorRate
from assay.metrics.per_sample import per_sample_values
from laws import CASES, bits, value
from thinning import every

ROWS = 24
RAW = [
    case for case in CASES if case.metric.encoder is not None and case.metric.encoder.takes not in ("boxes", "tensors")
]
every_case = every(RAW)
plain = every([case for case in RAW if not case.weighted])


def test_a_meter_of_tensors_alone_takes_no_raw_samples():
    assert not Meter(Accuracy()).takes_raw
    assert Meter(WordErrorRate()).takes_raw


@plain
def test_rows_are_those_of_each_sample(case):
    data = case.data(1, ROWS)
    encoder = case.metric.encoder
    whole, nothing = encoder.rows(*data[:2]), encoder.rows([], [])
    singles = [encoder.rows(*data.rows([k])[:2]) for k in range(ROWS)]
    assert whole.shape == (ROWS, nothing.shape[1])
    assert whole.dtype == nothing.dtype
    assert whole.dtype in (torch.int64, torch.float64)
    assert torch.equal(whole, torch.cat([nothing, *singles]))


@plain
def test_a_weight_says_how_often_a_sample_occurs(case):
    data = case.data(6, ROWS)
    counts = torch.randint(0, 4, (ROWS,), generator=torch.Generator().manual_seed(0))
    repeated = data.rows([k for k, count in enumerate(counts.tolist()) for _ in range(count)])
    for weights, same in ((counts, repeated), (torch.ones(ROWS), data)):
        meter = Meter(value=case.metric, weighted=True)
        meter.update(data.preds, data.target, weights=weights)
        assert bits(value(meter)) == bits(value(case.counted(same)))


@every_case
def test_per_sample_values_add_up_to_the_value(case):
    data = case.data(7, ROWS)
    found = per_sample_values(case.metric, data.preds, data.target, data.weights)
    if found is not None:
        sums = {name: float(term.double().sum()) for name, term in found.terms.items()}
        below = sums[found.denominator] if found.denominator else ROWS
        expected = sums[found.numerator] / below
        assert float(value(case.counted(data))["value"]) == pytest.approx(expected, rel=1e-6)


@plain
def test_wrong_arguments_raise_and_count_nothing(case):
    data = case.data(9, ROWS)
    preds, target = data.preds, data.target
    meter = case.counted(data)
    unordered = set(map(str, range(ROWS)))
    for wrong in (
        (preds, target[:-1]),
        (preds, None),
        (torch.zeros(ROWS), target),
        (preds, b"ab"),
        (None, target),
        (unordered, target),
        (preds, frozenset(unordered)),
    ):
        with pytest.raises(InputError, match=r": got .*, expected "):
            meter.update(*wrong)
    with pytest.raises(ConfigError, match="weights"):
        meter.update(preds, target, weights=torch.ones(ROWS))
    assert bits(meter) == bits(case.counted(data))


@plain
def test_other_sequences_are_taken_as_lists(case):
    data = case.data(10, ROWS)
    arrays = [np.empty(ROWS, object), np.empty(ROWS, object)]
    for array, values in zip(arrays, data[:2], strict=True):
        array[:] = values
    for same in ((tuple(data.preds), tuple(data.target)), arrays):
        meter = case.meter()
        meter.update(*same)
        assert bits(meter) == bits(case.counted(data))


@plain
def test_the_random_state_is_not_touched(case):
    def states() -> Any:
        return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()

    before = states()
    value(case.counted(case.data(11, ROWS)))
    assert states() == before
