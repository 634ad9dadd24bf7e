"""The metrics of other libraries: each is run, or says why not, and none is left out."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import warnings
from collections import Counter

import pytest
import torch

from assay.audit.other_libraries import LIBRARIES, cases, inputs, library
from assay.audit.other_libraries.descriptions import LibraryMetrics, MetricSpec
from assay.audit.running.targets import find_cases, parse
from assay.errors import MissingDependencyError

pytest.importorskip("torchmetrics")
pytest.importorskip("ignite")
pytest.importorskip("torcheval")


def quietly_import(name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError:  # a module for an optional package
            return None


def public_metrics(name: str, base: type, hidden: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """The public metric classes below a package, by the first module below it; optional ones, too."""
    package = quietly_import(name)
    found: dict[str, set[str]] = {}
    for info in pkgutil.walk_packages(package.__path__, f"{name}."):
        if any(part in info.name for part in hidden):
            continue
        module = quietly_import(info.name)
        for thing in vars(module).values() if module else ():
            own = inspect.isclass(thing) and issubclass(thing, base) and thing.__module__ == info.name
            if own and not thing.__name__.startswith("_"):
                found.setdefault(info.name.removeprefix(f"{name}.").partition(".")[0], set()).add(thing.__name__)
    return found


def rows_of(name: str) -> set[str]:
    return {row.path.rpartition(".")[2] for row in library(name).rows}


def test_every_metric_of_torchmetrics_is_run_or_says_why_not():
    from torchmetrics import Metric

    found = public_metrics("torchmetrics", Metric, hidden=(".functional", ".utilities"))
    covered: dict[str, set[str]] = {}
    for row in library("torchmetrics").rows:
        domain, _, rest = row.path.partition(".")
        covered.setdefault(domain, set()).add(rest.rpartition(".")[2])
    assert covered.pop("MetricCollection") == {""}, "it collects metrics and is none"
    assert covered == found


def test_every_metric_of_ignite_is_run_or_says_why_not():
    from ignite.metrics import Metric

    functions = {"ClassificationReport", "DiceCoefficient", "Fbeta", "IoU", "JaccardIndex", "mIoU"}  # that make metrics
    assert rows_of("ignite.metrics") - functions == set().union(*public_metrics("ignite.metrics", Metric).values())
    assert functions < set(quietly_import("ignite.metrics").__all__)


def test_every_metric_of_torcheval_is_run_or_says_why_not():
    metrics = quietly_import("torcheval.metrics")
    exported = {getattr(metrics, name) for name in metrics.__all__}
    assert rows_of("torcheval.metrics") == {thing.__name__ for thing in exported if inspect.isclass(thing)}


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_case_runs_on_the_cpu(name):
    failed, ran = {}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries: few samples, deprecated arguments
        for case in cases(name):
            if case.why_not:
                continue
            ran += 1
            try:
                metric = case.build()
                for batch in case.batches:
                    case.update(metric, batch)
                case.compute(metric)
            except Exception as error:
                failed[case.name] = repr(error)
    assert failed == {}
    assert ran >= {"torchmetrics": 250, "ignite.metrics": 90, "torcheval.metrics": 70}[name]


@pytest.mark.parametrize("name", LIBRARIES)
def test_names_are_unique_and_what_is_not_run_says_why(name):
    found = list(cases(name))
    assert [each for each, times in Counter(case.name for case in found).items() if times > 1] == []
    assert all(case.batches or case.why_not for case in found)
    assert not any(case.batches and case.why_not for case in found)


def test_moving_an_ignite_metric_makes_it_anew_for_the_device():
    (case,) = find_cases(parse("ignite.metrics:MeanSquaredError"))
    metric = case.build()
    moved = case.move(metric, torch.device("meta"))
    assert moved is not metric
    assert moved._device == torch.device("meta")
    assert metric._device == torch.device("cpu")


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("torchmetrics:BinaryAUROC", ["", "(thresholds=20)", "(max_fpr=0.5)"]),
        ("torchmetrics.classification:BinaryAUROC", ["", "(thresholds=20)", "(max_fpr=0.5)"]),
        ("ignite.metrics:Accuracy", ["", "(skip_unrolling=True)", "(is_multilabel=True)"]),
        ("ignite:NDCG", ["(top_k=[1, 3])"]),
    ],
)
def test_a_class_of_a_library_has_its_cases(target, names):
    found = [case.name for case in find_cases(parse(target))]
    assert ["(" + name.partition("(")[2] if "(" in name else "" for name in found] == names


def test_a_part_of_a_library_has_its_cases():
    assert {case.name.split(".")[1] for case in find_cases(parse("torchmetrics.nominal"))} == {"nominal"}
    assert len(list(cases("ignite"))) == len(list(cases("ignite.metrics")))


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError) as caught:
        list(cases("ignite.metrics"))
    assert str(caught.value) == (
        "pytorch-ignite: got no such package, expected it for the audit of ignite.metrics. "
        'Run: pip install "assay[bench]".'
    )


def test_a_row_whose_packages_are_missing_says_which_and_is_not_built():
    row = MetricSpec("JSONDecoder", inputs.values, needs=("json", "no_such_package", "nor_this"))
    case = LibraryMetrics("json.decoder", (row,)).case(row)
    assert case.why_not == "needs no_such_package and nor_this"
    assert case.batches == ()


def test_batches_are_the_same_in_every_run_and_have_every_class():
    for preds, target in inputs.batches(inputs.multiclass):
        assert sorted(set(target.tolist())) == list(range(inputs.CLASSES))
        assert preds.shape == (len(target), inputs.CLASSES)
    first, second = (inputs.batches(inputs.regression) for _ in range(2))
    assert all(torch.equal(a, b) for one, two in zip(first, second, strict=True) for a, b in zip(one, two, strict=True))
