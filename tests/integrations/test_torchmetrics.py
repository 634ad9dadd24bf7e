"""assay's metrics as metrics of TorchMetrics, held to what its hosts ask of one; and the other way round."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torchmetrics import Metric as TorchMetric
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score
from torchmetrics.image import PeakSignalNoiseRatio
from torchmetrics.regression import SpearmanCorrCoef as TheirSpearman
from torchmetrics.utilities.exceptions import TorchMetricsUserError
from torchmetrics.wrappers import Running

from assay import Accuracy, F1Score, MeanSquaredError, Meter, metrics
from assay.compat.counterparts import counterpart
from assay.errors import ConfigError, ShapeError, StateError
from assay.integrations import AssayCollection, AssayMetric, as_torchmetric, as_torchmetrics, from_torchmetrics
from assay.metrics import FrechetDistance, KernelInceptionDistance, Mean, PrecisionRecallCurve, SpearmanCorrCoef
from assay.migrate.table import library
from ranks import processes

CLASSES = 5
METRICS = {"acc": Accuracy(num_classes=CLASSES), "f1": F1Score(num_classes=CLASSES, average="macro")}


def batches(count=4, rows=16, seed=0):
    made = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(rows, CLASSES, generator=made), torch.randint(CLASSES, (rows,), generator=made))
        for _ in range(count)
    ]


def test_it_is_a_metric_of_torchmetrics_with_its_value():
    metric = as_torchmetric(Accuracy(num_classes=CLASSES))
    theirs = MulticlassAccuracy(CLASSES, average="micro")
    assert isinstance(metric, TorchMetric)
    for batch in batches():
        metric.update(*batch)
        theirs.update(*batch)
    assert metric.compute().item() == pytest.approx(theirs.compute().item(), abs=1e-7)
    assert (metric.update_count, metric.update_called) == (4, True)
    metric.reset()
    assert metric.meter.rows == 0
    assert not metric.update_called


def test_forward_gives_the_value_of_the_batch_and_counts_it():
    metric, (one, two) = as_torchmetric(Accuracy(num_classes=CLASSES)), batches(2)
    assert metric(*one) == Accuracy(num_classes=CLASSES)(*one)
    assert metric(*two) == metric._forward_cache == Accuracy(num_classes=CLASSES)(*two)
    assert metric.compute() == Accuracy(num_classes=CLASSES)(*map(torch.cat, zip(one, two, strict=True)))


def test_a_meter_gives_its_values_by_name():
    metric, batch = as_torchmetric(Meter(**METRICS)), batches(1)[0]
    metric.update(*batch)
    assert metric.compute() == values_of(batch)


def values_of(*given):
    meter = Meter(**METRICS)
    for batch in given:
        meter.update(*batch)
    return {name: value.float() for name, value in meter.compute().items()}


def test_weights():
    metric, (preds, target) = as_torchmetric(Accuracy(num_classes=CLASSES), weighted=True), batches(1)[0]
    weights = torch.rand(16)
    metric.update(preds, target, weights=weights)
    assert metric.compute() == Accuracy(num_classes=CLASSES)(preds, target, weights=weights).float()


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), lambda m: m.clone()])
def test_copies_count_on_their_own(make):
    metric, (one, two) = as_torchmetric(Accuracy(num_classes=CLASSES)), batches(2)
    metric.update(*one)
    copied = make(metric)
    before = metric.compute()
    copied.update(*two)
    assert metric.compute() == before
    assert copied.compute() == Accuracy(num_classes=CLASSES)(*map(torch.cat, zip(one, two, strict=True)))


def test_counts_go_into_a_checkpoint_when_asked():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.acc = nn.Linear(2, 2), as_torchmetric(Accuracy(num_classes=CLASSES))

    model, other = Model(), Model()
    assert set(model.state_dict()) == {"layer.weight", "layer.bias"}
    for each in (model, other):
        each.acc.persistent(True)
    model.acc.update(*batches(1)[0])
    assert not torch.nn.Module.load_state_dict(other, model.state_dict()).missing_keys
    assert other.acc.compute() == model.acc.compute()
    assert other.acc.update_called
    with pytest.raises(RuntimeError, match=r"Missing key.*acc\.about"):
        other.load_state_dict({name: each for name, each in model.state_dict().items() if "acc" not in name})


def test_counts_of_other_metrics_are_refused():
    one, two = as_torchmetric(Accuracy(num_classes=CLASSES)), as_torchmetric(Accuracy(num_classes=3))
    for each in (one, two):
        each.persistent(True)
    with pytest.raises(RuntimeError, match="expected for"):
        one.load_state_dict(two.state_dict())


@pytest.mark.devices("mps", "cuda:1")
def test_values_are_where_the_batches_are(device, pretended):
    metric, collection = as_torchmetric(Accuracy(num_classes=CLASSES)), as_torchmetrics(METRICS)
    metric.update(*batches(1)[0])
    before = metric.compute()
    metric = metric.to(device)
    assert metric.device == metric.compute().device == device
    on_device = [each.to(device) for each in batches(1)[0]]
    loss = torch.zeros((), device=device)
    values = [metric(*on_device), metric.compute(), *collection(*on_device).values(), *collection.compute().values()]
    assert torch.stack([loss, *values]).cpu()[2] == before
    assert {each.dtype for each in values} == {torch.float32}


def test_the_class_of_a_metric_has_the_name_that_torchmetrics_gives_it():
    entries = library("torchmetrics").entries.values()
    sizes = {"num_classes": 3, "num_labels": 3, "beta": 2.0, "min_recall": 0.5, "min_precision": 0.5}
    sizes |= {"min_sensitivity": 0.5, "min_specificity": 0.5}
    named = 0
    for entry in entries:
        other = entry.function or entry.tasks or entry.unsure
        if other or getattr(metrics, entry.assay).family != "classification":
            continue
        needed = {each.name: sizes[each.name] for each in entry.takes if each.name in sizes}
        named += 1
        assert type(as_torchmetric(counterpart(entry, needed))).__name__ == entry.name
    assert named > 30
    assert type(as_torchmetric(Mean())).__name__ == "MeanMetric"
    assert type(as_torchmetric(Meter(**METRICS))) is AssayMetric


def test_metrics_are_told_apart_by_their_class():
    made = [as_torchmetric(each) for each in (MeanSquaredError(), SpearmanCorrCoef(), Accuracy(num_classes=3))]
    by_class = {each.__class__.__name__: each for each in made}
    assert list(by_class.values()) == made
    assert list(MetricCollection(made)) == ["MeanSquaredError", "SpearmanCorrCoef", "MulticlassAccuracy"]
    assert type(made[0]) is type(as_torchmetric(MeanSquaredError(num_outputs=2)))
    copied = pickle.loads(pickle.dumps(made[0]))
    assert type(copied) is type(copy.deepcopy(copied)) is type(made[0])
    assert [type(each).__name__ for each in as_torchmetrics(METRICS).values()] == [
        "MulticlassAccuracy",
        "MulticlassF1Score",
    ]


def test_arithmetic_and_collections_of_torchmetrics_take_it():
    batch = batches(1)[0]
    both = as_torchmetric(Accuracy(num_classes=CLASSES)) + as_torchmetric(Accuracy(num_classes=CLASSES))
    both.update(*batch)
    assert both.compute() == 2 * Accuracy(num_classes=CLASSES)(*batch)
    mixed = MetricCollection(
        {"ours": as_torchmetric(METRICS["acc"]), "theirs": MulticlassAccuracy(CLASSES, average="micro")}
    )
    mixed.update(*batch)
    values = mixed.compute()
    assert values["ours"].item() == pytest.approx(values["theirs"].item(), abs=1e-7)


def test_a_collection_counts_each_batch_once():
    metrics = as_torchmetrics(METRICS, prefix="val_")
    assert isinstance(metrics, MetricCollection)
    given = batches(3)
    for batch in given:
        metrics.update(*batch)
    assert metrics.meter.rows == 48
    expected = {f"val_{name}": value for name, value in values_of(*given).items()}
    assert metrics.compute() == expected
    assert metrics(*given[0]) == {f"val_{name}": value for name, value in values_of(given[0]).items()}
    assert metrics.meter.rows == 64
    assert {name: member._forward_cache for name, member in metrics.items()} == metrics(*given[0])
    assert copy.deepcopy(metrics).compute() == metrics.compute()
    metrics.reset()
    assert metrics.meter.rows == 0


def test_a_collection_is_kept_in_a_checkpoint_once():
    metrics, other = as_torchmetrics(METRICS), as_torchmetrics(METRICS)
    for each in (metrics, other):
        each.persistent(True)
    metrics.update(*batches(1)[0])
    assert sum(name.endswith("about") for name in metrics.state_dict()) == 1
    other.load_state_dict(metrics.state_dict())
    assert other.compute() == metrics.compute()


def test_what_cannot_be_asked_of_a_collection():
    metrics = as_torchmetrics(METRICS)
    with pytest.raises(StateError, match=r"update of acc: got a batch for one member, expected one for all"):
        metrics["acc"].update(*batches(1)[0])
    with pytest.raises(StateError, match="add_metrics: got another metric"):
        metrics.add_metrics({"more": as_torchmetric(METRICS["acc"])})


def test_bad_arguments():
    with pytest.raises(ConfigError, match="metric: got Linear, expected a metric or a meter of assay"):
        as_torchmetric(nn.Linear(1, 1))
    with pytest.raises(ConfigError, match=r"dist_sync_fn: got .* expected nothing"):
        as_torchmetric(METRICS["acc"], dist_sync_fn=print)
    with pytest.raises(StateError, match=r"merge_state: got MulticlassAccuracy, expected what as_torchmetric made"):
        as_torchmetric(METRICS["acc"]).merge_state(MulticlassAccuracy(CLASSES))
    with pytest.raises(ConfigError, match=r"compute_on_cpu: got True, expected False"):
        as_torchmetric(METRICS["acc"], compute_on_cpu=True)
    with pytest.raises(ConfigError, match=r"dist_sync_fn: got .* expected nothing"):
        as_torchmetric(METRICS["acc"]).sync(dist_sync_fn=print, distributed_available=lambda: True)
    with pytest.raises(TorchMetricsUserError, match="already been un-synced"):
        as_torchmetric(METRICS["acc"]).unsync()


def test_merging():
    one, two = (as_torchmetric(METRICS["acc"]) for _ in range(2))
    given = batches(2)
    one.update(*given[0])
    two.update(*given[1])
    one.merge_state(two)
    assert one.compute() == values_of(*given)["acc"]


def on_two_ranks(rank, size):
    metric, metrics = as_torchmetric(METRICS["acc"]), as_torchmetrics(METRICS)
    for batch in batches(4)[rank::2][: 2 - rank]:  # rank 1 has fewer
        metric.update(*batch)
        metrics.update(*batch)
    value, values, own = metric.compute(), metrics.compute(), metric.meter.rows
    return value.item(), {name: each.item() for name, each in values.items()}, own


def test_two_processes_have_the_value_of_all_samples(tmp_path):
    given = batches(4)
    expected = {name: value.item() for name, value in values_of(given[0], given[2], given[1]).items()}
    for rank, (value, values, own) in enumerate(processes(on_two_ranks, 2, tmp_path)):
        assert value == expected["acc"]
        assert values == expected
        assert own == (32, 16)[rank]


def of_each_option(accuracy, collection):
    """What each option of distributed metrics gives on one process: values of batches, and of everything."""
    rank, given = dist.get_rank(), batches(4)[dist.get_rank() :: 2]
    alone = [dist.new_group([each]) for each in range(2)][rank]
    options = {
        "by step": {"dist_sync_on_step": True},
        "own": {"sync_on_compute": False},
        "own, by step": {"sync_on_compute": False, "dist_sync_on_step": True},
        "of a group": {"process_group": alone},
        "of a group, by step": {"process_group": alone, "dist_sync_on_step": True},
        "not available": {"distributed_available_fn": lambda: False, "dist_sync_on_step": True},
        "not cached": {"compute_with_cache": False},
    }
    found = {}
    for name, option in options.items():
        metric, metrics = accuracy(**option), collection(**option)
        steps = [[metric(*batch), *metrics(*batch).values()] for batch in given]
        ends = [metric.compute(), *metrics.compute().values(), metric.compute()]
        if name == "own":
            metric.update(*given[0])
            with metric.sync_context():
                ends.append(metric.compute())
        found[name] = [[float(each) for each in row] for row in (*steps, ends)]
    return found


def options_on_two_ranks(rank, size):
    ours = of_each_option(
        lambda **options: as_torchmetric(METRICS["acc"], **options),
        lambda **options: as_torchmetrics(METRICS, **options),
    )
    theirs = of_each_option(
        lambda **options: MulticlassAccuracy(CLASSES, average="micro", **options),
        lambda **options: MetricCollection(
            {
                "acc": MulticlassAccuracy(CLASSES, average="micro", **options),
                "f1": MulticlassF1Score(CLASSES, average="macro", **options),
            }
        ),
    )
    return ours, theirs


def test_options_of_distributed_metrics_mean_what_they_mean_to_torchmetrics(tmp_path):
    steps = []
    for ours, theirs in processes(options_on_two_ranks, 2, tmp_path):
        assert ours.keys() == theirs.keys()
        for name, rows in theirs.items():
            for one, two in zip(ours[name], rows, strict=True):
                assert one == pytest.approx(two, abs=1e-6), name
        steps.append(ours)
    assert steps[0]["by step"] == steps[1]["by step"]
    assert steps[0]["own"] != steps[1]["own"]


class Shifted(AssayMetric):
    """A subclass that changes what is counted and what is given, and counts on its own."""

    def __init__(self, meter):
        super().__init__(meter)
        self.add_state("calls", torch.tensor(0), dist_reduce_fx="sum", persistent=True)

    def update(self, preds, target):
        self.calls += 1
        super().update(preds, target - 1)

    def compute(self):
        return 100 * super().compute() + self.calls


@pytest.mark.parametrize("called", ["update", "forward"])
def test_a_subclass_is_asked(called):
    metric, theirs = Shifted(Meter(value=METRICS["acc"])), MulticlassAccuracy(CLASSES, average="micro")
    for preds, target in batches():
        if called == "forward":
            expected = 100 * theirs(preds, target) + 1
            assert metric(preds, target + 1).item() == pytest.approx(expected.item(), abs=1e-4)
        else:
            metric.update(preds, target + 1)
            theirs.update(preds, target)
    assert metric.compute().item() == pytest.approx(100 * theirs.compute().item() + 4, abs=1e-4)
    metric.persistent(True)
    other = Shifted(Meter(value=METRICS["acc"]))
    other.load_state_dict(metric.state_dict())
    assert other.compute() == metric.compute()
    other.merge_state(metric)
    assert other.compute() == metric.compute() + 4
    metric.reset()
    assert (metric.calls, metric.meter.rows) == (0, 0)


def test_a_subclass_of_a_collection_is_asked():
    class Tidied(AssayCollection):
        def update(self, preds, target):
            super().update(preds, target.squeeze(-1))

        def compute(self):
            return {name: 100 * value for name, value in super().compute().items()}

    metrics, batch = Tidied(Meter(**METRICS)), batches(1)[0]
    expected = {name: 100 * value for name, value in values_of(batch).items()}
    assert metrics(batch[0], batch[1].unsqueeze(-1)) == expected
    assert metrics.compute() == expected


def test_a_batch_that_raises_in_forward_leaves_what_was_counted():
    for metric in (as_torchmetrics(METRICS), as_torchmetric(Meter(**METRICS))):
        batch = batches(1)[0]
        metric.update(*batch)
        with pytest.raises(ShapeError, match="preds"):
            metric(torch.randn(3, 3), torch.zeros(3, dtype=torch.long))
        assert metric.compute() == values_of(batch)


@pytest.mark.filterwarnings("ignore:The TorchScript", "ignore:.*torch.jit", "ignore:This property will be removed")
def test_a_model_with_metrics_can_be_scripted():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.acc, self.metrics = as_torchmetric(METRICS["acc"]), as_torchmetrics(METRICS)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)

    model, x = Model(), torch.rand(3, 2)
    assert torch.equal(torch.jit.script(model)(x), model(x))
    torch.jit.script(as_torchmetric(METRICS["acc"]))


def test_the_dtype_of_values_is_set():
    metric, batch = as_torchmetric(METRICS["f1"]), batches(1)[0]
    metric.update(*batch)
    value = metric.compute()
    assert value.dtype == metric.dtype == metric.half().dtype == torch.float32
    assert metric.half().compute() is value
    assert metric.set_dtype(torch.float64).compute() == METRICS["f1"](*batch)
    both = MetricCollection({"f1": metric}).set_dtype(torch.float16)
    assert both.compute()["f1"].dtype == torch.float16
    curve = as_torchmetric(PrecisionRecallCurve())
    assert curve(torch.tensor([0.2, 0.7]), torch.tensor([0, 1])).recall.dtype == torch.float32


def test_higher_is_better_is_said():
    assert as_torchmetric(Accuracy(num_classes=CLASSES)).higher_is_better is True
    assert as_torchmetric(MeanSquaredError()).higher_is_better is False


@pytest.mark.parametrize(
    ("theirs", "preds", "target", "made"),
    [
        (lambda: MulticlassF1Score(CLASSES), (CLASSES,), (), lambda: batches(4)),
        (TheirSpearman, (), (), lambda: [(torch.rand(16), torch.rand(16)) for _ in range(4)]),
        (
            lambda: PeakSignalNoiseRatio(data_range=1.0),
            (3, 8, 8),
            (3, 8, 8),
            lambda: [(torch.rand(4, 3, 8, 8), torch.rand(4, 3, 8, 8)) for _ in range(4)],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Metric `SpearmanCorrcoef` will save")
def test_their_metric_in_a_meter(theirs, preds, target, made):
    given, theirs = made(), theirs()
    meter = Meter(value=from_torchmetrics(theirs, preds=preds, target=target))
    for batch in given:
        meter.update(*batch)
    alone = theirs.clone()
    alone.update(*map(torch.cat, zip(*given, strict=True)))
    value = meter.compute()["value"]
    assert value.item() == pytest.approx(alone.compute().item(), rel=1e-5)
    turned = Meter(value=from_torchmetrics(theirs, preds=preds, target=target))
    for batch in reversed(given):
        turned.update(*batch)
    assert torch.equal(turned.compute()["value"], value)
    assert not theirs.update_called


@pytest.mark.devices("mps", "cuda:1")
def test_their_metric_takes_batches_of_several_devices(device, pretended):
    preds, target = batches(1)[0]
    metric = from_torchmetrics(MulticlassAccuracy(CLASSES, average="micro"), preds=(CLASSES,))
    meter = Meter(acc=metric)
    meter.update(preds.to(device), target.to(device))
    meter.update(preds, target)
    assert meter.compute()["acc"].item() == pytest.approx(Accuracy(num_classes=CLASSES)(preds, target).item())


def test_their_metric_says_what_it_cannot_take():
    metric = from_torchmetrics(MulticlassAccuracy(CLASSES), preds=(CLASSES,))
    with pytest.raises(ShapeError, match=r"preds: got shape \(N,\), expected shape \(N, 5\)"):
        Meter(metric).update(torch.rand(3), torch.zeros(3))
    with pytest.raises(ConfigError, match="MulticlassAccuracy: got weights, expected none"):
        Meter(metric, weighted=True)
    with pytest.raises(ConfigError, match="metric: got Linear, expected a metric of TorchMetrics"):
        from_torchmetrics(nn.Linear(1, 1))


def test_a_wrapper_that_copies_states_by_name_raises_and_does_not_read_nan():
    running = Running(as_torchmetric(Accuracy(num_classes=3)), window=2)
    running.update(torch.eye(3), torch.tensor([0, 1, 1]))
    with pytest.raises(
        StateError, match=r"a state to add: got states by name, as of Running, expected counts. Use assay"
    ):
        running.compute()


def test_features_of_one_group_come_with_real_as_in_torchmetrics():
    features = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    whole = FrechetDistance(num_features=3)(features, torch.arange(60) < 30)
    metric = as_torchmetric(FrechetDistance(num_features=3))
    metric.update(features[:30], real=True)
    metric.update(features[30:], False)
    assert torch.equal(metric.compute(), whole.float())
    collection = as_torchmetrics(
        {"fid": FrechetDistance(num_features=3), "kid": KernelInceptionDistance(num_features=3)}
    )
    collection.update(features[:30], real=True)
    collection.update(features[30:], real=False)
    assert torch.equal(collection.compute()["fid"], whole.float())
    assert metric._filter_kwargs(real=True, other=1) == {"real": True}


def test_only_metrics_of_two_groups_take_real():
    metric = as_torchmetric(Accuracy())
    with pytest.raises(ConfigError, match="real"):
        metric.update(torch.rand(3), torch.ones(3, dtype=torch.long), real=True)


def test_an_update_sets_no_attribute_as_modules_set_them(monkeypatch):
    """`nn.Module.__setattr__` looks for parameters and submodules: three of them take longer than staging a batch."""
    metric, noted, real = as_torchmetric(Mean()), [], nn.Module.__setattr__

    def noting(module, name, value):
        noted.append(name)
        real(module, name, value)

    metric.update(torch.ones(3))
    assert metric.compute() == 1
    monkeypatch.setattr(nn.Module, "__setattr__", noting)
    values = torch.full((5,), 9.0, requires_grad=True)
    metric.update(values)
    with pytest.raises(ShapeError):
        metric.update(values, values)
    assert noted == []
    assert metric.update_count == 3, "a failed update counts, as there"
    assert metric.compute() == 6, "the value that was computed before is forgotten"
    assert torch.is_grad_enabled()
