"""Metrics under Ignite's names give what Ignite's give: random batches, engines, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import ignite.metrics as original
import pytest
import torch
from assay.compat.ignite.engine import Engine
from assay.compat.ignite.metrics import Accuracy, Loss, Precision
from ignite.exceptions import NotComputableError

from assay.compat import ignite
from assay.errors import AssayWarning, InvalidValuesError, ShapeError, StateError
from assay.migrate.table import library
from assay.pretend import pretend
from ranks import processes

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
    "padded": [(rand(rows, length), rand(rows, length)) for rows, length in ((4, 3), (2, 5), (0, 7), (3, 1))],
    "images": [(rand(rows, 3, size, size), rand(rows, 3, size, size)) for rows, size in ((2, 4), (3, 2))],
    "sizes": [(rand(rows, 4, size, 2), labels(4, rows, size, 2)) for rows, size in ((2, 3), (4, 1))],
    "vocabularies": [(rand(9, classes), labels(3, 9)) for classes in (3, 5, 4)],
    "late": [(rand(0), rand(0)), (rand(9) + 0.1, rand(9) + 0.1)],
    "rare": [(rand(9, 4), labels(2, 9))],
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
        for average in (*AVERAGES, "samples")
    ),
    *(("TopKCategoricalAccuracy", {"k": k}, kind) for k in (1, 2) for kind in ("multiclass", "vocabularies")),
    *(
        ("ConfusionMatrix", {"num_classes": 4, "average": average}, kind)
        for average in (None, "samples", "recall", "precision")
        for kind in ("multiclass", "sizes", "rare")
    ),
    *((name, {}, kind) for name in ("ROC_AUC", "AveragePrecision") for kind in ("scores", "column", "label scores")),
    *((name, {}, kind) for name in ("PrecisionRecallCurve",) for kind in ("scores", "column")),
    *(
        (name, {}, kind)
        for name in ("MeanSquaredError", "MeanAbsoluteError", "RootMeanSquaredError")
        for kind in ("numbers", "rows", "padded", "images", "late")
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
    assert type(ours) is type(expected) or (isinstance(ours, float) and isinstance(expected, float))
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
    scores = torch.tensor([0.3, 1.0]), torch.tensor([0, 1])  # where Ignite takes 0 and 1 only
    metric = Accuracy()
    with pytest.raises(ValueError, match="0's and 1's"):
        metric.update(scores)
    with pytest.raises(NotComputableError):
        metric.compute()
    with pretend("mps"):
        metric.update(tuple(each.to("mps") for each in scores))
        with pytest.raises(InvalidValuesError, match="1"):
            metric.compute()


def test_a_metric_without_a_counterpart_is_that_of_ignite_and_says_what_assay_has():
    vars(ignite.metrics).pop("FID", None)  # what another test looked up
    with pytest.warns(AssayWarning, match="FID: .*FrechetDistance") as warned:
        assert ignite.metrics.FID is original.FID
    assert warned[0].filename == __file__


def test_invalid_labels_of_samples_raise():
    metric = Precision(average="samples", is_multilabel=True)
    with pretend("mps"):
        metric.update((torch.tensor([[0, 1], [2, 1]]).to("mps"), torch.tensor([[0, 1], [0, 1]]).to("mps")))
        with pytest.raises(InvalidValuesError, match="neither 0 nor 1"):
            metric.compute()


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


def test_a_sum_over_outputs_is_rounded_once():
    for _ in range(20):
        preds, target = rand(7, 5), rand(7, 5)
        pairs = zip(preds.flatten().tolist(), target.flatten().tolist(), strict=True)
        differences = [Fraction(pred) - Fraction(wanted) for pred, wanted in pairs]
        for name, power in (("MeanSquaredError", 2), ("MeanAbsoluteError", 1)):
            metric = getattr(ignite.metrics, name)()
            metric.update((preds, target))
            assert metric.compute() == float(sum(abs(each) ** power for each in differences) / 7)


def test_without_samples_there_is_no_value_where_ignite_has_none():
    for name, given, batch in (
        ("MeanAbsoluteError", {}, (rand(0), rand(0))),
        ("Accuracy", {}, (rand(0, 3), labels(3, 0))),
        ("ConfusionMatrix", {"num_classes": 3, "average": "samples"}, (rand(0, 3), labels(3, 0))),
        ("ROC_AUC", {}, (rand(0), labels(2, 0))),
    ):
        metric = getattr(ignite.metrics, name)(**given)
        metric.update(batch)
        with pytest.raises(NotComputableError, match="must have at least one example"):
            metric.compute()
    assert ignite.metrics.regression.CanberraMetric().compute() == 0
    precision = Precision(average="micro")
    precision.update((labels(2, 0), labels(2, 0)))
    assert precision.compute() == 0


def test_numbers_reach_the_state_of_an_engine_as_floats():
    evaluator = Engine(lambda engine, batch: batch)
    Precision(average=False).attach(evaluator, "precision")
    assert type(evaluator.run([(torch.zeros(3), torch.zeros(3))]).metrics["precision"]) is float


@pytest.mark.parametrize(("scores", "k"), [((4, 2), 3), ((4,), 1)])
def test_more_places_than_classes_raise(scores, k):
    with pytest.raises(ShapeError, match="y_pred"):
        ignite.metrics.TopKCategoricalAccuracy(k=k).update((rand(*scores), labels(2, 4)))


def test_hits_of_invalid_scores_and_labels_raise():
    for scores, target in (([[float("nan"), 1.0]], [1]), ([[0.0, 1.0]], [2])):
        metric = ignite.metrics.TopKCategoricalAccuracy(k=1)
        metric.update((torch.tensor(scores), torch.tensor(target)))
        with pytest.raises(InvalidValuesError):
            metric.compute()


def of_a_rank(rank, size):
    """Batches of another shape on each process, and none of one metric on the first."""
    found = []
    for name in ("MeanSquaredError", "Accuracy", "ROC_AUC"):
        metric = getattr(ignite.metrics, name)()
        batch = (torch.ones(4, 3 + 2 * rank), torch.zeros(4, 3 + 2 * rank))
        if name != "MeanSquaredError":
            batch = (torch.eye(4), torch.tensor([0, 1, 2, 0])) if name == "Accuracy" else BATCHES["scores"][0]
        if rank or name == "MeanSquaredError":
            metric.update(batch)
        found.append(metric.compute())
    return found


def test_processes_with_other_shapes_or_without_a_batch_have_the_same_value(tmp_path):
    scores = original.ROC_AUC()
    scores.update(BATCHES["scores"][0])
    first, second = processes(of_a_rank, 2, tmp_path)
    assert first == second == [4.0, 0.75, pytest.approx(scores.compute())]


def test_a_state_whose_rows_were_counted_otherwise_is_refused():
    metric = Precision(average=False)
    metric.update(BATCHES["multiclass"][0])
    state = metric._state_dict_per_rank()
    with pytest.raises(StateError, match="older release"):
        metric._load_state_dict_per_rank({**state, "layout": (*state["layout"], 4)})


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
    assert ignite.metrics.RunningAverage is original.RunningAverage
    assert ignite.metrics.Metric is original.Metric
