"""Wrappers and collections of TorchMetrics around metrics of assay: the values that they have around TorchMetrics'."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score, MulticlassRecall
from torchmetrics.regression import MeanSquaredError as TheirError
from torchmetrics.wrappers import (
    BootStrapper,
    ClasswiseWrapper,
    MetricTracker,
    MinMaxMetric,
    MultioutputWrapper,
    MultitaskWrapper,
    Running,
)

from assay import Accuracy, F1Score, MeanSquaredError, Recall
from assay.errors import StateError
from assay.integrations import as_torchmetric, as_torchmetrics
from thinning import every_third

C = 4


def batches(count: int = 4, rows: int = 24, seed: int = 0) -> list[tuple[Tensor, Tensor]]:
    made = torch.Generator().manual_seed(seed)
    return [(torch.randn(rows, C, generator=made), torch.randint(C, (rows,), generator=made)) for _ in range(count)]


def rows_of_two(count: int = 4) -> list[tuple[Tensor, Tensor]]:
    return [(preds[:, :2].contiguous(), preds[:, 2:].round().contiguous()) for preds, _ in batches(count)]


def acc(ours: bool):
    return as_torchmetric(Accuracy(num_classes=C)) if ours else MulticlassAccuracy(C, average="micro")


def f1(ours: bool):
    return as_torchmetric(F1Score(num_classes=C)) if ours else MulticlassF1Score(C)


def recalls(ours: bool):
    return as_torchmetric(Recall(num_classes=C, average=None)) if ours else MulticlassRecall(C, average=None)


def mse(ours: bool):
    return as_torchmetric(MeanSquaredError()) if ours else TheirError()


def both(ours: bool):
    return {"acc": acc(ours), "f1": f1(ours)}


def same(ours, theirs) -> None:
    if isinstance(theirs, Mapping):
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            same(ours[name], value)
        return
    one, two = (torch.as_tensor(each, dtype=torch.float64) for each in (ours, theirs))
    torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


WRAPPERS = {
    "alone": (acc, batches),
    "collection": (lambda ours: MetricCollection(both(ours)), batches),
    "without groups": (lambda ours: MetricCollection(both(ours), compute_groups=False), batches),
    "nested": (
        lambda ours: MetricCollection({"all": MetricCollection(both(ours), prefix="in_"), "r": f1(ours)}),
        batches,
    ),
    "cloned": (lambda ours: MetricCollection(both(ours)).clone(prefix="val_", postfix="_x"), batches),
    "mixed": (lambda ours: MetricCollection({"acc": acc(ours), "f1": f1(False), "g": f1(False)}), batches),
    "minimum and maximum": (lambda ours: MinMaxMetric(acc(ours)), batches),
    "classwise": (lambda ours: ClasswiseWrapper(recalls(ours), labels=list("abcd"), prefix="recall_"), batches),
    "several outputs": (lambda ours: MultioutputWrapper(mse(ours), 2), rows_of_two),
    "sum": (lambda ours: acc(ours) + 2 * f1(ours), batches),
    "absolute": (lambda ours: abs(acc(ours) - f1(ours)), batches),
    "item": (lambda ours: recalls(ours)[1], batches),
    "bootstrap": (lambda ours: BootStrapper(acc(ours), 5, raw=True, quantile=0.5), batches),
}


@every_third
@pytest.mark.parametrize(("make", "data"), WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("called", ["update", "forward", "both"])
def test_a_wrapper_has_the_values_that_it_has_around_their_metric(make, data, called):
    def values(ours: bool) -> list:
        torch.manual_seed(0)
        metric, found = make(ours), []
        for _ in range(2):
            for index, batch in enumerate(data()):
                if called == "update" or (called == "both" and index % 2):
                    metric.update(*batch)
                else:
                    found.append(metric(*batch))
                found.append(metric.compute())
            metric.reset()
        return found

    ours, theirs = values(True), values(False)
    assert len(ours) == len(theirs)
    for one, two in zip(ours, theirs, strict=True):
        same(one, two)


@pytest.mark.parametrize("groups", [[["acc", "f1"]], [["f1", "acc"]]])
def test_a_compute_group_raises_where_it_would_leave_a_member_without_data(groups):
    metrics = MetricCollection(both(True), compute_groups=groups)
    for batch in batches():
        metrics.update(*batch)
    with pytest.raises(StateError, match=r"4 updates of a compute group and 0 of its own.*compute_groups="):
        metrics.compute()


def test_a_member_of_a_group_that_was_updated_before_does_not_give_its_old_value():
    metrics = MetricCollection(both(True), compute_groups=[["acc", "f1"]])
    one, two = batches(2)
    metrics(*one)
    metrics.update(*two)
    with pytest.raises(StateError, match="2 updates of a compute group and 1 of its own"):
        metrics.compute()


def test_groups_that_torchmetrics_finds_leave_metrics_of_assay_alone():
    metrics = MetricCollection({**both(True), "twin": acc(True), "theirs": f1(False), "kin": MulticlassRecall(C)})
    for batch in batches():
        metrics.update(*batch)
    groups = sorted(sorted(group) for group in metrics.compute_groups.values())
    assert groups == [["acc"], ["f1"], ["kin", "theirs"], ["twin"]]
    values = metrics.compute()
    same(values["twin"], values["acc"])
    same(values["f1"], values["theirs"])


@pytest.mark.parametrize(
    "make",
    [acc, lambda ours: MetricCollection(both(ours)), lambda ours: as_torchmetrics(METRICS) if ours else THEIRS.clone()],
    ids=["metric", "collection", "of one meter"],
)
def test_a_tracker(make):
    def tracked(ours: bool):
        tracker = MetricTracker(make(ours))
        for one, two in (batches(2, seed=1), batches(2, seed=2), batches(2, seed=3)):
            tracker.increment()
            tracker.update(*one)
            tracker(*two)
        return tracker

    ours, theirs = tracked(True), tracked(False)
    same(ours.compute(), theirs.compute())
    same(ours.compute_all(), theirs.compute_all())
    (best, at), (other, where) = ours.best_metric(return_step=True), theirs.best_metric(return_step=True)
    same(best, other)
    assert at == where


METRICS = {"acc": Accuracy(num_classes=C), "f1": F1Score(num_classes=C)}
THEIRS = MetricCollection(both(False))


def test_several_tasks():
    def values(ours: bool):
        metric = MultitaskWrapper({"class": acc(ours), "number": mse(ours)})
        for one, two in zip(batches(), rows_of_two(), strict=True):
            metric.update({"class": one[0], "number": two[0]}, {"class": one[1], "number": two[1]})
        return metric.compute()

    same(values(True), values(False))


@pytest.mark.parametrize("called", ["update", "forward"])
def test_a_running_value_is_refused(called):
    running = Running(acc(True), window=2)
    (running.update if called == "update" else running)(*batches(1)[0])
    with pytest.raises(StateError, match=r"as of Running.*assay.wrappers.Running"):
        running.compute()


def test_a_collection_of_one_meter_inside_of_another_collection_is_refused():
    metrics = MetricCollection({"ours": as_torchmetrics(METRICS), "theirs": f1(False)})
    for call in (metrics.update, metrics):
        with pytest.raises(StateError, match="expected one for all"):
            call(*batches(1)[0])


def test_what_a_member_of_one_meter_refuses():
    metrics = as_torchmetrics(METRICS)
    metrics.update(*batches(1)[0])
    with pytest.raises(StateError, match="merge_state of acc: got counts for one member"):
        metrics["acc"].merge_state(as_torchmetrics(METRICS)["acc"])
    with pytest.raises(StateError, match="sync of acc: got counts for one member"):
        metrics["acc"].sync()
    assert metrics.meter.rows == 24
