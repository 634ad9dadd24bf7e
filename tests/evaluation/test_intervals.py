"""Every value has an interval where one can be given, with the same bits however the samples came."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from assay import AUROC, Accuracy, F1Score, MeanSquaredError, R2Score
from assay.errors import ConfigError
from assay.evaluation import evaluate
from assay.metrics import (
    LogLoss,
    MatthewsCorrCoef,
    Mean,
    MeanAbsoluteError,
    PearsonCorrCoef,
    Recall,
    RecallAtFixedPrecision,
)
from assay.native.library import in_torch
from assay.stats.sampling import groups_of
from thinning import every_third

GENERATOR = torch.Generator().manual_seed(4)
SCORES = torch.rand(300, 3, generator=GENERATOR).softmax(1)
Y = torch.multinomial(SCORES, 1, generator=GENERATOR)[:, 0]
METRICS = {
    "acc": Accuracy(num_classes=3),
    "F1": F1Score(num_classes=3, average="macro"),
    "MCC": MatthewsCorrCoef(num_classes=3, ignore_index=-1),
    "loss": LogLoss(num_classes=3),
    "each": Recall(num_classes=3, average=None),
}


def same(x):
    return x


def values(data, metrics=METRICS, **more):
    (section,) = evaluate(same, data, metrics, device="cpu", **more).sections
    return {each.name: each for each in section.values}


@pytest.mark.parametrize("confidence_level", [0.8, 0.95])
def test_the_method_is_stated_and_the_value_is_between_the_ends(confidence_level):
    found = values(TensorDataset(SCORES, Y), confidence_level=confidence_level)
    assert {name: each.note.partition(":")[0] for name, each in found.items()} == {
        "acc": "Wilson's interval",
        "F1": "logit interval of the confusion matrix",
        "MCC": "bootstrap",
        "loss": "Student's interval, corrected for skewness",
    }
    for each in found.values():
        assert each.confidence_level == confidence_level
        assert each.lower < each.value < each.upper
        assert each.upper - each.lower < 0.3


def test_a_lower_level_is_narrower_and_none_gives_none():
    data = TensorDataset(SCORES, Y)
    narrow, wide, none = (values(data, confidence_level=confidence_level) for confidence_level in (0.5, 0.99, None))
    for name, each in narrow.items():
        assert wide[name].lower < each.lower < each.upper < wide[name].upper
        assert (none[name].lower, none[name].upper, none[name].confidence_level, none[name].note) == (
            None,
            None,
            None,
            "",
        )


def test_regressions_and_means():
    x = torch.randn(300, generator=GENERATOR)
    y = x + torch.randn(300, generator=GENERATOR)
    metrics = {
        "r": PearsonCorrCoef(),
        "R²": R2Score(),
        "MSE": MeanSquaredError(),
        "RMSE": MeanSquaredError(squared=False),
    }
    found = values(TensorDataset(x, y), metrics)
    assert all(each.lower < each.value < each.upper for each in found.values())
    assert "bootstrap" in found["r"].note
    (mean,) = values([{"input": x}], Mean()).values()
    error = float(x.double().std()) / 300**0.5
    assert mean.upper - mean.lower == pytest.approx(2 * 1.96 * error, rel=0.3)


@every_third
@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize("batch_size", [1, 32])
def test_they_do_not_depend_on_the_split(batch_size, samples):
    expected = values(TensorDataset(SCORES, Y), keep_samples=samples)
    loader = DataLoader(TensorDataset(SCORES, Y), batch_size=batch_size, shuffle=True)
    assert values(loader, keep_samples=samples) == expected
    assert all(each.lower is not None for each in expected.values())


class Stream(IterableDataset):
    def __init__(self, order):
        self.order = order

    def __iter__(self):
        return ({"input": SCORES[k], "y": Y[k], "id": f"s{k}"} for k in self.order)


def test_of_streams_samples_are_known_by_their_ids_or_their_place():
    forwards, backwards = Stream(range(300)), Stream(range(299, -1, -1))
    named = [values(DataLoader(each, batch_size=7), inputs="input", ids="id") for each in (forwards, backwards)]
    assert named[0] == named[1]
    nameless = [values(DataLoader(forwards, batch_size=size), inputs="input") for size in (7, 50)]
    assert nameless[0] == nameless[1]
    assert all(each.lower < each.value < each.upper for each in nameless[0].values())


def test_another_seed_deals_and_draws_anew():
    first, second = (values(TensorDataset(SCORES, Y), seed=seed) for seed in (0, 1))
    assert first["MCC"].lower != second["MCC"].lower
    assert first["acc"] == second["acc"]


def test_rows_of_many_pixels_are_drawn_as_rows():
    """All pixels of an image are right or none is: Wilson's interval of the pixels would be far too narrow."""
    right = torch.rand(100, generator=GENERATOR) < 0.7
    target = torch.zeros(100, 50, dtype=torch.int64)
    preds = torch.where(right[:, None], target, 1)
    (found,) = values(TensorDataset(preds, target), Accuracy(num_classes=2)).values()
    p = found.value
    assert found.note.startswith("bootstrap")
    assert found.upper - found.lower == pytest.approx(2 * 1.96 * (p * (1 - p) / 100) ** 0.5, rel=0.35)


def test_weighted_samples_have_intervals_that_know_the_weights():
    data = TensorDataset(SCORES, Y, torch.rand(300, generator=GENERATOR) ** 8)
    weighted, plain = values(data, weights=2), values(TensorDataset(SCORES, Y))
    assert weighted["acc"].note != "Wilson's interval"
    for name, each in weighted.items():
        assert each.lower < each.value < each.upper
        assert each.upper - each.lower > plain[name].upper - plain[name].lower


@pytest.mark.parametrize(("count", "confidence_level"), [(12, 0.95), (12, 0.99), (300, 0.9999), (5, 0.95), (1, 0.95)])
def test_few_samples_or_a_high_level_are_no_error(count, confidence_level):
    for each in values(TensorDataset(SCORES[:count], Y[:count]), confidence_level=confidence_level).values():
        assert each.lower is None or each.lower <= each.value <= each.upper


def test_a_value_says_that_its_interval_is_of_few_samples_of_a_kind():
    """Also of a mean that nothing but its samples show: of a long tail, the end that is not trusted."""
    right = (torch.arange(40) < 38).float()
    scores = torch.stack([1 - right, right], 1)
    metric = {"acc": Accuracy(num_classes=2)}
    found = values(TensorDataset(scores, torch.ones(40, dtype=torch.int64)), metric)["acc"]
    assert found.note == "Wilson's interval; fewer than 5 of one kind: it may hold the true value less often"
    errors = torch.where(torch.arange(40) == 7, 100.0, torch.rand(40, generator=GENERATOR))
    (loss,) = values(TensorDataset(errors, torch.zeros(40)), MeanAbsoluteError()).values()
    assert loss.note.endswith("few samples for such a long tail: the upper end may miss more often")


def test_slices_have_intervals_too():
    report = evaluate(
        same, TensorDataset(SCORES, Y), METRICS, device="cpu", slices={"first": lambda b: b[0][:, 0] > 0.33}
    )
    for part in report.sections[0].slices:
        found = {each.name: each for each in part.values}
        assert found["acc"].note == "Wilson's interval"
        assert found["loss"].note == "Student's interval, corrected for skewness"
        assert found["F1"].note == "logit interval of the confusion matrix"
        assert found["MCC"].note.startswith("bootstrap standard error: 100 draws of 32 groups")
        assert all(each.lower < each.value < each.upper for each in found.values())


def test_binary_rankings_have_the_interval_of_delong():
    (found,) = values(TensorDataset(SCORES[:, 0], (Y == 0).long()), AUROC()).values()
    assert "DeLong" in found.note
    assert found.lower < found.value < found.upper


def mixed(number):
    """SplitMix64 in plain integers."""
    x = (number + 0x9E3779B97F4A7C15) % 2**64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


@pytest.mark.parametrize("seed", [0, 1, -3, 2**63])
def test_samples_are_dealt_by_a_known_hash_and_evenly(seed):
    numbers = np.array([0, 1, 2, -5, 2**62, -(2**63)])
    expected = [mixed((int(number) + mixed(seed % 2**64)) % 2**64) % 100 for number in numbers]
    assert groups_of(numbers, seed, 100).tolist() == expected
    counts = np.bincount(groups_of(np.arange(100_000), seed, 100), minlength=100)
    assert ((counts - 1000) ** 2 / 1000).sum() < 160  # chi-squared of 99 degrees of freedom: exceeded 1 in 10,000 times


@pytest.mark.parametrize(
    "more",
    [
        {"confidence_level": 95},
        {"confidence_level": 1.0},
        {"n_resamples": 1},
        {"min_slice_size": 0},
        {"confidence_level": "0.9"},
    ],
)
def test_options_that_cannot_be_are_told(more):
    (name,) = more
    with pytest.raises(ConfigError, match=f"^{name}: got {more[name]!r}, expected "):
        values(TensorDataset(SCORES, Y), **more)


def test_the_interval_of_a_part_of_a_value_ends_where_that_part_does():
    """A recall near 1, whose replicates are skewed: its interval went up to 1.01."""
    generator = torch.Generator().manual_seed(3)
    target = torch.arange(300) % 3 // 2
    scores = (torch.randn(300, generator=generator) + 4.5 * target - 1.5).sigmoid()
    metric = {"point": RecallAtFixedPrecision(min_precision=0.95)}
    report = evaluate(torch.nn.Identity(), TensorDataset(scores, target), metric, device="cpu", progress=False)
    recall, threshold = report.sections[0].values
    assert recall.name == "point value"
    assert 0.9 < recall.lower < recall.value < 1
    assert recall.upper == 1
    assert threshold.lower < threshold.value < threshold.upper


@pytest.mark.parametrize("is_stream", [False, True])
def test_compiled_code_and_numpy_resample_the_same_samples(is_stream):
    """Of a stream a sample is known by its position, also behind the rows that were handed over first."""
    data = [(SCORES[k : k + 32], Y[k : k + 32]) for k in range(0, 300, 32)] * 2

    def section():
        return evaluate(same, data if is_stream else TensorDataset(SCORES, Y), METRICS, device="cpu").sections[0]

    compiled = section()
    with in_torch():
        by_numpy = section()
    assert compiled.values == by_numpy.values
    assert any(each.replicates for each in compiled.values) is not is_stream
    assert compiled.resampling == by_numpy.resampling
