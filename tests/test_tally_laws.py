"""The laws of states: each is tested once for every distinct tally, with all the metrics that are computed from it."""

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

from assay.errors import AssayWarning, ConfigError, InputError
from assay.meter import Meter
from assay.tally.base import merge
from assay.tally.ragged import Ragged
from counting import counted
from laws import CASES, Case, Data, bits, feed, leaves
from laws import value as read
from tally_laws import TALLY_CASES
from thinning import every

every_case = every(TALLY_CASES)
every_dense_case = every([case for case in TALLY_CASES if not case.raw])
few = settings(max_examples=5)
seeds = st.integers(0, 2**32 - 1)
STAGES = (0, 1 << 21)
GROWTH = 4  # kernels that a store of samples starts when it must grow
LARGE = ("fused images", "large images")  # of which a batch is counted in parts
MOST_CALLS = 300  # kernels that one tally may start for one batch
COMPARED = {
    "QualityWithNoReference": 3,
    "SpatialDistortionIndex": 2,
    "SpectralDistortionIndex": 2,
    "VisualInformationFidelity": 3,
}
"""How many times as many, where images are compared several times or at several scales."""


def test_every_case_of_a_metric_is_in_one_of_a_tally():
    assert sorted(map(repr, (metric for case in TALLY_CASES for metric in case.metrics))) == sorted(
        repr(case.metric) for case in CASES
    )
    assert all(metric.tally(case.weighted) == case.tally for case in TALLY_CASES for metric in case.metrics)


# --- sums of states ------------------------------------------------------------------------------------------------


@every_case
@few
@given(seed=seeds, counts=st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_states_add_up_in_any_order(case, seed, counts):
    data = case.data(seed, sum(counts))
    first, second = counts[0], counts[0] + counts[1]
    parts = [data.rows(slice(0, first)), data.rows(slice(first, second)), data.rows(slice(second, None))]
    states = zip(*(case.counted(part).states() for part in (*parts, data)), strict=True)
    for tally, (a, b, c, whole) in zip(case.meter().tallies, states, strict=True):

        def total(*states, tally=tally):
            return bits(tally.canonicalize(merge(tally, states), data.count))

        zero = tally.zero(torch.device("cpu"))
        assert total(zero, merge(tally, [a, b, c])) == bits(whole)
        assert total(b, c, a) == bits(whole)
        assert total(merge(tally, [a, b]), c) == total(a, merge(tally, [b, c])) == bits(whole)


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
    """More rows than one chunk of a device takes, and more than a stage holds; equal states have equal values.

    Raw samples and large images are fewer: they take long, and what is counted of them are rows as any others.
    """
    few = case.raw or case.metric.inputs in LARGE
    count = 400 if few else 5_000
    data = case.data(0, count)
    whole = bits(case.counted(data).states())
    pieces = [data.rows(slice(start, start + count // 7)) for start in range(0, count, count // 7)]
    for stage_bytes in (0, 1 << 13, 1 << 21):
        meter = case.counted(*pieces, stage_bytes=stage_bytes)
        assert bits(meter.states()) == whole
        assert meter.rows == count


@every([case for case in TALLY_CASES if not case.raw and not case.weighted])
def test_a_step_has_the_value_of_its_batch_which_the_next_step_does_not_change(case):
    """Steps share the states of one batch where they can."""
    data = case.data(3, 12)
    parts = [data.rows(slice(0, 7)), data.rows(slice(7, 12))]
    meter = case.meter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssayWarning)
        values = [meter.forward(part.preds, part.target, **part.columns) for part in parts]
    assert [bits(value) for value in values] == [bits(read(case.counted(part))) for part in parts]
    assert bits(meter.states()) == bits(case.counted(data).states())


# --- what an update is given -----------------------------------------------------------------------------------------


@every_dense_case
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


@every_dense_case
def test_the_caller_may_write_into_its_tensors_afterwards(case):
    data = case.data(3, 12)
    expected = bits(case.counted(data))
    for stage_bytes in STAGES:
        mine = data.map(torch.clone)
        meter = case.counted(mine, stage_bytes=stage_bytes)
        mine.map(torch.zero_)
        assert bits(meter) == expected


@every_dense_case
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
def test_modes_of_torch_change_no_bit(case):
    first, second = case.data(5, 12), case.data(6, 9)
    expected = bits(case.counted(first, second))
    for mode, stage_bytes in itertools.product(MODES, STAGES):
        with MODES[mode]():
            meter = case.counted(first.map(torch.clone), stage_bytes=stage_bytes)
            read(meter)
        feed(meter, second)  # what was made inside the mode is usable outside
        assert bits(meter) == expected, mode
        with MODES[mode]():
            assert bits(meter.fresh().merge(meter)) == expected, mode


@every_dense_case
def test_an_update_waits_for_nothing_and_starts_a_bounded_number_of_kernels(case):
    calls = []
    for rows in (10, 20) if case.metric.inputs in LARGE else (100, 200):  # more than the samples that some cases keep
        data = case.data(7, rows)
        meter = case.counted(data, stage_bytes=0)  # the first update makes the states
        of_updates = []
        for _ in range(3):  # rows go into the room of a store without a kernel, or the store must grow
            with counted() as counts:
                feed(meter, data)
            assert counts.syncs == []
            assert counts.copies == []
            of_updates.append(counts.calls)
        calls.append(max(of_updates))
    assert max(calls) <= MOST_CALLS * COMPARED.get(type(case.metric).__name__, 1)
    assert abs(calls[0] - calls[1]) <= GROWTH * len(case.meter().tallies)


@every_dense_case
def test_a_staged_update_is_one_copy_of_each_argument_or_one_compiled_call(case):
    data = case.data(8, 8)
    meter = case.counted(data, data)
    given_tensors = len(data.tensors)
    with counted() as counts:
        feed(meter, data)
    assert counts.syncs == []
    assert dict(counts.ops) in ({"slice": given_tensors, "copy_": given_tensors}, {})


# --- data at the edge ------------------------------------------------------------------------------------------------


@every_case
def test_empty_batches_and_empty_meters_contribute_nothing(case):
    data = case.data(10, 10)
    empty = data.rows(slice(0, 0))
    expected = bits(case.counted(data))
    for stage_bytes in STAGES:
        assert bits(case.counted(empty, data, empty, stage_bytes=stage_bytes)) == expected
    assert bits(case.meter() + case.counted(data) + case.meter()) == expected


@every_dense_case
def test_one_sample_constants_and_one_class_can_be_computed(case):
    data = case.data(11, 6)
    one = data.rows([0])
    constant = data.rows([0] * 6)
    one_class = data if data.target is None else data._replace(target=torch.ones_like(data.target))
    nothing = data.map(torch.zeros_like)
    for batch in (one, constant, one_class, nothing):
        singles = [batch.rows([k]) for k in range(batch.count)]
        assert bits(case.counted(batch)) == bits(case.counted(*singles, stage_bytes=0))


@every([case for case in TALLY_CASES if case.raw])
def test_encoders_concatenate_and_raw_samples_are_not_kept(case):
    data = case.data(11, 9)
    parts = [data.rows(slice(0, 4)), data.rows(slice(4, 4)), data.rows(slice(4, None))]
    for encoder in dict.fromkeys(each for metric in case.metrics for each in metric.encoders):
        rows = encoder.rows(data.preds, data.target)
        assert (len(rows), rows.device.type) == (9, "cpu")
        together = [encoder.rows(part.preds, part.target) for part in parts]
        if isinstance(rows, Ragged):
            whole = Ragged.cat(together)
            assert bits(whole.items) == bits(rows.items)
            assert all((whole.lengths[group] == each).all() for group, each in rows.lengths.items())
        else:
            assert torch.equal(torch.cat(together), rows)
    for batch in (data.rows([0]), data.rows([0] * 6)):
        singles = [batch.rows([k]) for k in range(batch.count)]
        assert bits(case.counted(batch)) == bits(case.counted(*singles, stage_bytes=0))
    meter = case.counted(data)
    no_list = {"preds": torch.zeros(9)} if isinstance(data.preds, list) else {"preds": data.preds.to_sparse()}
    for changes in ({"target": data.target[:-1]}, no_list, {"preds": None}):
        with pytest.raises(InputError, match=r": got .*, expected "):
            feed(meter, data._replace(**changes))
    assert bits(meter) == bits(case.counted(data))


# --- errors ----------------------------------------------------------------------------------------------------------


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
    for name, column in data.columns.items():
        batches |= {
            f"{what} {name}": data._replace(columns={**data.columns, name: changed})
            for what, changed in {
                "fewer": column[:-1],
                "complex": column.to(torch.complex64),
                "deeper": column[:, None].expand(-1, 17, *column.shape[1:]),
            }.items()
        }
    if data.weights is not None:
        batches |= {
            "fewer weights": data._replace(weights=data.weights[:-1]),
            "weights of another shape": data._replace(weights=data.weights[:, None].expand(-1, 17)),
        }
    return batches


@every_dense_case
def test_weights_of_the_shape_of_the_target_are_refused_or_those_of_the_rows(case):
    data = case.data(12, 10)
    if data.weights is None or data.target is None or data.target.ndim < 2:
        return
    wide = data.weights.view(-1, *(1,) * (data.target.ndim - 1)).expand(data.target.shape).contiguous()
    expected = bits(read(case.counted(data)))
    try:
        meter = case.counted(data._replace(weights=wide))
    except InputError:
        return
    assert bits(read(meter)) == expected


@every_dense_case
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
        with pytest.raises(ConfigError, match="columns: got"):
            feed(meter, data._replace(columns={**data.columns, "unknown": torch.ones(10)}))
        assert bits(feed(meter, data)) == bits(case.counted(data, data))


# --- the life of a meter ---------------------------------------------------------------------------------------------


@every_case
def test_copies_have_the_same_bits_and_a_life_of_their_own(case, tmp_path):
    data, more = case.data(14, 10), case.data(15, 5)
    meter = case.counted(data)
    expected, further = bits(meter), bits(case.counted(data, more))
    loaded = case.counted(more)
    loaded.load_state_dict(meter.state_dict())
    filed = Meter.from_file(meter.to_file(tmp_path / "meter.safetensors"), known=case.with_functions)
    assert filed.metrics == meter.metrics
    copies = [copy.deepcopy(meter), pickle.loads(pickle.dumps(meter)), meter.fresh().merge(meter), loaded, filed]
    for other in copies:
        assert other.metrics == meter.metrics
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
