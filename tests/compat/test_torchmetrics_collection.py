"""A collection of compatible metrics counts once what they share, and gives what one of TorchMetrics gives."""

from __future__ import annotations

import copy
import pickle
import random

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
    assert ours.compute_groups == {number: [name] for number, name in enumerate(ours)}
    ours.update(*BATCHES[0])
    groups = [["accuracy", "f1"], ["auroc", "precision"], ["matrix"], ["samplewise"]]
    assert ours.compute_groups == dict(enumerate(groups))
    assert collection(torchmetrics, compute_groups=False).compute_groups == {}
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


@pytest.mark.filterwarnings("ignore:.*TorchMetrics itself computes it:assay.errors.AssayWarning")
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


class Confident(original.Metric):
    """A metric of the user's own, which keeps its states itself."""

    full_state_update = False

    def __init__(self):
        super().__init__()
        self.add_state("highest", default=torch.tensor(0.0), dist_reduce_fx="max")
        self.add_state("targets", default=[], dist_reduce_fx="cat")

    def update(self, preds, target):
        self.highest = torch.maximum(self.highest, preds.max())
        self.targets.append(target.flatten().float())

    def compute(self):
        return self.highest + original.utilities.dim_zero_cat(self.targets).mean()


def used(kinds, seed):
    """What a collection gives while it is used at random; the order is that of the seed."""
    order = random.Random(seed)
    task = {"task": "multiclass", "num_classes": 3}
    metrics = {
        **{name: each.clone() for name, each in collection(kinds).items() if name != "samplewise"},
        "own": Confident(),
        "smallest": kinds.MinMaxMetric(kinds.Accuracy(**task)),
        "classes": kinds.ClasswiseWrapper(kinds.Recall(**task, average=None), labels=["a", "b", "c"]),
        "twice": 2 * kinds.Precision(**task),
        "last": kinds.wrappers.Running(kinds.Accuracy(**task), window=2),
        "stepwise": kinds.Specificity(**task, dist_sync_on_step=True),
    }
    chosen = {name: metrics[name] for name in order.sample(sorted(metrics), 5)}
    groups = kinds is torchmetrics  # those of TorchMetrics count some batches twice after add_metrics
    several = kinds.MetricCollection(chosen, prefix="val_", compute_groups=groups)
    several.update(*BATCHES[0])
    for step in range(12):
        kind = order.choice(
            ["update", "forward", "forward", "compute", "reset", "copy", "rename", "add", "items", "member"]
        )
        if kind == "update":
            several.update(*order.choice(BATCHES))
        elif kind == "forward":
            yield kind, several(*order.choice(BATCHES))
        elif kind == "reset":
            several.reset()
            several.update(*BATCHES[0])
        elif kind == "copy":
            several = order.choice(list(COPIES.values()))(several)
        elif kind == "rename":
            several = several.clone(prefix=f"{step}_", postfix="_x")
        elif kind == "add":
            several.add_metrics({f"new{step}": kinds.CohenKappa(**task)})
            several.update(*BATCHES[1])
        elif kind == "items":
            yield kind, [list(several.keys(keep_base)) for keep_base in (False, True)]
            yield kind, [type(each).__name__ for each in several.values()]
        elif kind == "member":
            yield kind, several[order.choice(list(several.keys(keep_base=True)))].compute()
        yield kind, several.compute()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(8))
def test_random_use_gives_what_torchmetrics_gives(seed):
    for (step, ours), (_, expected) in zip(used(torchmetrics, seed), used(original, seed), strict=True):
        if isinstance(expected, list):
            assert ours == expected, step
        else:
            torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_groups_of_the_caller_share_a_meter_each():
    groups = [["matrix"], ["f1", "accuracy", "auroc"]]
    ours = collection(torchmetrics, compute_groups=groups)
    others = {2: ["precision"], 3: ["samplewise"]}
    assert ours.compute_groups == {0: groups[0], 1: groups[1], **others}
    ours.update(*BATCHES[0])
    meters = {name: metric.meter for name, metric in ours._modules.items()}
    assert meters["accuracy"] is meters["f1"]
    assert len({id(meter) for meter in meters.values()}) == 5
    assert ours.compute_groups == {0: groups[0], 1: groups[1], **others}
    expected = collection(original)
    expected.update(*BATCHES[0])
    same(ours.compute(), expected.compute())


def test_a_member_that_was_used_by_itself_is_in_its_group_again_after_reset():
    ours = collection(torchmetrics)
    ours.update(*BATCHES[0])
    ours["f1"].update(*BATCHES[1])
    ours.compute()  # which does not forget what one member counted
    ours.update(*BATCHES[2])
    alone = collection(original)["f1"]
    for batch in BATCHES:
        alone.update(*batch)
    same(ours["f1"].compute(), alone.compute())
    assert ["f1"] in ours.compute_groups.values()
    ours.reset()
    ours.update(*BATCHES[0])
    assert ours._modules["accuracy"].meter is ours._modules["f1"].meter
    expected = collection(original)
    expected.update(*BATCHES[0])
    same(ours.compute(), expected.compute())


def test_counts_are_saved_for_each_metric_by_itself():
    ours, other, apart = (
        collection(torchmetrics),
        collection(torchmetrics),
        collection(torchmetrics, compute_groups=False),
    )
    for each in (ours, other, apart):
        each.persistent(True)
    ours.update(*BATCHES[0])
    other.update(*BATCHES[1])  # which is forgotten
    for each in (other, apart):
        each.load_state_dict(ours.state_dict())
        for batch in BATCHES[1:]:
            each.update(*batch)
    expected = collection(original)
    for batch in BATCHES:
        expected.update(*batch)
    same(other.compute(), expected.compute())
    same(apart.compute(), expected.compute())
    lone = torchmetrics.F1Score(task="multiclass", num_classes=3, average="macro")
    lone.merge_state(ours.metric_state["f1"])
    same(lone.compute(), ours["f1"].compute())


def test_states_of_members_are_merged():
    one, two, expected = collection(torchmetrics), collection(torchmetrics), collection(original)
    for each in (one, two, expected):
        del each._modules["samplewise"]  # where TorchMetrics puts the samples that are merged first
        each._init_compute_groups()
    one.update(*BATCHES[0])
    two.update(*BATCHES[1])
    for batch in BATCHES[:2]:
        expected.update(*batch)
    for name, state in two.metric_state.items():
        one[name].merge_state(state)
    same(one.compute(), expected.compute())
    one.update(*BATCHES[2])
    expected.update(*BATCHES[2])
    same(one.compute(), expected.compute())


@pytest.mark.filterwarnings("ignore:Metric `Spearman:UserWarning")
@pytest.mark.parametrize(
    "names", [("BinaryAUROC", "BinaryAveragePrecision", "BinaryROC"), ("KendallRankCorrCoef", "SpearmanCorrCoef")]
)
def test_metrics_of_the_same_samples_share_a_meter_although_one_takes_other_dtypes(names):
    home = torchmetrics.classification if names[0].startswith("Binary") else torchmetrics.regression
    collection = torchmetrics.MetricCollection([getattr(home, name)() for name in names])
    collection.update(torch.rand(9, generator=torch.Generator().manual_seed(0)), torch.arange(9.0) % 2)
    assert len({id(each.meter) for each in collection.values(copy_state=False)}) == 1
