"""The laws of metrics of raw samples, such as strings: one case for every example of a metric that has an encoder.

What is counted behind an encoder are rows of numbers, for which the laws of tallies and of values hold.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import random
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from assay.errors import ConfigError, NoDataWarning, ShapeError
from assay.meter import Meter
from assay.metrics import Metric
from assay.metrics.per_sample import per_sample_values
from assay.metrics.samples import draw_for, examples, public_metrics
from laws import bits, leaves, value

ROWS = 24


@dataclass(frozen=True, eq=False)
class RawCase:
    """A metric of raw samples, with or without weights."""

    metric: Metric
    weighted: bool = False

    def __str__(self) -> str:
        return f"{self.metric!r}{', weighted' if self.weighted else ''}"

    def data(self, seed: int, count: int = ROWS) -> tuple[Any, ...]:
        """Predictions, targets, and weights or None."""
        generator = torch.Generator().manual_seed(seed)
        preds, target = draw_for(self.metric)(generator, count)
        weights = torch.randint(0, 9, (count,), generator=generator) / 4 if self.weighted else None
        return preds, target, weights

    def meter(self, *batches: tuple[Any, ...], stage_bytes: int = 1 << 21) -> Meter:
        """A meter that was fed these batches."""
        meter = Meter(value=self.metric, weighted=self.weighted, stage_bytes=stage_bytes)
        for preds, target, weights in batches:
            meter.update(preds, target, weights=weights)
        return meter


METRICS = [metric for kind in public_metrics().values() for metric in examples(kind) if metric.encoder is not None]
CASES = [RawCase(metric, weighted) for metric in METRICS for weighted in (False, True)]
every_case = pytest.mark.parametrize("case", CASES, ids=str)
plain = pytest.mark.parametrize("case", [case for case in CASES if not case.weighted], ids=str)


def some(data: tuple[Any, ...], index: list[int]) -> tuple[Any, ...]:
    """The samples at these places."""
    preds, target, weights = data
    chosen = [preds[k] for k in index], [target[k] for k in index]
    return *chosen, None if weights is None else weights[index]


def parts(data: tuple[Any, ...], order: list[int], *cuts: int) -> list[tuple[Any, ...]]:
    """The samples in an order, in batches that end at `cuts`."""
    return [some(data, order[start:end]) for start, end in itertools.pairwise([0, *cuts, len(order)])]


@every_case
def test_no_split_and_no_order_changes_a_bit(case):
    data = case.data(0)
    expected = bits(case.meter(data))
    for seed in range(3):
        chance = random.Random(seed)
        order = chance.sample(range(ROWS), ROWS)
        batches = parts(data, order, *sorted(chance.choices(range(ROWS + 1), k=5)))
        for stage_bytes in (0, 100, 1 << 21):
            assert bits(case.meter(*batches, stage_bytes=stage_bytes)) == expected
        first, second = case.meter(*batches[:2]), case.meter(*batches[2:])
        assert bits(first + case.meter() + second) == bits(second + first) == expected


@plain
def test_rows_are_those_of_each_sample(case):
    preds, target, _ = data = case.data(1)
    (encoder,) = case.metric.encoders
    whole = encoder.rows(preds, target)
    singles = [encoder.rows(*some(data, [k])[:2]) for k in range(ROWS)]
    nothing = encoder.rows([], [])
    assert whole.shape == (ROWS, nothing.shape[1])
    assert whole.dtype == nothing.dtype
    assert whole.dtype in (torch.int64, torch.float64)
    assert torch.equal(whole, torch.cat([nothing, *singles]))


@every_case
def test_copies_have_the_same_bits(case, tmp_path):
    data, more = case.data(2), case.data(3, 5)
    meter = case.meter(data)
    expected, further = bits(meter), bits(case.meter(data, more))
    loaded = case.meter(more)
    loaded.load_state_dict(meter.state_dict())
    filed = Meter.from_file(meter.to_file(tmp_path / "meter.safetensors"))
    for other in (copy.deepcopy(meter), pickle.loads(pickle.dumps(meter)), loaded, filed):
        assert other.metrics == meter.metrics
        assert bits(other) == expected
        preds, target, weights = more
        other.update(preds, target, weights=weights)
        assert bits(other) == further


@every_case
def test_without_data_it_is_nan_and_warns(case):
    for meter in (case.meter(), case.meter(case.data(4, 0))):
        with pytest.warns(NoDataWarning, match="got no data"):
            found = list(leaves(meter.compute()))
        assert found
        if case.metric.estimates:
            assert all(leaf.isnan() for leaf in found)


@every_case
def test_a_call_is_a_meter_of_one_batch(case):
    preds, target, weights = data = case.data(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert bits(case.metric(preds, target, weights=weights)) == bits(value(case.meter(data))["value"])


@plain
def test_every_sample_twice_is_every_weight_doubled(case):
    """Also that weights of 1 change nothing: whole weights say how often a sample occurs."""
    data = case.data(6)
    preds, target, _ = data
    weighted = RawCase(case.metric, weighted=True)
    counts = torch.randint(0, 4, (ROWS,), generator=torch.Generator().manual_seed(0))
    index = [k for k, count in enumerate(counts.tolist()) for _ in range(count)]
    repeated = value(case.meter(some(data, index)))
    assert bits(value(weighted.meter((preds, target, counts)))) == bits(repeated)
    assert bits(value(weighted.meter((preds, target, torch.ones(ROWS))))) == bits(value(case.meter(data)))


@every_case
def test_per_sample_values_add_up_to_the_value(case):
    preds, target, weights = data = case.data(7)
    found = per_sample_values(case.metric, preds, target, weights)
    if found is None:
        return
    sums = {name: float(column.double().sum()) for name, column in found.columns.items()}
    below = sums[found.denominator] if found.denominator else ROWS
    assert float(value(case.meter(data))["value"]) == pytest.approx(sums[found.numerator] / below, rel=1e-6)


def test_metrics_of_the_same_samples_share_a_meter():
    for takes in sorted({case.metric.encoder.takes for case in CASES}):
        chosen = [case for case in CASES if case.metric.encoder.takes == takes and not case.weighted]
        chosen = [case for case in chosen if draw_for(case.metric) is draw_for(chosen[-1].metric)]
        data = chosen[-1].data(8)
        together = Meter(**{f"m{k}": case.metric for k, case in enumerate(chosen)})
        together.update(*data[:2])
        alone = {f"m{k}": value(case.meter(data))["value"] for k, case in enumerate(chosen)}
        assert bits(value(together)) == bits(alone)


@plain
def test_wrong_arguments_raise_and_count_nothing(case):
    preds, target, _ = data = case.data(9)
    meter = case.meter(data)
    for wrong in ((preds, target[:-1]), (preds, None), (torch.zeros(ROWS), target), (preds, b"ab"), (None, target)):
        with pytest.raises((ShapeError, ValueError), match=r": got .*, expected "):
            meter.update(*wrong)
    with pytest.raises(ConfigError, match="weights"):
        meter.update(preds, target, weights=torch.ones(ROWS))
    assert bits(meter) == bits(case.meter(data))


@plain
def test_other_sequences_are_taken_as_lists(case):
    preds, target, _ = data = case.data(10)
    expected = bits(case.meter(data))
    arrays = [np.empty(ROWS, object), np.empty(ROWS, object)]
    for array, values in zip(arrays, (preds, target), strict=True):
        array[:] = values
    for same in ((tuple(preds), tuple(target)), tuple(arrays)):
        assert bits(case.meter((*same, None))) == expected


@plain
def test_the_random_state_is_not_touched(case):
    def states() -> Any:
        return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()

    before = states()
    value(case.meter(case.data(11)))
    assert states() == before
