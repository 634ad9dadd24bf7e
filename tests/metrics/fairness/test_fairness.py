"""Rates of groups, compared: against fractions, scikit-learn group by group, TorchMetrics and Ignite."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
import torch
from ignite.metrics import fairness as ignite
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, matthews_corrcoef
from torchmetrics.classification import BinaryFairness, BinaryGroupStatRates

from assay import Meter
from assay.errors import ConfigError, DtypeError, InvalidValuesError, NoDataWarning, ShapeError
from assay.metrics import (
    AUROC,
    Accuracy,
    BalancedAccuracy,
    ByGroup,
    DemographicParityDifference,
    DemographicParityRatio,
    EqualizedOddsDifference,
    EqualizedOddsRatio,
    EqualOpportunityDifference,
    EqualOpportunityRatio,
    ExactMatch,
    F1Score,
    GroupDifference,
    GroupStatRates,
    MatthewsCorrCoef,
    Recall,
    SelectionRate,
    SubgroupAccuracyDifference,
)
from thinning import draws

RATES = {
    "selection": lambda p, t: (p, 1),
    "tpr": lambda p, t: (p and t, t),
    "fpr": lambda p, t: (p and not t, not t),
    "accuracy": lambda p, t: (p == t, 1),
}
CRITERIA = {
    DemographicParityDifference: (("selection",), "difference"),
    DemographicParityRatio: (("selection",), "ratio"),
    EqualOpportunityDifference: (("tpr",), "difference"),
    EqualOpportunityRatio: (("tpr",), "ratio"),
    EqualizedOddsDifference: (("tpr", "fpr"), "difference"),
    EqualizedOddsRatio: (("tpr", "fpr"), "ratio"),
    SubgroupAccuracyDifference: (("accuracy",), "difference"),
}
EVERY = pytest.mark.parametrize("kind", CRITERIA)


def drawn(seed: int, high: int = 2, groups: int = 3):
    """Labels and groups of up to 40 samples."""
    generator = torch.Generator().manual_seed(seed)
    size = 1 + seed % 40
    preds, target = torch.randint(0, high, (2, size), generator=generator)
    return preds, target, torch.randint(0, groups, (size,), generator=generator)


def expected_of(kind, preds, target, groups) -> Fraction | None:
    """The criterion by its definition: None where no two groups have a rate."""
    rates, between = CRITERIA[kind]
    spreads = []
    for rate in rates:
        sums: dict[int, list[int]] = {}
        for p, t, g in zip(preds.tolist(), target.tolist(), groups.tolist(), strict=True):
            above, below = RATES[rate](p, t)
            total = sums.setdefault(g, [0, 0])
            total[0], total[1] = total[0] + int(above), total[1] + int(below)
        values = [Fraction(*each) for each in sums.values() if each[1]]
        if len(values) > 1 and (between == "difference" or max(values)):
            low, high = min(values), max(values)
            spreads.append(high - low if between == "difference" else low / high)
    if not spreads:
        return None
    return max(spreads) if between == "difference" else min(spreads)


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
@EVERY
def test_it_is_exact_and_rounded_once(kind):
    for seed in draws(200):
        preds, target, groups = drawn(seed)
        expected = expected_of(kind, preds, target, groups)
        value = float(kind(num_groups=3)(preds, target, groups=groups))
        assert math.isnan(value) if expected is None else value == float(expected), seed
        names = torch.tensor([-7, 10**17, 3])
        kept = float(kind()(preds.float(), target, groups=names[groups]))
        assert kept == value or math.isnan(kept) == math.isnan(value) is True


@EVERY
def test_whole_weights_count_samples(kind):
    for num_groups, seed in itertools.product((None, 3), range(30, 40)):
        preds, target, groups = drawn(seed)
        weights = torch.randint(0, 3, preds.shape, generator=torch.Generator().manual_seed(seed))
        repeated = (x.repeat_interleave(weights) for x in (preds, target, groups))
        preds_times, target_times, groups_times = repeated
        expected = kind(num_groups=num_groups)(preds_times, target_times, groups=groups_times)
        for each in (weights, weights / 4):
            value = kind(num_groups=num_groups)(preds, target, groups=groups, weights=each)
            assert float(value) == float(expected)


def test_it_is_torchmetrics():
    for seed in range(30, 40):
        preds, target, groups = drawn(seed)
        theirs = BinaryFairness(num_groups=3)
        theirs.update(preds, target, groups)
        parity, opportunity = theirs.compute().values()
        assert float(DemographicParityRatio()(preds, target, groups=groups)) == pytest.approx(float(parity), rel=1e-6)
        value = float(EqualOpportunityRatio()(preds, target, groups=groups))
        assert value == pytest.approx(float(opportunity), rel=1e-6)
        rates = BinaryGroupStatRates(num_groups=3)
        rates.update(preds, target, groups)
        ours = GroupStatRates(num_groups=3)(preds, target, groups=groups)
        for name, expected in rates.compute().items():
            torch.testing.assert_close(ours[name], expected.double(), rtol=1e-6, atol=0)


def test_it_is_ignites():
    for seed in range(60, 80):
        preds, target, groups = drawn(seed, high=4)
        scores = torch.eye(4)[preds]
        for ours, theirs in (
            (DemographicParityDifference(num_classes=4), ignite.DemographicParityDifference(groups=[0, 1, 2])),
            (GroupDifference(SelectionRate(num_classes=4)), ignite.DemographicParityDifference(groups=[0, 1, 2])),
            (SubgroupAccuracyDifference(num_classes=4), ignite.SubgroupAccuracyDifference(groups=[0, 1, 2])),
            (GroupDifference(Accuracy(num_classes=4)), ignite.SubgroupAccuracyDifference(groups=[0, 1, 2])),
        ):
            theirs.update((scores, target, groups))
            value = float(ours(scores, target, groups=groups))
            assert value == pytest.approx(theirs.compute(), rel=1e-6), (seed, ours)
        rate = ignite.SelectionRate()
        rate.update((scores, target))
        torch.testing.assert_close(SelectionRate(num_classes=4)(scores, target).float(), rate.compute())


REFERENCES = {
    Accuracy(num_classes=4): accuracy_score,
    BalancedAccuracy(num_classes=4): balanced_accuracy_score,
    F1Score(num_classes=4): lambda t, p: f1_score(t, p, average="macro"),
    MatthewsCorrCoef(num_classes=4): matthews_corrcoef,
}


@pytest.mark.parametrize("metric", REFERENCES, ids=lambda metric: type(metric).__name__)
@pytest.mark.parametrize("num_groups", [None, 3])
def test_each_group_has_the_value_of_its_samples(metric, num_groups):
    preds, target = torch.randint(0, 4, (2, 300), generator=torch.Generator().manual_seed(0))
    groups = torch.arange(300) % 3
    values = ByGroup(metric, num_groups)(preds, target, groups=groups)
    assert list(values) == ["group_0", "group_1", "group_2"]
    for group in range(3):
        chosen = groups == group
        value = values[f"group_{group}"]
        assert float(value) == float(metric(preds[chosen], target[chosen]))
        assert float(value) == pytest.approx(REFERENCES[metric](target[chosen], preds[chosen]), rel=1e-12)
    spread = max(values.values()) - min(values.values())
    assert float(GroupDifference(metric, num_groups)(preds, target, groups=groups)) == float(spread)


def test_groups_of_labels_images_and_targets():
    generator = torch.Generator().manual_seed(0)
    scores, target = torch.rand(20, 3, generator=generator), torch.randint(0, 2, (20, 3), generator=generator)
    groups = torch.arange(20) % 2
    metric = Recall(num_labels=3, average=None)
    for num_groups in (None, 2):
        values = ByGroup(metric, num_groups)(scores, target, groups=groups)
        for group in range(2):
            chosen = groups == group
            assert torch.equal(values[f"group_{group}"], metric(scores[chosen], target[chosen]))
        of_targets = torch.randint(0, 2, (20, 3), generator=generator)
        by_target = ByGroup(Accuracy(), num_groups)(scores, target, groups=of_targets)
        for group in range(2):
            chosen = of_targets == group
            assert torch.equal(by_target[f"group_{group}"], Accuracy()(scores[chosen], target[chosen]))


def test_one_meter_counts_one_table_for_all_criteria():
    kinds = [kind(num_groups=3) for kind in CRITERIA]
    meter = Meter(*kinds, ByGroup(Accuracy(), 3), GroupStatRates(num_groups=3))
    assert len(meter.tallies) == 1


@EVERY
def test_ignored_targets_count_nowhere(kind):
    preds, target, groups = drawn(39)
    ignored = torch.arange(len(preds)) % 3 == 0
    for num_groups in (None, 3):
        metric = kind(num_groups=num_groups, ignore_index=-1)
        left = ~ignored
        value = metric(preds, target.masked_fill(ignored, -1), groups=groups.masked_fill(ignored, 99))
        assert float(value) == float(kind(num_groups=num_groups)(preds[left], target[left], groups=groups[left]))


@EVERY
def test_one_group_or_no_data_is_undefined(kind):
    preds, target = torch.tensor([1, 0, 1]), torch.tensor([1, 0, 0])
    for num_groups in (None, 2):
        metric = kind(num_groups=num_groups)
        with pytest.warns(NoDataWarning, match="two groups"):
            assert metric(preds, target, groups=torch.zeros(3, dtype=torch.int64)).isnan()
        with pytest.warns(NoDataWarning):
            assert metric(preds[:0], target[:0], groups=target[:0]).isnan()


@EVERY
def test_bad_groups_raise_one_clear_error(kind):
    preds, target = torch.tensor([1, 0, 1]), torch.tensor([1, 0, 0])
    for num_groups in (None, 2):
        metric = kind(num_groups=num_groups)
        with pytest.raises(ConfigError, match="groups"):
            metric(preds, target)
        with pytest.raises(DtypeError, match=r"groups: got torch\.float32"):
            metric(preds, target, groups=torch.tensor([0.0, 1.0, math.nan]))
        with pytest.raises(ShapeError, match="groups: got 2 samples"):
            metric(preds, target, groups=torch.tensor([0, 1]))
        with pytest.raises(ShapeError, match=r"groups: got shape \(N, 2\)"):
            metric(preds, target, groups=torch.zeros(3, 2, dtype=torch.int64))
        with pytest.raises(InvalidValuesError, match="1 of the targets are outside"):
            metric(preds, torch.tensor([1, 0, 2]), groups=torch.tensor([0, 1, 1]))
        with pytest.raises(InvalidValuesError, match="weights are negative"):
            metric(preds, target, groups=torch.tensor([0, 1, 1]), weights=torch.tensor([1.0, -1, 1]))
    with pytest.raises(InvalidValuesError, match=r"2 of the groups are outside 0 \.\.\. 1"):
        kind(num_groups=2)(preds, target, groups=torch.tensor([-1, 1, 2]))
    with pytest.raises(ConfigError, match="num_groups: got 0"):
        kind(num_groups=0)


def test_what_has_no_confusion_matrix_has_no_groups():
    for metric in (AUROC(), ExactMatch(), "accuracy"):
        for kind in (ByGroup, GroupDifference):
            with pytest.raises(ConfigError, match="metric: got"):
                kind(metric)
    with pytest.raises(ConfigError, match="binary data"):
        GroupStatRates(num_classes=3)


def test_too_many_groups_are_refused():
    with pytest.raises(ConfigError, match="num_groups: got 1,000,000,000,000, expected at most"):
        DemographicParityDifference(num_groups=10**12)


@pytest.mark.parametrize("labels", [{}, {"num_labels": 3}, {"num_classes": 4}])
def test_the_rates_of_many_groups_are_those_of_each_one(labels):
    rng = torch.Generator().manual_seed(3)
    shape = (4000, 3) if "num_labels" in labels else (4000,)
    preds, target = (torch.randint(0, labels.get("num_classes", 2), shape, generator=rng) for _ in range(2))
    groups = torch.randint(0, 60, (4000,), generator=rng)
    rates = []
    for group in range(60):
        rows = groups == group
        classes = range(labels.get("num_labels", labels.get("num_classes", 2)))
        if "num_labels" in labels:
            rates.append([preds[rows, k].double().mean().item() for k in classes])
        else:
            rates.append([(preds[rows] == k).double().mean().item() for k in classes])
    lowest, highest = (edge(torch.tensor(rates, dtype=torch.float64), 0).values for edge in (torch.min, torch.max))
    value = DemographicParityDifference(**labels, num_groups=60)(preds, target, groups=groups)
    assert value.item() == pytest.approx((highest - lowest).max().item(), abs=1e-15)
