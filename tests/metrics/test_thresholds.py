"""`thresholds=` of ranking metrics: the values of TorchMetrics' binned classes, and of fractions of the counts."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
import torchmetrics.classification as theirs
from hypothesis import given
from hypothesis import strategies as st

import assay.metrics as ours
from assay import Meter
from assay.errors import ConfigError, NoDataWarning

SEEDS = st.integers(0, 2**32 - 1)
STEPS = st.sampled_from([2, 3, 11, 100, [0.25, 0.5], [0.1], [0.0, 0.3, 0.7, 1.0]])
TASKS = {"Binary": {}, "Multiclass": {"num_classes": 3}, "Multilabel": {"num_labels": 3}}


def data(seed: int, task: str, count: int = 40):
    rng = np.random.default_rng(seed)
    if task == "Binary":
        return torch.from_numpy(rng.integers(0, 21, count) / 20).float(), torch.from_numpy(
            np.append(rng.integers(0, 2, count - 2), [0, 1])
        )
    if task == "Multiclass":
        target = np.append(rng.integers(0, 3, count - 3), [0, 1, 2])
        return torch.from_numpy(rng.dirichlet(np.ones(3), count)).float(), torch.from_numpy(target)
    target = np.concatenate([rng.integers(0, 2, (count - 2, 3)), [[0] * 3, [1] * 3]])
    return torch.from_numpy(rng.integers(0, 21, (count, 3)) / 20).float(), torch.from_numpy(target)


def both(name: str, task: str, batch, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = getattr(theirs, task + name)(**TASKS[task], **arguments)
        other.update(*batch)
        other = other.compute()
    return getattr(ours, name)(**TASKS[task], **arguments)(*batch), other


def same(one, two) -> None:
    torch.testing.assert_close(one, two.double(), rtol=0, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("task", TASKS)
@given(SEEDS, STEPS)
def test_areas_and_curves_are_torchmetrics(task, seed, thresholds):
    batch = data(seed, task)
    for average in ("macro", "weighted", None) if task != "Binary" else ("",):
        given_average = {"average": average} if task != "Binary" else {}
        for name in ("AUROC", "AveragePrecision"):
            same(*both(name, task, batch, thresholds=thresholds, **given_average))
    for name in ("ROC", "PrecisionRecallCurve"):
        one, two = both(name, task, batch, thresholds=thresholds)
        for column, other in zip(one, two, strict=True):
            same(column, other.reshape(column.shape))  # they squeeze what has one threshold


@given(SEEDS, STEPS)
def test_micro_pools_the_labels(seed, thresholds):
    batch = data(seed, "Multilabel")
    for name in ("AUROC", "AveragePrecision"):
        same(*both(name, "Multilabel", batch, thresholds=thresholds, average="micro"))


POINTS = {
    "RecallAtFixedPrecision": "min_precision",
    "PrecisionAtFixedRecall": "min_recall",
    "SensitivityAtSpecificity": "min_specificity",
    "SpecificityAtSensitivity": "min_sensitivity",
}


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("task", TASKS)
@given(SEEDS, STEPS, st.sampled_from([0.0, 0.25, 0.5, 0.8, 1.0]))
def test_operating_points_are_torchmetrics(name, task, seed, thresholds, minimum):
    one, two = both(name, task, data(seed, task), thresholds=thresholds, **{POINTS[name]: minimum})
    same(one.value, two[0])


@given(SEEDS, st.sampled_from([3, 11]))
def test_the_area_is_the_fraction_of_the_counts(seed, count):
    scores, target = data(seed, "Binary")
    weights = torch.from_numpy(np.random.default_rng(seed).integers(0, 9, len(target)) / 4)
    weights[-2:] = 1
    edges = torch.linspace(0, 1, count)

    def share(label: int, edge: torch.Tensor) -> Fraction:
        of_label = target == label
        reached = weights[of_label & (scores >= edge)]
        return sum(map(Fraction, reached.tolist()), Fraction(0)) / sum(map(Fraction, weights[of_label].tolist()))

    points = [(share(0, edge), share(1, edge)) for edge in edges]
    area = sum((x - u) * (y + v) / 2 for (x, y), (u, v) in pairwise(points))
    assert float(ours.AUROC(thresholds=count)(scores, target, weights=weights)) == float(area)


@given(SEEDS)
def test_logits_are_compared_as_probabilities(seed):
    scores, target = data(seed, "Multiclass")
    logits = scores.clamp(min=1e-6).log() + 3
    expected = ours.AUROC(num_classes=3, thresholds=11)(logits.softmax(1), target)
    assert float(ours.AUROC(num_classes=3, thresholds=11, logits=True)(logits, target)) == float(expected)


def test_one_count_serves_all_metrics_with_these_thresholds():
    meter = Meter(ours.AUROC(thresholds=5), ours.ROC(thresholds=(0.0, 0.25, 0.5, 0.75, 1.0)))
    assert len(meter.tallies) == 1


def test_ignored_targets_are_left_out():
    preds, target = torch.tensor([0.1, 0.4, 0.35, 0.8, 0.9]), torch.tensor([0, 0, 1, 1, -1])
    expected = ours.ROC(thresholds=5)(preds[:4], target[:4])
    for one, two in zip(ours.ROC(thresholds=5, ignore_index=-1)(preds, target), expected, strict=True):
        assert one.equal(two)


def test_without_positives_there_is_no_value():
    with pytest.warns(NoDataWarning, match="positives"):
        assert ours.AveragePrecision(thresholds=3)(torch.tensor([0.1, 0.9]), torch.tensor([0, 0])).isnan()


@pytest.mark.parametrize("thresholds", [1, -3, [], [0.5, 0.2], [0.5, 0.5], [-0.1, 0.5], [0.5, 1.5], [float("nan")]])
def test_what_are_no_thresholds_is_refused(thresholds):
    with pytest.raises(ConfigError, match="thresholds: got"):
        ours.AUROC(thresholds=thresholds)


@pytest.mark.parametrize("option", ["exact", "bounds"])
def test_contradictions_are_refused(option):
    with pytest.raises(ConfigError, match=f"thresholds together with {option}=True"):
        ours.AUROC(thresholds=3, **{option: True})


def test_too_many_thresholds_are_refused():
    with pytest.raises(ConfigError, match="GiB"):
        ours.AUROC(num_classes=100_000, thresholds=10_000)
    with pytest.raises(ConfigError, match="thresholds: got 10000000000"):
        ours.AUROC(thresholds=10**10)


def test_a_recall_that_no_threshold_reaches_is_0_and_not_undefined():
    scores, target = torch.tensor([0.1, 0.7, 0.4]), torch.tensor([0, 1, 1])
    value, threshold = ours.RecallAtFixedPrecision(min_precision=0.5, thresholds=(0.9, 0.95))(scores, target)
    assert (float(value), float(threshold)) == (0, math.inf)
