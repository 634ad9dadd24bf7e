"""Regression metrics against exact rationals, scikit-learn and float64 NumPy."""

from __future__ import annotations

import itertools
import math
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import sklearn.metrics as sk
import torch

from assay.errors import ConfigError, InvalidValuesError, InvalidValuesWarning, NoDataWarning, ShapeError
from assay.meter import Meter
from assay.metrics.regression.correlation import ConcordanceCorrCoef, PearsonCorrCoef
from assay.metrics.regression.errors import (
    CriticalSuccessIndex,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogError,
    MinkowskiDistance,
    SymmetricMeanAbsolutePercentageError,
    TweedieDevianceScore,
    WeightedMeanAbsolutePercentageError,
)
from assay.metrics.regression.explained_variance import ExplainedVariance, R2Score, RelativeSquaredError
from assay.tally.sums.totals import Totals


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def positive(seed: int, rows: int = 300) -> torch.Tensor:
    return torch.rand(rows, generator=torch.Generator().manual_seed(seed)) * 4 + 0.25


def outlier(seed: int) -> torch.Tensor:
    x = normal(seed, 200)
    x[7] = 1e30
    return x


HARD = {
    "normal": (normal(1, 200), normal(2, 200)),
    "mean 1e6": (normal(1, 200) + 1e6, normal(2, 200) + 1e6),
    "mean 1e4": (normal(1, 200) + 1e4, normal(2, 200) + 1e4),
    "an outlier of 1e30": (outlier(1), outlier(2)),
    "lognormal": ((normal(1, 200) * 20).exp(), (normal(2, 200) * 20).exp()),
    "denormal": (normal(1, 200) * 1e-40, normal(2, 200) * 1e-40),
    "large": (normal(1, 200) * 3e37, normal(2, 200) * 3e37),
    "float64": (normal(1, 200).double() + 1e12, normal(2, 200).double() + 1e12),
    "bfloat16": (normal(1, 200).bfloat16(), normal(2, 200)),
    "integers": (torch.arange(200), (torch.arange(200) * 7) % 50),
}


def rationals(x: torch.Tensor) -> list[Fraction]:
    return [Fraction(v) for v in x.flatten().tolist()]


class Oracle:
    """Sums of exact rationals, as the textbook has them."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor, w: torch.Tensor | None = None) -> None:
        ones = torch.ones(x.numel())
        self.rows = list(zip(rationals(x), rationals(y), rationals(ones if w is None else w), strict=True))
        self.weight = sum(w for _, _, w in self.rows)
        self.mean_x, self.mean_y = (sum(row[k] * row[2] for row in self.rows) / self.weight for k in (0, 1))

    def error(self, p: int) -> Fraction:
        return sum(abs(x - y) ** p * w for x, y, w in self.rows)

    def spread(self) -> Fraction:
        return sum((y - self.mean_y) ** 2 * w for _, y, w in self.rows)

    def error_spread(self) -> Fraction:
        return sum((x - y - self.mean_x + self.mean_y) ** 2 * w for x, y, w in self.rows)

    def size(self) -> Fraction:
        return sum(abs(y) * w for _, y, w in self.rows)


EXACT = {
    MeanSquaredError(): lambda o: o.error(2) / o.weight,
    TweedieDevianceScore(): lambda o: o.error(2) / o.weight,
    MeanAbsoluteError(): lambda o: o.error(1) / o.weight,
    MinkowskiDistance(1): lambda o: o.error(1),
    WeightedMeanAbsolutePercentageError(): lambda o: o.error(1) / o.size(),
    R2Score(): lambda o: 1 - o.error(2) / o.spread(),
    R2Score(adjusted=5): lambda o: 1 - o.error(2) / o.spread() * Fraction(len(o.rows) - 1, len(o.rows) - 6),
    ExplainedVariance(): lambda o: 1 - o.error_spread() / o.spread(),
    RelativeSquaredError(): lambda o: o.error(2) / o.spread(),
}
ROOTS = {
    MeanSquaredError(squared=False): lambda o: o.error(2) / o.weight,
    MinkowskiDistance(2): lambda o: o.error(2),
    RelativeSquaredError(squared=False): lambda o: o.error(2) / o.spread(),
}


@pytest.mark.parametrize("data", HARD)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_values_are_those_of_exact_arithmetic_rounded_once(data, weighted):
    x, y = HARD[data]
    w = positive(3, 200) if weighted else None
    oracle = Oracle(x, y, w)
    for metric, expected in EXACT.items():
        assert metric(x, y, weights=w).item() == float(expected(oracle)), metric
    for metric, expected in ROOTS.items():
        read = metric(x, y, weights=w).item()
        neighbours = [Fraction(math.nextafter(read, to)) for to in (0, math.inf)]
        assert (
            ((neighbours[0] + Fraction(read)) / 2) ** 2
            <= expected(oracle)
            <= ((neighbours[1] + Fraction(read)) / 2) ** 2
        ), metric


def logs(x, y):
    return (np.log1p(x) - np.log1p(y)) ** 2


PER_SAMPLE = [
    (MeanAbsolutePercentageError(), lambda x, y, w: sk.mean_absolute_percentage_error(y, x, sample_weight=w)),
    (
        SymmetricMeanAbsolutePercentageError(),
        lambda x, y, w: np.average(2 * np.abs(x - y) / (np.abs(x) + np.abs(y)), weights=w),
    ),
    (MeanSquaredLogError(), lambda x, y, w: sk.mean_squared_log_error(y, x, sample_weight=w)),
    (LogCoshError(), lambda x, y, w: np.average(np.log(np.cosh(x - y)), weights=w)),
    (
        MinkowskiDistance(3.5),
        lambda x, y, w: np.sum(np.abs(x - y) ** 3.5 * (1 if w is None else w)) ** (1 / 3.5),
    ),
    *(
        (
            TweedieDevianceScore(p),
            lambda x, y, w, p=p: sk.mean_tweedie_deviance(y, x, sample_weight=w, power=p),
        )
        for p in (-1, 1, 1.5, 2, 2.5, 3)
    ),
]


@pytest.mark.parametrize(
    ("metric", "oracle"), PER_SAMPLE, ids=lambda value: repr(value) if hasattr(value, "compute") else ""
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.float64, 1e-13)])
def test_terms_per_sample_agree_with_float64(metric, oracle, dtype, tolerance):
    x, y, w = positive(1), positive(2), positive(3)
    numpy = [t.double().numpy() for t in (x, y, w)]
    assert metric(x.to(dtype), y.to(dtype)).item() == pytest.approx(oracle(*numpy[:2], None), rel=tolerance)
    weighted = metric(x.to(dtype), y.to(dtype), weights=w)
    assert weighted.item() == pytest.approx(oracle(*numpy), rel=tolerance)


@pytest.mark.parametrize(
    "metric", [MeanSquaredLogError(), LogCoshError(), TweedieDevianceScore(1), TweedieDevianceScore(2)], ids=repr
)
def test_nearly_equal_arguments_lose_no_digits(metric):
    y = positive(2).double()
    x = (y.float() * (1 + 1e-3)).double()
    y = y.float().double()
    assert metric(x.float(), y.float()).item() == pytest.approx(metric(x, y).item(), rel=1e-5)
    if metric == TweedieDevianceScore(2):  # (x / y - 1)² to first order
        assert metric(x, y).item() == pytest.approx(1e-6, rel=2e-3)


def test_log_cosh_does_not_overflow():
    assert LogCoshError()(torch.tensor([1e4]), torch.tensor([0.0])).item() == pytest.approx(1e4 - math.log(2))
    assert LogCoshError()(torch.tensor([1e-4]), torch.tensor([0.0])).item() == pytest.approx(5e-9, rel=1e-6)
    for errors in ([0.5, 1.5], [0.25, 0.75], [1.5, 3.0]):
        expected = sum(math.log(math.cosh(each)) for each in errors) / 2
        assert LogCoshError()(torch.tensor(errors), torch.zeros(2)).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("metric", [m for m, _ in PER_SAMPLE], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_terms_have_the_same_bits_for_every_split(metric, dtype):
    x, y = positive(1, 101).to(dtype), positive(2, 101).to(dtype)
    whole = metric(x, y).item()
    for size in (1, 3, 50):
        meter = Meter(m=metric, stage_bytes=0)
        for a, b in zip(x.split(size), y.split(size), strict=True):
            meter.update(a, b)
        assert meter.compute()["m"].item() == whole
    strided = torch.stack([x, y], 1)
    assert metric(strided[:, 0], strided[:, 1]).item() == whole


def test_r2_and_its_kin_over_outputs_follow_scikit_learn():
    x, y, w = normal(1, 50, 3), normal(2, 50, 3) * torch.tensor([1.0, 3.0, 0.1]), positive(3, 50)
    numpy = {"y_true": y.double().numpy(), "y_pred": x.double().numpy()}
    for metric, oracle in ((R2Score, sk.r2_score), (ExplainedVariance, sk.explained_variance_score)):
        for how in ("uniform_average", "raw_values", "variance_weighted"):
            read = metric(num_outputs=3, multioutput=how)(x, y)
            assert np.allclose(read, oracle(**numpy, multioutput=how), rtol=1e-12)
            assert read.shape == ((3,) if how == "raw_values" else ())
            read = metric(num_outputs=3, multioutput=how)(x, y, weights=w)
            assert np.allclose(read, oracle(**numpy, multioutput=how, sample_weight=w.double().numpy()), rtol=1e-12)


def test_many_outputs_are_averaged_to_the_last_bit():
    x, y = normal(1, 5, 100), normal(2, 5, 100)
    raw = [1 - Oracle(x[:, k], y[:, k]).error(2) / Oracle(x[:, k], y[:, k]).spread() for k in range(100)]
    assert R2Score(num_outputs=100)(x, y).item() == float(sum(raw) / 100)


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
def test_constant_targets_follow_scikit_learn():
    y = torch.full((4,), 2.5)
    for x, r2 in ((y, 1.0), (y + 1, 0.0), (normal(1, 4), 0.0)):
        assert R2Score()(x, y).item() == r2 == sk.r2_score(y, x)
        assert ExplainedVariance()(x, y).item() == sk.explained_variance_score(y, x)
    assert RelativeSquaredError()(y + 1, y).item() == math.inf
    assert math.isnan(RelativeSquaredError()(y, y).item())
    assert math.isnan(R2Score()(y[:1], y[:1]).item())
    assert math.isnan(R2Score(adjusted=3)(normal(1, 4), normal(2, 4)).item())
    zero = torch.zeros(3)
    assert math.isnan(WeightedMeanAbsolutePercentageError()(zero, zero).item())
    assert WeightedMeanAbsolutePercentageError()(zero + 1, zero).item() == math.inf
    assert MeanAbsolutePercentageError()(zero + 1, zero).item() == pytest.approx(1 / 1.17e-6)


def test_variance_weighted_outputs_that_are_all_constant_weigh_alike():
    x, y = torch.tensor([[1.0, 2.0], [1.0, 3.0]]), torch.tensor([[1.0, 2.0], [1.0, 2.0]])
    for metric, oracle in ((R2Score, sk.r2_score), (ExplainedVariance, sk.explained_variance_score)):
        read = metric(num_outputs=2, multioutput="variance_weighted")(x, y)
        assert read.item() == oracle(y, x, multioutput="variance_weighted")


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
def test_critical_success_index():
    x, y, w = positive(1), positive(2), torch.arange(300.0)
    hits, events = (x >= 2) & (y >= 2), (x >= 2) | (y >= 2)
    assert CriticalSuccessIndex(2.0)(x, y).item() == int(hits.sum()) / int(events.sum())
    assert CriticalSuccessIndex(2.0)(x, y, weights=w).item() == float(w[hits].sum() / w[events].sum().double())
    assert math.isnan(CriticalSuccessIndex(99.0)(x, y).item())
    with pytest.warns(InvalidValuesWarning, match="1 of the values are NaN or infinite"):
        assert math.isnan(CriticalSuccessIndex(2.0)(torch.tensor([3.0, math.nan]), torch.tensor([3.0, 1.0])).item())


def test_several_outputs_are_several_metrics():
    x, y = positive(1).view(100, 3), positive(2).view(100, 3)
    for make in (MeanSquaredError, MeanAbsoluteError, MeanSquaredLogError, LogCoshError, TweedieDevianceScore):
        read = make(num_outputs=3)(x, y)
        assert read.tolist() == [make()(x[:, k], y[:, k]).item() for k in range(3)]
    assert MeanSquaredError()(x, y) == MeanSquaredError()(x.flatten(), y.flatten())


def test_metrics_share_one_tally():
    x, y = positive(1), positive(2)
    metrics = {
        "mse": MeanSquaredError(),
        "rmse": MeanSquaredError(squared=False),
        "mae": MeanAbsoluteError(),
        "mape": MeanAbsolutePercentageError(),
        "r2": R2Score(),
        "ev": ExplainedVariance(),
        "pearson": PearsonCorrCoef(),
        "ccc": ConcordanceCorrCoef(),
        "tweedie": TweedieDevianceScore(1.5),
    }
    meter = Meter(**metrics)
    assert len(meter.tallies) == 1
    meter.update(x, y)
    assert meter.compute() == {name: metric(x, y) for name, metric in metrics.items()}


@pytest.mark.parametrize(
    ("metric", "x", "y", "needs"),
    [
        (MeanSquaredLogError(), -2.0, -3.0, "preds and target above -1"),
        (MeanSquaredLogError(), 1.0, -1.0, "preds and target above -1"),
        (TweedieDevianceScore(-1), 0.0, 1.0, "preds above 0"),
        (TweedieDevianceScore(1), 1.0, -1.0, "preds above 0 and target of 0 or more"),
        (TweedieDevianceScore(2), 1.0, 0.0, "preds and target above 0"),
        (TweedieDevianceScore(3), -1.0, 1.0, "preds and target above 0"),
    ],
    ids=repr,
)
def test_values_outside_the_domain_are_counted_and_raise_when_read(metric, x, y, needs):
    meter = Meter(m=metric)
    meter.update(torch.tensor([x, 1.0]), torch.tensor([y, 1.0]))
    with pytest.raises(
        InvalidValuesError, match=f"^m: got 1 of the terms of .* are NaN, which needs {needs}, expected none"
    ):
        meter.compute()


def test_zero_is_in_the_domain_of_poisson():
    x, y = torch.tensor([0.5, 2.0]), torch.tensor([0.0, 3.0])
    assert TweedieDevianceScore(1)(x, y).item() == pytest.approx(sk.mean_poisson_deviance(y, x), rel=1e-6)


@pytest.mark.parametrize("metric", [*EXACT, *ROOTS, *(m for m, _ in PER_SAMPLE)], ids=repr)
def test_without_data_and_with_nan(metric):
    with pytest.warns(NoDataWarning, match=": got no data"):
        assert math.isnan(metric(torch.zeros(0), torch.zeros(0)).item())
    x = torch.tensor([1.0, math.nan, 2.0, 3.0, 1.0, 1.5, 2.5, 1.0])
    with pytest.warns(InvalidValuesWarning, match="1 of the values are NaN or infinite"):
        assert math.isnan(metric(x, torch.arange(1.0, 9.0)).item())


def test_a_value_beyond_float64_is_infinite():
    x = torch.tensor([1e200], dtype=torch.float64)
    assert MeanSquaredError()(x, -x).item() == math.inf
    assert MeanSquaredError(squared=False)(x, -x).item() == 2e200


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MeanSquaredError(num_outputs=0), "num_outputs: got 0, expected 1 or more"),
        (lambda: MinkowskiDistance(0.5), "p: got 0.5, expected a finite number of 1 or more"),
        (lambda: MinkowskiDistance(math.inf), "p: got inf, expected a finite number"),
        (lambda: TweedieDevianceScore(0.5), "power: got 0.5, expected a finite number of 0 or less"),
        (lambda: CriticalSuccessIndex(math.nan), "threshold: got nan, expected a number"),
        (lambda: R2Score(adjusted=-1), "adjusted: got -1, expected 0 or more"),
        (lambda: R2Score(multioutput="mean"), "multioutput: got 'mean', expected 'uniform_average'"),
        (lambda: ExplainedVariance(num_outputs=-1), "num_outputs: got -1, expected 1 or more"),
    ],
)
def test_descriptions_that_cannot_be(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_outputs_must_be_said():
    x = normal(1, 5, 3)
    with pytest.raises(
        ShapeError, match=r"preds: got shape \(N, 3\), expected shape \(N,\) or \(N, 1\). Give num_outputs"
    ):
        R2Score()(x, x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert R2Score()(x[:, :1], x[:, :1]).item() == 1


@pytest.mark.parametrize(
    ("metric", "oracle"),
    [
        (MeanSquaredLogError(), lambda x, y: np.log((1 + x) / (1 + y)) ** 2),
        (TweedieDevianceScore(1), lambda x, y: 2 * (y * np.log(y / x) + x - y)),
        (TweedieDevianceScore(2), lambda x, y: 2 * (np.log(x / y) + y / x - 1)),
    ],
    ids=["log", "poisson", "gamma"],
)
def test_predictions_that_are_far_from_the_target_lose_no_digits(metric, oracle):
    small, large = torch.tensor([1e-3, 2e-5, 0.3]), torch.tensor([1e4, 3e3, 7e5])
    for x, y in ((small, large), (large, small)):
        expected = oracle(x.double().numpy(), y.double().numpy()).mean()
        assert metric(x, y).item() == pytest.approx(expected, rel=1e-6)


# --- near the ends of floats ---------------------------------------------------------------------------------------


def tweedie(power: float, preds: float, target: float) -> Decimal:
    """The unit deviance, with 60 digits."""
    p, mu, y = (Decimal(v) for v in (power, preds, target))
    if p == 1:
        return 2 * (y * (y / mu).ln() + mu - y)
    if p == 2:
        return 2 * ((mu / y).ln() + y / mu - 1)
    return 2 * (y ** (2 - p) / ((1 - p) * (2 - p)) - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p))


ENDS = (1e-40, 1e-30, 1e-3, 0.5, 0.999, 1.0, 1.0001, 1.3, 3.0, 1e4, 1e30, 3e38)


@pytest.mark.parametrize("power", [-0.5, 1, 1.5, 2, 2.5, 3])
def test_tweedie_deviance_of_close_and_of_extreme_values(power):
    with localcontext(prec=60):
        for a, b in itertools.product(ENDS, (*ENDS, None)):
            preds = torch.tensor([a])
            target = preds.nextafter(torch.tensor(math.inf)) if b is None else torch.tensor([b])
            expected = float(tweedie(power, preds.item(), target.item())) if preds.item() != target.item() else 0.0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InvalidValuesWarning)  # terms that are too large for float32
                found = TweedieDevianceScore(power=power)(preds, target).item()
            assert found >= 0
            if expected < 1e35 or found < math.inf:  # near the largest float32, parts of a term may overflow
                assert found == pytest.approx(expected, rel=1e-5, abs=1e-37)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [(SymmetricMeanAbsolutePercentageError(), 0.4), (MeanAbsolutePercentageError(), 0.5)],
)
def test_relative_errors_of_values_whose_sum_overflows(metric, expected):
    assert metric(torch.tensor([3e38]), torch.tensor([2e38])).item() == pytest.approx(expected, rel=1e-6)
    assert metric(torch.tensor([-3e38]), torch.tensor([3e38])).item() == pytest.approx(2, rel=1e-6)


def test_squared_log_error_of_a_quotient_that_overflows():
    preds, target = torch.tensor([3e38]), torch.tensor([-1 + 2**-24])
    expected = (math.log(3e38) + 24 * math.log(2)) ** 2
    assert MeanSquaredLogError()(preds, target).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("squared", [True, False])
def test_relative_squared_error_weighted_by_tiny_spreads(squared):
    target = torch.rand(3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 1e-200
    preds = torch.zeros(3, 2).to(torch.float8_e4m3fn)
    columns = [[Fraction(v) for v in column.tolist()] for column in target.T]
    spreads = [sum((v - sum(column) / 3) ** 2 for v in column) for column in columns]
    shares = [sum(v * v for v in column) / spread for column, spread in zip(columns, spreads, strict=True)]
    values = [share if squared else Fraction(math.sqrt(share)) for share in shares]
    expected = sum(v * s for v, s in zip(values, spreads, strict=True)) / sum(spreads)
    metric = RelativeSquaredError(squared=squared, num_outputs=2, multioutput="variance_weighted")
    assert metric(preds, target).item() == pytest.approx(float(expected), rel=1e-15)


def test_an_output_with_a_constant_target_has_no_weight_by_spread():
    preds, target = torch.tensor([[1.0, 5.0], [2.0, 6.0]]), torch.tensor([[1.0, 4.0], [3.0, 4.0]])
    metric = RelativeSquaredError(num_outputs=2, multioutput="variance_weighted")
    assert metric(preds, target).item() == 0.5


SCALES = {"normal": 1.0, "tiny": 1e-160, "huge": 1e154}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("metric", [MeanSquaredError, MeanAbsoluteError, LogCoshError])
def test_means_of_many_outputs_are_those_of_fractions(metric, weighted, scale, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    preds, target = torch.randn(2, 40, 70, generator=generator, dtype=torch.float64) * SCALES[scale]
    preds[:, 3] = target[:, 3]
    weights = torch.rand(40, generator=generator) if weighted else None
    measured = metric(num_outputs=70)(preds, target, weights=weights).tolist()
    monkeypatch.setattr(Totals, "quotients", lambda totals, formula: None)
    exact = metric(num_outputs=70)(preds, target, weights=weights).tolist()
    assert measured == exact
    assert measured[3] == 0
    assert (math.inf in measured) == (scale == "huge" and metric is MeanSquaredError)


def test_means_without_weight_are_nan():
    with pytest.warns(NoDataWarning):
        assert (
            MeanSquaredError(num_outputs=2)(torch.ones(3, 2), torch.zeros(3, 2), weights=torch.zeros(3)).isnan().all()
        )
