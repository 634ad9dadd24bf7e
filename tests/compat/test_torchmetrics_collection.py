"""A collection of compatible metrics counts once what they share, and gives what one of TorchMetrics gives."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
import torchmetrics as original

from assay.compat import torchmetrics

GENERATOR = torch.Generator().manual_seed(9)
BATCHES = [
    (torch.randn(20, 3, 2, generator=GENERATOR), torch.randint(3, (20, 2), generator=GENERATOR)) for _ in range(3)
]
COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda each: pickle.loads(pickle.dumps(each)),
    "clone": lambda c: c.clone(),
}


def collection(kinds, **options):
    task = {"task": "multiclass", "num_classes": 3}
    metrics = {
        "accuracy": kinds.Accuracy(**task),
        "f1": kinds.F1Score(**task, average="macro"),
        "matrix": kinds.ConfusionMatrix(**task),
        "auroc": kinds.AUROC(**task),
        "precision": kinds.AveragePrecision(**task),
        "samplewise": kinds.Accuracy(**task, multidim_average="samplewise", average="macro"),
    }
    return kinds.MetricCollection(metrics, **options)


def same(ours, expected):
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)


def test_metrics_that_take_batches_alike_share_a_meter():
    ours = collection(torchmetrics)
    assert ours.compute_groups == {0: ["accuracy", "f1", "matrix"], 1: ["auroc", "precision"], 2: ["samplewise"]}
    ours.update(*BATCHES[0])
    assert ours._modules["accuracy"].meter is ours._modules["matrix"].meter
    assert ours._modules["accuracy"].meter.rows == len(BATCHES[0][0])


@pytest.mark.parametrize("options", [{}, {"compute_groups": False}, {"compute_groups": [["accuracy", "f1"]]}])
def test_values_are_those_of_torchmetrics(options):
    ours, expected = collection(torchmetrics, prefix="val_", **options), collection(original, prefix="val_")
    for _ in range(2):
        ours.update(*BATCHES[0])
        expected.update(*BATCHES[0])
        same(ours(*BATCHES[1]), expected(*BATCHES[1]))
        same(ours.compute(), expected.compute())
        ours.update(*BATCHES[2])
        expected.update(*BATCHES[2])
        same(ours.compute(), expected.compute())
        ours.reset()
        expected.reset()


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)), lambda each: each.clone()]
)
def test_copies_count_for_themselves(copied):
    ours = collection(torchmetrics)
    ours.update(*BATCHES[0])
    other = copied(ours)
    other.update(*BATCHES[1])
    expected = collection(original)
    expected.update(*BATCHES[0])
    same(ours.compute(), expected.compute())
    expected.update(*BATCHES[1])
    same(other.compute(), expected.compute())


def test_a_member_can_be_used_by_itself():
    ours = collection(torchmetrics)
    ours.update(*BATCHES[0])
    single = torchmetrics.F1Score(task="multiclass", num_classes=3, average="macro")
    single.update(*BATCHES[0])
    assert ours["f1"].compute() == single.compute()
    ours["f1"].update(*BATCHES[1])  # as with TorchMetrics, that of the collection is then as it was
    single.update(*BATCHES[1])
    assert ours["f1"].compute() == single.compute()


def test_metrics_can_be_added_later_and_collections_nest():
    ours = torchmetrics.MetricCollection({"in": collection(torchmetrics)})
    ours.add_metrics({"other": torchmetrics.CohenKappa(task="multiclass", num_classes=3)})
    expected = original.MetricCollection({"in": collection(original)})
    expected.add_metrics({"other": original.CohenKappa(task="multiclass", num_classes=3)})
    for each in (ours, expected):
        each.update(*BATCHES[0])
    same(ours.compute(), expected.compute())


@pytest.mark.parametrize("name", ["accuracy", "f1"])
@pytest.mark.parametrize("step", ["update", "forward"])
def test_what_is_done_with_one_member_is_done_with_no_other(name, step):
    ours = collection(torchmetrics)
    alone = {each: metric.clone() for each, metric in ours.items()}
    ours.update(*BATCHES[0])
    ours[name].update(*BATCHES[1])
    getattr(ours, step)(*BATCHES[2])
    ours[name].reset()
    getattr(ours, step)(*BATCHES[0])
    for each, metric in alone.items():
        for batch in BATCHES[:1] if each == name else (BATCHES[0], BATCHES[2], BATCHES[0]):
            metric.update(*batch)
    same(ours.compute(), {each: metric.compute() for each, metric in alone.items()})
    ours.reset()
    ours.update(*BATCHES[1])
    for metric in alone.values():
        metric.reset()
        metric.update(*BATCHES[1])
    same(ours.compute(), {each: metric.compute() for each, metric in alone.items()})


def test_a_subclass_with_a_compute_of_its_own_is_no_part_of_a_group():
    def made(kinds):
        class Percent(kinds.classification.MulticlassAccuracy):
            def compute(self):
                return {"percent": 100 * super().compute()}

        class Argmax(kinds.classification.MulticlassAccuracy):
            def update(self, preds, target):
                super().update(preds.argmax(1), 2 - target)

        several = {"a": Percent(3), "b": kinds.classification.MulticlassAccuracy(3), "c": Argmax(3)}
        return kinds.MetricCollection(several, compute_groups=kinds is torchmetrics)

    ours, expected = made(torchmetrics), made(original)
    for batch in BATCHES:
        same(ours(*batch), expected(*batch))
    ours.update(*BATCHES[0])
    expected.update(*BATCHES[0])
    same(ours.compute(), expected.compute())
