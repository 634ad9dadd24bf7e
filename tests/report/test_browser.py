"""The pages in a browser: no error on its console, no sideways scroll on a phone, tables that sort on click."""

from __future__ import annotations

import json

import numpy as np
import pytest

from assay.report import Report, Samples, Section, Slice, Table, Value, compare

PHONE = 380

# A page of its own that holds the page under test in a frame, which may be narrower than any window.
PROBE = """<!doctype html><iframe src="page.html" width="{width}" height="900"></iframe><pre id="out"></pre><script>
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {{
  const page = frame.contentDocument, root = page.documentElement;
  const column = (table) => [...table.tBodies[0].rows].map((row) => row.cells[1].textContent.trim());
  const found = {{width: root.clientWidth, needed: root.scrollWidth, tables: [], wide: []}};
  for (const element of page.querySelectorAll("body *")) {{
    if (element.getBoundingClientRect().right > root.clientWidth + 1 && !element.closest(".scroll, svg"))
      found.wide.push(element.tagName + "." + element.className);
  }}
  for (const table of page.querySelectorAll("table.sortable")) {{
    const button = table.querySelectorAll("thead button")[1];
    const entry = {{before: column(table)}};
    button.click();
    entry.once = column(table);
    button.focus();
    entry.focused = page.activeElement === button;
    button.click();
    entry.twice = column(table);
    entry.sorted = button.parentElement.getAttribute("aria-sort");
    entry.said = page.getElementById("said").textContent;
    found.tables.push(entry);
  }}
  document.getElementById("out").textContent = JSON.stringify(found);
}});
</script>"""


@pytest.fixture
def look(browser, tmp_path):
    """Open a page in a frame of some width: what was found."""

    def call(write, width: int = PHONE) -> dict:
        write(tmp_path / "page.html")
        (tmp_path / "probe.html").write_text(PROBE.format(width=width), "utf-8")
        browser.open(tmp_path / "probe.html", 1400, 1000, live=False)
        return json.loads(browser.wait("document.getElementById('out').textContent"))

    return call


def wide() -> Report:
    """A report with a table of many columns, long names and many slices."""
    name = "a_name_without_a_space_that_is_longer_than_any_phone_is_wide_" * 2
    table = Table("wide", tuple(f"column {i}" for i in range(20)), [tuple(range(20)), tuple(range(20, 0, -1))])
    values = [Value(name, 0.5, 0.4, 0.6, note=name, higher_is_better=True), Value("x", 1e300)]
    slices = [Slice(f"{name} = {i}", 30 + i, [Value(name, i / 40, higher_is_better=True)]) for i in range(40)]
    sections = [Section(title, values, (table,), note=name, slices=slices) for title in (name, "second")]
    return Report(name, sections, device=name, notes=(name,), environment={name: name})


def test_a_report_on_a_phone(report, look):
    found = look(report.to_html)
    assert (found["needed"], found["wide"]) == (found["width"], [])
    assert found["width"] <= PHONE
    assert len(found["tables"]) == 5  # slices, worst errors, worst queries, documents of one, the table


def test_the_widest_of_reports_on_a_phone(look):
    found = look(wide().to_html)
    assert (found["needed"], found["wide"]) == (found["width"], [])


def test_hostile_words_run_nothing(hostile, look):
    found = look(hostile.to_html)
    assert found["needed"] == found["width"]


def test_a_click_sorts_a_table(report, look):
    found = look(report.to_html, 1200)
    slices, *_, table = found["tables"]
    assert slices["before"] == ["2", "2", "1"]
    assert table["before"] == ["1", f"{2**70:,}", "-1"]
    assert table["once"] == [f"{2**70:,}", "1", "-1"]
    assert table["twice"] == ["-1", "1", f"{2**70:,}"]
    assert (table["sorted"], table["focused"], table["said"]) == ("ascending", True, "sorted by int, ascending")


def test_a_comparison_on_a_phone(look):
    rng = np.random.default_rng(0)
    a, b = (_run(title, rng.random(200) < share) for title, share in (("main", 0.9), ("new", 0.6)))
    found = look(compare(a, b).to_html)
    assert (found["needed"], found["wide"]) == (found["width"], [])
    assert len(found["tables"]) > 2


def _run(title: str, right: np.ndarray) -> Report:
    def accuracy(mask: np.ndarray) -> Value:
        return Value("accuracy", right[mask].mean(), numerator="correct", higher_is_better=True)

    halves = {name: np.arange(200) % 2 == i for i, name in enumerate(("even", "odd"))}
    slices = [Slice.of(name, [accuracy(mask)], mask) for name, mask in halves.items()]
    samples = Samples.pack(range(200), {"correct": right}, decision=right, target=np.ones(200, bool))
    return Report(title, [Section("test", [accuracy(np.ones(200, bool))], samples=samples, slices=slices)])
