"""Pages in a browser, used as by hand: sort, filter, page, hover, zoom; on a phone, in the dark, without scripts."""

from __future__ import annotations

import numpy as np
import pytest

from assay.render.html import to_html
from assay.report import ConfusionPlot, Curve, Curves, Report, Samples, Section, Slice, Table, Value, compare
from report.conftest import everything

ROWS = "[...document.querySelectorAll('.grid tbody tr')].map((row) => row.cells[0].textContent.trim())"


def run(title: str, right: np.ndarray, slices: dict[str, np.ndarray] | None = None) -> Report:
    """A run whose samples are right or wrong, with slices of them."""

    def accuracy(mask: np.ndarray) -> Value:
        return Value("accuracy", right[mask].mean(), numerator="correct", higher_is_better=True)

    parts = [Slice.of(name, [accuracy(mask)], mask) for name, mask in (slices or {}).items()]
    samples = Samples.pack(range(len(right)), {"correct": right}, decision=right, target=np.ones(len(right), bool))
    return Report(title, [Section("test", [accuracy(right | True)], samples=samples, slices=parts)])


def sliced(count: int) -> Report:
    """Slices of which slice k has accuracy k / count; every tenth is marked small."""
    slices = [
        Slice(f"user = {k}", 40 if k % 10 else 3, [Value("accuracy", k / count, k / count - 0.01, k / count + 0.01)])
        for k in range(count)
    ]
    return Report("r", [Section("test", [Value("accuracy", 0.5)], slices=slices, min_slice_size=10)])


@pytest.fixture(scope="module")
def long_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "long.html"
    return sliced(320).to_html(path)


def test_long_tables_are_paged(browser, long_page):
    browser.open(long_page)
    assert browser.run(ROWS) == [f"user = {k}" for k in range(50)]
    browser.click(".pages button:last-child")
    assert browser.run(ROWS) == [f"user = {k}" for k in range(50, 100)]
    assert browser.run("document.querySelector('.pages').textContent") == "‹51–100 of 320 rows›"
    browser.click(".pages button:first-child")
    assert browser.run(ROWS)[0] == "user = 0"
    assert browser.run("document.querySelector('.pages button').disabled") is True


def test_all_rows_of_a_long_table_are_sorted_and_filtered(browser, long_page):
    browser.open(long_page)
    browser.click("thead th:nth-child(3) button")
    assert browser.run(ROWS)[:2] == ["user = 319", "user = 318"]
    browser.type(".grid input", "USER accuracy<0.98 accuracy>=0.97")
    assert browser.run(ROWS) == ["user = 313", "user = 312", "user = 311"]
    browser.type(".grid input", "n<=3 accuracy>=0.9")
    assert browser.run(ROWS) == ["user = 310", "user = 300", "user = 290"]
    assert browser.run("document.getElementById('said').textContent") == "3 of 320 rows"
    assert browser.run("document.querySelector('tbody tr').className") == "faint"
    browser.type(".grid input", "nobody")
    assert browser.run(ROWS) == []


def test_rows_of_the_script_look_like_rows_of_the_page(browser, tmp_path):
    """A long grid holds everything twice: as elements of the page, and as JSON for the script."""
    rng = np.random.default_rng(0)
    right = rng.random((2, 4000)) < np.array([[0.9], [0.6]])
    of = [k % 60 for k in range(4000)]
    reports = [
        run(name, flags, slices={f"s{k}": np.array(of) == k for k in range(60)})
        for name, flags in zip("ab", right, strict=True)
    ]
    path = compare(*reports).to_html(tmp_path / "c.html")
    shown = "[...document.querySelectorAll('.grid')].find((grid) => grid.dataset.rows).querySelector('tbody').innerHTML"
    browser.open(path, scripts=False)
    still = browser.run(_words(shown))
    browser.open(path)
    assert browser.run(_words(shown)) == still
    assert "better" in still or "worse" in still
    assert "<svg" in still


def _words(html: str) -> str:
    """A piece of HTML without white space, titles and keys, whose numbers the script has in fewer digits."""
    return rf"""({html}).replace(/ (title|data-key)="[^"]*"/g, '').replace(/\s+|=""/g, '').replace(/\.0"/g, '"')"""


def test_a_plot_names_the_point_below_the_pointer(browser, tmp_path):
    curves = Curves("ROC", "roc", [Curve("<b>cat</b>", [0, 0.25, 1], [0, 0.75, 1], 0.75)])
    path = Report("r", [Section("test", plots=[curves])]).to_html(tmp_path / "r.html")
    browser.open(path)
    browser.wait("document.querySelectorAll('.chart svg').length")
    browser.move(".chart .mark-symbol.role-mark path:nth-child(2)", dx=3)
    browser.wait("document.querySelector('#vg-tooltip-element.visible') !== null")
    shown = "[...document.querySelectorAll('.chart .mark-symbol path')].map((each) => getComputedStyle(each).opacity)"
    assert browser.run(shown) == ["0", "1", "0"]
    said = browser.run("document.querySelector('#vg-tooltip-element').innerText").split("\n")
    assert [line.split("\t") for line in said] == [
        ["curve", "<b>cat</b>"],
        ["False positive rate", "0.2500"],
        ["True positive rate", "0.7500"],
    ]


def test_a_plot_is_enlarged_and_zoomed(browser, tmp_path):
    path = Report("r", [Section("test", plots=everything().sections[0].plots[1:2])]).to_html(tmp_path / "r.html")
    browser.open(path)
    browser.wait("document.querySelectorAll('.chart svg').length")
    line = "document.querySelector('.chart .mark-line path').getAttribute('d')"
    small, whole = browser.run("document.querySelector('.chart').clientWidth"), browser.run(line)
    browser.move(".chart svg", wheel=-300)  # which moves the page alone
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert browser.run(line) == whole
    browser.click(".enlarge")
    browser.wait(f"document.querySelector('.chart').clientWidth > {small}")
    assert browser.run("document.querySelector('.enlarge').getAttribute('aria-pressed')") == "true"
    large = browser.run(line)
    browser.move(".chart svg", wheel=-300)
    browser.wait(f"{line} !== {large!r}")
    browser.click(".enlarge")
    browser.wait(f"document.querySelector('.chart').clientWidth === {small} && {line} === {whole!r}")


def test_every_plot_becomes_live_and_keeps_its_name(browser, tmp_path):
    browser.open(everything().to_html(tmp_path / "r.html"), height=6000)
    count = len(everything().sections[0].plots) + 1
    browser.wait(f"document.querySelectorAll('.chart').length === {count}")
    names = browser.run("[...document.querySelectorAll('.chart')].map((chart) => chart.getAttribute('aria-label'))")
    assert names[0].startswith("name: 12 of 15 samples are on the diagonal")
    assert browser.run("document.querySelectorAll('figure > svg').length") == 0


def test_without_scripts_there_are_pictures_and_the_first_rows(browser, long_page, tmp_path):
    browser.open(long_page, scripts=False)
    assert browser.run(ROWS) == [f"user = {k}" for k in range(50)]
    assert browser.run("document.querySelector('.rest').textContent") == "The first 50 of 320 rows."
    browser.open(everything().to_html(tmp_path / "r.html"), scripts=False)
    assert browser.run("document.querySelectorAll('figure svg').length") == len(everything().sections[0].plots) + 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_of_live_plots_follow_the_theme(browser, tmp_path, dark):
    path = Report("r", [Section("test", plots=everything().sections[0].plots[5:6])]).to_html(tmp_path / "r.html")
    browser.open(path, dark=dark)
    browser.wait("document.querySelectorAll('.chart').length")
    colour = browser.run("getComputedStyle(document.querySelector('.chart .mark-rect path')).fill")
    assert colour == ("rgb(58, 119, 230)" if dark else "rgb(31, 95, 204)")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(18, 20, 24)" if dark else "rgb(255, 255, 255)"
    )


def test_a_comparison_on_a_phone_shows_the_difference_and_its_interval(browser, tmp_path):
    rng = np.random.default_rng(0)
    a, b = (run(name, rng.random(400) < share) for name, share in (("main", 0.9), ("new", 0.6)))
    browser.open(compare(a, b).to_html(tmp_path / "c.html"), width=390, height=800)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    for name in ("difference", "interval"):
        box = browser.run(
            f"(() => {{ const box = document.querySelector('td[data-name={name}]').getBoundingClientRect();"
            "return [box.left, box.right, box.width]; })()"
        )
        assert 0 <= box[0] < box[1] <= 390
        assert box[2] > 40


def test_no_evidence_is_folded_and_the_largest_regression_stands_first(browser, tmp_path):
    rng = np.random.default_rng(0)
    before, of = rng.random(8000) < 0.6, np.arange(8000) % 4
    now = before & ~((of == 1) & (rng.random(8000) < 0.3)) & ~((of == 2) & (rng.random(8000) < 0.15)) | (of == 3)
    slices = {f"s{k}": of == k for k in range(4)}
    reports = [run(name, right, slices=slices) for name, right in (("main", before), ("new", now))]
    browser.open(compare(*reports).to_html(tmp_path / "c.html"))
    below = "[...document.querySelectorAll('h3')].find((h) => h.textContent.startsWith('By slice')).nextElementSibling"
    names = ".querySelectorAll('tbody th')].map((cell) => cell.textContent.trim())"
    assert browser.run(f"[...{below}{names}") == ["s1", "s2", "s3"]
    details = (
        "[...document.querySelectorAll('details')].find((each) => each.innerText.includes('without a difference'))"
    )
    assert browser.run(f"{details}.open") is False
    assert browser.run(f"[...{details}{names}") == ["s0"]


def test_hostile_words_run_nothing_in_rows_filters_and_tooltips(browser, hostile, tmp_path):
    evil = hostile.title
    table = Table("t", ("name", evil), [(f"{evil} {k}", evil) for k in range(120)], note=evil)
    sections = [*hostile.sections, Section("long", tables=(table,))]
    path = tmp_path / "r.html"
    path.write_text(to_html(Report(evil, sections).to_document()), "utf-8")
    browser.open(path, height=8000)
    browser.wait(f"document.querySelectorAll('.chart').length === {len(hostile.sections[0].plots) + 1}")
    browser.run("[...document.querySelectorAll('.pages button')].at(-1).click()")
    browser.run("for (const button of document.querySelectorAll('thead button')) button.click()")
    for mark in (".mark-rect path", ".mark-symbol path", ".mark-line path"):
        browser.move(f".chart {mark}")
    assert browser.run("document.querySelectorAll('img, main script, a[href^=javascript]').length") == 0


@pytest.mark.parametrize("shade", ["#111111", "#ffffff"], ids=["dark notebook", "light notebook"])
def test_a_notebook_shows_the_whole_page_alive_and_in_its_theme(browser, tmp_path, shade):
    cell = f'<!doctype html><html data-live><body style="background: {shade}"><div>{everything()._repr_html_()}</div>'
    (tmp_path / "notebook.html").write_text(cell, "utf-8")
    browser.open(tmp_path / "notebook.html", dark=shade == "#ffffff")  # the system has the other theme
    page = "document.querySelector('iframe').contentDocument"
    browser.wait(f"{page}.querySelectorAll('.chart svg').length > 2")
    browser.wait(f"document.querySelector('iframe').clientHeight >= {page}.documentElement.scrollHeight")
    lightness = browser.run(f"getComputedStyle({page}.body).backgroundColor")
    assert lightness == ("rgb(18, 20, 24)" if shade == "#111111" else "rgb(255, 255, 255)")
    browser.run(f"{page}.querySelector('thead button').click()")
    assert browser.run(f"{page}.querySelectorAll('th[aria-sort]').length") == 1
    assert browser.run("document.querySelectorAll('iframe').length") == 1


def test_a_chart_that_is_hidden_while_the_library_loads_is_drawn_when_it_is_shown(browser, tmp_path):
    matrix = ConfusionPlot("confusion", ("cat", "dog"), ((3, 1), (2, 4)))
    browser.open(
        Report("r", [Section("test", [Value("recall", 0.75)], plots=(matrix,))]).to_html(tmp_path / "matrix.html")
    )
    browser.wait("document.querySelector('figure .chart svg') !== null")
    browser.run("""(async () => {
        const { charts } = await readData(), figure = document.querySelector("figure[data-chart]");
        figure.querySelector(".chart").dataset.first = "";
        figure.hidden = true;
        await draw(figure, charts[figure.dataset.chart]);
    })()""")
    assert browser.run("document.querySelector('figure .chart').dataset.first") == ""
    browser.run("document.querySelector('figure[data-chart]').hidden = false")
    browser.wait("document.querySelector('figure .chart')?.dataset.first === undefined")
