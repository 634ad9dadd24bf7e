"""Columns that tables of others have: nested lists, missing values of all kinds, dictionaries, other types."""

from __future__ import annotations

import decimal
import itertools

import numpy as np
import pyarrow as pa
import pytest
import torch

from assay import AUROC, Accuracy, score
from assay.errors import ConfigError, ShapeError
from assay.metrics import FleissKappa, GwetAC1, WordErrorRate
from assay.metrics.parsing import as_metrics

PLAIN = {"p": [0, 1, 1, 0, 2, 2], "y": [0, 1, 2, 0, 1, 2]}


def scored(columns, metrics="accuracy", **options):
    options = {"preds": "p", "target": "y", "confidence_level": None, "on_bad": "skip", **options}
    return score(pa.table(columns), metrics, **options)


def value(report):
    return report.sections[0].values[0].value


def slices(report):
    return [(each.name, each.count) for each in report.sections[0].slices]


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 3)])
def test_the_list_in_the_first_row_may_be_missing(kind):
    lists = pa.array([None, [0.1, 0.2, 0.7], [0.7, 0.2, 0.1], None, [0.2, 0.5, 0.3]], kind)
    report = scored({"p": lists, "y": [0, 2, 0, 1, 0]})
    assert value(report) == pytest.approx(2 / 3)
    assert "2 with no value in p" in report.notes[1]


def test_lists_of_lists_are_tensors_whatever_their_shape():
    values = np.arange(12.0).reshape(2, 3, 2)
    columns = {"p": values.tolist(), "y": (values * 2).tolist()}
    assert value(scored(columns, "mse")) == np.mean(values**2)


@pytest.mark.parametrize(
    "odd", [[[1.0, 1.0], None], [[1.0, 1.0], [1.0, None]], [[1.0, 1.0], [1.0]], [[1.0, 1.0], [1.0] * 3], None]
)
def test_a_row_whose_inner_lists_are_not_whole_is_bad(odd):
    whole = [[1.0, 1.0], [1.0, 1.0]]
    report = scored({"p": [whole, odd, whole], "y": [whole, whole, whole]}, "mse")
    assert value(report) == 0
    assert "2 counted" in report.notes[0]
    assert "1 of 3 rows were left out" in report.notes[1]


def test_an_unknown_name_in_a_list_is_a_bad_row():
    columns = {"p": [["a", "b"], ["b", "cow"], ["b", None]], "y": [["a", "b"], ["b", "a"], ["b", "a"]]}
    report = scored(columns, labels="a,b")
    assert "1 with a name that labels lack in p; 1 with no value in p" in report.notes[1]


def test_a_column_without_any_value_has_bad_rows_only():
    with pytest.raises(Exception, match="3 with no value in p"):
        scored({"p": pa.nulls(3), "y": [1.0, 2.0, 3.0]}, "mse", on_bad="raise")


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.date32(), pa.struct({"a": pa.int64()}), pa.binary(), pa.list_view(pa.float32())]
)
def test_a_type_without_numbers_is_named_also_where_values_are_missing(kind):
    with pytest.raises(ConfigError, match=r"p: got values of type .*numbers"):
        scored({"p": pa.nulls(6, kind), "y": PLAIN["y"]})


@pytest.mark.parametrize("condition", ["c != 'a'", "not c == 'a'", "c not in ('a', 'x')", "not c in ('a', 'x')"])
def test_a_condition_does_not_hold_for_a_missing_value(condition):
    report = scored({**PLAIN, "c": ["a", None, "b", "a", "b", "a"]}, Accuracy(num_classes=3), where=condition)
    assert "2 expected, 2 counted" in report.notes[0]


def test_nan_is_a_value_that_is_in_no_list():
    table = {**PLAIN, "c": [1.0, float("nan"), 2.0, None, 1.0, 1.0]}
    assert "2 expected" in scored(table, Accuracy(num_classes=3), where="c not in (1, 3)").notes[0]


def test_missing_values_of_a_dictionary_are_the_slice_of_missing_ones():
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, None, 2]), ["a", None, "b"])
    report = scored({**PLAIN, "c": coded}, Accuracy(num_classes=3), slices=["c"])
    assert slices(report) == [("c = a", 2), ("c = b", 2), ("c = missing", 2)]
    numbers = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, None, 2]), pa.array([7, None, 8]))
    report = scored({**PLAIN, "c": numbers}, Accuracy(num_classes=3), slices=["c"])
    assert slices(report) == [("c = 7", 2), ("c = 8", 2), ("c = missing", 2)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_both_zeros_are_one_slice(dtype):
    zeros = np.array([0.0, -0.0, 1.5, 0.0, -0.0, np.nan], dtype)
    report = scored({**PLAIN, "c": zeros}, Accuracy(num_classes=3), slices=["c"])
    assert slices(report) == [("c = 0.0", 4), ("c = 1.5", 1), ("c = nan", 1)]


@pytest.mark.parametrize("order", list(itertools.permutations([2.0, float("nan"), 10.0])))
def test_slices_are_in_one_order_whatever_row_comes_first(order):
    report = scored({**PLAIN, "c": [*order, *order]}, Accuracy(num_classes=3), slices=["c"])
    assert [name for name, _ in slices(report)] == ["c = 2.0", "c = 10.0", "c = nan"]


@pytest.mark.parametrize("values", [[[[1]]] * 6, [{"a": 1}] * 6])
def test_slices_by_nested_columns_are_refused(values):
    with pytest.raises(ConfigError, match="slices: c: got values of type"):
        scored({**PLAIN, "c": values}, Accuracy(num_classes=3), slices=["c"])


def test_nine_columns_can_be_crossed_and_no_more():
    table = {**PLAIN, **{f"c{k}": ["a", "b"] * 3 for k in range(10)}}
    nine = tuple(f"c{k}" for k in range(9))
    assert len(slices(scored(table, Accuracy(num_classes=3), slices=[nine]))) == 2
    with pytest.raises(ConfigError, match="at most 9"):
        scored(table, Accuracy(num_classes=3), slices=[(*nine, "c9")])


def test_one_score_a_row_is_of_two_named_classes():
    report = scored({"p": [0.1, 0.6, 0.9, 0.4], "y": ["no", "no", "yes", "yes"]}, "auroc,accuracy", labels="no,yes")
    assert [each.value for each in report.sections[0].values] == [0.75, 0.5]
    assert AUROC().num_classes is None


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint16(), pa.string(), None])
def test_labels_that_are_numbers_name_the_numbers_of_a_column(kind):
    columns = {"p": pa.array([3, 7, 3, 5, 7], pa.int64()), "y": pa.array([3, 7, 7, 3, None], pa.int64())}
    columns = {k: v.dictionary_encode() if kind is None else v.cast(kind) for k, v in columns.items()}
    report = scored(columns, "f1", labels="7,3")
    assert value(report) == pytest.approx(2 / 3)
    assert "1 with a name that labels lack in p; 1 with no value in y" in report.notes[1]


def test_labels_in_the_order_of_numbers_are_these_numbers():
    columns = {"p": [0, 1, 1], "y": [0, 1, -100]}
    metric = Accuracy(num_classes=2, ignore_index=-100)
    assert value(scored(columns, metric, labels="0,1")) == value(scored(columns, metric, labels="no,yes")) == 1


@pytest.mark.parametrize("labels", ["false,true", "True,False", "no,yes"])
def test_truth_values_have_the_numbers_of_their_names(labels):
    report = scored({"p": [True, True, False], "y": [True, False, True]}, "f1:average=none", labels=labels)
    rows = {str(name).lower(): each for name, each in report.sections[0].tables[0].rows}
    assert list(rows.values()) == ([0.5, 0] if labels == "True,False" else [0, 0.5])
    assert rows.get("true", 0.5) == 0.5


def test_a_slice_of_too_many_values_says_what_a_table_can_do():
    table = pa.table({"p": [0] * 101, "y": [0] * 101, "age": np.arange(101) / 7})
    with pytest.raises(ConfigError, match=r"slices: age: got more than 100 .*in a table add a column of ranges"):
        score(table, Accuracy(num_classes=2), preds="p", target="y", slices=["age"])


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16(), pa.decimal128(5, 2)])
def test_labels_may_be_floats_as_where_values_were_missing(kind):
    labels = pa.array([0, 1, 2, 0, 1, 2]).cast(pa.float64())
    if pa.types.is_decimal(kind):
        labels = pa.array([decimal.Decimal(each) for each in (0, 1, 2, 0, 1, 2)], kind)
    report = scored({**PLAIN, "y": labels.cast(kind)}, "accuracy:num_classes=3")
    assert report.sections[0].values == scored(PLAIN, "accuracy:num_classes=3").sections[0].values


def test_floats_that_are_no_labels_are_bad_rows():
    y = pa.array([0, float("nan"), 2.5, float("inf"), None, 7, -1], pa.float64())
    report = scored({"p": [0, 0, 0, 0, 0, 0, 0], "y": y}, "accuracy:num_classes=3")
    assert value(report) == 1
    reasons = (
        "1 with NaN in y",
        "2 with a label outside 0 ... 2",
        "2 with a label that is no integer",
        "1 with no value",
    )
    assert all(reason in report.notes[1] for reason in reasons)
    assert value(scored({"p": [0.5, 1.0], "y": [0.25, 1.5]}, "mse")) == (0.0625 + 0.25) / 2


@pytest.mark.parametrize("metric", ["adjusted_rand_score", "normalized_mutual_info_score", "cramers_v"])
def test_labels_of_clusters_and_categories_are_any_numbers(metric):
    p, y = [0, 1, 2, 3, 7, 3, 2] * 5, [5, 1, 1, 9, 4, 9, 1] * 5
    metrics = as_metrics(metric, None, {})
    (expected,) = (float(each(torch.tensor(p), torch.tensor(y))) for each in metrics.values())
    assert value(scored({"p": p, "y": y}, metric)) == expected
    assert value(scored({"p": p, "y": pa.array(y, pa.float64())}, "cramers_v")) == value(
        scored({"p": p, "y": y}, "cramers_v")
    )


def test_numbers_of_ratings_are_no_labels():
    ratings = [[5, 0, 0], [1, 4, 0], [0, 0, 5], [3, 1, 1]]
    expected = float(FleissKappa(num_classes=3)(torch.tensor(ratings)))
    assert value(scored({"p": ratings}, FleissKappa(num_classes=3), target=None)) == expected
    assert value(scored({"p": [[0, 0, -1], [1, 1, 1], [2, 1, 2]]}, GwetAC1(num_classes=3), target=None)) > 0


def test_weights_that_are_strings_are_told_to_be_numbers():
    table = pa.table({"p": [0, 1], "y": [0, 1], "w": ["a", "b"]})
    with pytest.raises(ConfigError, match=r"w: got strings \('a', 'b'\), expected numbers\. Name a column of numbers"):
        score(table, Accuracy(num_classes=2), preds="p", target="y", weights="w")


def test_one_sample_is_in_the_singular():
    with pytest.raises(ShapeError, match="got 1 sample, expected as many as preds has, 2"):
        Accuracy(num_classes=2)(torch.tensor([0, 1]), torch.tensor([1]))
    with pytest.raises(ShapeError, match="got 1 sample, expected"):
        WordErrorRate()(["a", "b"], ["c"])


@pytest.mark.parametrize(
    ("names", "write"),
    [(("preds", "target"), "preds"), (("y", "Pred", "pred"), "pred"), (("a", "b"), "a")],
)
def test_a_missing_name_of_the_predictions_is_answered_by_a_column_that_is_there(names, write):
    table = {name: [0, 1] for name in names}
    with pytest.raises(ConfigError, match=rf"^preds: got no column, .*of {', '.join(names)}. Write preds='{write}'.$"):
        score(table, "accuracy")
    assert score({**table, "y": [0, 0]}, "accuracy", preds=write, target="y")["accuracy"].value == 0.5
