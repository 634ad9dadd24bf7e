"""Where a value is NaN, there is a warning; for every metric, in every case in which samples do not define it."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from assay.errors import AssayWarning, InvalidValuesError, NoDataWarning
from assay.meter import Meter
from assay.metrics.regression.correlation import ConcordanceCorrCoef, PearsonCorrCoef
from assay.metrics.regression.explained_variance import R2Score
from laws import CASES, Case, Data, leaves, shows_counts
from thinning import every

OF_PARTS = (
    *("ByGroup", "Classwise", "GroupStatRates", "MeanAveragePrecision"),
    *("RetrievalPrecisionRecallCurve", "RetrievalRecallAtFixedPrecision"),
)
"""Whose values of single groups, classes, sizes or positions are NaN without a warning."""


def first_cases() -> list[Case]:
    """One case of each metric, with what is ignored and with weights where there is one."""
    found = {(type(c.metric).__name__, c.weighted, "ignored" in str(c.draw.__name__)): c for c in reversed(CASES)}
    return [case for (name, *_), case in found.items() if not shows_counts(case.metric) and name not in OF_PARTS]


def same(preds: Any) -> Any:
    """The first prediction, for every sample."""
    return preds[:1].expand_as(preds).clone() if isinstance(preds, torch.Tensor) else preds[:1] * len(preds)


def few(case: Case) -> dict[str, Data]:
    data = case.data(5, 6)
    found = {
        "one sample": data.rows([0]),
        "two samples": data.rows([0, 1]),
        "the same sample": data.rows([0] * 4),
    }
    if isinstance(data.preds, torch.Tensor) or case.metric.inputs in ("strings", "references"):
        found["constant predictions"] = data._replace(preds=same(data.preds))
    if data.weights is not None:
        found["no weight"] = data._replace(weights=torch.zeros_like(data.weights))
    if data.target is not None and getattr(case.metric, "ignore_index", None) is not None:
        found["all ignored"] = data._replace(target=torch.full_like(data.target, case.metric.ignore_index))
    return found


@every(first_cases(), str)
def test_a_value_that_is_nan_comes_with_a_warning(case):
    for what, data in few(case).items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                value = case.counted(data).compute()["value"]
            except InvalidValuesError:
                continue
        if any(leaf.is_floating_point() and leaf.isnan().all() for leaf in leaves(value)):
            assert any(issubclass(each.category, AssayWarning) for each in caught), what


@pytest.mark.parametrize(
    ("metric", "preds", "target"),
    [
        (R2Score(), [1.0], [2.0]),
        (R2Score(adjusted=2), [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]),
        (PearsonCorrCoef(), [1.0, 1.0], [1.0, 2.0]),
        (ConcordanceCorrCoef(), [2.0, 2.0], [2.0, 2.0]),
    ],
    ids=repr,
)
def test_the_warning_says_which_metric_and_how_many_samples(metric, preds, target):
    meter = Meter(value=metric)
    meter.update(torch.tensor(preds), torch.tensor(target))
    with pytest.warns(NoDataWarning, match=f"value: got {len(preds)} samples? for which it is undefined"):
        assert meter.compute()["value"].isnan()


def test_one_constant_output_of_several_is_told():
    preds, target = torch.tensor([[1.0, 2.0], [1.0, 3.0]]), torch.tensor([[1.0, 2.0], [2.0, 3.0]])
    with pytest.warns(NoDataWarning, match="constant"):
        assert PearsonCorrCoef(num_outputs=2)(preds, target).isnan().tolist() == [True, False]
