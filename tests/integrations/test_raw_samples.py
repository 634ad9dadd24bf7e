"""Metrics of strings and of named columns, inside other libraries."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
import torchmetrics
from ignite.engine import Engine
from torch.utils.data import DataLoader, Dataset

from assay import Meter, evaluate
from assay.errors import ConfigError, ShapeError
from assay.integrations.ignite import as_ignite, attach
from assay.integrations.torchmetrics import as_torchmetric
from assay.integrations.transformers import compute_metrics
from assay.metrics import (
    AdjustedRandScore,
    BitsPerByte,
    FleissKappa,
    HausdorffDistance,
    MeanSquaredError,
    PassAtK,
    RetrievalMAP,
    WordErrorRate,
)
from assay.metrics.samples import draw_for

PREDICTED = ["the cat sat", "a dog", "", "one two three"]
SPOKEN = ["the cat sat down", "a dog", "yes", "one two"]
ERRORS, WORDS = 3, 9
SCORES, RELEVANT = torch.tensor([0.9, -0.5, 0.1, 0.7, 0.4]), torch.tensor([0, 1, 1, 0, 1])
QUERIES = torch.tensor([0, 0, 0, 1, 1])


def test_torchmetrics_takes_strings_and_columns():
    metric = as_torchmetric(WordErrorRate())
    first = metric(PREDICTED[:2], SPOKEN[:2])
    metric.update(PREDICTED[2:], SPOKEN[2:])
    assert first == torch.tensor(1 / 6)
    assert metric.compute() == torch.tensor(ERRORS / WORDS)
    ranked = as_torchmetric(RetrievalMAP())
    ranked.update(SCORES, RELEVANT, indexes=QUERIES)
    assert ranked.compute() == RetrievalMAP()(SCORES, RELEVANT, indexes=QUERIES).float()
    of_batch = RetrievalMAP(by_row=True)(SCORES[None, :3].double(), RELEVANT[None, :3])
    assert ranked(SCORES[:3], RELEVANT[:3], indexes=QUERIES[:3] + 2) == of_batch.float()
    with pytest.raises(ConfigError, match="Pass indexes="):
        ranked.update(SCORES, RELEVANT)


def test_a_collection_of_torchmetrics_gives_columns_to_those_that_take_them():
    metrics = {"ours": as_torchmetric(RetrievalMAP()), "theirs": torchmetrics.MeanMetric()}
    both = torchmetrics.MetricCollection({"ours": metrics["ours"]})
    both.update(SCORES, RELEVANT, indexes=QUERIES, unknown=QUERIES)
    assert both.compute()["ours"] == RetrievalMAP()(SCORES, RELEVANT, indexes=QUERIES).float()


def test_ignite_takes_strings_and_columns():
    def step(engine, batch):
        return batch

    engine = Engine(step)
    attach(engine, Meter(wer=WordErrorRate()))
    state = engine.run([(PREDICTED[:2], SPOKEN[:2]), (PREDICTED[2:], SPOKEN[2:])])
    assert state.metrics["wer"] == ERRORS / WORDS
    engine = Engine(lambda engine, batch: batch)
    as_ignite(RetrievalMAP()).attach(engine, "map")
    state = engine.run([{"y_pred": SCORES, "y": RELEVANT, "indexes": QUERIES}])
    assert state.metrics["map"] == RetrievalMAP()(SCORES, RELEVANT, indexes=QUERIES).item()


def test_a_trainer_takes_decoded_strings():
    words = ["cat", "dog", "the", "a"]

    def decoded(preds, labels):
        return [" ".join(words[k] for k in row) for row in preds], [" ".join(words[k] for k in row) for row in labels]

    compute = compute_metrics({"wer": WordErrorRate()}, decoded)
    prediction = SimpleNamespace(predictions=[[2, 0], [3, 1]], label_ids=[[2, 0], [3, 0]])
    assert compute(prediction) == {"wer": 0.25}


class Sentences(Dataset):
    def __len__(self):
        return len(PREDICTED)

    def __getitem__(self, k):
        return {"audio": PREDICTED[k], "target": SPOKEN[k], "speaker": f"s{k % 2}", "id": f"clip {k}"}


def test_evaluate_measures_strings_with_slices_intervals_and_samples():
    options = {"inputs": "audio", "slices": {"speaker": "speaker"}, "min_slice_size": 1, "ids": "id"}
    for batch_size in (1, 3, 4):
        report = evaluate(
            lambda audio: audio, Sentences(), {"wer": WordErrorRate()}, batch_size=batch_size, device="cpu", **options
        )
        value = report.sections[0].values[0]
        assert value.value == ERRORS / WORDS
        assert value.lower <= value.value <= value.upper
        speakers = {each.name: each.values[0].value for each in report.sections[0].slices}
        assert speakers == {"speaker = s0": 2 / 5, "speaker = s1": 1 / 4}


def test_evaluate_measures_queries_by_their_ids():
    rows = [{"x": SCORES[k], "y": RELEVANT[k], "query": QUERIES[k]} for k in range(5)]
    loader = DataLoader(rows, batch_size=2)
    options = {"inputs": "x", "target": "y", "device": "cpu"}
    report = evaluate(lambda x: x, loader, RetrievalMAP(), columns={"indexes": "query"}, **options)
    assert report.sections[0].values[0].value == RetrievalMAP()(SCORES, RELEVANT, indexes=QUERIES).item()
    with pytest.raises(ConfigError, match="columns: indexes"):
        evaluate(lambda x: x, loader, RetrievalMAP(), **options)


def test_bad_strings_are_one_clear_error():
    with pytest.raises(ShapeError, match="preds"):
        as_torchmetric(WordErrorRate()).update(torch.zeros(2), SPOKEN[:2])
    meter = Meter(WordErrorRate())
    meter.update(PREDICTED, SPOKEN)
    assert meter.compute()["WordErrorRate"].item() == ERRORS / WORDS


def test_clones_of_a_collection_give_columns_to_those_that_take_them():
    metrics = {"ranked": as_torchmetric(RetrievalMAP()), "mean": as_torchmetric(MeanSquaredError())}
    for both in (torchmetrics.MetricCollection(metrics).clone(prefix="val_"), copy.deepcopy(metrics)):
        collection = both if isinstance(both, torchmetrics.MetricCollection) else torchmetrics.MetricCollection(both)
        collection.update(SCORES, RELEVANT, indexes=QUERIES)
        assert RetrievalMAP()(SCORES, RELEVANT, indexes=QUERIES).float() in collection.compute().values()


@pytest.mark.parametrize(
    "metric",
    [
        HausdorffDistance(num_classes=3, ignore_missing=True),
        FleissKappa(num_classes=4),
        AdjustedRandScore(num_classes=4),
        PassAtK(),
        BitsPerByte(),
    ],
    ids=repr,
)
def test_evaluate_with_its_defaults_shows_no_table_of_classes_for_metrics_without_labels(metric):
    generator = torch.Generator().manual_seed(0)
    data = draw_for(metric)(generator, 12)
    batches = [{"x": data[0], "target": data[1] if len(data) > 1 else None}]
    target = "target" if len(data) > 1 else None
    report = evaluate(lambda x: x, batches, metric, inputs="x", target=target, device="cpu")
    section = report.sections[0]
    assert not [plot for plot in section.plots if "matrix" in type(plot).__name__.lower()]
    assert not [table.name for table in section.tables if "decisions" in table.name or "class" in table.name.lower()]


def test_columns_that_are_no_mapping_and_outputs_without_a_length_are_one_clear_error():
    rows = [{"x": SCORES, "y": RELEVANT, "query": QUERIES}]
    with pytest.raises(ConfigError, match="columns: got 'indexes'"):
        evaluate(lambda x: x, rows, RetrievalMAP(), columns="indexes", inputs="x", target="y")
    with pytest.raises(ConfigError, match="preds: got generator"):
        evaluate(lambda audio: (each for each in audio), Sentences(), WordErrorRate(), inputs="audio", device="cpu")
