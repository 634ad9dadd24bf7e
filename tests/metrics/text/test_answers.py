"""Exact match and F1 of answers against TorchMetrics' functions for one answer, and string equality."""

from __future__ import annotations

import random
from types import ModuleType

import pytest
import torch

from assay.errors import ConfigError, InputError
from assay.metrics import SQuAD, StringExactMatch
from thinning import draws

WORDS = ("a", "the", "The", "cat", "Cat.", "1976", "naïve", "an", "U.S.", "")


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randrange(6)))


def f1(torchmetrics: ModuleType, pred: str, answer: str) -> float:
    """F1 of the words that SQuAD compares, from precision and recall."""
    words, wanted = (torchmetrics._normalize_text(each).split() for each in (pred, answer))
    if not words or not wanted:
        return float(words == wanted)
    rest, common = list(wanted), 0
    for word in words:
        if word in rest:
            rest.remove(word)
            common += 1
    if not common:
        return 0.0
    precision, recall = common / len(words), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def test_it_is_that_of_squad():
    torchmetrics = pytest.importorskip("torchmetrics.functional.text.squad")
    for seed in draws(200):
        chance = random.Random(seed)
        preds = [{"prediction_text": text(chance), "id": str(k)} for k in range(5)]
        answers = [[text(chance) for _ in range(chance.randrange(1, 4))] for _ in range(5)]
        target = [{"answers": {"answer_start": [], "text": each}, "id": str(k)} for k, each in enumerate(answers)]
        of_all = torchmetrics.squad(preds, target)
        expected = sum(
            max(f1(torchmetrics, pred["prediction_text"], each) for each in several)
            for pred, several in zip(preds, answers, strict=True)
        )
        assert float(SQuAD()(preds, target)) == pytest.approx(expected / 5, rel=1e-12)
        assert float(SQuAD()(preds, target)) == pytest.approx(float(of_all["f1"]) / 100, abs=1e-6)
        assert float(SQuAD("exact_match")(preds, target)) == pytest.approx(float(of_all["exact_match"]) / 100, abs=1e-6)
        plain = [each["prediction_text"] for each in preds]
        assert SQuAD()(plain, answers) == SQuAD()(preds, target)


def test_without_a_right_answer_the_empty_one_is_right():
    unanswerable = {"answers": {"text": [], "answer_start": []}, "id": "1"}
    for metric in (SQuAD(), SQuAD("exact_match")):
        assert float(metric([{"prediction_text": "the", "id": "1"}], [unanswerable])) == 1
        assert float(metric(["cat"], [[]])) == 0


@pytest.mark.parametrize(
    ("pred", "right", "place"),
    [
        ({"text": "a"}, "a", r"preds\[1\]"),
        ({"prediction_text": None}, "a", r"preds\[1\]\['prediction_text'\]"),
        (None, "a", r"preds\[1\]"),
        ("a", None, r"target\[1\]"),
        ("a", ["a", None], r"target\[1\]\[1\]"),
        ("a", {"id": "1"}, r"target\[1\]"),
        ("a", {"answers": ["a"]}, r"target\[1\]\['answers'\]"),
        ("a", {"answers": {"text": "a"}}, r"target\[1\]\['answers'\]\['text'\]"),
        ("a", {"answers": {"text": [b"a"]}}, r"target\[1\]\['answers'\]\['text'\]\[0\]"),
        ({"prediction_text": "a", "id": "1"}, {"answers": {"text": ["a"]}, "id": "2"}, r"preds\[1\].*id '1'"),
    ],
)
def test_a_sample_of_another_form_is_named_by_its_position(pred, right, place):
    with pytest.raises(InputError, match=place):
        SQuAD()(["a", pred], ["a", right])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [1, 0, 0, 0, 1]),
        ({"ignore_case": True}, [1, 1, 0, 0, 1]),
        ({"ignore_punctuation": True}, [1, 0, 1, 0, 1]),
        ({"ignore_numbers": True}, [1, 0, 0, 1, 1]),
    ],
)
def test_equal_strings(arguments, expected):
    preds = ["yes", "Yes", "yes.", "yes1", ""]
    target = ["yes", "yes", ["no", "yes"], ["yes2"], ""]
    metric = StringExactMatch(**arguments)
    assert metric.encoder.rows(preds, target)[:, 0].tolist() == expected
    assert float(metric(preds, target)) == sum(expected) / 5
    assert float(metric(preds, target, weights=torch.tensor([1, 0, 0, 0, 1]))) == 1


def test_arguments_are_checked():
    with pytest.raises(ConfigError, match="measure"):
        SQuAD("em")
