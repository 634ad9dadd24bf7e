from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError, DtypeError, InvalidValuesError, InvalidValuesWarning, NoDataWarning, ShapeError
from assay.meter import Meter
from assay.metrics.regression.rank_correlation import KendallRankCorrCoef, SpearmanCorrCoef

METRICS = [SpearmanCorrCoef(), KendallRankCorrCoef("a"), KendallRankCorrCoef("b"), KendallRankCorrCoef("c")]
SAMPLES = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4), st.integers(0, 3)), min_size=2, max_size=25)


def tensors(*columns):
    return [torch.tensor(column, dtype=torch.float32) for column in columns]


def sign(x):
    return (x > 0) - (x < 0)


def ratio(above, below_squared):
    """`above / sqrt(below_squared)` to far more digits than float64 has, then rounded."""
    if not below_squared:
        return math.nan
    scaled = Fraction(above * above, below_squared) * 4**400
    return math.copysign(float(Fraction(math.isqrt(int(scaled)), 2**400)), above) if above else 0.0


def spearman(x, y, w):
    """By the definition: ranks of the samples repeated `w` times, in exact arithmetic."""
    x, y = ([v for v, n in zip(values, w, strict=True) for _ in range(n)] for values in (x, y))
    n = len(x)
    r, s = ([2 * sum(b < a for b in v) + sum(b == a for b in v) - n for a in v] for v in (x, y))
    dot = lambda a, b: sum(p * q for p, q in zip(a, b, strict=True))  # noqa: E731
    return ratio(dot(r, s), dot(r, r) * dot(s, s))


def kendall(variant, x, y, w):
    """By the definition: over all pairs of samples."""
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    net = sum(w[i] * w[j] * sign(x[i] - x[j]) * sign(y[i] - y[j]) for i, j in pairs)
    n0 = sum(w[i] * w[j] for i, j in pairs)
    if variant == "a":
        return net / n0 if n0 else math.nan
    if variant == "b":
        untied = [sum(w[i] * w[j] for i, j in pairs if v[i] != v[j]) for v in (x, y)]
        return ratio(net, untied[0] * untied[1])
    m = min(len({a for a, n in zip(v, w, strict=True) if n}) for v in (x, y))
    return float(Fraction(2 * net * m, sum(w) ** 2 * (m - 1))) if m > 1 else math.nan


def expected(metric, x, y, w):
    return spearman(x, y, w) if isinstance(metric, SpearmanCorrCoef) else kendall(metric.variant, x, y, w)


def same(found, wanted):
    return found == wanted or (math.isnan(found) and math.isnan(wanted))


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@given(SAMPLES)
def test_as_the_definition_in_exact_arithmetic(metric, rows):
    x, y, _ = zip(*rows, strict=True)
    assert same(metric(*tensors(x, y)).item(), expected(metric, x, y, [1] * len(x)))


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@given(SAMPLES, st.sampled_from([1.0, 0.375, 2.0**-130]))
def test_weights_are_exact_and_only_their_ratios_matter(metric, rows, unit):
    x, y, w = zip(*rows, strict=True)
    weights = torch.tensor(w, dtype=torch.float64) * unit
    assert same(metric(*tensors(x, y), weights=weights).item(), expected(metric, x, y, w))


@given(st.lists(st.tuples(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False)), min_size=2, max_size=50))
def test_as_scipy(rows):
    x, y = (np.array(column) for column in zip(*rows, strict=True))
    if len(set(x)) == 1 or len(set(y)) == 1:
        return
    pair = torch.from_numpy(x), torch.from_numpy(y)
    assert SpearmanCorrCoef()(*pair).item() == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-14)
    for variant in "bc":
        found = KendallRankCorrCoef(variant)(*pair).item()
        assert found == pytest.approx(scipy.stats.kendalltau(x, y, variant=variant).statistic, abs=1e-14)


def test_many_ties_do_not_overflow():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(200_000, generator=generator)
    y = x + torch.randn(200_000, generator=generator)
    x[::2], y[1::2] = 0.0, 1.0  # half of each is one tie: 5e9 tied pairs, and squares of ranks beyond 2 ** 53
    assert SpearmanCorrCoef()(x, y).item() == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-13)
    for variant in "bc":
        found = KendallRankCorrCoef(variant)(x, y).item()
        assert found == pytest.approx(scipy.stats.kendalltau(x, y, variant=variant).statistic, abs=1e-13)


def test_perfect_agreement_is_one_to_the_bit():
    x = torch.randperm(10_001)
    for metric in METRICS:
        assert metric(x, x * 3).item() == 1
        assert metric(x, -x).item() == -1


def test_integers_are_ranked_as_they_are():
    x = torch.tensor([2**60, 2**60 + 1, 2**60 + 2])
    assert SpearmanCorrCoef()(x, torch.arange(3)).item() == 1
    assert KendallRankCorrCoef()(x, torch.arange(3)).item() == 1


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_zeros_of_both_signs_are_tied(metric):
    y = torch.tensor([1.0, 2.0, 3.0])
    assert metric(torch.tensor([0.0, -0.0, 1.0]), y) == metric(torch.tensor([0.0, 0.0, 1.0]), y)


def test_outputs_have_a_value_each():
    x, y = torch.randn(50, 3), torch.randn(50, 3)
    for one in (SpearmanCorrCoef, KendallRankCorrCoef):
        assert one(num_outputs=3)(x, y).tolist() == [one()(x[:, k], y[:, k]).item() for k in range(3)]


def test_without_num_outputs_every_element_is_a_sample():
    x, y = torch.randn(10, 3), torch.randn(10, 3)
    assert SpearmanCorrCoef()(x, y) == SpearmanCorrCoef()(x.flatten(), y.flatten())


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_without_two_samples_it_is_nan(metric):
    assert metric(torch.tensor([1.0]), torch.tensor([2.0])).isnan()
    assert metric(*tensors([1, 2], [1, 2]), weights=torch.tensor([1, 0])).isnan()
    with pytest.warns(NoDataWarning, match="m: got no data"):
        assert Meter(m=metric).compute()["m"].isnan()


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_a_constant_has_no_rank_correlation(metric):
    value = metric(torch.ones(5), torch.arange(5)).item()
    assert same(value, 0.0 if metric == KendallRankCorrCoef("a") else math.nan)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_nan_makes_nan_and_warns(metric):
    with pytest.warns(InvalidValuesWarning, match=": got 2 of the values are NaN, expected none"):
        assert metric(torch.tensor([1.0, math.nan, 2.0]), torch.tensor([1.0, math.nan, 2.0])).isnan()


@pytest.mark.parametrize("bad", [-1.0, math.inf, math.nan])
def test_weights_that_cannot_be_raise(bad):
    with pytest.raises(InvalidValuesError, match=": got 1 of the weights are negative, infinite or NaN, expected none"):
        SpearmanCorrCoef()(*tensors([1, 2], [1, 2]), weights=torch.tensor([1.0, bad]))


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@given(SAMPLES, st.integers(1, 9), st.randoms())
def test_no_split_changes_the_bits(metric, rows, size, random):
    x, y, _ = zip(*rows, strict=True)
    whole = metric(*tensors(x, y)).numpy().tobytes()
    random.shuffle(rows)
    x, y = tensors(*list(zip(*rows, strict=True))[:2])
    meters = [Meter(m=metric, stage_bytes=0), Meter(m=metric)]
    for k, pair in enumerate(zip(x.split(size), y.split(size), strict=True)):
        meters[k % 2].update(*pair)
    assert (meters[0] + meters[1]).compute()["m"].numpy().tobytes() == whole


def test_metrics_of_the_same_samples_keep_them_once():
    meter = Meter(*METRICS[:2], b=METRICS[2])
    assert len(meter.tallies) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KendallRankCorrCoef("d"), "variant: got 'd', expected 'a', 'b' or 'c'"),
        (lambda: KendallRankCorrCoef(num_outputs=0), "num_outputs: got 0, expected 1 or more"),
        (lambda: SpearmanCorrCoef(num_outputs=-1), "num_outputs: got -1"),
    ],
)
def test_descriptions_that_cannot_be_raise(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_arguments_that_do_not_belong_together_raise():
    with pytest.raises(ShapeError, match=r"target: got shape \(N, 2\) with preds of shape \(N,\)"):
        SpearmanCorrCoef()(torch.zeros(3), torch.zeros(3, 2))
    with pytest.raises(ShapeError, match="target: got nothing"):
        SpearmanCorrCoef()(torch.zeros(3))
    with pytest.raises(DtypeError, match=r"preds: got torch\.complex64"):
        SpearmanCorrCoef()(torch.zeros(3, dtype=torch.complex64), torch.zeros(3))
