from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, rel_entr
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay.errors import ConfigError, DtypeError, ShapeError
from assay.pretend import pretend
from assay.quantize.analysis.data_spec import DataSpec
from assay.quantize.analysis.divergence import (
    AGREES,
    CHANGE,
    ERROR,
    KL,
    LOSS_AFTER,
    LOSS_BEFORE,
    SIZE,
    divergence,
    kl_divergence,
)
from assay.quantize.analysis.indexed_batches import BATCH, NUMBER, indexed_batches

LOGITS = DataSpec()


def random(*shape, seed=0, scale=3.0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale


def oracle(before, after):
    p, q = (np.exp(log_softmax(each.double().numpy(), axis=-1)) for each in (before, after))
    return rel_entr(p, q).sum(-1)


@given(st.integers(0, 1000), st.sampled_from([2, 5, 300]), st.sampled_from([1e-4, 1e-2, 1.0, 30.0]))
def test_the_divergence_is_scipys(seed, classes, scale):
    before = random(4, classes, seed=seed)
    after = before + random(4, classes, seed=seed + 1, scale=scale)
    names, rows, counted = divergence(before, after, None, LOGITS)
    assert names == (KL, AGREES)
    assert rows.shape == (4, 1, 2)
    assert counted.all()
    np.testing.assert_allclose(rows[:, 0, 0], oracle(before, after), rtol=2e-3, atol=1e-11)
    assert rows[:, 0, 1].tolist() == (before.argmax(1) == after.argmax(1)).tolist()


def test_a_small_divergence_is_not_lost_in_rounding():
    """The plain formula in float32 is off by its rounding, as large as the divergence of 8 bits; it may be negative."""
    before = random(200, 1000)
    after = before + random(200, 1000, seed=1, scale=1e-3)
    expected = oracle(before, after)
    found = kl_divergence(before.log_softmax(1), after.log_softmax(1)).double().numpy()
    p, q = before.log_softmax(1), after.log_softmax(1)
    plain = (p.exp() * (p - q)).sum(1).double().numpy()
    assert (found >= 0).all()
    assert np.abs(found - expected).max() < 0.01 * expected.min()
    assert np.abs(plain - expected).max() > 5 * np.abs(found - expected).max()
    assert kl_divergence(p, p).tolist() == [0.0] * 200


def test_classes_that_cannot_be_have_their_limits():
    inf = math.inf
    before = torch.tensor([[0.0, 0.0, -inf], [0.0, 0.0, -inf], [0.0, 0.0, 0.0]])
    after = torch.tensor([[0.0, 0.0, -inf], [0.0, 0.0, 0.0], [0.0, 0.0, -inf]])
    found = divergence(before, after, None, LOGITS)[1][:, 0, 0]
    assert found[:2].tolist() == pytest.approx([0, math.log(1.5)])
    assert math.isinf(found[2])


def test_losses_are_those_of_the_target_and_ignored_ones_do_not_count():
    before, after = random(3, 4, 7), random(3, 4, 7, seed=1)
    target = torch.tensor([[0, 1, 2, -100], [3, -100, 4, 5], [6, 6, 6, 6]])
    names, rows, counted = divergence(before, after, target, LOGITS)
    assert names == (KL, AGREES, LOSS_BEFORE, LOSS_AFTER, CHANGE)
    assert counted.tolist() == (target != -100).tolist()
    for k, logits in ((2, before), (3, after)):
        expected = nn.functional.cross_entropy(logits.flatten(0, 1).double(), target.flatten(), reduction="none")
        kept = counted.flatten()
        np.testing.assert_allclose(rows[..., k].flatten()[kept], expected[kept], rtol=1e-5, atol=1e-6)


def test_targets_that_are_no_class_are_nan_until_told():
    before = random(2, 3)
    rows = divergence(before, before, torch.tensor([1, 3]), LOGITS)[1]
    assert rows[:, 0, 2].isnan().tolist() == [False, True]


@pytest.mark.parametrize(
    "target", [torch.zeros(3), torch.zeros(3, 2, dtype=torch.long), torch.ones(3, dtype=torch.bool)]
)
def test_targets_of_another_kind_give_no_losses(target):
    assert divergence(random(3, 2), random(3, 2), target, LOGITS)[0] == (KL, AGREES)


def test_classes_may_be_in_any_dimension():
    before, after = random(2, 5, 4, 3), random(2, 5, 4, 3, seed=1)
    found = divergence(before, after, None, replace(LOGITS, class_dim=1))[1]
    last = divergence(before.movedim(1, -1), after.movedim(1, -1), None, LOGITS)[1]
    assert found.shape == (2, 12, 2)
    assert torch.equal(found, last)


def test_probabilities_are_taken_as_they_are():
    before, after = random(6, 5), random(6, 5, seed=1)
    found = divergence(before.softmax(1), after.softmax(1), None, replace(LOGITS, outputs="probabilities"))[1]
    np.testing.assert_allclose(found, divergence(before, after, None, LOGITS)[1], rtol=1e-4, atol=1e-6)


def test_numbers_have_a_squared_error():
    before, after = torch.tensor([[1.0, 2.0], [0.0, 3.0]]), torch.tensor([[1.0, 4.0], [1.0, 3.0]])
    names, rows, counted = divergence(before, after, None, replace(LOGITS, outputs="values"))
    assert names == (ERROR, SIZE)
    assert rows.tolist() == [[[4.0, 5.0]], [[1.0, 9.0]]]
    assert counted.all()


def test_many_classes_are_compared_piece_by_piece_with_the_same_bits():
    before, after = random(40, 5000), random(40, 5000, seed=1)
    whole = divergence(before, after, None, LOGITS)[1]
    single = torch.cat([divergence(before[k : k + 1], after[k : k + 1], None, LOGITS)[1] for k in range(40)])
    np.testing.assert_allclose(whole, single, rtol=1e-5)


@pytest.mark.parametrize("device", ["mps", "cuda:1", "xpu"])
def test_it_works_on_devices_without_float64(device):
    before, after, target = random(3, 4, 9), random(3, 4, 9, seed=1), torch.randint(9, (3, 4))
    expected = divergence(before, after, target, LOGITS)[1]
    with pretend(device):
        found = divergence(before.to(device), after.to(device), target.to(device), LOGITS)[1]
        assert found.device.type == device.partition(":")[0]
        torch.testing.assert_close(found.cpu(), expected)


@pytest.mark.parametrize(
    ("before", "after", "options", "error", "message"),
    [
        (
            random(3, 4),
            random(3, 5),
            {},
            ShapeError,
            r"outputs of the model after: got shape \(3, 5\), expected that of",
        ),
        (random(3), random(3), {}, ShapeError, r"got shape \(3,\) with class_dim=-1, expected samples in dimension 0"),
        (random(3, 4), random(3, 4), {"class_dim": 2}, ShapeError, "with class_dim=2"),
        (random(3, 4), random(3, 4), {"class_dim": 0}, ShapeError, "with class_dim=0"),
        (random(3, 1), random(3, 1), {}, ShapeError, 'expected two classes or more. Pass outputs="values"'),
        (random(3, 4).long(), random(3, 4), {}, DtypeError, "model before: got torch.int64, expected floats"),
        (random(3, 4), random(3, 4), {"outputs": "scores"}, ConfigError, "outputs: got 'scores', expected one of"),
    ],
)
def test_outputs_that_cannot_be_compared_are_refused(before, after, options, error, message):
    with pytest.raises(error, match=message):
        divergence(before, after, None, replace(LOGITS, **options))


X = torch.arange(20.0).view(10, 2)
Y = torch.arange(10)


class StreamResult(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from zip(X, Y, strict=True)


@pytest.mark.parametrize(
    "data",
    [
        TensorDataset(X, Y),
        DataLoader(TensorDataset(X, Y), batch_size=3, shuffle=True),
        DataLoader(TensorDataset(X, Y), batch_size=3, num_workers=1),
        DataLoader(StreamResult(), batch_size=4),
        StreamResult(),
        [(X[:4], Y[:4]), (X[4:], Y[4:])],
    ],
    ids=["data set", "shuffled", "workers", "stream", "iterable", "batches"],
)
def test_numbers_are_those_of_the_samples(data):
    for _ in range(2):
        seen = {}
        for batch in indexed_batches(data, 4):
            x, y = batch[BATCH]
            seen.update(zip(batch[NUMBER].tolist(), y.tolist(), strict=True))
            assert torch.equal(x, X[y])
        assert seen == {k: k for k in range(10)}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X, "expected a data loader, a data set, or batches"),
        ({"x": X}, "expected a data loader, a data set, or batches"),
        (iter([X]), "which gives its batches once, expected all of them"),
        (3, "expected a data loader, a data set, or batches"),
    ],
)
def test_data_that_cannot_be_read_again_are_refused(data, message):
    with pytest.raises(ConfigError, match=message):
        list(indexed_batches(data, 4))


def test_a_stream_must_have_rows():
    with pytest.raises(ConfigError, match="expected rows that can be counted"):
        list(indexed_batches([3.0], 4))
