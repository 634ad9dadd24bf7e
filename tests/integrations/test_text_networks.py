"""BERTScore and InfoLM of tiny local models beside TorchMetrics and beside their formulas."""

from __future__ import annotations

import math
import random
import warnings

import pytest
import torch
from torchmetrics.functional.text import bert_score as theirs
from torchmetrics.functional.text.infolm import _get_batch_distribution, _get_special_tokens_map, _InformationMeasure

from assay.errors import ConfigError, InputError, InvalidValuesError
from assay.integrations import bert_score, infolm
from assay.meter import Meter
from assay.metrics import CharErrorRate
from assay.metrics.per_sample import per_sample_values
from thinning import every_third
from tiny_networks import WORDS, bert, tokenizer

TOKENIZER = tokenizer()


def sentences(seed: int, count: int = 40, least: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(least, 9))) for _ in range(count)]


def growing(seed: int) -> list[str]:
    """Sentences of 1, 2, 3, ... words: TorchMetrics pairs others wrongly (its issue 2728)."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) for _ in range(count)) for count in range(1, 14)]


@pytest.fixture(scope="module")
def model():
    network = bert().eval()
    network.encoder.layer[-1].output.LayerNorm.bias.data += 2  # cosines above 0: TorchMetrics takes the maximum with 0
    return network


@pytest.fixture(scope="module")
def masked():
    return bert(masked=True).eval()


def values(metrics, preds, target):
    meter = Meter(**metrics)
    for start in range(0, len(preds), 7):
        meter.update(preds[start : start + 7], target[start : start + 7])
    return {name: float(value) for name, value in meter.compute().items()}


def of_torchmetrics(model, preds, target, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = theirs(preds, target, model=model, user_tokenizer=TOKENIZER, max_length=16, truncation=True, **options)
    return found


@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("layer", [-1, 2])
def test_bert_score_is_that_of_torchmetrics(model, idf, layer):
    for seed in range(3):
        preds, target = growing(seed), growing(seed + 100)
        found = values(bert_score(model, TOKENIZER, layer=layer, idf=target if idf else ()), preds, target)
        expected = of_torchmetrics(model, preds, target, idf=idf, num_layers=layer)
        for name in ("precision", "recall", "f1"):
            assert found[name] == pytest.approx(float(expected[name].double().mean()), rel=1e-5)


def test_the_best_of_several_references_counts(model):
    preds, several = sentences(1, 12), [sentences(k, 1 + k % 3) for k in range(12)]
    metrics = bert_score(model, TOKENIZER)
    for name, metric in metrics.items():
        found = per_sample_values(metric, preds, several).terms
        singles = [
            [float(metric([pred], [reference])) for reference in references]
            for pred, references in zip(preds, several, strict=True)
        ]
        assert found[f"BERTScore {name}"].tolist() == pytest.approx(list(map(max, singles)), rel=1e-5)


def by_hand(model, pred, target, match_special):
    """Precision and recall of one pair, token by token, as the package bert-score has it."""
    sides = []
    with torch.no_grad():
        for text in (pred, target):
            states = model(**TOKENIZER(text, return_tensors="pt"), output_hidden_states=True).hidden_states[-1][0]
            sides.append([state / state.norm() for state in states])
    ends = slice(None) if match_special else slice(1, -1)
    means = []
    for own, other in (sides, sides[::-1]):
        best = [max(float(token @ each) for each in other[ends]) for token in own[1:-1]]
        means.append(sum(best) / len(best))
    return means


@pytest.mark.parametrize("match_special", [False, True])
def test_bert_score_is_its_formula_for_each_sample_of_any_batch(match_special):
    network, preds, target = bert().eval(), sentences(5, 9), sentences(6, 9)
    metrics = bert_score(network, TOKENIZER, match_special_tokens=match_special)
    expected = [by_hand(network, *pair, match_special) for pair in zip(preds, target, strict=True)]
    for k, name in enumerate(("precision", "recall")):
        found = per_sample_values(metrics[name], preds, target)
        assert found.terms[found.numerator].tolist() == pytest.approx([each[k] for each in expected], abs=1e-5)


def test_the_baseline_rescales_and_sentences_without_tokens_have_0(model):
    preds, target = sentences(7, 10), sentences(8, 10)
    plain = values(bert_score(model, TOKENIZER), preds, target)
    scaled = values(bert_score(model, TOKENIZER, baseline=(0.5, 0.25, 0.0)), preds, target)
    expected = ((plain["precision"] - 0.5) / 0.5, (plain["recall"] - 0.25) / 0.75, plain["f1"])
    assert tuple(scaled.values()) == pytest.approx(expected, rel=1e-5)
    assert set(values(bert_score(model, TOKENIZER), ["", "a cat"], ["the dog", ""]).values()) == {0.0}


def test_bert_score_shares_a_meter_with_metrics_of_strings_and_runs_once(model):
    preds, target = sentences(9, 6), sentences(10, 6)
    calls = []
    hook = model.register_forward_hook(lambda *_: calls.append(1))
    meter = Meter(cer=CharErrorRate(), **bert_score(model.train(), TOKENIZER))
    meter.update(preds, target)
    hook.remove()
    assert len(calls) == 2  # both sides
    assert model.training
    model.eval()
    assert float(meter.compute()["cer"]) == float(CharErrorRate()(preds, target))


@every_third
@pytest.mark.parametrize("measure", ["kl", "alpha", "beta", "ab", "renyi", "l1", "l2", "l_infinity", "fisher_rao"])
def test_infolm_is_that_of_torchmetrics_sentence_by_sentence(masked, measure):
    preds, target = sentences(11, 6), sentences(12, 6)
    metric = infolm(masked, TOKENIZER, measure=measure, alpha=0.5, beta=0.25)
    found = per_sample_values(metric, preds, target)
    named = {"kl": "kl_divergence", "fisher_rao": "fisher_rao_distance"}
    ending = "distance" if measure.startswith("l") else "divergence"
    compare = _InformationMeasure(named.get(measure, f"{measure}_{ending}"), alpha=0.5, beta=0.25)
    special = _get_special_tokens_map(TOKENIZER)
    with torch.no_grad():
        sides = [
            torch.cat([_get_batch_distribution(masked, TOKENIZER(text, return_tensors="pt"), 0.25, False, special)])
            for texts in (preds, target)
            for text in texts
        ]
    expected = compare(torch.cat(sides[:6]), torch.cat(sides[6:]))
    sign = -1 if measure in ("kl", "alpha") else 1  # theirs are below 0
    assert found.terms["InfoLM"].tolist() == pytest.approx((sign * expected).tolist(), rel=2e-3, abs=1e-5)


def test_infolm_of_equal_sentences_is_0_and_idf_weighs_tokens(masked):
    texts = sentences(13, 5)
    assert float(infolm(masked, TOKENIZER)(texts, texts)) == pytest.approx(0, abs=1e-6)
    idf = infolm(masked, TOKENIZER, idf=["the cat", "the dog"])
    one, other = "the the cat", "cat"  # of which only cat has weight: its place differs
    assert float(idf([one], [other])) != float(infolm(masked, TOKENIZER)([one], [other]))
    with pytest.raises(InvalidValuesError, match="1 of the samples"):
        idf(["the", "cat"], ["cat", "cat"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"measure": "mse"}, "measure: got 'mse'"),
        ({"measure": "alpha", "alpha": 1}, "alpha, beta"),
        ({"measure": "ab", "alpha": 0.5, "beta": -0.5}, "alpha, beta"),
        ({"temperature": 0}, "temperature: got 0"),
        ({"temperature": math.nan}, "temperature"),
        ({"idf": "a cat"}, "idf: got a string"),
    ],
)
def test_wrong_options_of_infolm_raise(masked, options, words):
    with pytest.raises(ConfigError, match=words):
        infolm(masked, TOKENIZER, **options)


def test_wrong_options_and_samples_of_bert_score_raise(model):
    with pytest.raises(ConfigError, match="baseline: got 2 numbers"):
        bert_score(model, TOKENIZER, baseline=(0.1, 0.2))
    without = tokenizer()
    without.pad_token = None
    with pytest.raises(ConfigError, match="padding token"):
        bert_score(model, without)
    without = tokenizer()
    without.mask_token = None
    with pytest.raises(ConfigError, match="mask token"):
        infolm(model, without)
    meter = Meter(**bert_score(model, TOKENIZER))
    with pytest.raises(InputError, match=r"preds\[1\]"):
        meter.update(["a", None], ["a", "b"])
    with pytest.raises(InputError, match=r"target\[0\]"):
        meter.update(["a"], [[]])
    with pytest.raises(InputError, match="target"):
        meter.update(["a"])
    assert meter.rows == 0
