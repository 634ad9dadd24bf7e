"""What every metric does with its arguments: numbers of NumPy and torch become plain, and others raise."""

from __future__ import annotations

import inspect
import json
import math
import pickle
import pydoc
import traceback
from copy import deepcopy
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
import torch

import assay.metrics
from assay import Meter
from assay.errors import ConfigError
from assay.metrics import Accuracy, BLEUScore, DiceScore, FBetaScore, FrechetDistance, Quantile, RetrievalMAP
from assay.metrics.base import Metric
from laws import CASES
from thinning import every_third

METRICS = {type(case.metric): case.metric for case in CASES}
NUMBERS = {"int": "an integer of at most 64 bits", "float": "a number", "bool": "True or False"}


def numbers(metric):
    """The fields that are numbers, with their kinds."""
    kinds = {field.name: str(field.type).removesuffix(" | None") for field in fields(metric)}
    return {name: kind for name, kind in kinds.items() if kind in NUMBERS}


@every_third
@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: type(metric).__name__)
def test_what_is_no_number_is_refused_by_name(metric):
    for name, kind in numbers(metric).items():
        with pytest.raises(ConfigError, match=f"^{name}: got 'many', expected {NUMBERS[kind]}. Pass {name} as a plain"):
            replace(metric, **{name: "many"})


@every_third
@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: type(metric).__name__)
def test_numbers_of_numpy_and_torch_are_plain_in_a_metric(metric):
    given = {name: getattr(metric, name) for name in numbers(metric) if getattr(metric, name) is not None}
    for make in (np.asarray, torch.tensor):
        wrapped = {name: make(value) for name, value in given.items() if not isinstance(value, bool)}
        wrapped |= {name: np.bool_(value) for name, value in given.items() if isinstance(value, bool)}
        again = replace(metric, **wrapped)
        assert again == metric
        first, second = (json.dumps(asdict(each), default=repr) for each in (again, metric))  # functions are no JSON
        assert first == second


def test_a_class_count_of_numpy_can_be_saved(tmp_path):
    target = np.array([0, 2, 1])
    meter = Meter(acc=Accuracy(num_classes=target.max() + 1))
    meter.update(torch.tensor([0, 2, 2]), torch.from_numpy(target))
    assert Meter.from_file(meter.to_file(tmp_path / "counts")).compute() == meter.compute()


@pytest.mark.parametrize("value", [True, 3.5, 2**63, None])
def test_whole_numbers_are_no_others(value):
    with pytest.raises(ConfigError, match=r"^top_k: got .*, expected an integer of at most 64 bits"):
        Accuracy(num_classes=3, top_k=value)


def test_switches_are_no_numbers():
    with pytest.raises(ConfigError, match=r"^logits: got 1, expected True or False. Pass logits as a plain bool"):
        Accuracy(logits=1)
    with pytest.raises(ConfigError, match=r"^beta: got True, expected a number. Pass beta as a plain float"):
        FBetaScore(beta=True)


@pytest.mark.parametrize("q", [[0.25, 0.5], np.array([0.25, 0.5]), (np.float64(0.25), np.float32(0.5))])
def test_quantiles_come_in_any_sequence(q):
    assert Quantile(q) == Quantile((0.25, 0.5))
    assert Quantile(q)(torch.arange(5)).tolist() == [1, 2]


@pytest.mark.parametrize(("q", "got"), [((), "no number"), ("half", "'half'"), (None, "None"), (math.nan, "nan")])
def test_what_is_no_quantile_is_refused(q, got):
    with pytest.raises(ConfigError, match=f"^q: got {got}, expected a number"):
        Quantile(q)


def test_metrics_with_nan_as_an_argument_are_equal_field_by_field():
    first, second = (DiceScore(num_labels=3, average=None, zero_division=float("nan")) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first.zero_division == second.zero_division  # what dataclasses of Python 3.13 compare
    assert pickle.loads(pickle.dumps(first)) == deepcopy(first) == first
    assert first != DiceScore(num_labels=3, average=None, zero_division=0)
    assert math.isnan(first.zero_division)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Accuracy(task="multiclass", num_classes=3), r"Write Accuracy\(num_classes=3\), or import .*compat"),
        (lambda: Accuracy(3), r"Write the names, as in Accuracy\(num_classes=3\)"),
        (lambda: Accuracy("multiclass", num_classes=3), r"got task.*Write Accuracy\(num_classes=3\)"),
        (lambda: Accuracy(num_clases=3), "unexpected keyword argument 'num_clases'.* Write num_classes="),
        (lambda: BLEUScore(4, False, None, 2), "got 4 arguments without a name, expected n_gram, smooth, weights"),
        (lambda: FrechetDistance(), "got no num_features"),
    ],
)
def test_arguments_that_a_metric_does_not_have_say_what_to_write(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("name", ["update", "to", "reset", "eval", "clone", "sync", "result"])
def test_what_a_meter_has_is_named_where_a_metric_is_asked_for_it(name):
    metric = Accuracy(num_classes=3)
    with pytest.raises(AttributeError, match=r"Write meter = Meter\(metric=Accuracy\(num_classes=3\)\)"):
        getattr(metric, name)
    assert not hasattr(metric, "anything else")


def test_a_name_that_a_metric_does_not_have_is_answered_with_a_near_one():
    message = "'Accuracy' object has no attribute 'num_clases'; did you mean num_classes?"
    with pytest.raises(AttributeError) as raised:
        Accuracy(num_classes=3).num_clases  # noqa: B018 - the look-up raises
    assert traceback.format_exception_only(raised.value)[0] == f"AttributeError: {message}\n", "a name of assay's own"


def test_the_signature_of_a_metric_is_that_of_its_arguments():
    assert list(inspect.signature(BLEUScore).parameters) == ["n_gram", "smooth", "weights"]


def test_a_name_that_is_not_there_is_answered_with_a_near_one():
    with pytest.raises(AttributeError, match="did you mean Accuracy"):
        assay.metrics.Acuracy  # noqa: B018 - the look-up raises


def test_compute_without_counts_names_the_meter():
    with pytest.raises(TypeError, match=r"Accuracy: got no 'compute'.*meter = Meter\(metric=Accuracy\(\)\)"):
        Accuracy().compute()


def test_a_third_argument_without_a_name_is_named():
    with pytest.raises(TypeError, match=r"Write RetrievalMAP\(...\)\(preds, target, indexes=...\)"):
        RetrievalMAP()([0.5], [1], [0])


def test_a_choice_that_is_nearly_right_names_the_nearest():
    with pytest.raises(ConfigError, match="Pass average='macro'"):
        Accuracy(num_classes=3, average="marco")


def test_help_shows_what_a_user_needs():
    text = pydoc.render_doc(Accuracy, renderer=pydoc.plaintext)
    assert len(text.splitlines()) < 120
    assert all(word in text for word in ("num_classes", "__call__", "plot", "higher_is_better"))
    assert not any(word in text for word in ("per_sample", "replicates", "pooled", "__dataclass_fields__"))
    assert {"num_classes", "average", "plot"} <= set(dir(Accuracy()))
    assert "compute" in dir(Metric)
