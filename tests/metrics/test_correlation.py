"""Correlations against exact rationals, SciPy and float64."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import scipy.stats
import torch

from assay.errors import ConfigError, DtypeError, InvalidValuesWarning, NoDataWarning, ShapeError
from assay.meter import Meter
from assay.metrics.per_sample import per_sample_values
from assay.metrics.regression.correlation import ConcordanceCorrCoef, CosineSimilarity, PearsonCorrCoef


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def related(seed: int, offset: float = 0.0, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    x = normal(seed, 150) * scale + offset
    return x, x * 0.5 + normal(seed + 1, 150) * scale + offset / 2


def outlier() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = related(7)
    x[3] = 1e30
    return x, y


DATA = {
    "normal": related(1),
    "mean 1e6": related(2, 1e6),
    "tiny": related(3, 0.0, 1e-42),
    "large": related(4, 0.0, 3e37),
    "an outlier of 1e30": outlier(),
    "float64": tuple(t.double() * 1e200 for t in related(5)),
    "bfloat16": tuple(t.bfloat16() for t in related(6)),
    "negative": (related(8)[0], -related(8)[1]),
    "equal": (related(9)[0], related(9)[0]),
}


def moments(x, y, w) -> tuple[Fraction, ...]:
    """Mean difference, variances and covariance of the population."""
    rows = [tuple(map(Fraction, row)) for row in zip(x.tolist(), y.tolist(), w.tolist(), strict=True)]
    weight = sum(c for _, _, c in rows)
    a, b = (sum(row[k] * row[2] for row in rows) / weight for k in (0, 1))
    xx = sum((p - a) ** 2 * c for p, _, c in rows) / weight
    yy = sum((q - b) ** 2 * c for _, q, c in rows) / weight
    return a - b, xx, yy, sum((p - a) * (q - b) * c for p, q, c in rows) / weight, weight


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_correlations_are_those_of_exact_arithmetic(data, weighted):
    x, y = DATA[data]
    w = torch.rand(150, generator=torch.Generator().manual_seed(0)) if weighted else None
    shift, xx, yy, xy, weight = moments(x, y, torch.ones(150) if w is None else w)
    assert ConcordanceCorrCoef()(x, y, weights=w).item() == float(2 * xy / (xx + yy + shift**2))
    bessel = weight / (weight - 1)
    expected = 2 * xy * bessel / ((xx + yy) * bessel + shift**2)
    assert ConcordanceCorrCoef(ddof=1)(x, y, weights=w).item() == float(expected)
    read = PearsonCorrCoef()(x, y, weights=w).item()
    low, high = (Fraction(math.nextafter(abs(read), to)) for to in (0, 2))
    assert low**2 <= xy**2 / (xx * yy) <= high**2
    assert (read > 0) == (xy > 0)


def test_pearson_agrees_with_scipy():
    x, y = related(1)
    expected = scipy.stats.pearsonr(x.double().numpy(), y.double().numpy()).statistic
    assert PearsonCorrCoef()(x, y).item() == pytest.approx(expected, rel=1e-13)


def test_a_perfect_line_is_exactly_one():
    x = normal(1, 100)
    assert PearsonCorrCoef()(x, x * -2).item() == -1.0
    assert ConcordanceCorrCoef()(x, x).item() == 1.0


def test_outputs():
    x, y = normal(1, 40, 3), normal(2, 40, 3)
    for make in (PearsonCorrCoef, ConcordanceCorrCoef):
        assert make(num_outputs=3)(x, y).tolist() == [make()(x[:, k], y[:, k]).item() for k in range(3)]


def test_constants():
    same, other = torch.full((5,), 0.1), normal(1, 5)
    with pytest.warns(NoDataWarning, match="for which it is undefined"):
        assert math.isnan(PearsonCorrCoef()(same, other).item())
    with pytest.warns(NoDataWarning, match="for which it is undefined"):
        assert math.isnan(ConcordanceCorrCoef()(same, same).item())
    assert ConcordanceCorrCoef()(same, other).item() == 0
    with pytest.warns(NoDataWarning, match="for which it is undefined"):
        assert math.isnan(ConcordanceCorrCoef(ddof=1)(other[:1], other[1:2]).item())
    assert ConcordanceCorrCoef()(other[:1], other[1:2]).item() == 0


def rows(count: int = 30, width: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    return normal(1, count, width), normal(2, count, width)


def cosines(x, y) -> list[float]:
    return torch.nn.functional.cosine_similarity(x.double(), y.double()).tolist()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
def test_cosines_are_summed_or_averaged(dtype, tolerance):
    x, y = rows()
    w = torch.arange(30.0)
    expected = cosines(x, y)
    total = sum(c * k for k, c in enumerate(expected))
    x, y = x.to(dtype), y.to(dtype)
    assert CosineSimilarity()(x, y).item() == pytest.approx(sum(expected), rel=tolerance)
    assert CosineSimilarity("mean")(x, y).item() == pytest.approx(sum(expected) / 30, rel=tolerance)
    found = per_sample_values(CosineSimilarity("mean"), x, y)
    assert found.terms["cosine"].tolist() == pytest.approx(expected, abs=1e-6)
    assert CosineSimilarity()(x, y, weights=w).item() == pytest.approx(total, rel=tolerance)
    assert CosineSimilarity("mean")(x, y, weights=w).item() == pytest.approx(total / (29 * 15), rel=tolerance)


@pytest.mark.parametrize("scale", [1e-38, 1e30, 1.0])
def test_a_cosine_does_not_depend_on_the_size(scale):
    x, y = rows(5)
    whole = CosineSimilarity("mean")(x * scale, y / scale if scale == 1e30 else y).item()
    assert whole == pytest.approx(sum(cosines(x, y)) / 5, rel=1e-5)


def test_cosines_have_the_same_bits_for_every_split():
    x, y = rows(64, 100)
    whole = CosineSimilarity()(x, y)
    for size in (1, 3, 50):
        meter = Meter(c=CosineSimilarity(), stage_bytes=0)
        for a, b in zip(x.split(size), y.split(size), strict=True):
            meter.update(a, b)
        assert meter.compute()["c"] == whole
    assert CosineSimilarity()(x.t().contiguous().t(), y) == whole


def test_rows_without_a_direction():
    x = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    with pytest.warns(InvalidValuesWarning, match="1 of the rows have no direction"):
        assert math.isnan(CosineSimilarity()(x, torch.ones(2, 2)).item())


@pytest.mark.parametrize("metric", [PearsonCorrCoef(), ConcordanceCorrCoef(), CosineSimilarity()], ids=repr)
def test_without_data(metric):
    empty = torch.zeros(0, 4) if isinstance(metric, CosineSimilarity) else torch.zeros(0)
    with pytest.warns(NoDataWarning, match=": got no data"):
        assert math.isnan(metric(empty, empty).item())


def test_what_cannot_be():
    with pytest.raises(
        ConfigError, match=r'reduction: got .none., expected "sum" or "mean"\. For the cosine of each row'
    ):
        CosineSimilarity("none")
    with pytest.raises(ConfigError, match="ddof: got -1, expected 0 or more"):
        ConcordanceCorrCoef(-1)
    with pytest.raises(
        ShapeError, match=r"target: got preds \(N,\) and target \(N,\), expected both of shape \(N, D\)"
    ):
        CosineSimilarity()(torch.ones(3), torch.ones(3))
    with pytest.raises(
        ShapeError, match=r"weights: got shape \(N, 2\), expected shape \(N,\). Give one weight per row"
    ):
        CosineSimilarity()(torch.ones(3, 2), torch.ones(3, 2), weights=torch.ones(3, 2))
    with pytest.raises(DtypeError, match=r"preds: got torch\.complex64, expected real numbers"):
        CosineSimilarity()(torch.ones(3, 2) * 1j, torch.ones(3, 2))
    with pytest.raises(ShapeError, match=r"expected shape \(N,\) or \(N, 1\)"):
        PearsonCorrCoef()(torch.ones(3, 2), torch.ones(3, 2))
