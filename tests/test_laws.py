"""The laws that every tally and every metric keeps, each tested once over all of them."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import warnings
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import ConfigError, InputError, NoDataWarning
from assay.meter import Meter
from assay.tally.base import merge
from counting import counted
from laws import (
    CASES,
    INVARIANCES,
    Case,
    Data,
    binary_logits,
    bits,
    comparable,
    feed,
    leaves,
    names_a_dtype,
    rounds,
    shows_counts,
    wide,
    wide_values,
)
from laws import value as read

every_case = pytest.mark.parametrize("case", CASES, ids=str)
few = settings(max_examples=5)
seeds = st.integers(0, 2**32 - 1)
STAGES = (0, 1 << 21)
GROWTH = 4  # kernels that a store of samples starts when it must grow
MOST_CALLS = 300  # kernels that one metric may start for one batch


def test_a_metric_is_a_value():
    for case in CASES:
        same = copy.deepcopy(case.metric)
        assert same == case.metric
        assert hash(same) == hash(case.metric)
        assert same.tally(case.weighted) == case.metric.tally(case.weighted)


def with_all_bits(x: torch.Tensor) -> torch.Tensor:
    """Values whose significands are full, so that arithmetic on them rounds."""
    return x * 0.7 if x.dtype.is_floating_point else x


def in_float64(data: Data) -> Data:
    return data.map(lambda x: x.double() if x.dtype.is_floating_point else x)


def test_the_exceptions_from_the_laws_are_those_that_are_needed():
    rounded, named, counts = set(), set(), set()

    def those(which):
        return {type(case.metric).__name__ for case in CASES if which(case.metric)}

    for case in CASES:
        name = type(case.metric).__name__
        data = Data(*case.data(1, 33).map(with_all_bits)[:2], case.data(1, 33).weights)
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


# --- sums of states ------------------------------------------------------------------------------------------------


def state_of(meter):
    """The settled state of the tally that the metric of a case asks for."""
    return meter._plan.state_of("value", meter._states()[0])[1]


@every_case
@few
@given(seed=seeds, counts=st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_states_add_up_in_any_order(case, seed, counts):
    data = case.data(seed, sum(counts))
    first, second = counts[0], counts[0] + counts[1]
    parts = [data.rows(slice(0, first)), data.rows(slice(first, second)), data.rows(slice(second, None))]
    tally = case.metric.tally(case.weighted)
    a, b, c = (state_of(case.counted(part)) for part in parts)
    rows = data.count

    def total(*states):
        return bits(tally.settle(merge(tally, states), rows))

    whole = bits(state_of(case.counted(data)))
    zero = tally.zero(torch.device("cpu"))
    assert total(zero, merge(tally, [a, b, c])) == whole
    assert total(b, c, a) == whole
    assert total(merge(tally, [a, b]), c) == total(a, merge(tally, [b, c])) == whole


@st.composite
def splits(draw):
    """How samples come: their number and order, where batches end, which meter takes each, and how much is staged."""
    rows = draw(st.integers(0, 40))
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=6)))
    batches = list(itertools.pairwise([0, *cuts, rows]))
    meters = draw(st.lists(st.integers(0, 2), min_size=len(batches), max_size=len(batches)))
    return rows, draw(seeds), batches, meters, draw(st.sampled_from([0, 100, 1 << 21]))


@every_case
@few
@given(split=splits())
def test_no_split_and_no_order_changes_a_bit(case, split):
    rows, seed, batches, taken_by, stage_bytes = split
    data = case.data(seed, rows)
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    meters = [case.meter(stage_bytes) for _ in range(3)]
    for (start, end), k in zip(batches, taken_by, strict=True):
        feed(meters[k], data.rows(order[start:end]))
    merged = meters[0] + meters[1] + meters[2]
    assert bits(merged) == bits(case.counted(data))
    assert bits(meters[2].merge(meters[0], meters[1])) == bits(merged)


@every_case
def test_staging_and_chunks_change_no_bit(case):
    """More rows than one chunk of a device takes, and more than a stage holds."""
    data = case.data(0, 5_000)
    whole = bits(case.counted(data))
    pieces = [data.rows(slice(start, start + 700)) for start in range(0, 5_000, 700)]
    for stage_bytes in (0, 1 << 13, 1 << 21):
        assert bits(case.counted(*pieces, stage_bytes=stage_bytes)) == whole


# --- what an update is given ---------------------------------------------------------------------------------------


@every_case
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


@every_case
def test_layout_in_memory_changes_no_bit(case):
    data = case.data(2, 24)
    expected = bits(case.counted(data))
    strided = data.map(lambda x: torch.stack([x, x], -1)[..., 0])
    backwards = data.map(lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0))
    assert not strided.preds.is_contiguous()
    for other in (strided, backwards):
        for stage_bytes in STAGES:
            assert bits(case.counted(other, stage_bytes=stage_bytes)) == expected
    row = data.rows([0])
    expanded = row.map(lambda x: x.expand(7, *x.shape[1:]))
    assert bits(case.counted(expanded, stage_bytes=0)) == bits(case.counted(*[row] * 7))


@every_case
def test_the_caller_may_write_into_its_tensors_afterwards(case):
    data = case.data(3, 12)
    expected = bits(case.counted(data))
    for stage_bytes in STAGES:
        mine = data.map(torch.clone)
        meter = case.counted(mine, stage_bytes=stage_bytes)
        mine.map(torch.zero_)
        assert bits(meter) == expected


@every_case
def test_inputs_that_require_grad_are_neither_kept_nor_differentiated(case):
    data = case.data(4, 12)
    expected = bits(case.counted(data))
    for stage_bytes in STAGES:
        leaf = data.preds.clone()
        preds = (leaf.requires_grad_() if leaf.dtype.is_floating_point else leaf) * 1
        meter = feed(case.meter(stage_bytes), data._replace(preds=preds))
        gone = weakref.ref(preds)
        del preds
        gc.collect(0)
        assert gone() is None
        assert not any(leaf.requires_grad for leaf in leaves(read(meter)))
        assert bits(meter) == expected


MODES = {
    "inference_mode": torch.inference_mode,
    "no_grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@every_case
@pytest.mark.parametrize("mode", MODES)
def test_modes_of_torch_change_no_bit(case, mode):
    first, second = case.data(5, 12), case.data(6, 9)
    expected = bits(case.counted(first, second))
    for stage_bytes in STAGES:
        with MODES[mode]():
            meter = case.counted(first.map(torch.clone), stage_bytes=stage_bytes)
            read(meter)
        feed(meter, second)  # what was made inside the mode is usable outside
        assert bits(meter) == expected
        with MODES[mode]():
            assert bits(meter.fresh().merge(meter)) == expected


@every_case
def test_an_update_waits_for_nothing_and_starts_a_bounded_number_of_kernels(case):
    calls = []
    for rows in (100, 200):  # more than the samples that some cases keep
        data = case.data(7, rows)
        meter = case.counted(data, stage_bytes=0)  # the first update makes the states
        with counted() as counts:
            feed(meter, data)
        assert counts.syncs == []
        assert counts.copies == []
        calls.append(counts.calls)
    assert max(calls) <= MOST_CALLS
    assert abs(calls[0] - calls[1]) <= GROWTH * len(case.meter()._plan.tallies)


@every_case
def test_a_staged_update_is_one_copy_of_each_argument(case):
    data = case.data(8, 8)
    meter = case.counted(data)
    given_tensors = sum(tensor is not None for tensor in data)
    with counted() as counts:
        feed(meter, data)
    assert counts.syncs == []
    assert dict(counts.ops) == {"slice": given_tensors, "copy_": given_tensors}


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


@every_case
def test_empty_batches_and_empty_meters_contribute_nothing(case):
    data = case.data(10, 10)
    empty = data.rows(slice(0, 0))
    expected = bits(case.counted(data))
    for stage_bytes in STAGES:
        assert bits(case.counted(empty, data, empty, stage_bytes=stage_bytes)) == expected
    assert bits(case.meter() + case.counted(data) + case.meter()) == expected


@every_case
def test_one_sample_constants_and_one_class_can_be_read(case):
    data = case.data(11, 6)
    one = data.rows([0])
    constant = data.rows([0] * 6)
    one_class = data if data.target is None else data._replace(target=torch.ones_like(data.target))
    nothing = data.map(torch.zeros_like)
    for batch in (one, constant, one_class, nothing):
        singles = [batch.rows([k]) for k in range(batch.count)]
        assert bits(case.counted(batch)) == bits(case.counted(*singles, stage_bytes=0))


@pytest.mark.parametrize("case", [c for c in CASES if getattr(c.metric, "ignore_index", None) is not None], ids=str)
def test_ignored_samples_leave_no_trace_in_the_value(case):
    data = case.data(12, 20)
    assert data.target is not None
    ignored = torch.full_like(data.target, case.metric.ignore_index)
    assert bits(read(case.counted(data._replace(target=ignored)))) == bits(read(case.meter()))
    both = case.counted(data, data._replace(target=ignored))
    assert bits(read(both)) == bits(read(case.counted(data)))


# --- errors --------------------------------------------------------------------------------------------------------


def wrong(case: Case, data: Data) -> dict[str, Data]:
    """Batches whose metadata cannot be right."""

    def deeper(x: torch.Tensor) -> torch.Tensor:
        return x[..., None, None].expand(*x.shape, 2, 2)

    batches = {"complex preds": data._replace(preds=data.preds.to(torch.complex64))}
    if data.target is not None:
        batches |= {
            "no target": data._replace(target=None),
            "fewer targets": data._replace(target=data.target[:-1]),
            "a dimension too many in preds": data._replace(preds=deeper(data.preds)),
            "a dimension too many in the target": data._replace(target=deeper(data.target)),
            "complex target": data._replace(target=data.target.to(torch.complex64)),
        }
    if data.weights is not None:
        batches |= {
            "fewer weights": data._replace(weights=data.weights[:-1]),
            "weights of another shape": data._replace(weights=data.weights[:, None].expand(-1, 17)),
        }
    return batches


@every_case
def test_wrong_metadata_raises_at_once_and_leaves_every_bit(case):
    data = case.data(13, 10)
    for stage_bytes in STAGES:
        meter = case.counted(data, stage_bytes=stage_bytes)
        for name, batch in wrong(case, data).items():
            with pytest.raises(InputError) as error:
                feed(meter, batch)
            assert ": got " in str(error.value), name
            assert ", expected " in str(error.value), name
        other = data._replace(weights=None if case.weighted else torch.ones(10))
        with pytest.raises(ConfigError, match="weights: got"):
            feed(meter, other)
        assert bits(feed(meter, data)) == bits(case.counted(data, data))


# --- the life of a meter -------------------------------------------------------------------------------------------


@every_case
def test_copies_have_the_same_bits_and_a_life_of_their_own(case, tmp_path):
    data, more = case.data(14, 10), case.data(15, 5)
    meter = case.counted(data)
    expected, further = bits(meter), bits(case.counted(data, more))
    loaded = case.counted(more)
    loaded.load_state_dict(meter.state_dict())
    filed = Meter.from_file(meter.to_file(tmp_path / "meter.safetensors"))
    assert filed.metrics == meter.metrics
    copies = [copy.deepcopy(meter), pickle.loads(pickle.dumps(meter)), meter.fresh().merge(meter), loaded, filed]
    for other in copies:
        assert bits(other) == expected
        assert bits(feed(other, more)) == further
        assert bits(meter) == expected


@every_case
def test_reading_changes_nothing(case):
    data, more = case.data(16, 10), case.data(17, 5)
    meter = case.counted(data)
    assert bits(meter) == bits(meter) == bits(case.counted(data))
    assert bits(feed(meter, more)) == bits(case.counted(data, more))


@every_case
def test_reset_forgets_everything(case):
    data = case.data(18, 10)
    meter = case.counted(case.data(19, 7))
    meter.merge(case.counted(case.data(20, 3)))
    meter.reset()
    assert meter.rows == 0
    assert bits(meter) == bits(case.meter())
    assert bits(feed(meter, data)) == bits(case.counted(data))


@every_case
def test_a_call_is_a_meter_of_one_batch(case):
    data = case.data(21, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert bits(case.metric(data.preds, data.target, weights=data.weights)) == bits(
            read(case.counted(data))["value"]
        )


def collections() -> dict[str, list[Case]]:
    """Cases that take the same samples, by the samples they take."""
    found: dict[str, list[Case]] = {}
    for case in CASES:
        found.setdefault(f"{case.draw.__name__}{', weighted' if case.weighted else ''}", []).append(case)
    return found


@pytest.mark.parametrize("cases", collections().values(), ids=collections())
def test_a_collection_reads_what_each_metric_reads_alone(cases):
    data = cases[0].data(22, 30)
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


@pytest.mark.parametrize("name", INVARIANCES)
def test_values_are_invariant_where_it_is_declared_and_nowhere_else(name):
    """Both ways: an invariance that holds and is not declared is one that no test would hold."""
    law, wrong = INVARIANCES[name], []
    for case in CASES:
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
