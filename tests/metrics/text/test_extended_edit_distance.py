"""The extended edit distance against TorchMetrics, whose sentences are float64 and whose sum is float32."""

from __future__ import annotations

import random

import pytest
import torch

from assay.errors import ConfigError, InputError
from assay.metrics import ExtendedEditDistance
from thinning import draws

PARTS = (
    "a",
    "b",
    "the ",
    "cat",
    "Cat",
    ".",
    "!",
    " , ",
    "1.5",
    "3 , 4",
    "Dr. X",
    "e.g.",
    "U.S.",
    "naïve",
    "\t",
    " ",
    "火",
)


def text(chance: random.Random) -> str:
    return "".join(chance.choices(PARTS, k=chance.randrange(10)))


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("costs", [{}, {"alpha": 1.0, "rho": 0.5, "deletion": 0.3, "insertion": 0.7}])
def test_it_is_torchmetrics(language, costs):
    eed = pytest.importorskip("torchmetrics.functional.text.eed")
    metric = ExtendedEditDistance(language, **costs)
    prepare = {"en": eed._preprocess_en, "ja": eed._preprocess_ja}[language]
    for seed in draws(200):
        chance = random.Random(seed)
        pred, target = text(chance), text(chance) + "x"
        expected = eed._eed_function(prepare(pred), prepare(target), **costs)
        assert float(metric([pred], [target])) == pytest.approx(expected, rel=1e-12)


def sentences() -> tuple[list[str], list[list[str]]]:
    chance = random.Random(0)
    preds = [text(chance) for _ in range(20)]
    return preds, [[text(chance) + "x" for _ in range(chance.randrange(1, 4))] for _ in preds]


def test_the_value_is_the_mean_of_the_smallest_distances():
    preds, target = sentences()
    metric = ExtendedEditDistance()
    single = [
        min(float(metric([pred], [each])) for each in several) for pred, several in zip(preds, target, strict=True)
    ]
    assert float(metric(preds, target)) == pytest.approx(sum(single) / 20, rel=1e-14)


def test_the_mean_is_that_of_torchmetrics():
    eed = pytest.importorskip("torchmetrics.functional.text.eed")
    preds, target = sentences()
    expected = float(eed.extended_edit_distance(preds, target))
    assert float(ExtendedEditDistance()(preds, target)) == pytest.approx(expected, abs=1e-6)


def test_empty_sentences():
    assert 0 <= float(ExtendedEditDistance("ja", rho=0)([""], [""])) <= 1
    assert 0 <= float(ExtendedEditDistance()(["", "a"], ["a", ""])) <= 1


def test_rows_are_those_of_each_sample():
    preds, target = ["a b", "c", "d e"], ["a", ["c d", "c"], "e"]
    encoder = ExtendedEditDistance().encoder
    parts = [encoder.rows(preds[k], target[k]) for k in (slice(0, 1), slice(1, 1), slice(1, None))]
    assert torch.equal(encoder.rows(preds, target), torch.cat(parts))


@pytest.mark.parametrize("wrong", [None, b"a", [], [None]])
def test_what_is_no_reference_is_named_by_its_position(wrong):
    with pytest.raises(InputError, match=r"target\[1\]"):
        ExtendedEditDistance()(["a", "b"], ["a", wrong])


@pytest.mark.parametrize("arguments", [{"language": "fr"}, {"alpha": -1}, {"rho": float("nan")}])
def test_arguments_are_checked(arguments):
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        ExtendedEditDistance(**arguments)
