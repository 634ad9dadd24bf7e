"""Values of many outputs at once have the bits of those that fractions give one by one."""

from __future__ import annotations

import math
import warnings
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.metrics import (
    ConcordanceCorrCoef,
    ExplainedVariance,
    Mean,
    MeanAbsoluteError,
    MeanError,
    MeanSquaredError,
    PearsonCorrCoef,
    R2Score,
    RelativeSquaredError,
    WeightedMeanAbsolutePercentageError,
)
from assay.tally.sums.totals import Totals
from thinning import every_third

OUTPUTS = 12
METRICS = {
    "R2": R2Score,
    "R2 each": partial(R2Score, multioutput="raw_values"),
    "R2 by spread": partial(R2Score, multioutput="variance_weighted"),
    "R2 adjusted": partial(R2Score, multioutput="raw_values", adjusted=1),
    "explained variance": ExplainedVariance,
    "explained variance each": partial(ExplainedVariance, multioutput="raw_values"),
    "relative squared error": RelativeSquaredError,
    "its root": partial(RelativeSquaredError, squared=False, multioutput="raw_values"),
    "Pearson": PearsonCorrCoef,
    "concordance": ConcordanceCorrCoef,
    "concordance of sample moments": partial(ConcordanceCorrCoef, ddof=1),
    "MSE": MeanSquaredError,
    "RMSE": partial(MeanSquaredError, squared=False),
    "MAE": MeanAbsoluteError,
    "mean error": MeanError,
    "WMAPE": WeightedMeanAbsolutePercentageError,
}
KINDS = ["normal", "small integers", "constant", "offset", "tiny", "huge", "equal", "not finite", "one apart"]


def column(kind: str, rows: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = torch.randn(2, rows, generator=generator, dtype=torch.float64)
    if kind == "small integers":
        return (4 * x).round(), (4 * y).round()
    if kind == "constant":
        return torch.full_like(x, 0.1), torch.full_like(y, 0.1 if rows % 2 else 0.7)
    if kind == "offset":
        return 1e12 + x, 1e12 + y
    if kind in ("tiny", "huge"):
        scale = 1e-160 if kind == "tiny" else 1e153
        return x * scale, y * scale
    if kind == "equal":
        return x, x.clone()
    if kind == "not finite":
        x[0], y[-1] = math.inf, math.nan
    if kind == "one apart":  # all but equal: quotients just beside 0 and 1
        y = x.clone()
        y[0] = math.nextafter(y[0].item(), math.inf)
    return x, y


def both_ways(metric, *arguments, **weights) -> tuple[torch.Tensor, torch.Tensor]:
    """The value with and without compiled quotients."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patched:
        warnings.simplefilter("ignore")
        value = metric(*arguments, **weights)
        patched.setattr(Totals, "quotients", lambda totals, formula: None)
        return value, metric(*arguments, **weights)


@every_third
@given(
    st.lists(st.sampled_from(KINDS), min_size=OUTPUTS, max_size=OUTPUTS),
    st.sampled_from([1, 2, 3, 8, 40]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 1 << 30),
)
@pytest.mark.parametrize("name", METRICS)
def test_values_are_those_of_fractions(name, kinds, rows, single, weighted, seed):
    generator = torch.Generator().manual_seed(seed)
    columns = [column(kind, rows, generator) for kind in kinds]
    dtype = torch.float32 if single else torch.float64
    preds, target = (torch.stack(each, 1).to(dtype) for each in zip(*columns, strict=True))
    weights = {"weights": torch.randint(0, 3, (rows,), generator=generator) / 3} if weighted else {}
    value, expected = both_ways(METRICS[name](num_outputs=OUTPUTS), preds, target, **weights)
    assert torch.equal(value.isnan(), expected.isnan())
    assert torch.equal(value.nan_to_num(7.0, 8.0, 9.0), expected.nan_to_num(7.0, 8.0, 9.0))


@pytest.mark.parametrize("name", ["R2", "explained variance", "relative squared error"])
@pytest.mark.parametrize("kind", ["normal", "equal", "small integers", "one apart", "offset"])
def test_means_over_many_outputs_are_those_of_fractions(name, kind):
    generator = torch.Generator().manual_seed(3)
    columns = [column(kind, 9, generator) for _ in range(100)]
    preds, target = (torch.stack(each, 1) for each in zip(*columns, strict=True))
    value, expected = both_ways(METRICS[name](num_outputs=100), preds, target)
    assert value.item() == expected.item()


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=9), st.booleans())
def test_means_of_values_are_those_of_fractions(numbers, weighted):
    values = torch.tensor(numbers, dtype=torch.float64)
    weights = {"weights": torch.arange(len(values)) / 4} if weighted else {}
    value, expected = both_ways(Mean(), values, **weights)
    assert value.item() == expected.item() or (value.isnan() and expected.isnan())


def test_few_values_are_left_to_fractions(monkeypatch):
    """Of values whose rounding is clear, or half way between two floats, none is."""
    asked = []
    value_of = MeanAbsoluteError.value
    monkeypatch.setattr(
        MeanAbsoluteError, "value", lambda self, counts, k: asked.append(k) or value_of(self, counts, k)
    )
    preds, target = torch.randn(2, 512, 300, generator=torch.Generator().manual_seed(0))
    MeanAbsoluteError(num_outputs=300)(preds, target)
    assert not asked
