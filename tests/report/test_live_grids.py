"""The rows of long grids as JSON, and what stands in a page of them, without a browser."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from assay.errors import ShapeError
from assay.render.document import Chapter, DataGrid, Document, GridCell, GridColumn, GridRow, Number, Numbers, Span
from assay.render.html import to_html
from assay.render.live_grids import SHOWN, grid_json, page_parts
from assay.render.matrices import ConfusionDifference
from assay.render.text import clean
from assay.report import ConfusionPlot, Curve, Curves, Reliability, Report, Samples, Section, Value
from assay.report.comparing.plot_pairs import MOST_CLASSES, plot_pairs
from pages import Page
from report.conftest import EVIL


def rows(count: int) -> DataGrid:
    columns = (GridColumn("name"), GridColumn("x", "number"))
    made = [GridRow((GridCell(f"r{k}", f"r{k}"), GridCell(f"{k:,}", k))) for k in range(count)]
    return DataGrid(columns, tuple(made))


def page_of(grid: DataGrid) -> tuple[Page, dict]:
    page = Page(to_html(Document("d", (Chapter("c", (grid,)),))))
    return page, json.loads(page.scripts[0])


@pytest.mark.parametrize("count", [SHOWN, SHOWN + 1])
def test_rows_that_do_not_stand_in_the_page_are_in_its_json(count):
    page, data = page_of(rows(count))
    assert len(page.all("tr")) == 1 + SHOWN
    if count == SHOWN:
        assert data["grids"] == {}
        return
    (stored,) = data["grids"].values()
    assert stored["columns"][1]["value"] == [*range(count)]
    assert stored["columns"][0]["text"][-1] == f"r{count - 1}"
    assert f"The first {SHOWN} of {count} rows." in page.text


def test_every_value_can_be_read_from_json():
    """Floats that JSON lacks, integers beyond those of JavaScript (of nine digits), text that would end a script."""
    cells = [
        GridCell(Span(EVIL, "bad"), each, below=EVIL, mark=EVIL) for each in (math.nan, -math.inf, 2**70, 0.1, None)
    ]
    grid = DataGrid((GridColumn(EVIL),), tuple(GridRow((cell,), title=EVIL) for cell in cells))
    (column,) = grid_json(grid)["columns"]
    assert column["value"] == ["nan", "-inf", 1.18059162e21, 0.1, ""]
    assert column["text"] == [["bad", clean(EVIL)]] * 5
    assert column["below"] == column["mark"] == [clean(EVIL)] * 5
    long = DataGrid(grid.columns, grid.rows * 20)
    page, data = page_of(long)
    assert len(page.scripts) == 2
    (stored,) = data["grids"].values()
    assert stored["rows"]["title"] == [clean(EVIL)] * 100


def test_a_page_shows_the_highest_rank_first_and_folds_what_is_to_be_folded():
    plain = rows(4)
    ranked = [
        GridRow(row.cells, rank=rank, is_folded=folded)
        for row, rank, folded in zip(plain.rows, (0.5, 0, 1, 0.5), (False, True, False, False), strict=True)
    ]
    grid = DataGrid(plain.columns, tuple(ranked), folded="without <evidence>")
    shown, folded = page_parts(grid)
    assert [row.cells[0].content for row in shown.rows] == ["r2", "r0", "r3"]
    assert [row.cells[0].content for row in folded.rows] == ["r1"]
    page, _ = page_of(grid)
    assert "1 without <evidence>" in page.text
    assert page_parts(plain) == (plain, None)


def test_many_headline_numbers_are_a_table_on_a_page():
    numbers = Numbers(tuple(Number(f"m{k}", k / 10, "[0, 1]", 10 * k, "note") for k in range(13)))
    page = Page(to_html(Document("d", (Chapter("c", (numbers,)),))))
    assert len(page.all("tr")) == 14
    assert not [a for a in page.all("dl") if a.get("class") == "values"]
    few = Page(to_html(Document("d", (Chapter("c", (Numbers(numbers.numbers[:12]),)),))))
    assert not few.all("tr")


def test_plots_are_paired_by_title_and_kind_and_the_classes_that_changed_most_are_shown():
    def section(areas, counts, *more):
        curves = [Curve(f"c{k}", [0, 1], [0, 1], area) for k, area in enumerate(areas)]
        matrix = ConfusionPlot("matrix", ("a", "b"), counts)
        bins = Reliability("bins", [0, 0.5, 1], [math.nan, 0.75], [math.nan, 0.5], [0, 4], areas[0])
        return Section("s", plots=[Curves("roc", "roc", curves), matrix, bins, *more])

    a = section([0.5, 0.5, 0.5, 0.5, 0.5, math.nan], [[1, 2], [3, 4]], Curves("alone", "pr", [Curve("", [0], [0])]))
    b = section([0.5, 0.9, 0.6, 0.8, 0.7, 0.9], [[4, 3], [2, 1]], Curves("alone", "roc", [Curve("", [0], [0])]))
    found = [*plot_pairs(a, b, ("main", "new"))]
    assert [plot.name for plot in found] == ["roc: c1", "roc: c3", "roc: c4", "roc: c2", "matrix", "bins"]
    assert len([plot for plot in found if plot.name.startswith("roc")]) == MOST_CLASSES
    assert [(curve.name, curve.area) for curve in found[0].curves] == [("main", 0.5), ("new", 0.9)]
    assert found[4].before == ((1, 2), (3, 4))
    assert found[4].now == ((4, 3), (2, 1))
    assert (found[5].kind, found[5].curves[0].x, found[5].curves[0].y) == ("reliability", (0.75,), (0.5,))


def test_matrices_of_other_classes_or_of_too_many_are_not_paired():
    def section(labels):
        return Section("s", plots=[ConfusionPlot("m", labels, [[0] * len(labels)] * len(labels))])

    many = tuple(map(str, range(101)))
    for a, b in ((("a", "b"), ("a", "c")), (many, many)):
        assert [*plot_pairs(section(a), section(b), ("x", "y"))] == []


def test_a_difference_of_matrices_needs_two_of_its_size():
    with pytest.raises(ShapeError):
        ConfusionDifference("m", ("a", "b"), [[1, 2], [3, 4]], [[1]])
    same = ConfusionDifference("m", ("a",), [[1]], [[1]])
    assert same.summary() == "On the diagonal 1 of 1 samples, and 1 of 1 before."


@pytest.mark.parametrize("wrong", [20, 21, 1200])
def test_a_page_lists_more_of_the_worst_errors_than_a_terminal(wrong):
    target = np.ones(1300, int)
    loss = np.where(np.arange(1300) < wrong, np.arange(1300) + 1.0, 0.5)
    samples = Samples.pack(range(1300), {"loss": loss}, decision=(np.arange(1300) >= wrong).astype(int), target=target)
    value = Value("log loss", float(loss.mean()), numerator="loss", higher_is_better=False)
    report = Report("r", [Section("test", [value], samples=samples)])
    page = Page(to_html(report.to_document()))
    title = f"More of the worst errors: {min(wrong, 1000):,} of {wrong:,} wrong decisions"
    assert (title in page.text) == (wrong > 20)
    assert "More of the worst errors" not in report.to_text() + report.to_markdown()
    stored = json.loads(page.scripts[0])["grids"]
    if wrong > SHOWN:
        (grid,) = stored.values()
        assert grid["columns"][0]["text"][0] == str(wrong - 1)  # the largest loss first
        assert len(grid["columns"][0]["text"]) == 1000
