"""Metrics of metrics: their values, what is counted for them, and what they look like as text and in files.

The laws of all metrics are tested on some of them in `tests/test_laws.py`.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn

import assay.metrics
from assay import Meter, evaluate
from assay.errors import ConfigError, InvalidValuesError, NoDataWarning, ShapeError, StateError
from assay.meter.resampling.intervals import bootstrap
from assay.meter.resampling.replicates import drawn_values
from assay.metrics import (
    AUROC,
    ROC,
    Accuracy,
    Arithmetic,
    ClassReport,
    Classwise,
    ConfusionMatrix,
    F1Score,
    Mean,
    MeanSquaredError,
    PerOutput,
    Precision,
    Recall,
    Sum,
)

P, R = Precision(), Recall()
EXPRESSIONS = [
    (P + R) / 2,
    2 * P * R / (P + R),
    P - (R - 1),
    P - R - 1,
    P / (R / 2),
    -(P**2),
    (-P) ** 2,
    -(-P),  # noqa: B002 - not a decrement
    P**R**2,
    (P**R) ** 2,
    2**P,
    P * -2,
    abs(P - R),
    (P / R).with_direction(True) + 1,
    ((P + R) / 2).with_direction(False),
]


@pytest.fixture(scope="module")
def samples():
    generator = torch.Generator().manual_seed(0)
    return torch.rand(300, generator=generator), torch.randint(2, (300,), generator=generator)


@pytest.mark.parametrize("metric", EXPRESSIONS, ids=str)
def test_the_value_is_that_of_the_same_expression_of_values(metric, samples):
    names = {"Precision": lambda **_: p, "Recall": lambda **_: r}
    p, r = (float(each(*samples)) for each in (P, R))
    text = repr(metric).removesuffix(".with_direction(False)").replace(".with_direction(True)", "")
    assert float(metric(*samples)) == eval(text, names)


@pytest.mark.parametrize("metric", EXPRESSIONS, ids=str)
def test_the_text_of_an_expression_says_all_of_it(metric):
    assert eval(repr(metric), vars(assay.metrics)) == metric


def test_f1_is_the_harmonic_mean(samples):
    preds, target = samples
    expected = sklearn.f1_score(target, preds > 0.5)
    assert float((2 * P * R / (P + R))(preds, target)) == pytest.approx(expected, rel=1e-15)


def test_what_several_metrics_need_is_counted_once():
    meter = Meter(p=P, r=R, f=2 * P * R / (P + R), error=1 - Accuracy(), twice=P + P)
    assert len(meter.tallies) == 1
    assert len(Meter(both=AUROC() + Accuracy(), accuracy=Accuracy()).tallies) == 2


def test_values_per_class_are_combined_one_by_one():
    per_class = Precision(num_classes=3, average=None), Recall(num_classes=3, average=None)
    preds, target = torch.tensor([0, 1, 1, 2, 2]), torch.tensor([0, 1, 2, 2, 0])
    half = (per_class[0] + per_class[1]) / 2
    assert half(preds, target).tolist() == [(1 + 0.5) / 2, (0.5 + 1) / 2, 0.5]
    assert (half - Accuracy(num_classes=3))(preds, target).shape == (3,)


@pytest.mark.parametrize("two", [2, 2.0, np.float64(2), np.int32(2), torch.tensor(2), torch.tensor(2.0)], ids=repr)
def test_numbers_of_any_library_are_plain_in_an_expression(two):
    assert P * two == P * 2
    assert json.dumps((P * two).operands[1]) == "2.0"
    if not isinstance(two, torch.Tensor):
        assert two * P == 2 * P


def test_equal_expressions_are_equal_and_others_are_not():
    same = Precision() + Recall()
    assert same == P + R
    assert hash(same) == hash(P + R)
    assert len({P + R, R + P, P - R, (P + R).with_direction(True)}) == 4


def test_which_values_are_better_is_not_known_unless_it_is_said():
    assert (P + R).higher_is_better is None
    assert (P + R).with_direction(True).higher_is_better is True


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: P * math.nan, "operands: got nan, expected metrics and finite numbers"),
        (lambda: P * math.inf, "operands: got inf, expected metrics and finite numbers"),
        (lambda: P * torch.ones(2), "operands: got tensor.*, expected a number"),
        (lambda: P + ROC(), "operands: got ROC.*, which reads a .*, expected numbers"),
        (lambda: ClassReport(num_classes=3) / 2, "operands: got ClassReport.*expected numbers"),
        (lambda: Recall(num_classes=3, average=None) + Recall(num_classes=4, average=None), "shapes.*3.*4.*one shape"),
        (lambda: Arithmetic("%", (P, R)), r"operation: got '%', expected '\+', '-'"),
        (lambda: Arithmetic("+", (P,)), "operands: got 1, with 1 metrics, expected 2 for"),
        (lambda: Arithmetic("+", (1.0, 2.0)), "operands: got 2, with 0 metrics, expected 2 for"),
        (lambda: Arithmetic("abs", P), "operands: got Precision, expected a tuple"),
        (lambda: (P + R).with_direction("up"), "higher_is_better: got 'up', expected True or False"),
    ],
)
def test_what_is_no_expression_is_refused_when_it_is_made(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize("other", ["half", None, True, [1]])
def test_what_is_no_number_is_no_operand(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        P + other


def test_without_data_it_is_nan_and_says_so_once():
    with pytest.warns(NoDataWarning) as warned:
        assert Meter(f=Mean() + MeanSquaredError()).compute()["f"].isnan()
    assert len(warned) == 1


def test_bad_values_of_any_operand_raise_once():
    with pytest.raises(InvalidValuesError, match=r"1 of the targets are outside 0 \.\.\. 1"):
        (P + AUROC())(torch.tensor([0.1, 0.2]), torch.tensor([0, 7]))


def test_files_hold_metrics_of_metrics(tmp_path, samples):
    named = Classwise(PerOutput(1 - AUROC(), 2), ("left", "right"))
    meter = Meter(f=(2 * P * R / (P + R)).with_direction(True), p=P)
    columns = Meter(named=named)
    meter.update(*samples)
    columns.update(*(each.view(-1, 2) for each in samples))
    for each in (meter, columns):
        again = Meter.from_file(each.to_file(tmp_path / "counts"))
        assert again.metrics == each.metrics
        assert again.compute() == each.compute()


def test_a_file_with_an_expression_that_cannot_be_is_refused(tmp_path):
    meter = Meter(f=P + R)
    meter.update(torch.tensor([0.1]), torch.tensor([1]))
    state = meter.state_dict()
    about = bytes(state["about"].tolist()).decode().replace('"operation": "+"', '"operation": "rm"')
    state["about"] = torch.tensor(list(about.encode()), dtype=torch.uint8)
    with pytest.raises(StateError, match="state_dict: got counts for"):
        meter.load_state_dict(state)


def test_an_interval_of_an_expression_is_drawn_from_all_that_it_is_read_from(samples):
    preds, target = samples
    metrics = {"auroc": AUROC(), "error": MeanSquaredError(), "both": AUROC() - 2 * MeanSquaredError()}
    groups = [Meter(**metrics) for _ in range(20)]
    for k, group in enumerate(groups):
        group.update(preds[k::20], target[k::20])
    found = drawn_values(groups, 100)
    assert found["both"] == [a - 2 * e for a, e in zip(found["auroc"], found["error"], strict=False)]
    assert bootstrap(groups)["both"].lower < found["both"][0] < bootstrap(groups)["both"].upper
    assert "total" not in bootstrap([Meter(total=Sum() * 2) for _ in groups])
    assert not (Sum() * 2).estimates


def test_a_report_names_classes_and_has_their_intervals():
    generator = torch.Generator().manual_seed(0)
    preds, target = torch.rand(400, 3, generator=generator), torch.randint(3, (400,), generator=generator)
    recall = Classwise(Recall(num_classes=3, average=None), ("cat", "dog", "fish"))
    data = [(preds[:200], target[:200]), (preds[200:], target[200:])]
    metrics = {"recall": recall, "half": (F1Score(num_classes=3) / 2).with_direction(True)}
    report = evaluate(torch.nn.Identity(), data, metrics, device="cpu", progress=False)
    values = {value.name: value for value in report.sections[0].values}
    assert list(values) == ["recall cat", "recall dog", "recall fish", "half"]
    assert {value.higher_is_better for value in values.values()} == {True}
    expected = sklearn.recall_score(target, preds.argmax(1), average=None)
    assert [values[f"recall {name}"].value for name in recall.names] == pytest.approx(expected.tolist())
    assert all(value.lower < value.value < value.upper for value in values.values())


# --- values per class and per output -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "names", "message"),
    [
        (Recall(num_classes=3, average=None), ("a", "b"), "names: got 2 names, expected 3"),
        (Recall(num_classes=3, average=None), ("a", "b", "a"), "names: got a twice, expected names that differ"),
        (Recall(num_classes=3, average=None), "abc", "names: got 'abc', expected a tuple of names"),
        (Recall(num_classes=3, average=None), ("a", "b", 3), "names: got .*, expected a tuple of names"),
        (Recall(num_classes=3), ("a", "b", "c"), "metric: got Recall.*, expected one with a value for each class"),
        (ConfusionMatrix(num_classes=2), ("a", "b"), "expected one with a value for each class"),
        (Recall, ("a", "b"), "metric: got the class Recall, expected a metric"),
    ],
)
def test_names_that_do_not_fit_the_classes_are_refused(metric, names, message):
    with pytest.raises(ConfigError, match=message):
        Classwise(metric, names)


def test_outputs_are_measured_each_by_itself():
    generator = torch.Generator().manual_seed(0)
    preds, target = torch.rand(60, 3, generator=generator), torch.randint(2, (60, 3), generator=generator)
    weights = torch.rand(60, generator=generator)
    for weighting in (None, weights, weights[:, None] * torch.tensor([1, 2, 3])):
        column = [weighting if weighting is None or weighting.ndim == 1 else weighting[:, k] for k in range(3)]
        expected = [sklearn.roc_auc_score(target[:, k], preds[:, k], sample_weight=column[k]) for k in range(3)]
        assert PerOutput(AUROC(), 3)(preds, target, weights=weighting).tolist() == pytest.approx(expected)


def test_outputs_may_have_classes():
    scores, target = torch.rand(20, 2, 4), torch.randint(4, (20, 2))
    expected = [float(Accuracy(num_classes=4)(scores[:, k], target[:, k])) for k in range(2)]
    assert PerOutput(Accuracy(num_classes=4), 2)(scores, target).tolist() == expected


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 1, 2)])
def test_arguments_with_other_outputs_are_refused(shape):
    meter = Meter(PerOutput(MeanSquaredError(), 2))
    with pytest.raises(ShapeError, match=r"preds: got shape \(N.*, expected \(N, 2, ...\). Dimension 1 counts"):
        meter.update(torch.zeros(shape), torch.zeros(shape))
    assert meter.rows == 0


def test_bad_values_name_their_output():
    with pytest.raises(InvalidValuesError, match=r"1 of the targets are outside 0 \.\.\. 1 .*in output 1"):
        PerOutput(Accuracy(), 2)(torch.zeros(2, 2), torch.tensor([[0, 1], [1, 5]]))


def test_what_has_no_single_value_has_none_per_output():
    with pytest.raises(ConfigError, match=r"metric: got ROC.*, which reads several parts, expected one tensor"):
        PerOutput(ROC(), 2)
    with pytest.raises(ConfigError, match="outputs: got 0, expected 1 or more"):
        PerOutput(AUROC(), 0)
