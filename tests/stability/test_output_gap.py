"""Differences of outputs in ulps, and where rounding ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from assay.errors import ConfigError, ShapeError
from assay.evaluation.model.output_gap import OutputGap, gap_between
from assay.stability import Stability, StabilityCheck, check_stability, compare_predictions
from assay.stability.verdict import verdict_of


def test_ulps_are_those_of_numpy():
    first = np.array([[1.0, 0.5], [3.0, -7.0]], np.float32)
    second = first.copy()
    second[1, 0] += 5 * np.spacing(np.float32(4.0))  # the ulp of 7 is that of 4
    gap = gap_between(torch.tensor(first), torch.tensor(second))
    assert gap.sample == 1
    assert gap.ulps == pytest.approx(5 * 4 / 7)
    assert gap.largest == pytest.approx(5 * np.spacing(np.float32(4.0)))


@pytest.mark.parametrize(
    ("first", "second", "largest"),
    [
        ([math.nan], [math.nan], 0),
        ([math.inf], [math.inf], 0),
        ([math.nan], [1], math.inf),
        ([math.inf], [1], math.inf),
    ],
)
def test_numbers_that_are_not_finite(first, second, largest):
    gap = gap_between(torch.tensor([first], dtype=torch.float32), torch.tensor([second], dtype=torch.float32))
    assert gap.largest == largest
    assert verdict_of(gap, None) == ("depends" if largest else "same bits")


def test_decisions_are_those_of_samples():
    first = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    second = first.flip(-1)
    assert gap_between(first, second).flips == 2
    assert gap_between(first[..., :1], second[..., :1]).flips is None


def test_another_shape_is_an_error():
    with pytest.raises(ShapeError, match=r"outputs: got \(2, 1\), expected \(2, 3\)"):
        gap_between(torch.zeros(2, 3), torch.zeros(2, 1))


@pytest.mark.parametrize(
    ("ulps", "in_float64", "verdict"),
    [
        (64.0, None, "rounding"),
        (65.0, None, "depends"),
        (1e6, 1e-8, "rounding"),
        (1e6, 1e-5, "depends"),
        (1e6, 0.0, "rounding"),
    ],
)
def test_rounding_is_what_is_small_or_what_float64_removes(ulps, in_float64, verdict):
    exact = None if in_float64 is None else OutputGap(in_float64, 1.0, None, 0, 2)
    assert verdict_of(OutputGap(0.1, ulps, None, 0, 2), exact) == verdict


def test_rounding_that_a_model_amplifies_is_no_dependence():
    """The order of additions is changed on purpose, by other operators for small batches."""
    x = torch.randn(40, 100, generator=torch.Generator().manual_seed(0))

    class Reordered(torch.nn.Module):
        def forward(self, x):
            columns = x.unbind(1)
            total = sum(reversed(columns) if len(x) < 8 else columns)
            return torch.stack([total - x.double().sum(1).to(x.dtype), total * 1e-9], 1)

    found = [each for each in check_stability(Reordered(), x).checks if each.what == "batch size"]
    assert {each.verdict for each in found} == {"rounding"}
    assert max(each.ulps for each in found) > 64


def test_nan_in_small_batches_is_a_dependence():
    """Although a float64 copy has it, too: infinity is not within any share of infinity."""

    def standardized(x):
        return x - x.mean(0) + (0 if len(x) > 1 else torch.nan)

    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    rows = [each for each in check_stability(standardized, x).checks if each.what == "batch size"]
    assert [each.verdict for each in rows] == ["depends", "depends"]
    assert rows[0].largest == math.inf


def test_outcomes_and_exit_codes():
    def outcome(*verdicts, is_needed=False):
        checks = [StabilityCheck("order", "", verdict, is_needed=is_needed) for verdict in verdicts]
        result = Stability.of("net", checks)
        return result.outcome, result.exit_code

    assert outcome("same bits", "rounding", "not checked") == ("stable", 0)
    assert outcome("rounding", "depends", "not checked", is_needed=True) == ("depends", 1)
    assert outcome("same bits", "not checked", is_needed=True) == ("not enough evidence", 2)
    assert outcome() == ("not enough evidence", 2)


def test_a_result_goes_through_json_and_is_shown(tmp_path):
    torch.manual_seed(0)
    result = check_stability(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(0)), torch.randn(20, 4))
    result.save(tmp_path / "stable.json")
    assert Stability.load(tmp_path / "stable.json") == result
    assert "| 🔴 **depends** | neighbours |" in result.to_markdown()
    assert "works over the samples of a batch" in result.to_markdown()


@pytest.mark.parametrize(("change", "outcome"), [(0.0, "stable"), (1e-6, "stable"), (1e-4, "depends")])
def test_stored_predictions_are_compared(tmp_path, change, outcome):
    first = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    np.save(tmp_path / "first.npy", first)
    np.savez(tmp_path / "second.npz", scores=(first * (1 + change)).astype(np.float64))
    result = compare_predictions(tmp_path / "first.npy", tmp_path / "second.npz")
    assert result.outcome == outcome


def test_predictions_of_other_samples_are_an_error():
    with pytest.raises(ConfigError, match=r"predictions: got \(3, 2\), expected \(2, 2\)"):
        compare_predictions(torch.zeros(2, 2), torch.zeros(3, 2))
