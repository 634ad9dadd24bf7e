"""Strings as labels, which one code book numbers for predictions and targets."""

import pickle

import numpy as np
import pytest
import torch

from assay import AUROC, Accuracy, ConfusionMatrix, F1Score, MeanSquaredError, Meter
from assay.errors import AssayError, ConfigError, InputError, StateError

ABC = ("a", "b", "c")


@pytest.mark.parametrize("kind", [list, np.array, lambda values: np.array(values, object), np.atleast_1d])
def test_strings_of_predictions_and_targets_have_one_number(kind):
    preds, target = kind(["b", "c", "b"]), kind(["a", "c", "a"])
    assert float(Accuracy(num_classes=3)(preds, target)) == 1 / 3
    assert ConfusionMatrix(num_classes=3)(preds, target).tolist() == [[0, 2, 0], [0, 0, 0], [0, 0, 1]]
    assert float(Accuracy()(preds[:2], kind(["c", "c"]), labels=("b", "c"))) == 0.5


def test_batches_share_the_labels_of_their_meter():
    meter = Meter("accuracy,f1:average=macro", labels=ABC)
    assert [metric.num_classes for metric in meter.metrics.values()] == [3, 3]
    meter.update(["c", "c"], ["c", "b"])
    meter.update(np.eye(3, dtype=np.float32), ["a", "b", "a"])  # scores are in the order of labels
    meter.update(torch.tensor([1]), np.array([1]))
    assert float(meter.compute()["accuracy"]) == 4 / 6
    for copy in (pickle.loads(pickle.dumps(meter)), meter + meter.fresh(), meter.only("accuracy")):
        copy.update(["b"], ["c"])
        assert float(copy.compute()["accuracy"]) == 4 / 7


def test_files_and_states_keep_the_labels(tmp_path):
    meter = Meter(acc=Accuracy(num_classes=3), labels=ABC)
    meter.update(["a", "b"], ["a", "c"])
    again = Meter.from_file(meter.to_file(tmp_path / "counts"))
    again.update(["c"], ["c"])
    assert float(again.compute()["acc"]) == 2 / 3
    other = Meter(acc=Accuracy(num_classes=3), labels=["c", "b", "a"])
    for load in (lambda: other.merge(meter), lambda: other.load_state_dict(meter.state_dict())):
        with pytest.raises(StateError):
            load()


@pytest.mark.parametrize(
    ("measure", "error", "message"),
    [
        (
            lambda: Meter("accuracy").update(["a"], ["b"]),
            InputError,
            "list of strings, .* Pass labels= with all classes",
        ),
        (
            lambda: Accuracy()(["a", "b"], ["b", "b"]),
            ConfigError,
            r'labels=\["a", "b"\]: the second one is the positive',
        ),
        (lambda: F1Score(num_classes=3)(["a"], ["b"]), ConfigError, r"labels: got 2 \(a, b\), .*or pass all 3 labels"),
        (lambda: Accuracy()(list("abc"), list("abc")), ConfigError, r"Write Accuracy\(num_classes=3\)"),
        (lambda: Accuracy(num_classes=3)(np.eye(3), list("abc")), InputError, "target: got list of strings"),
        (
            lambda: Accuracy(num_classes=3)(list("abd"), list("abc"), labels=ABC),
            InputError,
            "got 'd', expected one of the",
        ),
        (lambda: Accuracy(num_classes=3)(["a", None, "b"], list("abc")), InputError, "preds: got None at 1"),
        (lambda: Accuracy(num_classes=3)(["a", float("nan")], list("ab")), InputError, "preds: got nan at 1"),
        (lambda: Accuracy(num_classes=3)(["a", 1], list("ab"), labels=ABC), InputError, "preds: got 1 at 1"),
        (lambda: MeanSquaredError()(["1", "nan"], ["1", "2"]), InputError, "preds: got list of strings"),
        (lambda: MeanSquaredError()(["1"], ["1"], labels=("1", "2")), ConfigError, "Make another meter for MeanSq"),
        (lambda: Meter(AUROC(num_labels=2), labels=("a", "b")), ConfigError, "metrics of binary or multiclass labels"),
        (lambda: Meter(labels=Accuracy()), ConfigError, "A metric cannot be named labels"),
        (lambda: Meter("accuracy", labels="ab"), ConfigError, "labels: got 'ab', expected the strings"),
        (lambda: Meter("accuracy", labels=["a", "a"]), ConfigError, "'a' twice"),
    ],
)
def test_strings_without_one_meaning_are_refused_with_what_to_write(measure, error, message):
    with pytest.raises(error, match=message) as caught:
        measure()
    assert isinstance(caught.value, AssayError)
