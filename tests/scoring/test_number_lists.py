"""Columns of lists of numbers: boxes of images, and signals."""

import pytest

pa = pytest.importorskip("pyarrow")
import torch  # noqa: E402 - pyarrow is optional

from assay import Meter, score  # noqa: E402
from assay.errors import ConfigError  # noqa: E402
from assay.metrics import MeanAbsoluteError, MeanAveragePrecision, SignalDistortionRatio  # noqa: E402
from assay.scoring import BadRowsError, Partial, count  # noqa: E402
from assay.scoring.number_lists import sample_tensors  # noqa: E402

SEEN = [{"boxes": [[0.0, 0.0, 20.0, 20.0], [5.0, 5.0, 9.0, 40.0]], "scores": [0.9, 0.4], "labels": [0, 1]}] * 6
TRUE = [{"boxes": [[1.0, 0.0, 20.0, 21.0]], "labels": [0], "iscrowd": None}] * 5 + [{"boxes": [], "labels": []}]


def tensors(rows):
    """What `update` takes."""
    kinds = {"labels": torch.int64}
    return [
        {
            name: torch.tensor(value, dtype=kinds.get(name, torch.float64))
            for name, value in row.items()
            if value is not None
        }
        for row in rows
    ]


def of(table, **options):
    return score(table, MeanAveragePrecision(), preds="p", target="t", confidence_level=None, **options).sections[0]


def test_boxes_in_a_table_are_those_of_an_update():
    meter = Meter(MeanAveragePrecision())
    meter.update(tensors(SEEN), tensors(TRUE))
    expected = meter.compute()["MeanAveragePrecision"]
    values = {each.name.split()[-1]: each.value for each in of(pa.table({"p": SEEN, "t": TRUE})).values}
    assert values["map"] == float(expected["map"]) > 0
    assert values["mar_100"] == float(expected["mar_100"])


@pytest.mark.parametrize("field", [("boxes", [[1.0, 2.0], [3.0]]), ("scores", [0.9, None]), ("scores", [None, None])])
def test_lists_that_are_no_tensor_are_bad_rows(field):
    name, value = field
    rows = [*SEEN[:5], {**SEEN[5], name: value}]
    with pytest.raises(BadRowsError, match=r"1 with a list with a missing number.* in p \(.*row 5\)") as raised:
        of(pa.table({"p": rows, "t": TRUE}))
    assert raised.value.report.sections[0].values[0].count == 5


def test_numbers_keep_their_kind_and_other_fields_stay():
    rows = [{"text": "a", "start": [3], "inside": {"deep": [1.0]}, "scores": [0.5], "rle": [True]}]
    types = pa.struct({"text": pa.string(), "start": pa.int32(), "inside": pa.struct({"deep": pa.list_(pa.float32())})})
    kept = sample_tensors(pa.array([{"text": "a", "start": 3, "inside": {"deep": [1.0]}}, None], types))[0]
    assert kept == [{"text": "a", "start": 3, "inside": {"deep": [1.0]}}, None]
    half = pa.array([[1.5], [2.0, 3.0], None, []], pa.list_(pa.float16()))
    samples, bad = sample_tensors(half)
    assert [None if each is None else (each.dtype, len(each)) for each in samples] == [
        (torch.float32, 1),
        (torch.float32, 2),
        None,
        (torch.float32, 0),
    ]
    assert not bad.any()
    samples, _ = sample_tensors(pa.array(rows))
    assert [samples[0][name].dtype for name in ("start", "scores", "rle")] == [torch.int64, torch.float64, torch.bool]


def test_signals_of_any_length_are_read():
    torch.manual_seed(0)
    waves = [torch.randn(n, dtype=torch.float64) for n in (1200, 1500)]
    noisy = [wave + 0.1 * torch.randn_like(wave) for wave in waves]
    table = pa.table({"p": [each.tolist() for each in noisy], "t": [each.tolist() for each in waves]})
    metric = SignalDistortionRatio(filter_length=16)
    found = score(table, metric, preds="p", target="t", confidence_level=None).sections[0].values[0].value
    meter = Meter(metric)
    meter.update(noisy, waves)
    assert found == float(meter.compute()["SignalDistortionRatio"])


def of_fields(rows, prefix):
    """A column for each field."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {prefix + name: [row.get(name) for row in rows] for name in names}


@pytest.mark.parametrize("written", [str, dict])
def test_boxes_in_a_column_for_each_field_are_those_of_structs(written):
    table = pa.table(of_fields(SEEN, "p_") | of_fields(TRUE, "t_"))
    fields = (
        {"boxes": "p_boxes", "scores": "p_scores", "labels": "p_labels"},
        {"boxes": "t_boxes", "labels": "t_labels"},
    )
    if written is str:
        fields = [",".join(f"{name}={column}" for name, column in each.items()) for each in fields]
    options = {"preds": fields[0], "target": fields[1], "confidence_level": None}
    expected = of(pa.table({"p": SEEN, "t": TRUE})).values
    named = score(table, "mean_average_precision", **options).sections[0].values
    assert repr([each.value for each in named]) == repr([each.value for each in expected])
    section = score(table, MeanAveragePrecision(), **options).sections[0]
    assert repr(section.values) == repr(expected)
    part = count(table, MeanAveragePrecision(), **options)
    assert repr(Partial.from_bytes(part.to_bytes()).report().sections[0].values) == repr(expected)


def test_fields_with_a_fault_are_bad_rows():
    table = pa.table(of_fields([*SEEN[:4], {**SEEN[4], "scores": [0.5, None]}, {**SEEN[5], "boxes": None}], "p_"))
    for name, column in of_fields(TRUE, "t_").items():
        table = table.append_column(name, pa.array(column))
    options = {"preds": "boxes=p_boxes,scores=p_scores,labels=p_labels", "target": "boxes=t_boxes,labels=t_labels"}
    report = score(table, MeanAveragePrecision(), **options, confidence_level=None, on_bad="skip")
    rows = report.sections[0].tables[-1].rows
    assert [row[1:] for row in rows] == [(1, "table row 4"), (1, "table row 5")]
    assert "missing number" in rows[0][0]
    assert "boxes" in rows[1][0]


def test_images_without_boxes_and_fields_that_cannot_be():
    empty = {"boxes": [], "scores": [], "labels": []}
    table = pa.table(of_fields([empty] * 6, "p_") | of_fields(TRUE, "t_"))
    options = {"target": "boxes=t_boxes,labels=t_labels", "confidence_level": None}
    every = "boxes=p_boxes,scores=p_scores,labels=p_labels"
    assert score(table, MeanAveragePrecision(), preds=every, **options).sections[0].values[0].value == 0
    with pytest.raises(ConfigError, match="no column 'p_box', expected 'p_boxes'"):
        score(table, MeanAveragePrecision(), preds="boxes=p_box", **options)
    with pytest.raises(ConfigError, match="each field once"):
        score(table, MeanAveragePrecision(), preds="boxes=p_boxes,boxes=p_scores", **options)
    with pytest.raises(ConfigError, match="metrics that take fields"):
        score(table, MeanAbsoluteError(), preds="boxes=p_boxes", target="t_labels")
