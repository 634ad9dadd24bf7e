"""One page over many reports: what it holds, and in a browser that any can be opened and any two compared."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from assay.errors import ConfigError
from assay.report import Report, ReportCollection, Section, Value, collect
from pages import Page
from report.conftest import EVIL
from report.runs import run


def made(day: int, share: float, title: str = "", n: int = 240) -> Report:
    created = f"2026-11-{day:02}T12:00:00+00:00"
    return replace(run(title or f"model {day}", n, share=share), created=created)


@pytest.fixture
def folder(tmp_path):
    """Four runs, the third of another model on other samples; a file that is cut short, and one that is no report."""
    for day, share in ((10, 0.6), (11, 0.9), (13, 0.85)):
        made(day, share).save(tmp_path / f"r{day}" / "report.json")
    made(12, 0.7, "other net", 200).save(tmp_path / "r12" / "report.json")
    whole = (tmp_path / "r10" / "report.json").read_text("utf-8")
    (tmp_path / "cut.json").write_text(whole[:900], "utf-8")
    (tmp_path / "notes.json").write_text("{}", "utf-8")
    return tmp_path


def data_of(html: str) -> dict:
    return json.loads(Page(html).scripts[0])


def test_it_holds_all_runs_in_the_order_of_their_times_and_names_files_that_cannot_be_read(folder):
    found = collect(folder)
    assert [name for name, _ in found.reports] == ["r10", "r11", "r12", "r13"]
    (unread,) = found.history.not_read
    assert "cut.json" in unread
    text = found.to_text()
    assert "cut.json" in text
    assert [line.split()[0] for line in text.splitlines() if line.strip().startswith("r1")][:4] == [
        *("r13", "r12", "r11", "r10")
    ]


def test_pairs_are_compared_in_the_order_in_which_they_matter(folder):
    assert [*collect(folder, comparisons=0).comparisons] == []
    assert sorted(collect(folder, comparisons=3).comparisons) == [(0, 1), (1, 2), (2, 3)]
    assert sorted(collect(folder, comparisons=4).comparisons) == [(0, 1), (1, 2), (1, 3), (2, 3)]
    assert len(collect(folder).comparisons) == 6
    with pytest.raises(ConfigError, match="comparisons: got -1"):
        collect(folder, comparisons=-1)


def test_the_page_holds_a_sheet_for_each_run_and_comparison(folder, tmp_path):
    found = collect(folder, comparisons=3)
    page = Page(found.to_html(tmp_path / "view.html").read_text("utf-8"))
    sheets = {each["id"] for each in page.all("article")}
    assert sheets == {"run0x", "run1x", "run2x", "run3x", "pair0x1x", "pair1x2x", "pair2x3x"}
    links = [each["href"].removeprefix("#") for each in page.all("a")]
    assert sheets <= set(links)
    ids = [each["id"] for _, each in page.elements if "id" in each]
    assert len(set(ids)) == len(ids)
    assert set(filter(None, links)) <= set(ids)
    view = data_of((tmp_path / "view.html").read_text("utf-8"))["view"]
    assert view["pairs"] == {"0-1": "pair0x1x", "1-2": "pair1x2x", "2-3": "pair2x3x"}
    assert view["metrics"] == ["accuracy", "loss", "AUROC"]
    assert [each["name"] for each in view["runs"]] == ["r10", "r11", "r12", "r13"]
    value = found.reports[2][1].value("accuracy").value
    assert view["runs"][2]["values"]["test/accuracy"] == [value, f"{value:.4f}"]
    assert "other net" in view["runs"][2]["words"]


def test_values_that_are_not_finite_and_sections_that_others_lack(tmp_path):
    a = Report("a", [Section("one", [Value("x", float("nan"))])], created="2026-11-01T00:00:00+00:00")
    b = Report("b", [Section("two", [Value("x", 1.0)])], created="2026-11-02T00:00:00+00:00")
    found = collect([b, a])
    assert found.comparisons == {}
    view = data_of(found.to_html(tmp_path / "view.html").read_text("utf-8"))["view"]
    assert [each["values"] for each in view["runs"]] == [{"one/x": ["nan", "–"]}, {"two/x": [1.0, "1.0000"]}]


def test_one_report_is_a_page_and_none_is_an_error(tmp_path):
    assert isinstance(collect(made(10, 0.5)), ReportCollection)
    (tmp_path / "cut.json").write_text('{"schema": "assay.report/7"', "utf-8")
    with pytest.raises(ConfigError, match=r"reports: got none that can be read .*cut\.json"):
        collect(tmp_path)


def test_the_command_writes_the_page_and_says_what_was_not_read(folder):
    command = [sys.executable, "-m", "assay", "view", str(folder), "--html", str(folder / "all.html")]
    done = subprocess.run([*command, "--comparisons", "1"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    unread, written = done.stderr.splitlines()
    assert unread.startswith("not read: ")
    assert written == str(folder / "all.html")
    assert "Traceback" not in done.stderr
    empty = subprocess.run([*command[:4], str(folder / "notes.json")], capture_output=True, text=True)
    assert empty.returncode == 2
    assert "Traceback" not in empty.stderr


SHOWN = (
    "[...document.querySelectorAll('article, .index')].filter((each) => each.checkVisibility()).map((each) => each.id)"
)
RUNS = "[...document.querySelectorAll('.index tbody')[0].rows].map((row) => row.cells[0].textContent.trim())"


def test_any_run_is_opened_and_any_two_are_compared(browser, folder):
    browser.open(collect(folder, comparisons=3).to_html(folder / "view.html"))
    assert browser.run(SHOWN) == [""]
    browser.click(".index tbody tr:nth-child(2) a")
    browser.wait(f"{SHOWN}.join() === 'run2x'")
    assert browser.run("document.querySelector('#run2x h1').textContent") == "r12: other net"
    browser.click("#run2x .back a")
    browser.wait(f"{SHOWN}.join() === ''")
    browser.click(".picker button")
    browser.wait(f"{SHOWN}.join() === 'pair2x3x'")
    browser.run("history.back()")
    browser.wait(f"{SHOWN}.join() === ''")
    browser.run("document.querySelectorAll('.picker select')[1].value = 0")
    browser.click(".picker button")
    found = browser.wait("document.querySelector('.found').innerText")
    assert "r13 against r10" in found
    difference = made(13, 0.85).value("accuracy").value - made(10, 0.6).value("accuracy").value
    assert f"+{difference:.4g}" in found
    assert f"assay compare {folder / 'r10'}" in found
    assert "not tested" in found


def test_runs_and_plots_are_filtered_by_metric_model_and_date(browser, folder):
    browser.open(collect(folder).to_html(folder / "view.html"), height=3000)
    browser.wait("document.querySelectorAll('.index .chart svg').length === 3")
    browser.type(".picker input[type=search]", "OTHER NET")
    assert browser.run(RUNS) == ["r12"]
    browser.wait("document.querySelectorAll('.index figure')[0].querySelectorAll('.mark-symbol path').length === 1")
    browser.type(".picker input[type=search]", "")
    browser.run(
        "(() => { const [from] = document.querySelectorAll('input[type=date]'); from.value = '2026-11-12';"
        "from.dispatchEvent(new Event('input')); })()"
    )
    assert browser.run(RUNS) == ["r13", "r12"]
    browser.run(
        "(() => { const metric = document.querySelector('.picker select'); metric.value = 1;"
        "metric.dispatchEvent(new Event('input')); })()"
    )
    shown = "[...document.querySelectorAll('.index figure')].filter((each) => each.checkVisibility())"
    assert browser.run(f"{shown}.map((each) => each.querySelector('h4').firstChild.textContent)") == ["loss"]


def test_without_scripts_runs_and_comparisons_open_by_their_links(browser, folder):
    browser.open(collect(folder).to_html(folder / "view.html"), scripts=False)
    assert browser.run("document.querySelectorAll('.index figure svg').length") == 3
    browser.click("a[href='#pair1x2x']")
    browser.wait(f"{SHOWN}.join() === 'pair1x2x'")
    browser.click("#pair1x2x .back a")
    browser.wait(f"{SHOWN}.join() === ''")


def test_hostile_names_run_nothing(browser, tmp_path):
    reports = [replace(made(day, 0.5), title=f"{EVIL}{day}") for day in (1, 2, 3)]
    names = [f"{EVIL}{day}" for day in (1, 2, 3)]
    path = collect(reports, names=names, comparisons=0).to_html(tmp_path / "view.html")
    browser.open(path, height=3000)
    browser.wait("document.querySelectorAll('.index .chart svg').length === 3")
    browser.click(".picker button")
    browser.wait("document.querySelectorAll('.found table').length")
    browser.type(".picker input[type=search]", "2")
    assert browser.run("document.querySelectorAll('img, div script').length") == 0
