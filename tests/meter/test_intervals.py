"""Intervals by a bootstrap of groups: as wide as they should be, the same bits for any split, none where none is."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import Meter
from assay.errors import ConfigError, InvalidValuesError, StateError
from assay.meter.resampling.intervals import bootstrap, closed_forms, group_count, is_biased, needing_bootstrap
from assay.meter.resampling.replicates import ConfidenceInterval, replicate_interval
from assay.metrics import (
    AUROC,
    ROC,
    Accuracy,
    AveragePrecision,
    CalibrationError,
    CohenKappa,
    ConfusionMatrix,
    F1Score,
    Max,
    Mean,
    MeanAveragePrecision,
    MeanSquaredError,
    Quantile,
    R2Score,
    RecallAtFixedPrecision,
    RetrievalMRR,
    StatScores,
    Sum,
)


def dealt(make, count, seed, *tensors):
    """Meters of samples that were dealt to groups by chance."""
    group = torch.randint(count, (len(tensors[0]),), generator=torch.Generator().manual_seed(seed))
    meters = [make() for _ in range(count)]
    for k, meter in enumerate(meters):
        meter.update(*(tensor[group == k] for tensor in tensors))
    return meters


def regression(count, seed):
    generator = torch.Generator().manual_seed(seed)
    target = torch.randn(count, generator=generator)
    return target + torch.randn(count, generator=generator) * (1 + target.abs()), target


def classes(count, seed):
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(4, (count,), generator=generator)
    return torch.randn(count, 4, generator=generator) + torch.nn.functional.one_hot(target, 4), target


def width(interval):
    return interval.upper - interval.lower


def test_an_interval_is_as_wide_as_the_known_error_says():
    preds, target = regression(20_000, 0)
    found = bootstrap(dealt(lambda: Meter(MeanSquaredError()), 128, 1, preds, target))["MeanSquaredError"]
    errors = (preds - target).double().square()
    expected = 2 * 1.98 * float(errors.std()) / math.sqrt(len(errors))
    assert width(found) == pytest.approx(expected, rel=0.2)
    assert found.lower < float(errors.mean()) < found.upper
    assert (found.confidence_level, found.method) == (0.95, "bootstrap: 400 draws of 128 groups")


@pytest.mark.parametrize(
    ("metric", "draw"),
    [(R2Score(), regression), (F1Score(num_classes=4), classes), (CohenKappa(num_classes=4), classes)],
)
def test_groups_spread_as_a_plain_bootstrap_of_samples_does(metric, draw):
    data = draw(3000, 2)
    found = bootstrap(dealt(lambda: Meter(value=metric), 128, 3, *data))["value"]
    generator = torch.Generator().manual_seed(4)
    again = [torch.randint(3000, (3000,), generator=generator) for _ in range(400)]
    values = np.array([float(metric(*(each[index] for each in data))) for index in again])
    assert width(found) == pytest.approx(2 * 1.98 * values.std(), rel=0.25)
    assert found.lower < float(metric(*data)) < found.upper


def test_samples_that_are_kept_are_drawn_too(monkeypatch):
    data = classes(3000, 5)
    meters = dealt(lambda: Meter(auc=AveragePrecision(num_classes=4, logits=True)), 128, 6, *data)
    found = bootstrap(meters)["auc"]
    softmax = data[0].softmax(1)
    each = [AveragePrecision()(softmax[:, k], (data[1] == k).long()) for k in range(4)]
    assert found.lower < float(torch.stack(each).mean()) < found.upper
    monkeypatch.setattr("assay.meter.resampling.resample.READ_ELEMENTS", 50 * 3000 * 5)
    fewer = bootstrap(meters)["auc"]
    assert fewer.method == "bootstrap standard error: 50 draws of 128 groups"
    assert width(fewer) == pytest.approx(width(found), rel=0.4)
    assert fewer.lower + fewer.upper == pytest.approx(2 * float(torch.stack(each).mean()))


@settings(max_examples=8)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 300), max_size=6))
def test_the_split_of_a_group_changes_no_bit(seed, cuts):
    preds, target = regression(300, 7)
    group = torch.arange(300) % 12

    def groups(batches):
        meters = [Meter(R2Score(), mse=MeanSquaredError(squared=False)) for _ in range(12)]
        for rows in batches:
            for k, meter in enumerate(meters):
                chosen = rows[group[rows] == k]
                meter.update(preds[chosen], target[chosen])
        return meters

    whole = groups([torch.arange(300)])
    order = torch.from_numpy(np.random.default_rng(seed).permutation(300))
    parts = [groups([part]) for part in order.tensor_split(sorted(cuts))]
    ranks = [sum(meters[1:], meters[0]) for meters in zip(*parts, strict=True)]
    assert bootstrap(ranks, n_resamples=50, seed=seed) == bootstrap(whole, n_resamples=50, seed=seed)


def test_the_draws_depend_on_the_seed():
    meters = dealt(lambda: Meter(R2Score()), 16, 1, *regression(500, 0))
    assert bootstrap(meters, seed=1) == bootstrap(meters, seed=1) != bootstrap(meters, seed=2)


def test_weighted_samples_have_intervals_too():
    preds, target = regression(4000, 8)
    weights = (torch.arange(4000) % 3 + 1).float()
    group = torch.arange(4000) % 64
    meters = [Meter(mse=MeanSquaredError(), weighted=True) for _ in range(64)]
    for k, meter in enumerate(meters):
        meter.update(preds[group == k], target[group == k], weights=weights[group == k])
    found = bootstrap(meters)["mse"]
    errors, w = (preds - target).double().square(), weights.double()
    mean = (w * errors).sum() / w.sum()
    error = ((w * (errors - mean)) ** 2).sum().sqrt() / w.sum()
    assert width(found) == pytest.approx(2 * 2 * float(error), rel=0.3)
    assert closed_forms(sum(meters[1:], meters[0])) == {}


def test_named_tuples_have_an_interval_for_each_part():
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(2, (2000,), generator=generator)
    preds = torch.sigmoid(torch.randn(2000, generator=generator) + 2 * target)
    metric = RecallAtFixedPrecision(min_precision=0.8)
    found = bootstrap(dealt(lambda: Meter(point=metric), 32, 1, preds, target))
    assert found.keys() == {"point value", "point threshold"}
    value, threshold = metric(preds, target)
    assert found["point value"].lower < float(value) < found["point value"].upper
    assert found["point threshold"].lower < float(threshold) < found["point threshold"].upper


def test_replicates_that_are_undefined_are_told():
    preds, _ = regression(60, 0)
    event = torch.arange(60) < 2  # of two samples with one, in two groups; each is often not drawn
    meters = [Meter(auc=AUROC(logits=True)) for _ in range(60)]
    for k, meter in enumerate(meters):
        meter.update(preds[k : k + 1], event[k : k + 1].long())
    found = bootstrap(meters)["auc"]
    undefined = re.fullmatch(r"bootstrap: 400 draws of 60 groups, (\d+) undefined", found.method)
    assert int(undefined[1]) == pytest.approx(400 * math.exp(-2), abs=25)


def test_totals_curves_and_extremes_have_none():
    def make():
        return Meter(Mean(), Sum(), Max(), q=Quantile((0.1, 0.9)))

    found = bootstrap(dealt(make, 20, 1, torch.rand(500)))
    assert found.keys() == {"Mean"}
    preds, target = classes(500, 1)
    kinds = [kind(num_classes=4) for kind in (ConfusionMatrix, StatScores)]
    assert bootstrap(dealt(lambda: Meter(*kinds, ROC(num_classes=4, logits=True)), 20, 1, preds, target)) == {}


def test_few_groups_and_equal_replicates_say_nothing():
    preds, target = regression(500, 0)
    assert bootstrap(dealt(lambda: Meter(R2Score()), 9, 1, preds, target)) == {}
    assert bootstrap(dealt(lambda: Meter(R2Score()), 10, 1, preds, target)).keys() == {"R2Score"}
    assert bootstrap(dealt(lambda: Meter(R2Score()), 20, 1, target, target)) == {}
    assert bootstrap([Meter(R2Score()) for _ in range(20)]) == {}
    assert bootstrap([]) == {}


def test_there_is_no_interval_where_drawing_is_biased_beyond_its_spread():
    generator = torch.Generator().manual_seed(0)
    preds = torch.rand(300, generator=generator)
    target = (torch.rand(300, generator=generator) < preds).long()  # perfectly calibrated: every gap is chance
    assert bootstrap(dealt(lambda: Meter(CalibrationError(n_bins=100)), 128, 1, preds, target)) == {}
    wrong = dealt(lambda: Meter(CalibrationError()), 128, 1, preds, 1 - target)
    assert bootstrap(wrong).keys() == {"CalibrationError"}


def test_a_level_beyond_the_draws_takes_their_standard_error():
    meters = dealt(lambda: Meter(R2Score()), 40, 1, *regression(2000, 0))
    high, usual = (bootstrap(meters, confidence_level)["R2Score"] for confidence_level in (0.999, 0.95))
    assert high.method == "bootstrap standard error: 400 draws of 40 groups"
    assert width(high) / width(usual) == pytest.approx(3.55 / 2.02, rel=0.1)


@pytest.mark.parametrize("confidence_level", [0.0, 1.0, 95, math.nan])
def test_a_level_is_between_0_and_1(confidence_level):
    message = f"confidence_level: got {confidence_level!r}, expected a number between 0 and 1"
    for call in (lambda: bootstrap([], confidence_level), lambda: closed_forms(Meter(Mean()), confidence_level)):
        with pytest.raises(ConfigError, match=re.escape(message)):
            call()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ConfigError, match="n_resamples: got 3, expected 25 or more"):
        bootstrap([], n_resamples=3)
    with pytest.raises(StateError, match="groups: got Meter"):
        bootstrap([Meter(Mean()), Meter(Sum())])
    meters = dealt(lambda: Meter(acc=Accuracy(num_classes=2)), 20, 1, torch.ones(50).long(), torch.full((50,), 7))
    with pytest.raises(InvalidValuesError, match=r"acc: got 50 of the targets are outside 0 \.\.\. 1"):
        bootstrap(meters)


def test_the_number_of_groups_fits_the_budget():
    small, large = Meter(CohenKappa(num_classes=10)), Meter(CohenKappa(num_classes=1000, weights="quadratic"))
    assert group_count(small) == 128
    assert group_count(small, budget_bytes=50 * 13 * 12 * 8) == 50
    assert group_count(small, budget_bytes=15 * 13 * 12 * 8) == 0
    assert group_count(small, most=30) == 30
    assert group_count(large) == 0
    assert group_count(large, budget_bytes=1 << 30) == 128
    assert group_count(Meter(AUROC())) == 128  # samples are not counted: all groups together keep them once
    assert group_count(Meter(AUROC(exact_up_to=0))) == 0


def test_what_is_drawn_are_the_numbers_without_a_closed_form_whose_counts_fit():
    of = {"num_classes": 1000}
    meter = Meter(
        Accuracy(**of),
        F1Score(**of),
        Sum(),
        ROC(**of),
        AUROC(**of),
        kappa=CohenKappa(weights="linear", **of),
        each=F1Score(average=None, **of),
    )
    assert list(needing_bootstrap(meter).metrics) == ["F1Score", "AUROC"]
    assert list(needing_bootstrap(meter, independent=False).metrics) == ["Accuracy", "F1Score", "AUROC"]
    assert list(needing_bootstrap(meter, without={"AUROC"}).metrics) == ["F1Score"]
    assert "kappa" in needing_bootstrap(meter, budget_bytes=1 << 30).metrics
    assert needing_bootstrap(Meter(Sum(), Accuracy())) is None
    assert list(needing_bootstrap(Meter(Accuracy(), weighted=True)).metrics) == ["Accuracy"]
    assert needing_bootstrap(Meter(Accuracy(), weighted=True)).weighted


def covered(make, draw, truth, samples, count, trials=200):
    hits = 0
    for trial in range(trials):
        (interval,) = bootstrap(dealt(make, count, trial + 10**7, *draw(samples, trial)), n_resamples=200).values()
        hits += interval.lower <= truth <= interval.upper
    return hits / trials


@pytest.mark.slow
@pytest.mark.parametrize("count", [16, 128])
@pytest.mark.parametrize(
    ("metric", "draw"), [(MeanSquaredError(), regression), (R2Score(), regression), (F1Score(num_classes=4), classes)]
)
def test_intervals_cover_the_truth_as_often_as_they_say(metric, draw, count):
    truth = float(metric(*draw(2_000_000, 10**6)))
    share = covered(lambda: Meter(metric), draw, truth, 1000, count)
    assert 0.90 <= share <= 0.99


def test_the_skewness_of_normal_replicates_is_taken_for_chance():
    random = np.random.default_rng(8)
    ratios = []
    for _ in range(400):
        found = replicate_interval(0.5, (0.5 + 0.02 * random.normal(size=100)).tolist(), 0.95, 32)
        ratios.append((found.upper - 0.5) / (0.5 - found.lower))
    assert np.mean(np.abs(np.log(ratios)) > 0.05) < 0.08  # of one standard error 0.32, of two 0.05
    skewed = replicate_interval(0.5, (0.5 + 0.02 * (random.exponential(size=100) - 1)).tolist(), 0.95, 32)
    assert skewed.upper - 0.5 > 2 * (0.5 - skewed.lower)


def test_a_gate_moves_the_lower_end_of_values_that_are_biased_upwards():
    """The interval that is shown stays, and says that its lower end may miss; docs/coverage.md has how often."""
    replicates = (0.5 + 0.02 * np.random.default_rng(8).normal(size=400)).tolist()
    plain, biased = (replicate_interval(0.5, replicates, 0.95, 32, biased_upwards=each) for each in (False, True))
    assert (plain.lower, plain.upper) == (biased.lower, biased.upper)
    assert plain.safe is None
    error = np.std(replicates, ddof=1) * np.sqrt(32 / 31)
    assert biased.safe == (pytest.approx(plain.lower - 2 * error), plain.upper)
    assert biased.caution == "few samples give higher values: the lower end may miss more often"
    tailed = (0.5 + 0.02 * (np.random.default_rng(8).exponential(size=400) ** 3)).tolist()
    assert replicate_interval(0.52, tailed, 0.95, 32, biased_upwards=True).safe[1] == np.inf


@pytest.mark.parametrize("name", ["map", "map_50", "mar_100"])
def test_mean_average_precision_is_biased_upwards(name):
    metrics = {"detections": MeanAveragePrecision(), "f1": F1Score(num_classes=4)}
    assert is_biased(f"detections {name}", metrics)
    assert not is_biased("f1", metrics)
    assert not is_biased("unknown", metrics)


def test_intervals_end_where_values_do():
    """Student's interval of a mean near 1, and replicates near 1 with their correction for skewness."""
    target = torch.zeros(40, 10, dtype=torch.long)
    target[:, 0] = 1
    preds = torch.linspace(1, 0, 10).repeat(40, 1)
    preds[0] = preds[0].flip(0)
    meter = Meter(RetrievalMRR())
    meter.update(preds.reshape(-1), target.reshape(-1), indexes=torch.arange(40).repeat_interleave(10))
    interval = closed_forms(meter)["RetrievalMRR"]
    assert interval.lower < 1 - 0.9 / 40 < interval.upper == 1
    generator = torch.Generator().manual_seed(0)
    groups = [Meter(AUROC()) for _ in range(20)]
    for group in groups:
        labels = torch.randint(2, (8,), generator=generator)
        group.update((labels + 0.5 * torch.rand(8, generator=generator)) / 2, labels)
    groups[0].update(torch.tensor([0.9, 0.1]), torch.tensor([0, 1]))
    found = bootstrap(groups)["AUROC"]
    assert found.lower < found.upper <= 1
    assert ConfidenceInterval(0.8, 1.1, 0.95, "").within((0, 1)) == ConfidenceInterval(0.8, 1, 0.95, "")
