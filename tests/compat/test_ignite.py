"""Metrics under Ignite's names give what Ignite's give: random batches, engines, and what is refused."""

from __future__ import annotations

import ignite.metrics as original
import pytest
import torch
from assay.compat.ignite.engine import Engine
from assay.compat.ignite.metrics import Accuracy, Loss, Precision
from ignite.exceptions import NotComputableError

from assay.compat import ignite
from assay.errors import AssayWarning, InvalidValuesError, ShapeError
from assay.migrate.table import library

GENERATOR = torch.Generator().manual_seed(5)


def rand(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=GENERATOR)


def labels(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(high, shape, generator=GENERATOR)


BATCHES = {
    "binary": [(labels(2, 9), labels(2, 9)) for _ in range(2)],
    "multiclass": [(rand(9, 4), labels(3, 9)) for _ in range(2)],
    "positions": [(rand(5, 4, 2, 3), labels(4, 5, 2, 3)) for _ in range(2)],
    "multilabel": [(labels(2, 9, 3), labels(2, 9, 3)) for _ in range(2)],
    "scores": [(rand(9), labels(2, 9)) for _ in range(2)],
    "column": [(rand(9, 1), labels(2, 9, 1)) for _ in range(2)],
    "label scores": [(rand(9, 3), labels(2, 9, 3)) for _ in range(2)],
    "numbers": [(rand(9) + 0.1, rand(9) + 0.1) for _ in range(2)],
    "rows": [(rand(9, 3) + 0.1, rand(9, 3) + 0.1) for _ in range(2)],
}
AVERAGES = [False, True, "macro", "micro", "weighted", None]
CASES = [
    *(("Accuracy", {}, kind) for kind in ("binary", "multiclass", "positions")),
    ("Accuracy", {"is_multilabel": True}, "multilabel"),
    *(
        (name, {"average": average}, kind)
        for name in ("Precision", "Recall")
        for average in AVERAGES
        for kind in ("binary", "multiclass", "positions")
    ),
    *(
        (name, {"average": average, "is_multilabel": True}, "multilabel")
        for name in ("Precision", "Recall")
        for average in AVERAGES
    ),
    ("TopKCategoricalAccuracy", {"k": 2}, "multiclass"),
    *(
        ("ConfusionMatrix", {"num_classes": 4, "average": average}, "multiclass")
        for average in (None, "samples", "recall", "precision")
    ),
    *((name, {}, kind) for name in ("ROC_AUC", "AveragePrecision") for kind in ("scores", "column", "label scores")),
    *((name, {}, kind) for name in ("PrecisionRecallCurve",) for kind in ("scores", "column")),
    *(
        (name, {}, kind)
        for name in ("MeanSquaredError", "MeanAbsoluteError", "RootMeanSquaredError")
        for kind in ("numbers", "rows")
    ),
    *(
        (name, {}, "numbers")
        for name, entry in library("ignite").entries.items()
        if getattr(original, name, None) is None and hasattr(original.regression, name) and not entry.unsure
    ),
]


@pytest.mark.parametrize(("name", "given", "kind"), CASES, ids=lambda each: str(each).replace("'", ""))
def test_values_are_those_of_ignite(name, given, kind):
    def value(modules):
        home = modules.metrics if hasattr(original, name) else modules.metrics.regression
        metric = getattr(home, name)(**given)
        for batch in BATCHES[kind]:
            metric.update(batch)
        return metric.compute()

    ours, expected = value(ignite), value(type("ignite", (), {"metrics": original}))
    assert isinstance(ours, float) == isinstance(expected, float)
    torch.testing.assert_close(ours, expected, check_dtype=False, rtol=1e-5, atol=1e-6)


def test_an_import_is_all_that_changes():
    def transform(output):
        return output["y_pred"], output["y"]

    evaluator = Engine(lambda engine, batch: {"y_pred": batch[0], "y": batch[1]})
    metrics = {"accuracy": Accuracy(transform), "loss": Loss(torch.nn.functional.cross_entropy, transform)}
    precision, recall = Precision(transform, average=False), ignite.metrics.Recall(transform, average=False)
    metrics["f1"] = (precision * recall * 2 / (precision + recall + 1e-20)).mean()
    for name, metric in metrics.items():
        metric.attach(evaluator, name)
    state = evaluator.run(BATCHES["multiclass"])
    expected = original.Accuracy()
    for batch in BATCHES["multiclass"]:
        expected.update(batch)
    assert state.metrics["accuracy"] == pytest.approx(expected.compute())
    assert 0 < state.metrics["f1"] < 1


def test_what_ignite_refuses_is_refused():
    with pytest.raises(NotComputableError, match="Accuracy"):
        Accuracy().compute()
    with pytest.raises(ValueError, match="average"):
        Precision(average="median")
    with pytest.raises(ValueError, match="shape"):
        Accuracy().update((torch.ones(2), torch.ones(3)))
    with pytest.raises(TypeError, match="float"):
        ignite.metrics.regression.CanberraMetric().update((labels(2, 4), labels(2, 4)))
    with pytest.raises(ShapeError, match="y_pred"):
        Accuracy().update((torch.ones(2),))
    metric = Accuracy()
    metric.update((torch.tensor([0.3, 1.0]), torch.tensor([0, 1])))  # scores, where Ignite takes 0 and 1 only
    with pytest.raises(InvalidValuesError, match="1"):
        metric.compute()


@pytest.mark.parametrize("name", ["SSIM", "CohenKappa", "Rouge", "Entropy"])
def test_a_metric_without_a_counterpart_is_that_of_ignite_and_says_what_assay_has(name):
    vars(ignite.metrics).pop(name, None)  # what another test looked up
    with pytest.warns(AssayWarning, match=f"{name}: .*assay's metric") as warned:
        assert getattr(ignite.metrics, name).__module__.startswith("ignite.metrics")
    assert warned[0].filename == __file__


def test_an_argument_without_counterpart_gives_the_metric_of_ignite_with_a_warning():
    with pytest.warns(AssayWarning, match=r"Precision.*samples"):
        metric = Precision(average="samples", is_multilabel=True)
    assert type(metric) is original.Precision


def test_classes_are_those_of_ignite():
    metric = Accuracy(device="cpu")
    assert isinstance(metric, original.Accuracy)
    assert Accuracy.get_sequence_transform is original.Accuracy.get_sequence_transform
    matrix = ignite.metrics.ConfusionMatrix(num_classes=3)
    mean = original.mIoU(matrix)
    matrix.update((torch.eye(3), torch.tensor([0, 1, 1])))
    assert mean.compute().item() == pytest.approx(0.5)
    scores = ignite.metrics.ROC_AUC()
    scores.update((torch.tensor([0, 1, 3]), torch.tensor([0, 1, 1])))
    assert scores.compute() == 1


def test_labels_of_no_class_are_left_out_of_a_confusion_matrix():
    preds, target = torch.eye(3), torch.tensor([0, 255, -1])
    metric = ignite.metrics.ConfusionMatrix(num_classes=3)
    metric.update((preds, target))
    assert metric.compute().tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_states_are_saved_and_loaded_before_the_first_batch():
    metric = Precision(average=False)
    metric.update(BATCHES["multiclass"][0])
    state, expected = metric.state_dict(), metric.compute()
    metric.reset()
    metric.load_state_dict(state)
    torch.testing.assert_close(metric.compute(), expected)
    metric.load_state_dict(Precision(average=False).state_dict())
    with pytest.raises(NotComputableError):
        metric.compute()


def test_what_is_no_metric_of_predictions_is_that_of_ignite():
    assert ignite.metrics.Loss is original.Loss
    assert ignite.metrics.RunningAverage is original.RunningAverage
    assert ignite.metrics.Metric is original.Metric
