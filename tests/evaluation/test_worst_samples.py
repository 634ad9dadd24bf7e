"""The worst sentences of a metric are in the report with their text, however the samples came."""

from __future__ import annotations

import random

import pytest
from torch.utils.data import DataLoader, Dataset, IterableDataset

from assay import evaluate
from assay.metrics import BLEUScore, ROUGEScore, WordErrorRate
from assay.metrics.per_sample import per_sample_values
from assay.report.worst import LIMIT, worst_errors
from ranks import processes
from thinning import every_third

WORDS = ["the", "a", "cat", "dog", "sat", "on", "mat", "one", "two", "three", "red", "blue"]
COUNT = 137


def sentences():
    rng = random.Random(3)
    spoken = [[rng.choice(WORDS) for _ in range(rng.randint(0, 9))] for _ in range(COUNT)]
    heard = [[word if rng.random() < 0.7 else rng.choice(WORDS) for word in sentence] for sentence in spoken]
    return [(" ".join(a), " ".join(b)) for a, b in zip(heard, spoken, strict=True)]


PAIRS = sentences()


class Sentences(Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, k):
        return {"heard": PAIRS[k][0], "target": PAIRS[k][1], "id": f"clip {k}"}


class SentenceStream(IterableDataset):
    def __iter__(self):
        return iter([Sentences()[k] for k in reversed(range(COUNT))])


class Stops:
    """Predicts so many batches, and then stops as a machine does."""

    def __init__(self, left=1000):
        self.left = left

    def __call__(self, heard):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return heard

    def __reduce__(self):
        return Stops, ()


def same(heard):
    return heard


def measured(data, metrics=None, model=same, **options):
    metrics = {"bleu": BLEUScore(), "wer": WordErrorRate()} if metrics is None else metrics
    report = evaluate(model, data, metrics, inputs="heard", ids="id", device="cpu", n_resamples=25, **options)
    return report.sections[0]


def expected():
    preds, target = (list(part) for part in zip(*PAIRS, strict=True))
    errors = per_sample_values(WordErrorRate(), preds, target).terms["word errors"].tolist()
    order = sorted((k for k in range(COUNT) if errors[k]), key=lambda k: (-errors[k], f"clip {k}"))
    return tuple((f"clip {k}", PAIRS[k][1], PAIRS[k][0], float(errors[k])) for k in order[:LIMIT])


@every_third
@pytest.mark.parametrize("batch_size", [1, 8, 200])
def test_the_same_sentences_for_every_batch_size_and_order(batch_size):
    shuffled = DataLoader(Sentences(), batch_size=batch_size, shuffle=True)
    for data in (DataLoader(Sentences(), batch_size=batch_size), shuffled, DataLoader(SentenceStream(), batch_size)):
        found = worst_errors(measured(data))
        assert found.columns == ("id", "target", "prediction", "word errors")
        assert found.rows == expected()


def test_scores_are_listed_from_below():
    found = worst_errors(measured(Sentences(), ROUGEScore("rouge1")))
    scores = [row[-1] for row in found.rows]
    assert scores == sorted(scores)
    preds, target = (list(part) for part in zip(*PAIRS, strict=True))
    values = per_sample_values(ROUGEScore("rouge1"), preds, target)
    assert scores == sorted(values.terms[values.numerator].tolist())[:LIMIT]
    assert all(row[1:3] == PAIRS[int(row[0][5:])][::-1] for row in found.rows)


def test_a_run_that_resumes_has_the_same_sentences(tmp_path):
    options = {"resume": tmp_path, "checkpoint_every": 0.0, "batch_size": 20}
    with pytest.raises(KeyboardInterrupt):
        measured(Sentences(), model=Stops(3), **options)
    assert worst_errors(measured(Sentences(), model=Stops(), **options)).rows == expected()


def on_rank(rank, size):
    section = measured(Sentences(), batch_size=8)
    return [list(row) for row in worst_errors(section).rows]


def test_several_processes_have_the_same_sentences(tmp_path):
    for found in processes(on_rank, 2, tmp_path):
        assert tuple(map(tuple, found)) == expected()


def test_long_and_broken_strings_are_shortened_and_few_are_kept():
    data = [{"heard": "x" * 5000 + "\ud800", "target": "y \ud800", "id": k} for k in range(300)]
    section = measured(DataLoader(data, batch_size=7))
    assert len(section.samples.raw) == LIMIT
    assert all(len(each.prediction) == 200 for each in section.samples.raw)
    assert section.samples.raw[0].target == "y ?"
    section.samples.raw[0].prediction.encode()
