"""Details follow from what the metrics say, and are what scikit-learn says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn import metrics as sk
from torch.utils.data import TensorDataset

from assay import AUROC, Accuracy, MeanSquaredError, Meter
from assay.errors import ConfigError
from assay.evaluation import evaluate
from assay.metrics import BrierScore, ClassReport, ConfusionMatrix, LogLoss, MeanAveragePrecision, Recall

GENERATOR = torch.Generator().manual_seed(2)
SCORES = torch.rand(200, 3, generator=GENERATOR).softmax(1)
LABELS = torch.randint(3, (200,), generator=GENERATOR)
ONE = SCORES[:, 0]
BIT = (torch.rand(200, generator=GENERATOR) < ONE).long()


def same(x):
    return x


def section(preds, target, metrics, **more):
    (found,) = evaluate(same, TensorDataset(preds, target), metrics, device="cpu", **more).sections
    return found


def plots(found):
    return {type(each).__name__ + (f" {each.kind}" if hasattr(each, "kind") else ""): each for each in found.plots}


def test_many_classes():
    found = section(SCORES, LABELS, [Accuracy(num_classes=3), AUROC(num_classes=3)], classes=["a", "b", "c"])
    shown = plots(found)
    assert list(shown) == ["ConfusionPlot", "Reliability", "Distribution", "Curves roc", "Curves pr"]
    decided, target = SCORES.argmax(1).numpy(), LABELS.numpy()
    assert np.array_equal(shown["ConfusionPlot"].counts, sk.confusion_matrix(target, decided))
    areas = [sk.roc_auc_score(target == k, SCORES[:, k]) for k in range(3)]
    assert [curve.area for curve in shown["Curves roc"].curves] == pytest.approx(areas)
    assert [curve.name for curve in shown["Curves pr"].curves] == ["a", "b", "c"]
    right, wrong = (np.array(each.counts) for each in shown["Distribution"].series)
    edges = shown["Distribution"].edges
    best = SCORES.max(1).values.double().numpy()
    assert right.tolist() == np.histogram(best[decided == target], edges)[0].tolist()
    assert wrong.tolist() == np.histogram(best[decided != target], edges)[0].tolist()
    (table,) = [each for each in found.tables if each.name == "Per class"]
    assert [row[2] for row in table.rows[:3]] == pytest.approx(sk.recall_score(target, decided, average=None).tolist())
    assert table.rows[0][0] == "a"


def test_two_classes():
    found = section(ONE, BIT, {"recall": Recall(threshold=0.4), "brier": BrierScore(), "auroc": AUROC()})
    shown = plots(found)
    assert list(shown) == ["ConfusionPlot", "Reliability", "Distribution", "Curves roc", "Curves pr"]
    assert np.array_equal(shown["ConfusionPlot"].counts, sk.confusion_matrix(BIT, ONE > 0.4))
    assert [each.name for each in shown["Distribution"].series] == ["of 1", "of 0"]
    assert [sum(each.counts) for each in shown["Distribution"].series] == [int(BIT.sum()), 200 - int(BIT.sum())]
    (curve,) = shown["Curves pr"].curves
    assert curve.area == pytest.approx(sk.average_precision_score(BIT, ONE))


def test_several_labels():
    target = torch.randint(2, (200, 3), generator=GENERATOR)
    found = section(SCORES, target, [AUROC(num_labels=3), Accuracy(num_labels=3)], classes=["red", "green", "blue"])
    assert list(plots(found)) == ["Curves roc", "Curves pr"]
    assert [row[0] for row in found.tables[0].rows[:3]] == ["red", "green", "blue"]


@pytest.mark.parametrize(
    ("preds", "target", "metrics", "shown"),
    [
        (SCORES, LABELS, Accuracy(num_classes=3), ["ConfusionPlot"]),
        (SCORES.argmax(1), LABELS, Accuracy(num_classes=3), ["ConfusionPlot"]),
        (ONE, BIT, AUROC(), ["Reliability", "Distribution", "Curves roc", "Curves pr"]),
        (ONE, BIT, BrierScore(), ["Reliability", "Distribution"]),
        (SCORES * 9, LABELS, LogLoss(num_classes=3, logits=True), ["ConfusionPlot", "Reliability", "Distribution"]),
        (SCORES, LABELS, ConfusionMatrix(num_classes=3), ["ConfusionPlot"]),
        (SCORES[:, :2], LABELS.clamp(max=1), [Accuracy(num_classes=2), AUROC(num_classes=2)], None),
        (SCORES, LABELS, [Accuracy(num_classes=3), Accuracy(num_classes=3, top_k=2)][1:], ["ConfusionPlot"]),
    ],
)
def test_only_what_the_metrics_say_is_shown(preds, target, metrics, shown):
    found = section(preds, target, metrics)
    assert shown is None or list(plots(found)) == shown
    assert not section(preds, target, metrics, diagnostics=False).plots or isinstance(metrics, ConfusionMatrix)


def test_metrics_that_disagree_have_no_details():
    metrics = {"whole": ConfusionMatrix(num_classes=3), "fine": Accuracy(num_classes=4)}
    found = section(torch.cat([SCORES], 1).argmax(1), LABELS, metrics)
    assert list(plots(found)) == ["ConfusionPlot"]
    assert found.plots[0].name == "whole"


def test_a_table_that_was_asked_for_is_not_shown_twice():
    found = section(SCORES, LABELS, {"mine": ClassReport(num_classes=3)}, classes=["a", "b", "c"])
    tables = [each for each in found.tables if each.columns[0] == "class"]
    assert [(each.name, each.rows[0][0]) for each in tables] == [("mine", "a")]


def test_a_detail_that_cannot_be_read_is_said_and_costs_nothing_else():
    scores = torch.cat([SCORES[:-1], torch.full((1, 3), 7.0)])
    metrics = [Accuracy(num_classes=3), LogLoss(num_classes=3, logits=True)]
    assert list(plots(section(scores, LABELS, metrics))) == ["ConfusionPlot", "Reliability", "Distribution"]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a"], r"classes: got 1 names, expected 3, one for each class"),
        ("abc", r"classes: got 'abc', expected one name for each class"),
    ],
)
def test_names_must_be_those_of_the_classes(classes, message):
    with pytest.raises(ConfigError, match=message):
        section(SCORES, LABELS, Accuracy(num_classes=3), classes=classes)
    with pytest.raises(ConfigError, match="classes: got 1 names for metrics of no classes"):
        section(ONE, ONE, MeanSquaredError(), classes=["a"])


@pytest.mark.parametrize(("classes", "names"), [(["cat", "dog", "owl", "fox"], ["cat", "fox"]), ([], ["0", "3"])])
def test_numbers_and_values_per_class_of_a_dictionary_are_both_shown(classes, names):
    boxes = torch.tensor([[0.0, 0.0, 40.0, 40.0], [50.0, 0.0, 90.0, 40.0]])
    truth = {"boxes": boxes, "labels": torch.tensor([0, 3])}
    batches = [([{**truth, "scores": torch.rand(2)}], [truth]) for _ in range(12)]
    metric = MeanAveragePrecision(class_metrics=True)
    (found,) = evaluate(same, batches, {"coco": metric}, device="cpu", inputs=0, classes=classes).sections
    assert {value.name: value.value for value in found.values}["coco map"] == 1
    assert all(value.biased_upwards for value in found.values)
    assert "Not shown" not in found.note
    table = next(each for each in found.tables if each.name == "coco per class")
    assert table.columns == ("class", "map_per_class", "mar_100_per_class")
    assert table.rows == tuple((name, 1.0, 1.0) for name in names)


def test_a_meter_with_details_has_the_values_of_one_without():
    metrics = {"acc": Accuracy(num_classes=3), "auroc": AUROC(num_classes=3)}
    meter = Meter(**metrics)
    meter.update(SCORES, LABELS)
    for details in (True, False):
        values = {each.name: each.value for each in section(SCORES, LABELS, metrics, diagnostics=details).values}
        assert values == {name: float(value) for name, value in meter.compute().items()}
