"""Run scikit-learn's own tests of metrics on assay's: `python -m benchmarks.sklearn_tests`.

The tests are those of the release that is installed. In them each metric of scikit-learn becomes a thin wrapper, which
calls scikit-learn for its checks, errors and warnings, and gives the value of assay's metric in the place of its own.
A call with an argument that assay's metric does not have is scikit-learn's. So is a call of data for which assay
defines the metric in another way (docs/differences.md): classes without a sample, precision without positives, and
targets below the bound of a relative error. A test is comparable if assay computed a value in it; the others say
nothing about assay and are counted apart.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn
from sklearn.utils.multiclass import type_of_target

import assay
from assay.errors import AssayError, AssayWarning
from benchmarks.harness import Table, save

Given = Mapping[str, Any]
"""The arguments of a call, with their defaults."""

MODULES = (
    *(f"sklearn.metrics.tests.test_{name}" for name in ("classification", "ranking", "regression")),
    "sklearn.metrics.cluster.tests.test_supervised",
)


class OfScikitLearnError(Exception):
    """An argument or data that assay's metric does not have."""


def _need(holds: bool) -> None:
    if not holds:
        raise OfScikitLearnError


_LEAST_TARGET = 1.17e-6
"""Smaller targets count as this one in relative errors of assay, and as 2.2e-16 in those of scikit-learn."""


def _value(metric: Any, preds: Any, target: Any, weights: Any = None) -> Any:
    meter = assay.Meter(weighted=weights is not None, value=metric)
    preds, target = (torch.as_tensor(np.ascontiguousarray(each)) for each in (preds, target))
    options = {} if weights is None else {"weights": torch.as_tensor(np.array(weights, np.float64))}
    meter.update(preds, target, **options)
    found = meter.compute()["value"]
    if isinstance(found, tuple):
        return tuple(each.numpy() for each in found)
    return np.float64(found.item()) if found.ndim == 0 else found.numpy()


def _dense(labels: Any) -> np.ndarray:
    return labels.toarray() if hasattr(labels, "toarray") else np.asarray(labels)


def _coded(given: Given, *more: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predicted and true labels as numbers from 0, and the names of the classes."""
    target, preds = (_dense(given[name]).ravel() for name in ("y_true", "y_pred"))
    named = [*target.tolist(), *preds.tolist(), *more]
    names = np.array(sorted(set(named)))
    codes = {name: code for code, name in enumerate(names.tolist())}
    return np.array([codes[e] for e in preds.tolist()]), np.array([codes[e] for e in target.tolist()]), names


def _is_multilabel(given: Given) -> bool:
    return bool(type_of_target(given["y_true"]).startswith("multilabel"))


def _ratio(kind: Any, **names: str) -> Callable[[Given], Any]:
    """A quotient of outcomes of some classes."""

    def call(given: Given) -> Any:
        average, weights = given["average"], given["sample_weight"]
        zero = given["zero_division"]
        options = {"zero_division": 0.0 if isinstance(zero, str) else float(zero)}
        options |= {ours: given[theirs] for ours, theirs in names.items()}
        if average == "binary":
            target, preds = (_dense(given[name]).ravel() == given["pos_label"] for name in ("y_true", "y_pred"))
            return _value(kind(**options), preds.astype(int), target.astype(int), weights)
        if average == "samples":
            options, average = options | {"multidim_average": "samplewise"}, "micro"
        labels = given["labels"]
        if _is_multilabel(given):
            preds, target = (_dense(given[name]) for name in ("y_pred", "y_true"))
            _need(weights is None or given["average"] == "samples")
            size = {"num_labels": target.shape[1]}
            chosen = None if labels is None else tuple(int(label) for label in labels)
        else:
            preds, target, classes = _coded(given, *([] if labels is None else labels))
            size = {"num_classes": max(2, len(classes))}
            chosen = None if labels is None else tuple(classes.tolist().index(each) for each in list(labels))
            if len(classes) == 1:
                chosen = (0,)
            # assay leaves a class without a sample out of means, and its own value is NaN; scikit-learn has 0 for it
            _need(average not in (None, "macro") or {*preds.tolist(), *target.tolist()} >= {*(chosen or ())})
        return _value(kind(**size, **options, average=average, only_classes=chosen), preds, target, weights)

    return call


def _labels(kind: Any, **names: str) -> Callable[[Given], Any]:
    """A metric of all classes."""

    def call(given: Given) -> Any:
        _need(not _is_multilabel(given) and given.get("labels") is None and given.get("normalize", True) is True)
        _need(np.isnan(given.get("replace_undefined_by", np.nan)))
        _need(given.get("weights") in (None, "linear", "quadratic"))
        preds, target, classes = _coded(given)
        options = {ours: given[theirs] for ours, theirs in names.items()}
        return _value(kind(num_classes=max(2, len(classes)), **options), preds, target, given["sample_weight"])

    return call


def _scores(kind: Any) -> Callable[[Given], Any]:
    """A metric of scores: of two classes, several, or labels."""

    def call(given: Given) -> Any:
        target, scores = _dense(given["y_true"]), _dense(given["y_score"]).astype(float)
        _need(given.get("labels") is None and given["average"] != "samples")
        options: dict[str, Any] = {"average": given["average"]}
        if given.get("max_fpr") is not None:
            options["max_fpr"] = given["max_fpr"]
        form = type_of_target(given["y_true"])
        if form.startswith("multilabel"):
            options["num_labels"] = target.shape[1]
        elif form == "multiclass":
            names = np.unique(target)
            target, options["num_classes"] = np.searchsorted(names, target), len(names)
            _need(options["average"] != "micro")
            if given.get("multi_class") == "ovo":
                options["multi_class"] = "ovo"
        else:
            names = np.unique(target)
            positive = given.get("pos_label", names[-1]) if kind is assay.AveragePrecision else names[-1]
            target, scores, options = (target == positive).astype(int).ravel(), scores.ravel(), dict(options)
            options.pop("average")
        if kind is assay.AveragePrecision:  # without positives it is NaN, and 0 in scikit-learn
            _need(all((target == each).any(0).all() for each in range(1, options.get("num_classes", 2))))
        if scores.min() < 0 or scores.max() > 1:
            _need("num_classes" not in options)
            options["logits"] = True
        return _value(kind(**options), scores, target, given["sample_weight"])

    return call


def _label_ranking(kind: Any) -> Callable[[Given], Any]:
    def call(given: Given) -> Any:
        target, scores = _dense(given["y_true"]), _dense(given["y_score"]).astype(float)
        return _value(kind(num_labels=target.shape[1]), scores, target.astype(int), given["sample_weight"])

    return call


def _numbers(kind: Any, **names: str) -> Callable[[Given], Any]:
    """A metric of predicted numbers, of one or several outputs."""

    def call(given: Given) -> Any:
        target, preds = (np.asarray(given[name], float) for name in ("y_true", "y_pred"))
        weights = given.get("sample_weight")
        _need(given.get("force_finite", True) is True)
        options = {ours: given[theirs] for ours, theirs in names.items()}
        average = given.get("multioutput", "uniform_average")
        if target.ndim == 2 and target.shape[1] == 1 and not isinstance(average, str):
            raise OfScikitLearnError
        if target.ndim == 2:
            _need(isinstance(average, str))
            options |= {"num_outputs": target.shape[1]}
            found = np.atleast_1d(_value(kind(**options, **_each_output(kind)), preds, target, weights))
            _need(average in ("raw_values", "uniform_average"))
            return found if average == "raw_values" else np.float64(found.mean())
        found = _value(kind(**options), preds, target, weights)
        return np.atleast_1d(found) if average == "raw_values" else found

    return call


def _relative(given: Given) -> Any:
    _need(bool((np.abs(np.asarray(given["y_true"], float)) >= _LEAST_TARGET).all()))
    return _numbers(assay.metrics.MeanAbsolutePercentageError)(given)


def _each_output(kind: Any) -> dict[str, Any]:
    return {"multioutput": "raw_values"} if "multioutput" in kind.arguments else {}


def _clusters(kind: Any, **fixed: str) -> Callable[[Given], Any]:
    def call(given: Given) -> Any:
        _need(given.get("contingency") is None and given.get("sparse") in (None, "deprecated"))
        both = [np.unique(np.asarray(given[name]), return_inverse=True)[1] for name in ("labels_pred", "labels_true")]
        _need(len(both[0]) > 0)
        return _value(kind(**_size_of(kind, both), **{ours: given[theirs] for ours, theirs in fixed.items()}), *both)

    return call


def _size_of(kind: Any, both: list[np.ndarray]) -> dict[str, int]:
    sizes = {"num_clusters": int(both[0].max()) + 1, "num_classes": int(max(each.max() for each in both)) + 1}
    return {name: max(2, size) for name, size in sizes.items() if name in kind.arguments}


CALLS: Mapping[str, Callable[[Given], Any]] = {
    "accuracy_score": _labels(functools.partial(assay.Accuracy, average="micro")),
    "adjusted_mutual_info_score": _clusters(assay.metrics.AdjustedMutualInfoScore, average_method="average_method"),
    "adjusted_rand_score": _clusters(assay.metrics.AdjustedRandScore),
    "average_precision_score": _scores(assay.AveragePrecision),
    "balanced_accuracy_score": _labels(assay.metrics.BalancedAccuracy, adjusted="adjusted"),
    "cohen_kappa_score": lambda given: _labels(assay.metrics.CohenKappa, weights="weights")(
        {**given, "y_true": given["y1"], "y_pred": given["y2"]}
    ),
    "completeness_score": _clusters(assay.metrics.CompletenessScore),
    "coverage_error": _label_ranking(assay.metrics.MultilabelCoverageError),
    "explained_variance_score": _numbers(assay.metrics.ExplainedVariance),
    "f1_score": _ratio(assay.metrics.F1Score),
    "fbeta_score": _ratio(assay.metrics.FBetaScore, beta="beta"),
    "fowlkes_mallows_score": _clusters(assay.metrics.FowlkesMallowsIndex),
    "homogeneity_score": _clusters(assay.metrics.HomogeneityScore),
    "jaccard_score": _ratio(assay.metrics.JaccardIndex),
    "label_ranking_average_precision_score": _label_ranking(assay.metrics.MultilabelRankingAveragePrecision),
    "label_ranking_loss": _label_ranking(assay.metrics.MultilabelRankingLoss),
    "matthews_corrcoef": _labels(assay.metrics.MatthewsCorrCoef),
    "max_error": _numbers(assay.metrics.MaximumAbsoluteError),
    "mean_absolute_error": _numbers(assay.metrics.MeanAbsoluteError),
    "mean_absolute_percentage_error": _relative,
    "mean_pinball_loss": _numbers(assay.metrics.PinballLoss, alpha="alpha"),
    "mean_squared_error": _numbers(assay.metrics.MeanSquaredError),
    "mean_squared_log_error": _numbers(assay.metrics.MeanSquaredLogError),
    "mean_tweedie_deviance": _numbers(assay.metrics.TweedieDevianceScore, power="power"),
    "mutual_info_score": _clusters(assay.metrics.MutualInfoScore),
    "normalized_mutual_info_score": _clusters(assay.metrics.NormalizedMutualInfoScore, average_method="average_method"),
    "precision_score": _ratio(assay.metrics.Precision),
    "r2_score": _numbers(assay.metrics.R2Score),
    "rand_score": _clusters(assay.metrics.RandScore),
    "recall_score": _ratio(assay.metrics.Recall),
    "roc_auc_score": _scores(assay.AUROC),
    "v_measure_score": _clusters(assay.metrics.VMeasureScore, beta="beta"),
}
"""What assay computes in the place of a function of scikit-learn, of its arguments."""


class Wrappers:
    """Puts wrappers in the place of scikit-learn's functions, and counts tests by what ran in them."""

    def __init__(self) -> None:
        self.of: dict[Any, Any] = {getattr(sklearn, name): self._wrapped(name, call) for name, call in CALLS.items()}
        self.comparable: set[str] = set()
        self.outcomes: dict[str, str] = {}
        self._running = ""

    def _wrapped(self, name: str, call: Callable[[Given], Any]) -> Callable[..., Any]:
        original = getattr(sklearn, name)
        signature = inspect.signature(original)

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            theirs = original(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", AssayWarning)
                    found = call(bound.arguments)
            except (OfScikitLearnError, AssayError):
                return theirs
            self.comparable.add(self._running)
            return found

        return wrapper

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, functools.partial) and value.func in self.of:
            return functools.partial(self.of[value.func], *value.args, **value.keywords)
        try:
            return self.of.get(value, value)
        except TypeError:  # it has no hash
            return value

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Replace the functions in the modules of the tests, in their tables, and in arguments of tests."""
        for module in {item.module for item in items}:
            for name, value in list(vars(module).items()):
                setattr(module, name, self._replaced(value))
                if isinstance(value, dict) and not name.startswith("__"):
                    value.update({key: self._replaced(each) for key, each in value.items()})
        for item in items:
            for name, value in getattr(getattr(item, "callspec", None), "params", {}).items():
                item.callspec.params[name] = self._replaced(value)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note which test runs."""
        self._running = nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how it ended."""
        if report.when == "call":
            self.outcomes[report.nodeid] = report.outcome

    def table(self) -> Table:
        """How many comparable tests of each module pass."""
        counts: Counter[tuple[str, str]] = Counter()
        for nodeid, outcome in self.outcomes.items():
            counts[nodeid.partition("::")[0].rpartition("/")[2], outcome if nodeid in self.comparable else "other"] += 1
        modules = sorted({module for module, _ in counts})
        rows = []
        for module in modules:
            passed, failed, other = (str(counts[module, outcome]) for outcome in ("passed", "failed", "other"))
            rows.append([module, str(int(passed) + int(failed)), passed, other])
        header = ["tests", "in which assay computes a value", "of these pass", "others"]
        return Table("scikit-learn's own tests of metrics", header, rows)


def main(options: list[str]) -> None:
    """Run the tests, print those that fail, and write the table."""
    wrappers = Wrappers()
    given = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "-W", "ignore::assay.errors.AssayWarning", "--tb=line"]
    pytest.main([*given, *map(_file, MODULES), *options], plugins=[wrappers])
    for nodeid, outcome in wrappers.outcomes.items():
        if outcome == "failed":
            print("failed" if nodeid in wrappers.comparable else "failed without assay", nodeid)
    save("sklearn_tests", [wrappers.table()], {})


def _file(module: str) -> str:
    return str(importlib.util.find_spec(module).origin)


if __name__ == "__main__":
    main(sys.argv[1:])
