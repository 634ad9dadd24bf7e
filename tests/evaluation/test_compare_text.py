"""Two systems on the same sentences or queries: intervals, paired tests, of any metric."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from assay import evaluate
from assay.metrics import BLEUScore, RetrievalNormalizedDCG, WordErrorRate
from assay.report import Samples, Value, compare
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.tests_and_intervals import difference

WORDS = np.array(["the", "a", "cat", "dog", "sat", "on", "mat", "one", "two", "three", "red"])
RUNS = 200


def system(wrong, seed=0, sentences=120, references=1):
    rng, spoken = np.random.default_rng(seed), np.random.default_rng(99)
    samples = []
    for k in range(sentences):
        target = spoken.choice(WORDS, spoken.integers(3, 15))
        heard = np.where(rng.random(len(target)) < wrong, rng.choice(WORDS, len(target)), target)
        both = [" ".join(target)] * references
        samples.append({"heard": " ".join(heard), "target": both if references > 1 else both[0], "id": f"s{k}"})
    metrics = {"wer": WordErrorRate(), "bleu": BLEUScore()}
    loader = DataLoader(samples, batch_size=50, collate_fn=lambda rows: {n: [row[n] for row in rows] for n in rows[0]})
    if references > 1:
        metrics.pop("wer")
    return evaluate(lambda heard: heard, loader, metrics, inputs="heard", ids="id", device="cpu", title=f"{wrong}")


def test_wer_is_paired_by_sentences_and_bleu_by_replicates():
    first, second = system(0.25, 1), system(0.1, 2)
    values = {each.name: each for each in first.sections[0].values}
    wer, bleu = values["wer"], values["bleu"]
    assert "Student" in wer.note
    assert "bootstrap" in bleu.note
    assert all(each.lower < each.value < each.upper for each in (wer, bleu))
    comparison = compare(first, second)
    wer, bleu = comparison.delta("wer"), comparison.delta("bleu")
    assert (wer.paired, wer.verdict, wer.note) == (True, "better", "")
    assert wer.lower < wer.difference < wer.upper < 0
    assert (bleu.paired, bleu.verdict, bleu.note) == (True, "better", "")
    assert "paired bootstrap" in bleu.method


def test_the_same_system_differs_by_nothing():
    comparison = compare(system(0.2, 1), system(0.2, 1))
    for name in ("wer", "bleu"):
        delta = comparison.delta(name)
        assert (delta.difference, delta.lower, delta.upper, delta.verdict) == (0, None, None, "no evidence")


@pytest.mark.parametrize("references", [1, 2])
def test_other_references_under_the_same_ids_are_not_paired(references):
    report = system(0.2, 1, references=references)
    other = system(0.2, 1, references=references)
    data = [each.sections[0].samples.data for each in (report, other, system(0.2, 1, 119, references))]
    assert data[0] == data[1] != data[2]
    assert data[0]


def ranking(noise, seed):
    generator = torch.Generator().manual_seed(seed)
    relevance = torch.randint(0, 3, (90, 8), generator=torch.Generator().manual_seed(5))
    scores = relevance + noise * torch.randn(90, 8, generator=generator)
    rows = [{"scores": scores[k], "target": relevance[k], "query": f"q{k}"} for k in range(90)]
    metrics = {"ndcg": RetrievalNormalizedDCG(by_row=True)}
    loader = DataLoader(rows, batch_size=32)
    return evaluate(lambda scores: scores, loader, metrics, inputs="scores", ids="query", device="cpu")


def test_ndcg_of_rows_has_an_interval_and_a_paired_test():
    first, second = ranking(2.0, 1), ranking(0.5, 2)
    (value,) = first.sections[0].values
    assert value.lower < value.value < value.upper
    delta = compare(first, second, names=["a", "b"]).delta("ndcg")
    assert (delta.paired, delta.verdict) == (True, "better")


def sentences(rng, count, rates):
    """The errors of two systems on the same sentences, of which some are hard for both."""
    words = rng.integers(1, 30, count)
    hard = rng.beta(1, 6, count) * 2
    return words, [rng.binomial(words, np.minimum(hard * rate, 1)) for rate in rates]


def word_error_rate(words, errors):
    samples = Samples.pack(range(len(words)), {"word errors": errors, "target words": words}, data="x")
    value = Value("wer", errors.sum() / words.sum(), numerator="word errors", denominator="target words")
    return MeasuredValue(value, samples)


@pytest.mark.exhaustive
def test_the_level_of_the_paired_test_and_interval_of_wer():
    rng = np.random.default_rng(7)
    rejected = missed = 0
    truth = difference(*(word_error_rate(*_pair) for _pair in _systems(rng, 400_000)))
    expected = (truth.lower + truth.upper) / 2
    for _ in range(RUNS):
        words, (a, b) = sentences(rng, 150, (0.6, 0.6))
        rejected += difference(word_error_rate(words, a), word_error_rate(words, b)).p < 0.05
        found = difference(*(word_error_rate(*each) for each in _systems(rng, 150)))
        missed += not found.lower <= expected <= found.upper
    assert 2 <= rejected <= 20, rejected  # 10 of 200 at the level 0.05; these are 3 standard deviations
    assert 2 <= missed <= 20, missed


def _systems(rng, count):
    words, (a, b) = sentences(rng, count, (0.6, 0.4))
    return (words, a), (words, b)
