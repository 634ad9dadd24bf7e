"""The laws of values: what every metric keeps. Those of states are in `test_tally_laws.py`."""

from __future__ import annotations

import copy
import math
import pickle
import warnings

import pytest
import torch

from assay.errors import NoDataWarning
from assay.meter import Meter
from assay.metrics.base import named_numbers
from invariances import INVARIANCES, comparable
from laws import (
    CASES,
    Case,
    Data,
    binary_logits,
    bits,
    feed,
    leaves,
    names_a_dtype,
    rounds,
    shows_counts,
    wide,
    wide_values,
)
from laws import value as read
from thinning import every, every_third, one_of_each_and_the_rest

every_case = every(CASES)


def test_a_metric_is_a_value():
    for case in CASES:
        for same in (copy.deepcopy(case.metric), pickle.loads(pickle.dumps(case.metric))):
            assert same == case.metric
            assert hash(same) == hash(case.metric)
            assert same.tally(case.weighted) == case.metric.tally(case.weighted)


def with_all_bits(x: torch.Tensor) -> torch.Tensor:
    """Values whose significands are full, so that arithmetic on them rounds."""
    return x * 0.7 if x.dtype.is_floating_point else x


def in_float64(data: Data) -> Data:
    return data.map(lambda x: x.double() if x.dtype.is_floating_point else x)


@pytest.mark.exhaustive  # it reads every case four times
def test_the_exceptions_from_the_laws_are_those_that_are_needed():
    rounded, named, counts = set(), set(), set()

    def those(which):
        return {type(case.metric).__name__ for case in CASES if which(case.metric)}

    for case in CASES:
        name = type(case.metric).__name__
        data = case.data(1, 33)
        data = data.map(with_all_bits)._replace(weights=data.weights, columns=data.columns)
        narrow, wider = case.counted(data), case.counted(in_float64(data))
        if bits(read(narrow)) != bits(read(wider)):
            rounded.add(name)
            assert rounds(case.metric)
        elif not rounds(case.metric) and bits(narrow) != bits(wider):
            named.add(name)
        if not all(leaf.isnan().all() for leaf in leaves(read(case.meter())) if leaf.dtype.is_floating_point):
            counts.add(name)
    assert rounded == those(rounds)
    assert named == those(names_a_dtype)
    assert counts == those(shows_counts)


# --- dtypes ----------------- ---------------------------------------------------------------------------------------


@every([case for case in CASES if not case.raw])
def test_the_dtype_that_carries_the_values_changes_no_bit(case):
    seen = (lambda meter: bits(read(meter))) if names_a_dtype(case.metric) else bits
    data = case.data(1, 33)
    expected = seen(case.counted(data))
    carriers = [torch.float64] if case.draw in (wide, wide_values) else [torch.float64, torch.float16, torch.bfloat16]
    for dtype in carriers:
        carried = data.map(lambda x, dtype=dtype: x.to(dtype) if x.dtype.is_floating_point else x)
        assert torch.equal(carried.preds.to(data.preds.dtype), data.preds)
        if not (dtype == torch.float64 and rounds(case.metric)):
            assert seen(case.counted(carried)) == expected, dtype
    if data.target is not None and not data.target.dtype.is_floating_point:
        for dtype in (torch.int32, torch.int16, torch.int8):
            target = data.target.to(dtype)
            if torch.equal(target.long(), data.target):
                assert seen(case.counted(data._replace(target=target))) == expected
            else:
                assert dtype == torch.int8  # which does not hold that many classes


# --- data at the edge ----------------------------------------------------------------------------------------------


@every_case
def test_a_metric_without_data_reads_nan_and_warns(case):
    for meter in (case.meter(), case.counted(case.data(9, 0)), case.meter() + case.meter()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = meter.compute()["value"]
        assert {warning.category for warning in caught} == {NoDataWarning}
        assert "value: got no data, expected at least one sample" in str(caught[0].message)
        found = list(leaves(value))
        assert found
        assert all(leaf.device.type == "cpu" for leaf in found)
        if not shows_counts(case.metric):
            assert all(leaf.isnan().all() for leaf in found if leaf.dtype.is_floating_point)


@every([c for c in CASES if getattr(c.metric, "ignore_index", None) is not None])
def test_ignored_samples_leave_no_trace_in_the_value(case):
    data = case.data(12, 20)
    assert data.target is not None
    ignored = torch.full_like(data.target, case.metric.ignore_index)
    assert bits(read(case.counted(data._replace(target=ignored)))) == bits(read(case.meter()))
    both = case.counted(data, data._replace(target=ignored))
    assert bits(read(both)) == bits(read(case.counted(data)))


@every([case for case in CASES if case.weighted])
def test_a_sample_of_weight_0_changes_no_bit_of_the_value(case):
    """Of retrieval it is a query: a document of weight 0 lowers the weight of its query, which is a mean."""
    data, without_weight = case.data(3, 9), case.data(25, 24)
    assert without_weight.weights is not None
    without_weight = without_weight._replace(
        weights=torch.zeros_like(without_weight.weights),
        columns={name: each + 99 * (name == "indexes") for name, each in without_weight.columns.items()},
    )
    for meter, empty in ((case.counted(data), data), (case.meter(), data.rows(slice(0)))):
        assert bits(read(case.counted(empty, without_weight))) == bits(read(meter))


@every_case
def test_defaults_of_torch_change_no_bit(case):
    """The default device (tensors on `meta` have no values, so one of them would be seen) and the default dtype."""
    data = case.data(23, 12)
    expected = bits(read(case.counted(data)))
    with torch.device("meta"):
        assert bits(read(case.counted(data))) == expected
    torch.set_default_dtype(torch.float64)
    try:
        assert bits(read(case.counted(data))) == expected
    finally:
        torch.set_default_dtype(torch.float32)


# --- alone and together --- -------------------------------------------------------------------------------------------


@every_case
def test_a_call_is_a_meter_of_one_batch(case):
    """Whatever was called before, in this layout or in another one; and the next call changes no value."""
    batches = [case.data(seed, count) for seed, count in ((21, 10), (22, 10), (23, 10), (24, 7))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = [case.metric(each.preds, each.target, weights=each.weights, **each.columns) for each in batches]
        expected = [bits(read(case.counted(each))["value"]) for each in batches]
    assert [bits(value) for value in values] == expected


@every_case
def test_no_value_is_out_of_the_range_that_the_metric_declares(case):
    least, most = case.metric.value_range
    for seed in range(3):
        numbers = [number for _, number in named_numbers("value", read(case.counted(case.data(seed, 12)))["value"])]
        assert all(least <= number <= most for number in numbers if not math.isnan(number))


def collections() -> dict[str, list[Case]]:
    """Cases that take the same samples, by the samples they take."""
    found: dict[str, list[Case]] = {}
    for case in CASES:
        columns = "".join(f", {name}" for name in case.data(0, 1).columns)
        found.setdefault(f"{case.draw.__name__}{columns}{', weighted' if case.weighted else ''}", []).append(case)
    return found


@every_third
@pytest.mark.parametrize("cases", collections().values(), ids=collections())
def test_a_collection_reads_what_each_metric_reads_alone(cases):
    data = max(cases, key=lambda case: case.whole_weights).data(22, 30)  # integers are weights for all of them
    for chosen in (cases, cases[::-1]):
        named = {f"m{k}": case.metric for k, case in enumerate(chosen)}
        together = feed(
            Meter(weighted=chosen[0].weighted, **named), data.rows(slice(0, 11)), data.rows(slice(11, None))
        )
        alone = {f"m{k}": read(case.counted(data))["value"] for k, case in enumerate(chosen)}
        assert bits(read(together)) == bits(alone)


# --- invariances ---------------------------------------------------------------------------------------------------


def agrees(before, after, tolerance: float) -> bool:
    """Whether values agree: in every bit, or where a tolerance is given as far as that."""
    if isinstance(before, str) or isinstance(after, str):  # of what was invalid
        return before == after
    pairs = list(zip(comparable(before), comparable(after), strict=True))
    if any(a.shape != b.shape for a, b in pairs):
        return False
    return all(torch.allclose(a.double(), b.double(), tolerance, tolerance, equal_nan=True) for a, b in pairs)


@one_of_each_and_the_rest(CASES)
@pytest.mark.parametrize("name", INVARIANCES)
def test_values_are_invariant_where_it_is_declared_and_nowhere_else(name, cases):
    """Both ways: an invariance that holds and is not declared is one that no test would hold."""
    law, wrong = INVARIANCES[name], []
    for case in cases:
        pairs = [law.change(case, case.data(seed, 24)) for seed in range(2)]
        if None in pairs:
            continue
        tolerance = 1e-6 if law.nearly(case) else 0.0
        holds = all(agrees(*(read(case.counted(data)) for data in pair), tolerance) for pair in pairs)
        if holds != law.exactly(case):
            wrong.append(f"{case}: {'holds' if holds else 'does not hold'}")
    assert wrong == []


def test_auroc_of_reversed_labels_or_scores_is_the_rest():
    for case in CASES:
        if type(case.metric).__name__ == "AUROC" and case.draw is binary_logits and not case.weighted:
            data = case.data(23, 40)
            found = float(case.metric(*data[:2]))
            assert float(case.metric(data.preds, 1 - data.target)) == pytest.approx(1 - found, rel=1e-15)
            assert float(case.metric(-data.preds, data.target)) == pytest.approx(1 - found, rel=1e-15)
