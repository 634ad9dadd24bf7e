"""Error rates of words and characters against jiwer and TorchMetrics."""

from __future__ import annotations

import math
import random

import jiwer
import pytest
import torch

from assay.errors import ConfigError, InputError
from assay.metrics import CharErrorRate, EditDistance, MatchErrorRate, WordErrorRate, WordInfoLost, WordInfoPreserved
from thinning import draws

WORDS = ("a", "b", "c", "the", "cat", "Cat", "sat,", "naïve", "火", "")


def sentences(chance: random.Random, count: int) -> list[str]:
    """Sentences of few words, so that alignments have ties; some are empty, some have more than one space."""
    return [" ".join(chance.choices(WORDS, k=chance.randrange(9))) for _ in range(count)]


def drawn(seed: int) -> tuple[list[str], list[str]]:
    chance = random.Random(seed)
    count = chance.randrange(1, 7)
    preds, target = sentences(chance, count), sentences(chance, count)
    target[0] += " word"  # what jiwer defines without any word in the targets differs; see below
    return preds, target


@pytest.mark.parametrize(
    ("metric", "oracle"),
    [
        (WordErrorRate(), jiwer.wer),
        (CharErrorRate(), jiwer.cer),
        (MatchErrorRate(), jiwer.mer),
        (WordInfoLost(), jiwer.wil),
        (WordInfoPreserved(), jiwer.wip),
    ],
)
def test_it_is_jiwers(metric, oracle):
    for seed in draws(200):
        preds, target = drawn(seed)
        assert float(metric(preds, target)) == pytest.approx(oracle(target, preds), rel=1e-12, abs=1e-15)


def test_what_an_alignment_leaves_is_what_jiwer_counts():
    for seed in draws(200):
        preds, target = drawn(seed)
        counted = jiwer.process_words(target, preds)
        errors, words, predicted, right, aligned = MatchErrorRate().encoder.rows(preds, target).sum(0).tolist()
        wrong = counted.substitutions + counted.deletions + counted.insertions
        assert (right, errors, aligned) == (counted.hits, wrong, wrong + counted.hits)
        assert words + predicted - 2 * right - errors == counted.substitutions


def test_a_deletion_and_an_insertion_are_no_two_hits():
    """TorchMetrics and TorchEval read 0.75 and 0.25 here."""
    assert float(WordInfoLost()(["a b x c"], ["a b c d"])) == 1 - 9 / 16
    assert float(WordInfoPreserved()(["a b x c"], ["a b c d"])) == 9 / 16


def distance(a: str, b: str, cost: int) -> int:
    """The Levenshtein distance by its recurrence."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (cost if x != y else 0)))
    return row[-1]


@pytest.mark.parametrize("cost", [0, 1, 2, 3])
def test_edit_distance_is_the_recurrence(cost):
    for seed in draws(50):
        preds, target = drawn(seed)
        total = sum(distance(a, b, cost) for a, b in zip(preds, target, strict=True))
        assert float(EditDistance(cost)(preds, target)) == pytest.approx(total / len(preds), rel=1e-15)
        assert float(EditDistance(cost, reduction="sum")(preds, target)) == total


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
@pytest.mark.parametrize(
    ("preds", "target", "rate", "matched", "preserved"),
    [
        (["a b"], [""], math.inf, 1, 0),
        ([""], ["a b"], 1, 1, 0),
        ([""], [""], math.nan, math.nan, math.nan),
        (["a", "a"], ["", "a b"], 1, 2 / 3, 1 / 4),
    ],
)
def test_empty_sentences(preds, target, rate, matched, preserved):
    expected = {WordErrorRate(): rate, MatchErrorRate(): matched, WordInfoPreserved(): preserved}
    for metric, value in expected.items():
        assert float(metric(preds, target)) == pytest.approx(value, nan_ok=True)


def test_any_white_space_separates_words():
    """jiwer separates at spaces only, so that a tab is part of a word."""
    assert float(WordErrorRate()([" a\tb\n"], ["a b"])) == 0


def test_weights_count_sentences():
    weights = torch.tensor([2, 1, 0])
    preds, target = ["a b", "a c d", "x"], ["a c", "a c", "y z"]
    for metric in (WordErrorRate(), CharErrorRate(), MatchErrorRate(), WordInfoLost(), EditDistance()):
        expected = metric([preds[0], *preds[:2]], [target[0], *target[:2]])
        assert metric(preds, target, weights=weights) == expected


@pytest.mark.parametrize("wrong", [None, b"a", 3, ["a"]])
@pytest.mark.parametrize("metric", [WordErrorRate(), WordInfoLost(), EditDistance()])
def test_what_is_no_string_is_named_by_its_position(metric, wrong):
    with pytest.raises(InputError, match=r"preds\[1\]"):
        metric(["a", wrong], ["a", "b"])
    with pytest.raises(InputError, match=r"target\[0\]"):
        metric(["a", "b"], [wrong, "b"])


def test_arguments_are_checked():
    with pytest.raises(ConfigError, match="substitution_cost"):
        EditDistance(-1)
    with pytest.raises(ConfigError, match="reduction"):
        EditDistance(reduction="none")
