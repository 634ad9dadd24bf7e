"""What is done with a metric of TorchMetrics besides updating it, done with one under its name in `assay.compat`."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest
import torch
import torchmetrics as original
from assay.compat.torchmetrics.classification import BinaryF1Score, MulticlassAccuracy, MulticlassF1Score
from assay.compat.torchmetrics.functional.classification import multiclass_accuracy

import assay
from assay.compat import torchmetrics
from assay.compat.drop_ins import ADAPTED, FUNCTIONS_ALONE, IGNITE_ON_COUNTS, drop_ins
from assay.compat.for_torchmetrics.boxes import OF_BOXES
from assay.compat.for_torchmetrics.networks import OF_NETWORKS
from assay.compat.torchmetrics import Accuracy, MetricCollection
from assay.errors import AssayWarning, InputError, InvalidValuesError, InvalidValuesWarning, ShapeError
from assay.integrations import as_torchmetric
from assay.migrate.table import library
from assay.pretend import pretend
from migrate.test_table import theirs

GENERATOR = torch.Generator().manual_seed(3)
BATCHES = [(torch.randn(16, 3, generator=GENERATOR), torch.randint(3, (16,), generator=GENERATOR)) for _ in range(3)]


def updated(metric, batches=BATCHES):
    for batch in batches:
        metric.update(*batch)
    return metric


def test_a_value_is_read_once_and_its_reader_may_change_it():
    metric, expected = (
        updated(MulticlassAccuracy(num_classes=3)),
        updated(original.classification.MulticlassAccuracy(3)),
    )
    assert metric.compute() is metric.compute()
    metric.compute().fill_(7)
    metric.update(*BATCHES[0])
    expected.update(*BATCHES[0])
    assert metric.compute() == expected.compute()
    again = updated(MulticlassAccuracy(num_classes=3, compute_with_cache=False))
    assert again.compute() == again.compute()
    assert again.compute() is not again.compute()
    empty = MulticlassAccuracy(num_classes=3)
    for _ in range(2):
        with pytest.warns(UserWarning, match="before the ``update`` method"):
            empty.compute()


def test_a_reset_keeps_what_forward_prepared_and_nothing_that_was_counted():
    metric = MulticlassAccuracy(num_classes=3, average="micro")
    for batch in BATCHES:
        metric(*batch)
    before, value = metric.meter, metric.compute()
    metric.reset()
    assert (metric.meter.rows, before.rows) == (0, 48)
    fresh = MulticlassAccuracy(num_classes=3, average="micro")
    for batch in reversed(BATCHES[:2]):
        assert metric(*batch) == fresh(*batch)
    assert metric.compute() == fresh.compute()
    assert before.compute()["value"].tp.sum() == round(value.item() * 48)
    before.update(*BATCHES[0])  # which has given away what it had prepared
    assert before.rows == 64
    metric.reset()
    metric.update(*BATCHES[0])
    kept, metric_before = metric.meter.states(), metric.meter
    metric.reset()
    metric.update(*BATCHES[1])
    assert all(torch.equal(a[name], b[name]) for a, b in zip(kept, metric_before.states(), strict=True) for name in a)


def test_an_import_is_all_that_changes():
    assert torchmetrics.Accuracy is Accuracy
    assert torchmetrics.functional.classification.multiclass_accuracy is multiclass_accuracy
    assert torchmetrics.classification.accuracy.MulticlassAccuracy is MulticlassAccuracy
    metric = Accuracy(task="multiclass", num_classes=3)
    assert type(metric) is MulticlassAccuracy
    assert isinstance(metric, original.classification.MulticlassAccuracy)
    assert repr(metric) == "MulticlassAccuracy(num_classes=3, average='micro')"
    value = torchmetrics.functional.accuracy(*BATCHES[0], task="multiclass", num_classes=3)
    assert value == original.functional.accuracy(*BATCHES[0], task="multiclass", num_classes=3)


def test_every_class_with_a_counterpart_can_be_imported_and_pickled():
    for name, entry in library("torchmetrics").entries.items():
        if not entry.function and name not in OF_BOXES:
            kind = getattr(import_module(f"assay.compat.{theirs('torchmetrics', name).__module__}"), name)
            assert pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize("name", ["text.BERTScore"])
def test_a_metric_without_a_counterpart_is_that_of_torchmetrics_and_says_what_assay_has(name):
    module, _, name = name.partition(".")
    here = import_module(f"assay.compat.torchmetrics.{module}")
    vars(here).pop(name, None)  # what another test looked up
    with pytest.warns(AssayWarning, match=f"{name}: .*assay's metric") as warned:
        assert getattr(here, name) is getattr(import_module(f"torchmetrics.{module}"), name)
    assert warned[0].filename == __file__


@pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")  # of the metrics that stay those of the library
@pytest.mark.parametrize(
    "module",
    ["torchmetrics", "torchmetrics.classification", "torchmetrics.functional", "ignite.metrics", "ignite.engine"],
)
def test_all_names_are_imported_with_a_star(module):
    expected, here = {}, {}
    exec(f"from {module} import *", expected)
    exec(f"from assay.compat.{module} import *", here)
    assert set(here) >= set(expected) > {"__builtins__"}
    assert import_module(f"assay.compat.{module.partition('.')[0]}").__version__


def test_names_that_are_no_metrics_are_those_of_torchmetrics():
    assert issubclass(torchmetrics.MetricCollection, original.MetricCollection)
    assert torchmetrics.wrappers.ClasswiseWrapper is original.wrappers.ClasswiseWrapper
    assert torchmetrics.Metric is original.Metric
    with pytest.raises(AttributeError, match="nothing"):
        _ = torchmetrics.nothing
    with pytest.raises(ImportError, match="nothing"):
        import_module("assay.compat.torchmetrics.nothing")


def test_arguments_are_checked_by_torchmetrics():
    with pytest.raises(ValueError, match="average"):
        MulticlassAccuracy(num_classes=3, average="median")
    with pytest.raises(ValueError, match="num_classes"):
        Accuracy(task="multiclass")
    with pytest.raises(ValueError, match="nonsense"):
        MulticlassAccuracy(num_classes=3, nonsense=1)


def test_an_argument_without_counterpart_gives_the_metric_of_torchmetrics_with_a_warning():
    preds, target = torch.tensor([[1, 2], [0, 1]]), torch.tensor([[1, 2], [1, 1]])
    kind = torchmetrics.classification.MulticlassExactMatch
    with pytest.warns(AssayWarning, match="MulticlassExactMatch.*samplewise") as warned:
        metric = kind(num_classes=3, multidim_average="samplewise")
    assert warned[0].filename == __file__
    assert type(metric) is original.classification.MulticlassExactMatch
    torch.testing.assert_close(metric(preds, target), torch.tensor([1.0, 0.0]))
    with pytest.warns(AssayWarning, match="t_test"):
        value = torchmetrics.functional.kendall_rank_corrcoef(torch.arange(4.0), torch.arange(4.0) ** 2, t_test=True)
    torch.testing.assert_close(value[0], torch.tensor(1.0))


def test_a_function_with_an_argument_without_counterpart_is_that_of_torchmetrics():
    preds, target = torch.tensor([0.0, 1.0, 2.0, 1.0, float("nan")]), torch.tensor([0.0, 1.0, 2.0, 0.0, 1.0])
    options = {"nan_strategy": "drop", "nan_replace_value": None}
    with pytest.warns(AssayWarning, match="TheilsU"):
        value = torchmetrics.functional.nominal.theils_u(preds, target, **options)
    torch.testing.assert_close(value, original.functional.nominal.theils_u(preds, target, **options))


@pytest.mark.parametrize("name", ["CramersV", "PearsonsContingencyCoefficient", "TheilsU", "TschuprowsT"])
def test_rows_of_scores_are_categories(name):
    preds, target = torch.randn(2, 40, 4, generator=torch.Generator().manual_seed(0)).round(decimals=1)
    value, expected = (getattr(kinds.nominal, name)(num_classes=4)(preds, target) for kinds in (torchmetrics, original))
    torch.testing.assert_close(value, expected)


def test_multiclass_metrics_without_the_number_of_classes_are_those_of_torchmetrics():
    target = torch.tensor([0, 1, 2, 0, 1, 2])
    with pytest.warns(AssayWarning, match="num_classes"):
        metric = MulticlassAccuracy(average="micro", ignore_index=0)
    assert metric(target, target) == 1
    with pytest.warns(AssayWarning, match="num_classes"):
        assert multiclass_accuracy(target, target.flip(0), average="micro") == 2 / 6


@pytest.mark.filterwarnings("ignore:Encountered `nan` values in tensor")
@pytest.mark.parametrize("nan_strategy", ["ignore", "warn", 7.0])
def test_nan_in_weights_is_what_it_is_in_values(nan_strategy):
    def value(kinds):
        values, weights = torch.arange(5.0), torch.arange(5.0)
        values[2], weights[1] = float("nan"), float("nan")
        return kinds.MeanMetric(nan_strategy=nan_strategy)(values, weights)

    torch.testing.assert_close(value(torchmetrics), value(original))


@pytest.mark.filterwarnings("ignore")  # of TorchScript, about TorchMetrics' own classes too
def test_a_collection_can_be_scripted():
    made = MetricCollection([torchmetrics.MeanSquaredError(), torchmetrics.MeanAbsoluteError()])
    assert torch.jit.script(made).original_name == "MetricCollection"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_module_that_holds_one_can_be_scripted():
    torch.jit.script(Accuracy(task="multiclass", num_classes=3))


def test_a_value_before_the_first_update_warns_once():
    for metric in (Accuracy(task="multiclass", num_classes=3), torchmetrics.MeanSquaredError()):
        with pytest.warns(UserWarning, match="before the ``update``") as warned:
            metric.compute()
        assert len(warned) == 1


@pytest.mark.parametrize("name", ["MaxMetric", "MeanMetric", "MinMetric", "SumMetric"])
def test_nan_that_is_left_out_is_reported_once(name):
    values = torch.tensor([1.0, float("nan"), 3.0])
    metric = getattr(torchmetrics, name)()
    expected = getattr(original, name)("ignore")
    metric.update(values)
    expected.update(values)
    with pytest.warns(InvalidValuesWarning, match="Encountered `nan` values in tensor. Will be removed.*1 of") as given:
        assert metric(values) == expected(values)
    assert [warning.filename for warning in given] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metric.compute() == expected.compute()


@pytest.mark.parametrize("name", ["MaxMetric", "MeanMetric", "MinMetric", "SumMetric"])
def test_no_other_values_than_nan_are_reported(name, recwarn):
    values = torch.tensor([1.0, float("inf"), 3.0])
    assert getattr(torchmetrics, name)()(values) == getattr(original, name)()(values)
    assert getattr(torchmetrics, name)(nan_strategy="error")(values) == getattr(original, name)()(values)
    values[1] = float("nan")
    for nan_strategy in ("ignore", "disable", 2.0):
        found, expected = (getattr(kinds, name)(nan_strategy)(values.clone()) for kinds in (torchmetrics, original))
        torch.testing.assert_close(found, expected, equal_nan=True)
    assert not recwarn.list


def test_a_group_reports_nan_once():
    collection = MetricCollection([torchmetrics.MaxMetric(), torchmetrics.MinMetric(), torchmetrics.SumMetric()])
    collection.update(torch.tensor([1.0, float("nan")]))
    with pytest.warns(InvalidValuesWarning) as given:
        collection.compute()
    assert len(given) == 1


def test_nan_is_an_error_of_the_type_that_torchmetrics_raises():
    metric = torchmetrics.SumMetric(nan_strategy="error")
    metric.update(torch.tensor([1.0, float("nan")]))
    with pytest.raises(RuntimeError, match="Encountered `nan` values in tensor"):
        metric.compute()


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)), lambda each: each.clone()]
)
def test_copies_go_on_counting(copied):
    metric = copied(updated(MulticlassF1Score(num_classes=3), BATCHES[:2]))
    assert updated(metric, BATCHES[2:]).compute() == updated(MulticlassF1Score(num_classes=3)).compute()


@pytest.mark.parametrize("multidim_average", ["global", "samplewise"])
def test_states_are_reset_merged_saved_and_loaded(multidim_average):
    def made():
        return MulticlassAccuracy(num_classes=3, multidim_average=multidim_average)

    batches = [
        (torch.randint(3, (4, 5), generator=GENERATOR), torch.randint(3, (4, 5), generator=GENERATOR)) for _ in range(2)
    ]
    expected = updated(
        original.classification.MulticlassAccuracy(num_classes=3, multidim_average=multidim_average), batches
    ).compute()
    one, two = updated(made(), batches[:1]), updated(made(), batches[1:])
    two.merge_state(one)
    torch.testing.assert_close(two.compute(), expected)
    two.persistent(True)
    other = made()
    other.persistent(True)
    other.load_state_dict(two.state_dict())
    torch.testing.assert_close(other.compute(), expected)
    other.reset()
    torch.testing.assert_close(other(*batches[0]), updated(made(), batches[:1]).compute())
    assert other.update_count == 1


def test_a_collection_computes_what_one_of_torchmetrics_does():
    def collection(kinds):
        metrics = {
            "acc": kinds.Accuracy(task="multiclass", num_classes=3),
            "f1": kinds.F1Score(task="multiclass", num_classes=3, average="macro"),
        }
        return MetricCollection(
            {"all": MetricCollection(metrics), "auroc": kinds.AUROC(task="multiclass", num_classes=3)},
            prefix="val_",
        )

    ours, expected = collection(torchmetrics), collection(original)
    for batch in BATCHES:
        torch.testing.assert_close(ours(*batch), expected(*batch))
    torch.testing.assert_close(ours.clone(postfix="_x").compute(), expected.clone(postfix="_x").compute())


WRAPPERS = {
    "minimum and maximum": lambda kinds, metric: kinds.MinMaxMetric(metric),
    "classwise": lambda kinds, metric: kinds.ClasswiseWrapper(
        kinds.classification.MulticlassAccuracy(num_classes=3, average=None)
    ),
    "outputs": lambda kinds, metric: kinds.MetricCollection({"a": metric, "b": metric.clone()}),
    "arithmetic": lambda kinds, metric: metric + 2 * metric,
}


@pytest.mark.parametrize("wrapped", WRAPPERS.values(), ids=WRAPPERS)
def test_wrappers_take_these_metrics(wrapped):
    def values(kinds):
        metric = wrapped(kinds, kinds.Accuracy(task="multiclass", num_classes=3))
        return updated(metric).compute()

    torch.testing.assert_close(values(torchmetrics), values(original))


def test_a_tracker_finds_the_best_epoch():
    tracker = torchmetrics.MetricTracker(Accuracy(task="multiclass", num_classes=3))
    for batch in BATCHES:
        tracker.increment()
        tracker.update(*batch)
    expected = [original.functional.accuracy(*batch, task="multiclass", num_classes=3) for batch in BATCHES]
    assert tracker.best_metric() == pytest.approx(float(max(expected)))


def test_values_have_the_dtype_that_is_set():
    metric = updated(Accuracy(task="multiclass", num_classes=3))
    assert metric.half().compute().dtype == torch.float32
    assert metric.set_dtype(torch.float64).dtype == torch.float64
    assert metric.compute().dtype == torch.float64
    collection = updated(MetricCollection([Accuracy(task="multiclass", num_classes=3), MulticlassF1Score(3)]))
    collection.compute()
    assert {each.dtype for each in collection.set_dtype(torch.float64).compute().values()} == {torch.float64}


def test_batches_come_from_any_device():
    with pretend("cuda:1"):
        metric = BinaryF1Score()
        metric.update(torch.tensor([-0.2, 3.0, -1.0], device="cuda:1"), torch.tensor([0, 1, 1], device="cuda:1"))
        assert metric.compute().device == torch.device("cuda:1")
        assert metric.compute().item() == pytest.approx(2 / 3)


def test_invalid_values_raise_when_the_metric_is_computed():
    metric = Accuracy(task="multiclass", num_classes=3)
    metric.update(torch.tensor([0, 1]), torch.tensor([0, 7]))
    with pytest.raises(InvalidValuesError, match="1"):
        metric.compute()


def test_means_take_numbers_and_weights():
    def value(kinds):
        metric = kinds.MeanMetric()
        metric.update(2)
        metric.update(torch.tensor([[1.0, 2.0]]), weight=torch.tensor([1.0, 0.5]))
        metric.update(3.0, 2.0)
        return metric.compute()

    assert value(torchmetrics) == value(original)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # computed before the first update
        for name in ("SumMetric", "MaxMetric", "MinMetric"):
            assert getattr(torchmetrics, name)().compute() == getattr(original, name)().compute()


def test_outputs_are_taken_from_the_first_batch():
    preds, target = torch.rand(2, 9, 3, generator=GENERATOR)
    given = {"multioutput": "raw_values"}
    torch.testing.assert_close(torchmetrics.R2Score(**given)(preds, target), original.R2Score(**given)(preds, target))
    torch.testing.assert_close(
        torchmetrics.functional.mean_squared_error(preds, target), original.functional.mean_squared_error(preds, target)
    )
    with pytest.raises(RuntimeError, match="same shape"):
        torchmetrics.MeanSquaredError().update(preds, target.T)


OUTPUTS = [tuple(torch.rand(2, 9, 3, generator=GENERATOR)) for _ in range(3)]


def of_outputs(kinds):
    return kinds.R2Score(multioutput="raw_values")


def test_an_empty_metric_takes_over_how_many_outputs_there_are():
    expected = updated(of_outputs(original), OUTPUTS).compute()
    filled, empty = updated(of_outputs(torchmetrics), OUTPUTS[:1]), of_outputs(torchmetrics)
    empty.merge_state(filled)
    torch.testing.assert_close(updated(empty, OUTPUTS[1:]).compute(), expected)
    filled.merge_state(of_outputs(torchmetrics))
    torch.testing.assert_close(updated(filled, OUTPUTS[1:]).compute(), expected)
    loaded = of_outputs(torchmetrics)
    for each in (filled, loaded):
        each.persistent(True)
    loaded.load_state_dict(filled.state_dict())
    torch.testing.assert_close(loaded.compute(), expected)
    loaded.reset()
    single = OUTPUTS[0][0][:, 0], OUTPUTS[0][1][:, 0]
    torch.testing.assert_close(loaded(*single), of_outputs(original)(*single))


def test_options_outlast_the_first_batch_of_several_outputs():
    metric = of_outputs(torchmetrics)
    metric.persistent(True)
    metric.count_only(5)
    metric.update(*OUTPUTS[0])
    assert metric.state_dict()
    expected = of_outputs(original)(OUTPUTS[0][0][:5], OUTPUTS[0][1][:5])
    torch.testing.assert_close(metric.compute(), expected)


def test_forward_of_several_outputs_with_all_processes():
    ours, expected = (
        type(of_outputs(kinds))(multioutput="raw_values", dist_sync_on_step=True) for kinds in (torchmetrics, original)
    )
    for batch in OUTPUTS:
        torch.testing.assert_close(ours(*batch), expected(*batch))
    torch.testing.assert_close(ours.compute(), expected.compute())


def test_repeated_samples_are_left_out_of_batches_of_any_shape():
    metric = torchmetrics.AUROC(task="multilabel", num_labels=2)
    metric.count_only(3)
    preds, target = torch.rand(5, 2, 4, generator=GENERATOR), torch.randint(2, (5, 2, 4), generator=GENERATOR)
    expected = original.AUROC(task="multilabel", num_labels=2)(preds[:3], target[:3])
    torch.testing.assert_close(metric(preds, target=target), expected)


@pytest.mark.parametrize("name", ["AUROC", "HingeLoss", "CalibrationError", "ROC"])
def test_labels_in_place_of_scores_are_refused_as_there(name):
    labels = torch.tensor([0, 1, 2, 0])
    for kinds in (torchmetrics.classification, original.classification):
        with pytest.raises((ValueError, RuntimeError)):
            getattr(kinds, f"Multiclass{name}")(num_classes=3).update(labels, labels)
    with pytest.raises(ShapeError, match="scores of all classes"):
        getattr(torchmetrics.classification, f"Multiclass{name}")(num_classes=3).update(labels, labels)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((f"Binary{name}", {}) for name in ("ROC", "AveragePrecision", "HingeLoss", "CalibrationError", "EER")),
        *((f"Multilabel{name}", {"num_labels": 2}) for name in ("AUROC", "PrecisionRecallCurve", "RankingLoss")),
    ],
)
def test_labels_in_place_of_scores_of_two_classes_and_of_labels_are_refused_as_there(name, options):
    labels = torch.tensor([[0, 1], [1, 0], [1, 1]])
    for kinds in (torchmetrics.classification, original.classification):
        with pytest.raises(ValueError, match="float"):
            getattr(kinds, name)(**options).update(labels, labels)
    getattr(torchmetrics.classification, name)(**options).update(labels.float(), labels)


def test_integer_scores_have_an_area_as_there():
    scores, target = torch.tensor([3, 1, 2, 0]), torch.tensor([1, 0, 0, 0])
    for kinds in (torchmetrics.classification, original.classification):
        assert kinds.BinaryAUROC()(scores, target) == 1


NUMBERS = [torch.rand(7, generator=GENERATOR) for _ in range(2)]


@pytest.mark.parametrize(
    ("made", "batches"),
    [
        (lambda: MulticlassAccuracy(num_classes=3), [(torch.tensor([0, 1, 2]), torch.tensor([0, 2, 2]))] * 2),
        (lambda: MulticlassAccuracy(3, multidim_average="samplewise"), [(torch.zeros(2, 4).long(),) * 2] * 2),
        (lambda: of_outputs(torchmetrics), OUTPUTS[:2]),
        (lambda: torchmetrics.AUROC(task="binary"), [(each, (each > 0.4).long()) for each in NUMBERS]),
        (lambda: torchmetrics.MeanMetric(), [(each,) for each in NUMBERS]),
    ],
)
@pytest.mark.parametrize("kind", ["metric_state", "state_dict", "metric"])
def test_what_was_counted_is_merged_to_the_same_bits(made, batches, kind):
    one, two, empty = updated(made(), batches[:1]), updated(made(), batches[1:]), made()
    two.persistent(True)
    state = {"metric_state": two.metric_state, "state_dict": two.state_dict(), "metric": two}[kind]
    one.merge_state(state)
    empty.merge_state(state)
    assert torch.equal(empty.compute(), two.compute())
    both = updated(made(), reversed(batches) if two._defaults else batches)  # TorchMetrics puts what comes in first
    assert torch.equal(one.compute(), both.compute())
    assert {name: each for name, each in one.metric_state.items() if name == "about"} == {
        "about": pytest.approx(both.metric_state["about"])
    }


@pytest.mark.parametrize("name", ["SumMetric", "MaxMetric", "MinMetric", "MeanMetric"])
def test_states_of_aggregates_of_torchmetrics_are_merged(name):
    ours, expected, other = (getattr(kinds, name)() for kinds in (torchmetrics, original, original))
    ours.update(NUMBERS[0])
    expected.update(NUMBERS[0])
    other.update(NUMBERS[1])
    ours.merge_state(other.metric_state)
    expected.update(NUMBERS[1])
    torch.testing.assert_close(ours.compute(), expected.compute())


def test_what_cannot_be_merged_is_an_error_as_there():
    metric = updated(MulticlassAccuracy(3), [(torch.tensor([0, 1]), torch.tensor([0, 0]))])
    before = metric.compute()
    there = original.classification.MulticlassAccuracy(3)
    for state in (2, MulticlassAccuracy(4), MulticlassAccuracy(4).metric_state, there, torchmetrics.SumMetric()):
        with pytest.raises(ValueError, match=r"Expected incoming state to be an?"):
            metric.merge_state(state)
    with pytest.raises(ValueError, match=r"states of TorchMetrics' own class \(tp, fp, tn, fn\)"):
        metric.merge_state(there.metric_state)
    assert metric.compute() == before

    class OfAll(MulticlassAccuracy):
        full_state_update = True

    with pytest.raises(RuntimeError, match="is not supported for metrics with ``full_state_update=True``"):
        OfAll(3).merge_state(MulticlassAccuracy(3))


def test_a_state_of_other_arguments_is_not_adopted():
    other = updated(torchmetrics.R2Score(multioutput="uniform_average"), OUTPUTS[:1])
    with pytest.raises(ValueError, match="equal metric"):
        of_outputs(torchmetrics).merge_state(other)
    with pytest.raises(ValueError, match="equal metric"):
        of_outputs(torchmetrics).merge_state(other.metric_state)


@pytest.mark.parametrize("rows", [3, 4, 9])
@pytest.mark.parametrize("multioutput", ["raw_values", "variance_weighted"])
def test_r2_is_adjusted_as_there(rows, multioutput):
    preds, target = (torch.rand(2, rows, 3, generator=GENERATOR) + 1).unbind()
    values = []
    for kinds in (torchmetrics, original):
        metric = kinds.R2Score(adjusted=3, multioutput=multioutput)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            values.append((metric(preds, target), metric.compute()))
            metric.update(preds, target)
            values[-1] += (
                metric.compute(),
                len({str(each.message) for each in warned if "r2 score" in str(each.message)}),
            )
    torch.testing.assert_close(*values, rtol=1e-4, atol=1e-5)
    assert values[0][3] == (rows <= 4)


def test_one_dimension_is_one_sample_of_several_outputs():
    one_by_one, at_once = (torchmetrics.PearsonCorrCoef(num_outputs=3) for _ in range(2))
    at_once.update(*OUTPUTS[0])
    for sample in zip(*OUTPUTS[0], strict=True):
        one_by_one.update(*sample)  # TorchMetrics takes it for three samples
    assert torch.equal(one_by_one.compute(), at_once.compute())
    expected = [
        np.corrcoef(preds, target)[0, 1] for preds, target in zip(*(each.T for each in OUTPUTS[0]), strict=True)
    ]
    np.testing.assert_allclose(one_by_one.compute(), expected, rtol=1e-5)


def test_a_checkpoint_of_torchmetrics_is_refused_by_name():
    saved = original.classification.MulticlassAccuracy(3)
    saved.persistent(True)
    with pytest.raises(RuntimeError, match=r"states of TorchMetrics' own class \(tp, fp, tn, fn\)"):
        MulticlassAccuracy(3).load_state_dict(saved.state_dict())


@pytest.mark.parametrize(
    ("name", "options", "batch"),
    [
        ("CosineSimilarity", {}, (torch.rand(10, 2), torch.rand(5, 2))),
        ("KLDivergence", {}, (torch.rand(3, 2, 5), torch.rand(3, 2, 5))),
        ("EditDistance", {}, (["a"], ["b", "c"])),
        ("PearsonCorrCoef", {"num_outputs": 2}, (torch.rand(4, 3), torch.rand(4, 3))),
        ("RelativeSquaredError", {}, (torch.rand(4, 3, 2), torch.rand(4, 3, 2))),
        *(
            (name, {}, (torch.rand(*shape), torch.rand(*shape)))
            for name in ("ConcordanceCorrCoef", "KendallRankCorrCoef", "LogCoshError", "PearsonCorrCoef")
            for shape in ((4, 3), (4, 1, 1))
        ),
        ("RelativeSquaredError", {}, (torch.rand(4, 3), torch.rand(4, 3))),
        ("SpearmanCorrCoef", {}, (torch.rand(4, 2), torch.rand(4, 2))),
        ("SpearmanCorrCoef", {}, (torch.arange(4), torch.rand(4))),
        ("SpearmanCorrCoef", {"num_outputs": 2}, (torch.rand(4, 2), torch.ones(4, 2, dtype=torch.int64))),
        ("ContinuousRankedProbabilityScore", {}, (torch.rand(4, 1), torch.rand(4))),
    ],
)
@pytest.mark.parametrize("step", ["update", "forward"])
@pytest.mark.filterwarnings("ignore:Metric `Spearman:UserWarning")
def test_errors_of_batches_are_also_those_of_torchmetrics(name, options, batch, step):
    def made(kinds):
        home = next(each for each in (kinds, kinds.text, kinds.regression) if hasattr(each, name))
        return getattr(home, name)(**options)

    with pytest.raises(Exception, match=r".") as there:
        made(original).update(*batch)
    with pytest.raises(there.type, match=re.escape(str(there.value))) as found:
        getattr(made(torchmetrics), step)(*batch)
    assert isinstance(found.value, InputError)
    assert isinstance(found.value.__cause__, InputError)
    again = pickle.loads(pickle.dumps(found.value))
    assert type(again) is type(found.value)
    assert str(again) == str(found.value)


def test_a_function_that_gathers_states_is_called_by_torchmetrics_itself():
    gathered = []
    options = {"dist_sync_fn": lambda state, group: [gathered.append(state) or state]}
    with pytest.warns(AssayWarning, match="dist_sync_fn: got"):
        metric = torchmetrics.MeanSquaredError(**options, distributed_available_fn=lambda: True)
    assert type(metric) is original.MeanSquaredError
    metric.update(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    assert metric.compute() == 2
    assert len(gathered) == 2
    assert type(torchmetrics.MeanSquaredError(dist_sync_fn=None)) is torchmetrics.MeanSquaredError


@pytest.mark.parametrize("name", ["JensenShannonDivergence", "KLDivergence"])
def test_counts_are_distributions_as_there(name):
    counts = torch.tensor([[1, 2, 3], [4, 1, 1]])
    for batch in ((counts, counts.flip(1)), (counts, counts.flip(1) / 3), (counts / 4, counts.flip(1))):
        here, there = (getattr(each.regression, name)() for each in (torchmetrics, original))
        for _ in range(2):
            torch.testing.assert_close(here(*batch), there(*batch))
        torch.testing.assert_close(here.compute(), there.compute())


def test_a_relative_squared_error_of_several_outputs_is_that_of_torchmetrics():
    here, there = (kinds.RelativeSquaredError(num_outputs=3, squared=False) for kinds in (torchmetrics, original))
    for _ in range(2):
        batch = torch.rand(2, 9, 3, generator=GENERATOR)
        torch.testing.assert_close(here(*batch), there(*batch))
    torch.testing.assert_close(here.compute(), there.compute())


def test_r2_of_one_sample_is_refused_as_there():
    one = torch.tensor([1.0]), torch.tensor([2.0])
    for kinds in (torchmetrics, original):
        metric = kinds.R2Score()
        with pytest.raises(ValueError, match="Needs at least two samples to calculate r2 score"):
            metric(*one)
        metric.reset()
        metric.update(*one)
        with pytest.raises(ValueError, match="Needs at least two samples to calculate r2 score"):
            metric.compute()
        metric.update(torch.tensor([3.0]), torch.tensor([3.0]))
        assert metric.compute() == -1


@pytest.mark.parametrize("name", ["ExtendedEditDistance", "TranslationEditRate"])
def test_a_text_without_references_is_left_out_of_the_edit_distance(name):
    here, there = (getattr(kinds.text, name)() for kinds in (torchmetrics, original))
    assert here(["python"], [[]]) == there(["python"], [[]]) == 0
    assert here.compute() == there.compute() == 0
    expected = there(["a b", "x"], [["a b c"], ["x"]])
    torch.testing.assert_close(here(["a b", "abc", "x"], [["a b c"], [], ["x"]]), expected)


def test_an_error_of_a_batch_is_that_of_torchmetrics_with_options_of_the_base_class():
    metric = torchmetrics.MeanSquaredError(sync_on_compute=False)
    with pytest.raises(RuntimeError, match="same shape"):
        metric.update(torch.zeros(4), torch.zeros(3))
    assert metric.compute().isnan()


@pytest.mark.parametrize(
    "made",
    [
        (torchmetrics.MeanSquaredError, (torch.rand(4), torch.rand(4)), (torch.rand(4), torch.rand(3))),
        (
            torchmetrics.classification.BinaryAUROC,
            (torch.rand(4), torch.arange(4) % 2),
            (torch.rand(4), torch.arange(3) % 2),
        ),
        (torchmetrics.MeanMetric, (torch.rand(4),), (torch.rand(4), torch.rand(3))),
        (torchmetrics.WordErrorRate, (["a"], ["b"]), (["a"], ["b", "c"])),
        (
            lambda: MulticlassAccuracy(3, multidim_average="samplewise"),
            (torch.ones(4, 2).long(),) * 2,
            (torch.ones(4),),
        ),
        (
            lambda: as_torchmetric(assay.MeanSquaredError()),
            (torch.rand(4), torch.rand(4)),
            (torch.rand(4), torch.rand(3)),
        ),
    ],
)
def test_an_update_that_failed_counts_nothing_and_the_value_is_as_before(made):
    kind, batch, wrong = made
    metric, expected = kind(), kind()
    for each in (metric, expected):
        each.update(*batch)
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        metric.update(*wrong)
    torch.testing.assert_close(metric.compute(), expected.compute(), equal_nan=True)
    metric.update(*batch)
    expected.update(*batch)
    torch.testing.assert_close(metric.compute(), expected.compute(), equal_nan=True)


def test_labels_out_of_range_of_functions_and_steps_are_errors_as_there():
    labels = torch.arange(7)
    for call in (
        lambda: torchmetrics.functional.classification.multiclass_accuracy(labels, labels, num_classes=3),
        lambda: MulticlassAccuracy(3)(labels, labels),
    ):
        with pytest.raises(RuntimeError, match="Detected more unique values in `target` than expected") as found:
            call()
        assert isinstance(found.value, InputError)
        assert "expected none" in str(found.value)


def test_texts_that_are_empty_lists_are_empty_texts_as_there():
    for kinds in (torchmetrics, original):
        assert kinds.text.BLEUScore()([[]], [[[]]]) == 0
        assert kinds.text.CHRFScore()([], [[]]) == 0
        assert kinds.functional.text.edit_distance([], []) == 0


def test_chrf_is_the_mean_of_the_orders_as_there():
    preds, target = ["the cat is on the mat", "a"], [["there is a cat on the mat", "a cat"], ["a dog"]]
    torch.testing.assert_close(
        torchmetrics.text.CHRFScore()(preds, target), original.text.CHRFScore()(preds, target), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("library_name", ["torchmetrics", "ignite"])
def test_declarations_say_what_stands_for_each_name(library_name):
    package = import_module(f"assay.compat.{library_name}")
    for name, found in drop_ins(library_name).items():
        try:
            there = theirs(library_name, name)
        except AssertionError:  # it is in none of the modules that this looks into
            needs_packages = {*OF_BOXES, *OF_NETWORKS, *FUNCTIONS_ALONE}  # as torchvision
            assert not found.assay or name in needs_packages, name
            continue
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            same = package.replace(there) is there
        adapted = library_name == "torchmetrics" and name in ADAPTED
        reads_counts = library_name == "ignite" and name in IGNITE_ON_COUNTS
        assert same == (reads_counts or not (found.assay or found.tasks or adapted)), name
        assert not warned or found.instead, name


@pytest.mark.exhaustive  # it starts a process
def test_functions_of_families_that_torchmetrics_does_not_import():
    code = """
import torch
from assay.compat.torchmetrics.functional.clustering import adjusted_rand_score

print(adjusted_rand_score(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0])))
try:
    adjusted_rand_score(torch.rand(4), torch.arange(4))
except ValueError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.startswith("tensor(1.)")
    assert "Expected real, discrete values" in found
