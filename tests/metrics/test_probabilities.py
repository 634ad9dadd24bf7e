"""Calibration and losses against scikit-learn, and against the definition in rational arithmetic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from sklearn.metrics import brier_score_loss, hinge_loss, log_loss

from assay.errors import ConfigError, DtypeError, InvalidValuesError, NoDataWarning, ShapeError
from assay.meter import Meter
from assay.metrics.classification.divergence import KLDivergence
from assay.metrics.classification.probabilities import (
    BrierScore,
    CalibrationCurve,
    CalibrationError,
    HingeLoss,
    LogLoss,
)
from assay.metrics.exact_arithmetic import root
from assay.metrics.regression.correlation import CosineSimilarity

pairs = st.lists(st.tuples(st.floats(0, 1, width=32), st.integers(0, 1), st.sampled_from([0.1, 1, 2.5])), min_size=1)


def binary(count=2000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    preds = torch.rand(count, generator=generator)
    target = (torch.rand(count, generator=generator) < preds).long()
    return preds, target, torch.rand(count, generator=generator)


def classes(count=500, num_classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, num_classes, generator=generator) * 3
    return logits, torch.randint(0, num_classes, (count,), generator=generator)


def gaps(preds, target, weights, n_bins):
    """Weight and gap of every bin that is not empty, in rational arithmetic."""
    place = [min(int(np.float32(p) * np.float32(n_bins)), n_bins - 1) for p in preds]
    found = []
    for b in set(place):
        rows = [k for k in range(len(preds)) if place[k] == b]
        weight = sum(Fraction(float(weights[k])) for k in rows)
        if weight:
            gap = sum(Fraction(float(weights[k])) * (target[k] - Fraction(float(preds[k]))) for k in rows)
            found.append((weight, abs(gap) / weight))
    return found


@given(pairs, st.sampled_from([1, 3, 15]), st.booleans())
def test_calibration_error_is_that_of_exact_arithmetic(rows, n_bins, weighted):
    preds, target, weights = (np.array(column) for column in zip(*rows, strict=True))
    preds, weights = preds.astype(np.float32), weights.astype(np.float32)
    if not weighted:
        weights = np.ones(len(preds), np.float32)
    bins = gaps(preds, target.tolist(), weights, n_bins)
    total = sum(weight for weight, _ in bins)
    expected = {
        "l1": float(sum(weight * gap for weight, gap in bins) / total),
        "l2": root(sum((weight * gap**2 for weight, gap in bins), Fraction(0)) / total),
        "max": float(max(gap for _, gap in bins)),
    }
    given_weights = torch.from_numpy(weights) if weighted else None
    for norm, value in expected.items():
        metric = CalibrationError(n_bins=n_bins, norm=norm)
        got = metric(torch.from_numpy(preds), torch.from_numpy(target), weights=given_weights)
        assert got.item() == value


def test_confident_and_calibrated_is_told_from_wrong():
    """A float32 sum of a million confidences near 1 is off by a hundred times the truth."""
    generator = torch.Generator().manual_seed(3)
    preds = 0.99 + 0.0099 * torch.rand(1_000_000, generator=generator)
    target = (torch.rand(1_000_000, generator=generator) < preds).long()
    exact = abs(math.fsum(preds.tolist()) - int(target.sum())) / 1e6
    assert CalibrationError()(preds, target).item() == pytest.approx(exact, rel=1e-12)


def test_multiclass_confidence_is_the_highest_score():
    logits, target = classes()
    preds = logits.softmax(1)
    confidence, label = preds.max(1)
    right = (label == target).long()
    assert torch.equal(CalibrationError(num_classes=5)(preds, target), CalibrationError()(confidence, right))
    of_logits = CalibrationError(num_classes=5, logits=True)(logits, target)
    assert of_logits.item() == pytest.approx(CalibrationError()(confidence, right).item(), abs=1e-6)
    images = CalibrationError(num_classes=5)(preds.view(100, 5, 5).movedim(2, 1), target.view(100, 5))
    assert torch.equal(images, CalibrationError()(confidence, right))


def test_reliability_diagram_has_the_means_of_its_bins():
    preds, target, _ = binary()
    diagram = CalibrationCurve(n_bins=10)(preds, target)
    place = (preds * 10).long().clamp(max=9)
    for b in range(10):
        inside = place == b
        assert diagram.counts[b] == inside.sum()
        assert diagram.confidence[b].item() == pytest.approx(preds[inside].double().mean().item(), rel=1e-14)
        assert diagram.accuracy[b].item() == pytest.approx(target[inside].double().mean().item(), rel=1e-14)
    assert diagram.edges.tolist() == [k / 10 for k in range(11)]


def test_bins_are_closed_below_and_the_last_one_on_both_sides():
    diagram = CalibrationCurve(n_bins=4)(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]), torch.ones(5, dtype=torch.long))
    assert diagram.counts.tolist() == [1, 1, 1, 2]
    empty = CalibrationCurve(n_bins=4)(torch.tensor([0.6]), torch.tensor([1]))
    assert empty.confidence.isnan().tolist() == [True, True, False, True]


def test_brier_score_is_that_of_scikit_learn():
    preds, target, weights = binary()
    assert BrierScore()(preds, target).item() == pytest.approx(brier_score_loss(target, preds.double()), rel=1e-14)
    assert BrierScore()(preds, target, weights=weights).item() == pytest.approx(
        brier_score_loss(target, preds.double(), sample_weight=weights.double()), rel=1e-14
    )


@given(pairs)
def test_brier_score_is_exact(rows):
    preds, target, _ = zip(*rows, strict=True)
    expected = float(sum((Fraction(p) - y) ** 2 for p, y in zip(preds, target, strict=True)) / len(preds))
    assert BrierScore()(torch.tensor(preds), torch.tensor(target)).item() == expected
    columns = torch.tensor([[1 - p, p] for p in preds], dtype=torch.float64)
    rows_of = zip(columns.tolist(), target, strict=True)
    twice = sum((Fraction(p) - (y == k)) ** 2 for row, y in rows_of for k, p in enumerate(row))
    assert BrierScore(num_classes=2)(columns, torch.tensor(target)).item() == float(twice / len(preds))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_loss_is_that_of_scikit_learn(dtype):
    rel = 1e-6 if dtype == torch.float32 else 1e-13
    preds, target, weights = binary()
    expected = log_loss(target, preds.double(), sample_weight=weights.double())
    assert LogLoss()(preds.to(dtype), target, weights=weights).item() == pytest.approx(expected, rel=rel)
    logits, target = classes()
    expected = log_loss(target, logits.double().softmax(1))
    assert LogLoss(num_classes=5, logits=True)(logits.to(dtype), target).item() == pytest.approx(expected, rel=rel)


@pytest.mark.parametrize("far", [0.0, 18.0, 120.0, 1e4, 1e30])
def test_log_loss_of_logits_is_finite_and_keeps_small_losses(far):
    logits = torch.tensor([[far, 0.0, -1.0]])
    small = math.log1p(math.exp(-far) + math.exp(-1 - far))
    for target, expected in ((0, small), (1, far + small), (2, far + 1 + small)):
        got = LogLoss(num_classes=3, logits=True)(logits, torch.tensor([target])).item()
        assert got == pytest.approx(expected, rel=1e-6, abs=1e-44)
    two = LogLoss(logits=True)(torch.tensor([far, -far]), torch.tensor([1, 0])).item()
    assert two == pytest.approx(math.log1p(math.exp(-far)), rel=1e-6, abs=1e-44)


def test_log_loss_is_infinite_only_where_a_target_has_no_probability():
    assert LogLoss()(torch.tensor([0.0, 1.0]), torch.tensor([0, 1])).item() == 0
    assert LogLoss()(torch.tensor([0.0, 0.5]), torch.tensor([1, 1])).item() == math.inf
    assert LogLoss(logits=True)(torch.tensor([-math.inf]), torch.tensor([0])).item() == 0


def test_hinge_loss_is_that_of_scikit_learn():
    _, target, _ = binary()
    scores = torch.randn(2000, generator=torch.Generator().manual_seed(1)).double()
    assert HingeLoss()(scores, target).item() == pytest.approx(hinge_loss(target, scores), rel=1e-14)
    logits, labels = classes()
    assert HingeLoss(num_classes=5)(logits.double(), labels).item() == pytest.approx(
        hinge_loss(labels, logits.double()), rel=1e-14
    )
    signs = 2 * torch.nn.functional.one_hot(labels, 5) - 1
    each = (1 - logits.double() * signs).clamp(min=0)
    got = HingeLoss(num_classes=5, multiclass_mode="one-vs-all", squared=True)(logits.double(), labels)
    np.testing.assert_allclose(got.numpy(), each.square().mean(0).numpy(), rtol=1e-13)


@pytest.mark.parametrize("log_prob", [False, True])
def test_kl_divergence_is_that_of_scipy(log_prob):
    generator = torch.Generator().manual_seed(0)
    p, q = (torch.rand(50, 6, generator=generator, dtype=torch.float64) for _ in range(2))
    p, q = p / p.sum(1, keepdim=True), q / q.sum(1, keepdim=True)
    weights = torch.rand(50, generator=generator)
    rows = rel_entr(p.numpy(), q.numpy()).sum(1)
    given_rows = (p.log(), q.log()) if log_prob else (p * 3, q * 7)
    assert KLDivergence(log_prob=log_prob)(*given_rows).item() == pytest.approx(rows.mean(), rel=1e-12)
    assert KLDivergence(log_prob=log_prob, reduction="sum")(*given_rows).item() == pytest.approx(rows.sum(), rel=1e-12)
    assert KLDivergence(log_prob=log_prob)(*given_rows, weights=weights).item() == pytest.approx(
        np.average(rows, weights=weights), rel=1e-12
    )


def test_kl_divergence_at_zero_probabilities():
    p = torch.tensor([[0.0, 1.0]])
    assert KLDivergence()(p, torch.tensor([[0.5, 0.5]])).item() == pytest.approx(math.log(2), rel=1e-7)
    assert KLDivergence()(torch.tensor([[0.5, 0.5]]), p).item() == math.inf
    with pytest.raises(InvalidValuesError, match="1 of the rows have NaN, or a sum"):
        KLDivergence()(torch.zeros(1, 2), p)
    with pytest.raises(InvalidValuesError, match="1 of the rows have negative probabilities"):
        KLDivergence()(torch.tensor([[-0.5, 1.5]]), torch.tensor([[0.5, 0.5]]))


@pytest.mark.parametrize("metric", [CalibrationError(), CalibrationCurve(), BrierScore(), LogLoss(), HingeLoss()])
def test_ignored_rows_and_bad_values(metric):
    preds, target, _ = binary(50)
    ignoring = type(metric)(ignore_index=-1)
    more = ignoring(torch.cat([preds, torch.tensor([math.nan])]), torch.cat([target, torch.tensor([-1])]))
    plain = metric(preds, target)
    assert torch.equal(more[0], plain[0]) if isinstance(more, tuple) else torch.equal(more, plain)
    with pytest.raises(InvalidValuesError, match="1 of the scores are NaN"):
        metric(torch.tensor([math.nan, 0.5]), torch.tensor([0, 1]))
    with pytest.raises(InvalidValuesError, match=r"2 of the targets are outside 0 \.\.\. 1"):
        metric(torch.tensor([0.2, 0.5, 0.5]), torch.tensor([0, 2, -1]))
    if not isinstance(metric, HingeLoss):
        with pytest.raises(InvalidValuesError, match=r"1 of the scores are outside \[0, 1\]"):
            metric(torch.tensor([1.5, 0.5]), torch.tensor([0, 1]))


def test_infinite_logits_that_have_no_probability_are_named():
    logits = torch.tensor([[math.inf, math.inf, 0.0], [0.0, 1.0, 2.0]])
    for metric in (LogLoss, BrierScore, CalibrationError):
        with pytest.raises(InvalidValuesError, match="1 of the scores are NaN, or infinite so that they have no value"):
            metric(num_classes=3, logits=True)(logits, torch.tensor([0, 1]))


def test_nothing_counted_reads_nan_and_says_so():
    metrics = [CalibrationError(), BrierScore(), LogLoss(), HingeLoss(), KLDivergence(), KLDivergence(reduction="sum")]
    for metric in metrics:
        with pytest.warns(NoDataWarning):
            assert Meter(value=metric).compute()["value"].isnan()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CalibrationError(n_bins=0), "n_bins: got 0, expected 1 or more"),
        (lambda: CalibrationError(norm="l3"), "norm: got 'l3', expected 'l1', 'l2' or 'max'"),
        (lambda: HingeLoss(multiclass_mode="ovo"), "multiclass_mode: got 'ovo'"),
        (lambda: KLDivergence(reduction="none"), "reduction: got 'none', expected 'mean' or 'sum'"),
        (lambda: LogLoss(num_classes=1), "num_classes: got 1, expected 2 or more"),
    ],
)
def test_descriptions_that_cannot_be(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_layouts_that_cannot_be():
    with pytest.raises(
        ShapeError, match=r"target: got preds \(N,\) and target \(N,\), expected both of shape \(N, D\)"
    ):
        KLDivergence()(torch.rand(3), torch.rand(3))
    with pytest.raises(DtypeError, match=r"target: got torch\.int64, expected probabilities as floats"):
        KLDivergence()(torch.rand(3, 2), torch.ones(3, 2, dtype=torch.long))
    with pytest.raises(DtypeError, match=r"preds: got torch\.int64, expected scores as floats"):
        LogLoss()(torch.ones(3, dtype=torch.long), torch.ones(3, dtype=torch.long))


@pytest.mark.parametrize("rows", [500, 5000])
@pytest.mark.parametrize(
    "metric", [LogLoss(num_classes=100, logits=True), KLDivergence()], ids=["log loss", "divergence"]
)
def test_the_layout_of_memory_changes_no_bit(metric, rows):
    preds, probabilities = torch.rand(2, rows, 100, generator=torch.Generator().manual_seed(0))
    target = torch.arange(rows) % 100 if isinstance(metric, LogLoss) else probabilities
    by_class = preds.t().contiguous().t()
    assert by_class.stride() == (1, rows)
    assert metric(by_class, target) == metric(preds, target)


@pytest.mark.parametrize("metric", [KLDivergence(), CosineSimilarity()], ids=["divergence", "cosine"])
def test_a_long_row_is_summed_alone_as_among_others(metric):
    """With several threads, torch adds up a single row of 32,768 and more in parts."""
    preds, target = torch.rand(2, 5, 50_000, generator=torch.Generator().manual_seed(0))
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        meter = Meter(value=metric, stage_bytes=0)
        for row in zip(preds.split(1), target.split(1), strict=True):
            meter.update(*row)
        assert meter.compute()["value"] == metric(preds, target)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("small", [1.0, 1e-30])
def test_kl_divergence_of_rows_of_any_scale(dtype, small):
    """The sum of a row may overflow, and a share may be smaller than any float."""
    top = 1e37 if dtype == torch.float32 else 1e307
    generator = torch.Generator().manual_seed(0)
    p, q = (torch.rand(3, 30, generator=generator).to(dtype) for _ in range(2))
    q[:, 0] *= small
    for scales in itertools.product((1, top, 1 / top), repeat=2):
        x, y = (side * scale for side, scale in zip((p, q), scales, strict=True))
        x, y = x[:, y.amin(0) > 0], y[:, y.amin(0) > 0]
        for row in range(3):
            exact = [[Fraction(v) for v in side[row].tolist()] for side in (x, y)]
            shares = [[v / sum(side) for v in side] for side in exact]
            logs = [
                math.log(a.numerator * b.denominator) - math.log(a.denominator * b.numerator)
                for a, b in zip(*shares, strict=True)
            ]
            expected = math.fsum(float(a) * log for a, log in zip(shares[0], logs, strict=True))
            found = KLDivergence()(x[row : row + 1], y[row : row + 1]).item()
            assert found == pytest.approx(expected, rel=1e-4 if dtype == torch.float32 else 1e-11)
