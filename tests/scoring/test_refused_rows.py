"""Rows whose values a metric refuses: they are left out and named, whatever the column and the metric."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402 - pyarrow is optional

from assay import metrics as m  # noqa: E402
from assay.scoring import BadRowsError, Partial, count, merge, score  # noqa: E402
from thinning import every_third  # noqa: E402

N, BAD = 60, 41
RNG = np.random.default_rng(3)
P = RNG.random(N) * 0.8 + 0.1
Y = RNG.integers(0, 2, N)
PROBABILITIES = np.stack([P, 1 - P], 1)
BOXES = [{"boxes": [[0.0, 0.0, 20.0, 20.0 + k]], "scores": [0.9], "labels": [k % 2]} for k in range(N)]
TRUTHS = [{"boxes": [[0.0, 0.0, 20.0, 20.0]], "labels": [k % 2]} for k in range(N)]
QUERIES = {"indexes": np.arange(N) // 6}
SPEECH = [[float(np.sin(k + t)) for t in range(8)] for k in range(N)]
BINARY, MANY, NUMBERS, IMAGES = (P, Y), (PROBABILITIES, Y), (P, P[::-1]), (BOXES, TRUTHS)
LABELS = PROBABILITIES, np.stack([Y, 1 - Y], 1)


def box(**fields):
    return {"boxes": [[0.0, 0.0, 20.0, 20.0]], "scores": [0.9], "labels": [1]} | fields


MORE = " (more classes need num_classes=, --num-classes)"
CASES = {
    "a score above 1": (m.AUROC(), BINARY, "p", 1.5, "scores are outside"),
    "a score below 0": (m.AveragePrecision(), BINARY, "p", -0.5, "scores are outside"),
    "an infinite score": (m.AUROC(), BINARY, "p", np.inf, "scores are outside"),
    "a score above 1 of a class": (m.AUROC(num_classes=2), MANY, "p", [1.5, 0.1], "scores are outside"),
    "a score above 1 in a bin": (m.CalibrationError(num_classes=2), MANY, "p", [1.5, 0.1], "scores are outside"),
    "a score above 1 in a loss": (m.BrierScore(), BINARY, "p", 1.5, "scores are outside"),
    "a score above 1 at thresholds": (m.AUROC(thresholds=(0.2, 0.5)), BINARY, "p", 1.5, "scores are outside"),
    "a score above 1 of a label": (m.AUROC(num_labels=2), LABELS, "p", [1.5, 0.1], "scores are outside"),
    "a label that is no class": (m.AUROC(), BINARY, "y", 3, f"a label outside 0 ... 1{MORE} in y"),
    "a negative label": (m.Accuracy(num_classes=2), (Y, Y), "p", -1, f"a label outside 0 ... 1{MORE} in p"),
    "a number outside the domain": (m.MeanSquaredLogError(), NUMBERS, "p", -2.0, "preds and target above -1"),
    "a target outside the domain": (m.MeanSquaredLogError(), NUMBERS, "y", -2.0, "preds and target above -1"),
    "a deviance of no value": (m.TweedieDevianceScore(power=1), NUMBERS, "p", -2.0, "terms"),
    "a deviance compared with a constant": (m.D2TweedieScore(power=1), NUMBERS, "p", -2.0, "preds or target"),
    "a relevance below 0": (m.RetrievalNormalizedDCG(), BINARY, "y", -3, "relevances are negative"),
    "a truth from bottom to top": (m.MeanAveragePrecision(), IMAGES, "y", box(boxes=[[0, 20.0, 9, 0]]), "size of 0"),
    "a box that is NaN": (m.MeanAveragePrecision(), IMAGES, "p", box(boxes=[[np.nan, 0.0, 9, 9]]), "size of 0"),
    "a box of three numbers": (m.MeanAveragePrecision(), IMAGES, "p", box(boxes=[[9.0, 9, 9]]), "shape (N, 4)"),
    "a score of a box that is NaN": (m.MeanAveragePrecision(), IMAGES, "p", box(scores=[np.nan]), "a number"),
    "fewer scores than boxes": (m.MeanAveragePrecision(), IMAGES, "p", box(scores=[]), "one number a box"),
    "fewer labels than boxes": (m.MeanAveragePrecision(), IMAGES, "y", box(labels=[]), "one number a box"),
    "a signal that is NaN": (m.SignalDistortionRatio(), (SPEECH, SPEECH), "p", [np.nan] * 8, "finite numbers"),
}


def tables(case):
    """Good rows, the same with a bad one, and the options of `score`."""
    metric, (preds, target), column, value, _ = CASES[case]
    columns = {"p": list(preds), "y": list(target), "n": list(range(N))}
    options = {"preds": "p", "target": "y", "confidence_level": None, "diagnostics": False}
    if isinstance(metric, m.RetrievalNormalizedDCG):
        columns |= QUERIES
        options["columns"] = {"indexes": "indexes"}
    good = pa.table(columns)
    columns[column] = [*columns[column][:BAD], value, *columns[column][BAD + 1 :]]
    arrays = {name: pa.array(each, None if name != column else good[name].type) for name, each in columns.items()}
    return good, pa.table(arrays), metric, options


def values(report):
    return [(each.name, each.value) for each in report.sections[0].values]


@every_third
@pytest.mark.parametrize("case", CASES)
def test_a_row_that_a_metric_refuses_is_left_out_and_named(case):
    good, bad, metric, options = tables(case)
    expected = values(score(good.filter(pa.array(np.arange(N) != BAD)), metric, **options))
    report = score(bad, metric, **options, on_bad="skip")
    assert repr(values(report)) == repr(expected)
    (row,) = report.sections[0].tables[-1].rows
    assert CASES[case][-1] in row[0]
    assert row[1:] == (1, f"table row {BAD}")
    with pytest.raises(BadRowsError, match=f"table row {BAD}") as raised:
        score(bad, metric, **options)
    assert repr(values(raised.value.report)) == repr(expected)


@pytest.mark.parametrize("case", ["a score above 1", "a number outside the domain", "a truth from bottom to top"])
@pytest.mark.parametrize("column", ["ids", "slices", "stream"])
def test_refused_rows_with_slices_ids_and_in_a_stream(case, column):
    good, bad, metric, options = tables(case)
    more = {"ids": {"ids": "n"}, "slices": {"slices": ["half"]}, "stream": {}}[column]
    good, bad = (each.append_column("half", pa.array(["a", "b"] * (N // 2))) for each in (good, bad))
    expected = score(good.filter(pa.array(np.arange(N) != BAD)), metric, **options, **more)
    source = bad.to_reader(7) if column == "stream" else bad
    report = score(source, metric, **options, **more, on_bad="skip")
    assert repr(values(report)) == repr(values(expected))
    slices = [[each.values for each in of.sections[0].slices] for of in (report, expected)]
    assert repr(slices[0]) == repr(slices[1])


def test_a_bad_row_in_the_seventh_of_nine_files_is_named(tmp_path):
    scores = P.copy()
    scores[BAD] = 7.0
    for k in range(9):
        rows = slice(6 * k, 6 * k + 6)
        pq.write_table(pa.table({"p": scores[rows], "y": Y[rows]}), tmp_path / f"{k}.parquet", row_group_size=3)
    options = {"preds": "p", "target": "y", "confidence_level": None}
    with pytest.raises(BadRowsError, match=r"1 with invalid values .*\(6\.parquet row group 1 row 5\)") as raised:
        score(tmp_path, m.AUROC(), **options)
    assert "Every row once: 54 expected, 53 counted" in raised.value.report.notes[0]
    keys = [f"{k}.parquet#{group}" for k in range(9) for group in (0, 1)]
    parts = [count(tmp_path, m.AUROC(), keys[part::2], **options, on_bad="skip") for part in range(2)]
    whole = merge([Partial.from_bytes(part.to_bytes()) for part in parts]).report()
    assert whole.sections[0].values == raised.value.report.sections[0].values
    assert "6.parquet row group 1 row 5" in str(whole.sections[0].tables)


def test_workers_name_the_rows_that_metrics_refuse(tmp_path):
    scores = P.copy()
    scores[BAD] = 7.0
    pq.write_table(pa.table({"p": scores, "y": Y}), tmp_path / "all.parquet", row_group_size=10)
    options = {"preds": "p", "target": "y", "confidence_level": None, "on_bad": "skip"}
    two = score(tmp_path / "all.parquet", m.AUROC(), **options, workers=2)
    one = score(tmp_path / "all.parquet", m.AUROC(), **options)
    assert (two.sections[0].values, two.notes) == (one.sections[0].values, one.notes)
    assert one.sections[0].tables[-1].rows[0][2] == "all.parquet row group 4 row 41"


def test_many_refused_rows_are_few_trials(monkeypatch):
    monkeypatch.setattr("assay.scoring.row_trials.MOST_TRIALS", 200)
    rows = 20_000
    preds = RNG.random(rows) - 0.1  # a tenth below 0
    table = pa.table({"p": preds * 20, "y": RNG.random(rows)})
    report = score(table, m.MeanSquaredLogError(), preds="p", target="y", confidence_level=None, on_bad="skip")
    assert report.sections[0].tables[-1].rows[0][1] == int((preds * 20 <= -1).sum()) > 500


def test_a_table_of_refused_rows_is_one_error(monkeypatch):
    logits = pa.table({"p": 3 + P, "y": Y})
    with pytest.raises(BadRowsError, match=r"60 with invalid values \(scores are outside .*logits=True"):
        score(logits, m.AUROC(), preds="p", target="y", on_bad="skip")
    monkeypatch.setattr("assay.scoring.row_trials.MOST_TRIALS", 20)
    images = pa.table({"p": IMAGES[0], "y": [box(boxes=[[0, 20.0, 9, 0]])] * N})
    with pytest.raises(BadRowsError, match=r"many rows with .*size of 0.*row 0"):
        score(images, m.MeanAveragePrecision(), preds="p", target="y", on_bad="skip")


def test_a_table_in_which_no_label_is_an_integer_is_an_error_that_says_so():
    with pytest.raises(BadRowsError, match=r"60 with a label that is no integer in y.*Check which columns preds= "):
        score(pa.table({"p": P, "y": P}), m.Accuracy(num_classes=2), preds="p", target="y", on_bad="skip")
