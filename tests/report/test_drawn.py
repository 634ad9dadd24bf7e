"""Reports and meters drawn with Matplotlib, in notebooks, and as data frames."""

from __future__ import annotations

import html
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib import pyplot
from matplotlib.figure import Figure

from assay import Meter
from assay.errors import ConfigError, MissingDependencyError, ShapeError
from assay.metrics import (
    ROC,
    Accuracy,
    CalibrationCurve,
    ConfusionMatrix,
    DETCurve,
    F1Score,
    LogLoss,
    Metric,
    PrecisionRecallCurve,
    RetrievalPrecisionRecallCurve,
)
from assay.render.svg import to_svg
from assay.report import Report, Section, Slice, Value

TARGET = torch.tensor([0, 1, 1, 2, 2, 2])
SCORES = torch.nn.functional.one_hot(torch.tensor([0, 1, 2, 2, 2, 0]), 3) * 0.7 + 0.1
CLASSES = ("cat", "dog", "cow")
MULTICLASS: dict[str, Metric] = {
    "matrix": ConfusionMatrix(num_classes=3),
    "roc": ROC(num_classes=3),
    "precision": PrecisionRecallCurve(num_classes=3),
    "bins": CalibrationCurve(num_classes=3),
    "each": F1Score(num_classes=3, average=None),
    "accuracy": Accuracy(num_classes=3),
    "loss": LogLoss(num_classes=3),
}


@pytest.fixture
def meter():
    meter = Meter(**MULTICLASS)
    meter.update(SCORES, TARGET)
    return meter


@pytest.fixture
def axes():
    return Figure().subplots()


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_a_matrix_has_its_counts(meter, axes):
    assert meter.plot("matrix", axes, classes=CLASSES) is axes
    assert axes.get_title() == "matrix"
    assert [label.get_text() for label in axes.get_xticklabels()] == list(CLASSES)
    assert sorted(words(axes)) == sorted(str(count) for count in meter.compute()["matrix"].ravel().tolist() if count)


@pytest.mark.parametrize(("name", "x", "y"), [("roc", 0, 1), ("precision", 1, 0)])
def test_curves_go_through_the_points_of_the_metric(meter, axes, name, x, y):
    meter.plot(name, axes, classes=CLASSES)
    points = meter.compute()[name]
    for k, line in enumerate(axes.lines[-3:]):
        np.testing.assert_allclose(line.get_xydata(), torch.stack([points[x][k], points[y][k]], 1))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(CLASSES)


def test_numbers_are_bars(meter, axes):
    meter.plot("values", axes)
    assert [bar.get_width() for bar in axes.patches] == [float(meter.compute()[name]) for name in ("accuracy", "loss")]
    for name, expected in (("each", meter.compute()["each"].tolist()), ("accuracy", [0.6666666666666666])):
        axes = Figure().subplots()
        meter.plot(name, axes)
        assert [bar.get_width() for bar in axes.patches] == expected


def test_a_curve_of_two_classes_is_one_line(axes):
    meter = Meter(ROC())
    meter.update(torch.tensor([0.1, 0.9, 0.4]), torch.tensor([0, 1, 1]))
    meter.plot(axes=axes)
    assert len(axes.lines) == 2  # with the diagonal
    assert axes.get_legend() is None


def test_what_cannot_be_drawn_says_what_can(meter):
    with pytest.raises(ConfigError, match=r"'mattrix'.*'matrix', 'roc'"):
        meter.plot("mattrix")
    with pytest.raises(ConfigError, match="no value that can be drawn"):
        Report("r").plot()


def test_detection_error_tradeoff_and_retrieval_curves_are_drawn(axes):
    DETCurve().plot(torch.tensor([0.1, 0.6, 0.4, 0.8]), torch.tensor([0, 0, 1, 1]), axes=axes)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("False positive rate", "False negative rate")
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[0.5, 0.0], [0.5, 0.5], [0.0, 0.5]]

    axes = Figure().subplots()
    preds, target = torch.tensor([[0.9, 0.5, 0.1]]), torch.tensor([[1, 0, 1]])
    RetrievalPrecisionRecallCurve(by_row=True, max_k=3).plot(preds, target, axes=axes)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Recall", "Precision")
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[0.5, 1.0], [0.5, 0.5], [1.0, pytest.approx(2 / 3)]]


def test_a_metric_says_which_picture_it_has(axes):
    class Tradeoff(ROC):
        """A curve of one's own."""

        picture = "det"

        def compute(self, counts):
            fpr, tpr, thresholds = super().compute(counts)
            return fpr, 1 - tpr, thresholds

    Tradeoff().plot(torch.tensor([0.1, 0.6, 0.4, 0.8]), torch.tensor([0, 0, 1, 1]), axes=axes)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("False positive rate", "False negative rate")


def test_a_report_draws_its_plots_and_else_its_values(axes):
    values = (Value("accuracy", 0.75, 0.5, 0.875), Value("f1", 0.5, 0.25, 0.625))
    report = Report("r", [Section("test", values)])
    assert report.plot(axes=axes).get_title() == "test"
    assert [bar.get_width() for bar in axes.patches] == [0.75, 0.5]
    new = report.plot("test")
    pyplot.close(new.figure)
    assert new is not axes


def test_pages_keep_their_colours_after_a_drawing(meter, axes):
    from assay.render.plots import Bars

    before = to_svg(Bars("b", ("x",), (1.0,)))
    meter.plot("each", axes)
    assert to_svg(Bars("b", ("x",), (1.0,))) == before
    assert "var(--heat)" in before


def test_a_notebook_shows_the_page():
    shown = Report("my <report>", [Section("test", (Value("accuracy", 0.75),))])._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert shown.count("<") == 2
    assert " onload=" in shown
    page = html.unescape(shown.partition('srcdoc="')[2].partition('" style')[0])
    assert "<title>my &lt;report&gt;</title>" in page


def test_a_report_becomes_a_data_frame(monkeypatch):
    section = Section(
        "test", (Value("accuracy", 0.75, count=4),), slices=(Slice("night", 2, (Value("accuracy", 0.5),)),)
    )
    report = Report("r", [section])
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows, columns: (rows, columns)))
    rows, columns = report.to_dataframe()
    assert [dict(zip(columns, row, strict=True)) for row in rows] == [
        {"section": "test", "slice": name, "metric": "accuracy", "value": value, "count": count, "note": ""}
        | dict.fromkeys(("lower", "upper", "confidence_level", "higher_is_better"))
        for name, value, count in (("", 0.75, 4), ("night", 0.5, None))
    ]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"assay\[pandas\]"):
        report.to_dataframe()


@pytest.mark.parametrize(("scale", "normalize"), [(0.0, "true"), (1e-3, None), (1e6, None), (1e6, "all")])
def test_normalized_and_weighted_confusion_matrices_are_drawn(scale, normalize):
    meter = Meter(matrix=ConfusionMatrix(num_classes=2, normalize=normalize), weighted=scale > 0)
    weights = {"weights": torch.full((4,), scale)} if scale else {}
    meter.update(torch.tensor([0, 1, 1, 1]), torch.tensor([0, 0, 0, 1]), **weights)
    axes = meter.plot(axes=Figure().subplots(), classes=["cat", "dog"])
    values = meter.compute()["matrix"].flatten().tolist()
    assert [text.get_text() for text in axes.texts] == [f"{value:.3g}" for value in values if value]
    opaque = [patch.get_alpha() for patch in axes.patches if patch.get_alpha() != 0.45]
    assert opaque == pytest.approx([(1 / 3) ** 0.6, (2 / 3) ** 0.6, 1.0])


def test_a_comparison_becomes_a_data_frame_and_bars(monkeypatch):
    from assay.report.comparing.comparison import Comparison, Delta, Run

    deltas = (
        Delta("b", "test", "accuracy", 0.5, 0.75, 0.25, 0.1, 0.4, verdict="better"),
        Delta("b", "test", "loss", 0.5, 0.25, -0.25, -0.4, -0.1, verdict="better"),
        Delta("b", "test", "accuracy", 0.5, 0.5, 0.0, slice="night"),
    )
    comparison = Comparison((Run("a"), Run("b")), deltas)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows, columns: (rows, columns)))
    rows, columns = comparison.to_dataframe()
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    assert [(each["metric"], each["slice"], each["difference"]) for each in found] == [
        ("accuracy", "", 0.25),
        ("loss", "", -0.25),
        ("accuracy", "night", 0.0),
    ]
    assert {name: found[0][name] for name in ("verdict", "lower", "p")} == {
        "verdict": "better",
        "lower": 0.1,
        "p": None,
    }
    axes = Figure().subplots()
    assert comparison.plot(axes=axes) is axes
    shown = [text.get_text() for text in (*axes.texts, axes.title, *axes.get_yticklabels(), *axes.get_xticklabels())]
    assert {"accuracy", "loss"} <= set(shown)
    with pytest.raises(ConfigError, match="b, test"):
        comparison.plot("c, test")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"assay\[pandas\]"):
        comparison.to_dataframe()


def test_a_metric_is_written_with_the_arguments_that_it_was_given():
    assert repr(F1Score(num_classes=3, average=None)) == "F1Score(num_classes=3, average=None)"
    assert repr(Accuracy()) == "Accuracy()"
    for metric in MULTICLASS.values():
        assert eval(repr(metric), globals()) == metric


def test_the_first_plot_leaves_the_settings_of_the_backend_that_it_starts(tmp_path):
    """The inline backend of notebooks switches to interactive mode when the first figure is made."""
    (tmp_path / "backend_of_notebook.py").write_text(
        "import matplotlib\nfrom matplotlib.backends.backend_agg import FigureCanvas\nmatplotlib.interactive(True)\n",
        encoding="utf-8",
    )
    code = """
import matplotlib
from assay.report import Report, Section, Value
report = Report("a", [Section("test", [Value("accuracy", 0.5)])])
report.plot()
assert matplotlib.get_backend().endswith("backend_of_notebook")
print(matplotlib.is_interactive())
"""
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "module://backend_of_notebook"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize("metric", [ROC(num_classes=3), ConfusionMatrix(num_classes=3)], ids=repr)
def test_a_metric_draws_what_a_meter_of_one_batch_does(metric, axes):
    preds, target = torch.eye(3).repeat(4, 1), torch.arange(12) // 4
    drawn = metric.plot(preds, target, axes=axes, classes=CLASSES)
    meter = Meter(metric)
    meter.update(preds, target)
    expected = meter.plot(axes=Figure().subplots(), classes=CLASSES)
    assert drawn is axes
    assert drawn.get_title() == expected.get_title() != ""
    assert [line.get_xydata().tolist() for line in drawn.lines] == [
        line.get_xydata().tolist() for line in expected.lines
    ]
    assert words(drawn) == words(expected)
    with pytest.raises(ShapeError):
        metric.plot(preds, target[:3])
