"""Bins keep the order of scores, and say truly when two scores cannot share one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from assay.tally.scores.score_bins import ScoreBins

probabilities = st.one_of(
    st.floats(0, 1, width=32),
    st.integers(0, 2**14).map(lambda k: 1 - k * 2.0**-24),
    st.integers(0, 60).map(lambda k: 2.0**-k),
)
logits = st.one_of(st.floats(width=32, allow_nan=False), st.floats(-50, 50, width=32))
shifts = st.integers(0, 14)


def halves(dtype, *, logits):
    """Every value of a half-precision dtype that is a score, rising, once."""
    values = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype).float()
    keep = ~values.isnan() if logits else (values >= 0) & (values <= 1)
    return torch.from_numpy(np.unique(values[keep].numpy()))


@pytest.mark.parametrize("logit", [False, True])
def test_a_histogram_takes_less_than_17_megabytes(logit):
    for groups in (1, 2, 3, 10, 1000, 100_000):
        bins = ScoreBins(logit, (groups - 1).bit_length())
        assert groups * 2 * bins.count * 8 < 17e6 or bins.count < 20
    assert ScoreBins(logit).count <= 2**20


@given(st.lists(probabilities, min_size=1), shifts, st.booleans())
def test_probabilities_keep_their_order(scores, shift, double):
    falls_into_order(ScoreBins(False, shift), scores, torch.float64 if double else torch.float32)


@given(st.lists(logits, min_size=1), shifts, st.booleans())
def test_logits_keep_their_order(scores, shift, double):
    falls_into_order(ScoreBins(True, shift), scores, torch.float64 if double else torch.float32)


def falls_into_order(bins, scores, dtype):
    place, _ = bins.place(torch.tensor(sorted(scores), dtype=dtype))
    assert (place.diff() >= 0).all()
    assert 0 <= place[0] <= place[-1] < bins.count


@given(st.lists(st.floats(0, 1), min_size=2))
def test_doubles_keep_their_order(scores):
    falls_into_order(ScoreBins(False), scores, torch.float64)


@example([-1e-45], True, 0)
@given(st.lists(logits, min_size=1), st.booleans(), shifts)
def test_thresholds_say_what_lies_at_or_above_a_bin(scores, is_logit, shift):
    bins = ScoreBins(is_logit, shift)
    values = torch.tensor(scores, dtype=torch.float32)
    if not is_logit:
        values = torch.sigmoid(values)
    place = bins.place(values)[0].numpy()
    lowest = bins.lowest(place)
    reached = values.double().numpy()[:, None] >= lowest[None, :]
    np.testing.assert_array_equal(reached, place[:, None] >= place[None, :])


@pytest.mark.parametrize("logit", [False, True])
@pytest.mark.parametrize(("dtype", "most"), [(torch.float16, 0), (torch.bfloat16, 3)])
def test_every_half_has_a_bin_for_itself(dtype, most, logit):
    values = halves(dtype, logits=logit)
    for shift in range(most + 1):
        bins = ScoreBins(logit, shift)
        place, unclear = bins.place(values)
        assert unclear.tolist() == [0, 0]
        assert len(place.unique()) == len(values)
        assert bins.single(place.numpy(), plain=True, float32=True).all()
        np.testing.assert_array_equal(bins.values(place.numpy()), values.double().numpy())


def test_zeros_of_both_signs_are_equal():
    place, unclear = ScoreBins(True).place(torch.tensor([0.0, -0.0]))
    assert place[0] == place[1]
    assert unclear[0] == 0


@pytest.mark.parametrize("shift", [0, 1, 5, 10])
def test_float32_near_one_has_a_bin_for_itself(shift):
    bins = ScoreBins(False, shift)
    distance = torch.arange(2 ** (15 - shift))
    values = (1 - distance.double() * 2.0**-24).float()
    place = bins.place(values)[0]
    assert len(place.unique()) == len(values)
    assert bins.single(place.numpy(), plain=False, float32=True).all()
    assert not bins.single(place.numpy(), plain=False, float32=False).any()
    np.testing.assert_array_equal(bins.values(place.numpy()), values.double().numpy())
    further = bins.place(torch.tensor([0.3, 0.5, 0.9]))[0].numpy()
    assert not bins.single(further, plain=False, float32=True).any()


def test_what_is_not_plain_and_what_is_no_float32_is_counted():
    third = torch.tensor([1 / 3, 0.5, 0.25], dtype=torch.float64)
    assert ScoreBins().place(third)[1].tolist() == [1, 1]
    assert ScoreBins().place(third.float())[1].tolist() == [1, 0]
    near_one = torch.tensor([1 - 2.0**-40], dtype=torch.float64)  # its distance to 1 is a float32, it is not
    assert ScoreBins().place(near_one)[1].tolist() == [0, 1]


def test_infinite_logits_are_at_the_ends():
    bins = ScoreBins(True)
    largest = torch.finfo(torch.float32).max
    place = bins.place(torch.tensor([-math.inf, -largest, largest, math.inf]))[0]
    assert place.tolist() == sorted(set(place.tolist()))
    assert place[0] == 0
    assert place[-1] == bins.count - 1
    assert bins.lowest(place.numpy())[0] == -math.inf


@pytest.mark.parametrize("logit", [False, True])
def test_what_is_no_score_falls_into_some_bin(logit):
    bins = ScoreBins(logit)
    place = bins.place(torch.tensor([math.nan, -math.nan, 2.0, -1.0, math.inf, -math.inf]))[0]
    assert (place >= 0).all()
    assert (place < bins.count).all()


def test_nan_has_one_bin_however_a_tensor_is_split() -> None:
    scores = torch.full((37,), math.nan)
    for bins in (ScoreBins(), ScoreBins(logits=True)):
        whole = bins.place(scores)
        parts = [bins.place(part) for part in scores.split(5)]
        assert torch.equal(whole[0], torch.cat([place for place, _ in parts]))
        assert torch.equal(whole[1], torch.stack([unclear for _, unclear in parts]).sum(0))
