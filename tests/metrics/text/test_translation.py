"""BLEU, chrF and TER against sacrebleu, and BLEU of plain words against TorchMetrics' definition."""

from __future__ import annotations

import math
import pickle
import random
from collections import Counter
from importlib.util import find_spec

import pytest
import torch
import torchmetrics
from sacrebleu.metrics import BLEU, CHRF, TER

from assay.errors import ConfigError, InputError
from assay.metrics import BLEUScore, CHRFScore, SacreBLEUScore, TranslationEditRate
from thinning import draws, every_third

WORDS = ("a", "b", "the", "cat", "Cat", "sat,", "(mat)", "1.5", "naïve", "火车", "&quot;x", "e-mail", "—")


def sentence(chance: random.Random) -> str:
    """Few words, so that n-grams repeat; sometimes none, or space around them."""
    return (
        chance.choice(["", " "]) + " ".join(chance.choices(WORDS, k=chance.randrange(12))) + chance.choice(["", " \n"])
    )


def drawn(seed: int) -> tuple[list[str], list[list[str]]]:
    """Predictions, and one to three references each."""
    chance = random.Random(seed)
    count = chance.randrange(1, 6)
    target = [[sentence(chance) for _ in range(chance.randrange(1, 4))] for _ in range(count)]
    preds = [chance.choice([sentence(chance), each[0]]) for each in target]
    return preds, target


def columns(target: list[list[str]]) -> list[list[str | None]]:
    """References as sacrebleu takes them: the first of every sample, the second, ..."""
    most = max(map(len, target))
    return [[each[k] if k < len(each) else None for each in target] for k in range(most)]


def test_a_punctuation_mark_alone_is_one_word_as_in_sacrebleu():
    preds, target = ["a ! b", "- c d"], [["a ! b ?"], ["- c - d"]]
    expected = CHRF(word_order=2).corpus_score(preds, columns(target)).score / 100
    assert float(CHRFScore()(preds, target)) == pytest.approx(expected, rel=1e-12)


@every_third
@pytest.mark.parametrize("tokenize", ["13a", "intl", "zh", "char", "none"])
@pytest.mark.parametrize("smooth", ["exp", "floor", "add-k", "none"])
@pytest.mark.parametrize("options", [{}, {"lowercase": True, "effective_order": True}])
def test_bleu_is_sacrebleus(tokenize, smooth, options):
    metric = SacreBLEUScore(tokenize=tokenize, smooth_method=smooth, **options)
    oracle = BLEU(tokenize=tokenize, smooth_method=smooth, **options)
    for seed in draws(30):
        preds, target = drawn(seed)
        expected = oracle.corpus_score(preds, columns(target)).score / 100
        assert float(metric(preds, target)) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({}, {"word_order": 2}),
        ({"n_word_order": 0}, {}),
        (
            {"n_char_order": 3, "beta": 1, "lowercase": True},
            {"char_order": 3, "word_order": 2, "beta": 1, "lowercase": True},
        ),
        ({"eps_smoothing": True}, {"word_order": 2, "eps_smoothing": True}),
        ({"whitespace": True, "beta": 3}, {"word_order": 2, "whitespace": True, "beta": 3}),
    ],
)
def test_chrf_is_sacrebleus(arguments, options):
    metric, oracle = CHRFScore(**arguments), CHRF(**options)
    for seed in draws(200):
        preds, target = drawn(seed)
        expected = oracle.corpus_score(preds, columns(target)).score / 100
        assert float(metric(preds, target)) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({}, {}),
        ({"normalize": True}, {"normalized": True}),
        ({"no_punctuation": True, "lowercase": False}, {"no_punct": True, "case_sensitive": True}),
        ({"normalize": True, "asian_support": True}, {"normalized": True, "asian_support": True}),
    ],
)
def test_ter_is_sacrebleus(arguments, options):
    metric, oracle = TranslationEditRate(**arguments), TER(**options)
    for seed in draws(60):
        preds, target = drawn(seed)
        found = float(metric(preds, target))
        if math.isfinite(found):  # sacrebleu reads 1 or 0 where no reference has a word
            assert found == pytest.approx(oracle.corpus_score(preds, columns(target)).score / 100, rel=1e-12)
        else:
            assert not any(" ".join(each).split() for each in target)


def grams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[k : k + n]) for k in range(len(words) - n + 1))


def bleu(preds: list[str], target: list[list[str]], order: int, smooth: bool, weights: list[float]) -> float:
    """BLEU from its definition; of equally close references the first counts."""
    common, total, c, r = [0] * order, [0] * order, 0, 0
    for pred, several in zip(preds, target, strict=True):
        words, wanted = pred.split(), [each.split() for each in several]
        c += len(words)
        r += len(min(wanted, key=lambda each: abs(len(each) - len(words))))
        for n in range(order):
            most: Counter[tuple[str, ...]] = Counter()
            for each in wanted:
                most |= grams(each, n + 1)
            common[n] += (grams(words, n + 1) & most).total()
            total[n] += grams(words, n + 1).total()
    if not all(common):
        return 0.0
    logs = 0.0
    for n, weight in enumerate(weights):
        added = int(smooth and n > 0)
        logs += weight * math.log((common[n] + added) / (total[n] + added))
    return math.exp(logs + min(0, 1 - r / c))


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("weights", [None, (0.5, 0.25, 0.25)])
def test_bleu_of_words_is_its_definition(smooth, weights):
    order = len(weights or (0,) * 4)
    metric = BLEUScore(order, smooth=smooth, weights=weights)
    for seed in draws(200):
        preds, target = drawn(seed)
        expected = bleu(preds, target, order, smooth, weights or [1 / order] * order)
        assert float(metric(preds, target)) == pytest.approx(expected, rel=1e-12)


METRICS = (BLEUScore(2), SacreBLEUScore(), CHRFScore(), TranslationEditRate())


def test_weights_of_equal_orders_are_those_of_sacrebleu():
    preds, target = ["a b c"], [["a b c d", "a b"]]  # equally close in length
    assert float(SacreBLEUScore(n_gram=2, weights=(0.5, 0.5))(preds, target)) == 1
    assert float(SacreBLEUScore(n_gram=2)(preds, target)) == 1
    preds, target = ["the cat is on the mat", "a dog"], [["there is a cat on the mat"], ["a dog sat"]]
    for weights in ((0.5, 0.5), (0.75, 0.25)):
        theirs = torchmetrics.text.SacreBLEUScore(n_gram=2, weights=list(weights))(preds, target)
        ours = SacreBLEUScore(n_gram=2, weights=weights, smooth_method="none")
        assert float(ours(preds, target)) == pytest.approx(float(theirs), rel=1e-6)
    with pytest.raises(ConfigError, match="effective_order"):
        SacreBLEUScore(n_gram=2, weights=(0.5, 0.5), effective_order=True)


@pytest.mark.parametrize("metric", METRICS)
def test_rows_are_those_of_each_sample(metric):
    """Also where n-grams are numbered anew because they do not fit an integer."""
    preds, target = drawn(3)
    preds, target = preds + [chr(0x4E00 + k) * 2 for k in range(500)], target + [["火"]] * 500
    whole = metric.encoder.rows(preds, target)
    halves = [metric.encoder.rows(preds[k], target[k]) for k in (slice(0, 2), slice(2, 2), slice(2, None))]
    assert torch.equal(whole, torch.cat(halves))
    assert whole.dtype == halves[1].dtype
    assert pickle.loads(pickle.dumps(metric.encoder)) == metric.encoder


@pytest.mark.parametrize("metric", METRICS)
def test_one_reference_may_be_given_as_a_string(metric):
    preds, target = drawn(5)
    assert metric(preds, [each[0] for each in target]) == metric(preds, [each[:1] for each in target])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("place", ["preds", "target"])
@pytest.mark.parametrize("wrong", [None, b"a", 3])
def test_what_is_no_string_is_named_by_its_position(metric, place, wrong):
    preds, target = ["a", "b"], [["a", "b"], ["c"]]
    if place == "preds":
        preds[1] = wrong
        found = r"preds\[1\]"
    else:
        target[0][1] = wrong
        found = r"target\[0\]\[1\]"
    with pytest.raises(InputError, match=found):
        metric(preds, target)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("wrong", [[], None, b"a", 3])
def test_what_is_no_reference_is_named_by_its_position(metric, wrong):
    with pytest.raises(InputError, match=r"target\[1\]"):
        metric(["a", "b"], ["a", wrong])


@pytest.mark.parametrize("tokenize", ["13a", "char"])
@pytest.mark.parametrize("smooth", [{}, {"smooth_method": "floor"}, {"smooth_method": "add-k", "smooth_value": 0.5}])
@pytest.mark.parametrize("options", [{}, {"lowercase": True, "effective_order": True}])
def test_the_signature_is_sacrebleus(tokenize, smooth, options):
    oracle = BLEU(tokenize=tokenize, **smooth, **options)
    oracle.corpus_score(["a"], [["a"], ["b"]])
    metric = SacreBLEUScore(tokenize=tokenize, **smooth, **options)
    assert metric.signature(2) == str(oracle.get_signature())


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (BLEUScore, {"n_gram": 0}),
        (BLEUScore, {"weights": (0.5, 0.5)}),
        (SacreBLEUScore, {"tokenize": "flores200"}),
        (SacreBLEUScore, {"smooth_method": "linear"}),
        (CHRFScore, {"n_char_order": 0}),
        (CHRFScore, {"n_word_order": -1}),
        (CHRFScore, {"beta": 0}),
    ],
)
def test_arguments_are_checked(kind, arguments):
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        kind(**arguments)


def test_weights_count_sentences():
    preds, target = ["a b c", "a c d b", "x"], ["a b d", ["a c d", "a c"], "y z"]
    for metric in METRICS:
        expected = metric([preds[0], *preds[:2]], [target[0], *target[:2]])
        assert metric(preds, target, weights=torch.tensor([2, 1, 0])) == expected


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_numbers_of_smoothing_and_weights_are_checked(value):
    with pytest.raises(ConfigError, match="smooth_value"):
        SacreBLEUScore(smooth_method="floor", smooth_value=value)
    with pytest.raises(ConfigError, match="weights"):
        BLEUScore(weights=(value, 0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("tokenizer", "package", "sentences"),
    [
        ("ja-mecab", "MeCab", ["これは本です。", "猫が好きだ", ""]),
        ("ko-mecab", "mecab_ko", ["이것은 책입니다.", "고양이를 좋아한다", ""]),
    ],
)
def test_tokenizers_that_need_mecab(tokenizer, package, sentences):
    if find_spec(package) is None:
        with pytest.raises(ConfigError, match=r"tokenize: .*mecab.*Run: pip install \"sacrebleu"):
            SacreBLEUScore(tokenize=tokenizer)
        return
    bleu = BLEU(tokenize=tokenizer)
    preds, references = sentences, [sentences[1], sentences[1] + sentences[0], sentences[0]]
    metric = SacreBLEUScore(tokenize=tokenizer)
    expected = bleu.corpus_score(preds, [references]).score / 100
    assert float(metric(preds, references)) == pytest.approx(expected, rel=1e-12)
    assert metric.signature() == str(bleu.get_signature())
