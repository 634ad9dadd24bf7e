"""ROUGE against the package rouge-score."""

from __future__ import annotations

import random

import pytest
import torch
from rouge_score.rouge_scorer import RougeScorer

from assay.encode.summaries import _common_places
from assay.errors import ConfigError, InputError
from assay.metrics import ROUGEScore
from thinning import draws

WORDS = ("a", "b", "the", "cats", "Cats", "running", "run", "x1", "naïve", "火", "-", "don't", "\n", ".\n")
KINDS = ("rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum")


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randrange(25)))


@pytest.mark.parametrize("rouge", KINDS)
@pytest.mark.parametrize("use_stemmer", [False, True])
def test_it_is_that_of_rouge_score(rouge, use_stemmer):
    scorer = RougeScorer([rouge], use_stemmer=use_stemmer)
    for seed in draws(200):
        chance = random.Random(seed)
        preds = [text(chance) for _ in range(3)]
        target = [[text(chance) for _ in range(chance.randrange(1, 4))] for _ in preds]
        found = ROUGEScore(rouge, use_stemmer=use_stemmer).encoder.rows(preds, target)
        values = [list(scorer.score_multi(each, pred)[rouge]) for pred, each in zip(preds, target, strict=True)]
        assert found.tolist() == values


@pytest.mark.parametrize("measure", ["precision", "recall", "fmeasure"])
def test_the_value_is_the_mean_over_the_samples(measure):
    scorer, chance = RougeScorer(["rougeL"]), random.Random(0)
    preds, target = [text(chance) for _ in range(20)], [text(chance) for _ in range(20)]
    values = [getattr(scorer.score(b, a)["rougeL"], measure) for a, b in zip(preds, target, strict=True)]
    assert float(ROUGEScore("rougeL", measure)(preds, target)) == pytest.approx(sum(values) / 20, rel=1e-12)


def test_the_common_subsequence_is_that_of_the_table():
    chance = random.Random(0)
    for _ in draws(300):
        a, b = (chance.choices("abc", k=chance.randrange(12)) for _ in range(2))
        table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
        for i, x in enumerate(a, 1):
            for j, y in enumerate(b, 1):
                table[i][j] = table[i - 1][j - 1] + 1 if x == y else max(table[i - 1][j], table[i][j - 1])
        assert len(_common_places(a, b)) == table[-1][-1]


@pytest.mark.parametrize("rouge", KINDS)
def test_a_text_without_words_counts_as_zero(rouge):
    assert float(ROUGEScore(rouge)(["a b c", "", "。"], ["a b c", "a", ["", "火"]])) == pytest.approx(1 / 3)


@pytest.mark.parametrize("rouge", KINDS)
def test_rows_are_those_of_each_sample(rouge):
    chance = random.Random(1)
    preds, target = [text(chance) for _ in range(9)], [[text(chance), text(chance)] for _ in range(9)]
    encoder = ROUGEScore(rouge).encoder
    parts = [encoder.rows(preds[k], target[k]) for k in (slice(0, 4), slice(4, 4), slice(4, None))]
    assert torch.equal(encoder.rows(preds, target), torch.cat(parts))


@pytest.mark.parametrize("wrong", [None, b"a", [], [None]])
def test_what_is_no_reference_is_named_by_its_position(wrong):
    with pytest.raises(InputError, match=r"target\[1\]"):
        ROUGEScore()(["a", "b"], ["a", wrong])


@pytest.mark.parametrize("arguments", [{"rouge": "rouge0"}, {"rouge": "L"}, {"measure": "f1"}])
def test_arguments_are_checked(arguments):
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        ROUGEScore(**arguments)
