"""How large a page of many slices is, and how soon it can be used in Chromium: python -m benchmarks.pages.

A report of 4 metrics and a table of 10,000 samples, with 1,000 and with 100,000 slices. The first paint is what the
browser says; whether the script of the page has run, "interactive", is asked every 50 ms; sorting and filtering all
slices are timed in the page. The best of `--rounds`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from assay.report import Report, Section, Slice, Table, Value
from benchmarks.harness import Table as Printed
from benchmarks.harness import save
from chromium import BROWSER, Browser

METRICS = ("accuracy", "recall", "precision", "F1")
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime / 1000"
SORT = (
    "(() => { const start = performance.now(); document.querySelector('thead th:nth-child(3) button').click(); "
    "return (performance.now() - start) / 1000; })()"
)
FILTER = (
    "(() => { const start = performance.now(); const field = document.querySelector('.grid input'); "
    "field.value = 'user accuracy<0.5'; field.dispatchEvent(new Event('input')); "
    "return (performance.now() - start) / 1000; })()"
)


def report(slices: int) -> Report:
    """Slices with four values each, and a table of 10,000 rows."""
    random = np.random.default_rng(0)
    shares = random.random((slices, len(METRICS)))
    cut = [
        Slice(f"user = {k}", 40, [Value(name, each) for name, each in zip(METRICS, row, strict=True)])
        for k, row in enumerate(shares.tolist())
    ]
    losses = Table("losses", ("sample", "loss"), [(k, each) for k, each in enumerate(random.random(10_000).tolist())])
    values = [Value(name, 0.5) for name in METRICS]
    return Report("many slices", [Section("test", values, slices=cut, tables=(losses,))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slices", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    if BROWSER is None:
        sys.exit("There is no Chromium on this machine.")
    table = Printed("A page", ("slices", "written", "file", "first paint", "interactive", "sort", "filter"))
    raw = {}
    for slices in options.slices:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            path = report(slices).to_html(Path(folder) / "report.html")
            written = time.perf_counter() - start
            browser = Browser(Path(folder))
            rounds = [opened(browser, Path(path)) for _ in range(options.rounds)]
            browser.close()
            best = [f"{min(each):.3f} s" for each in zip(*rounds, strict=True)]
            size = f"{Path(path).stat().st_size / 1e6:.1f} MB"
            table.rows.append([f"{slices:,}", f"{written:.0f} s", size, *best])
            raw[slices] = rounds
    save("pages", [table], raw)


def opened(browser: Browser, path: Path) -> list[float]:
    """Seconds to the first paint and until the page can be used, to sort all slices and to filter them."""
    start = time.perf_counter()
    browser.open(path)
    live = time.perf_counter() - start
    painted = float(browser.wait(PAINTED))
    return [painted, live, float(browser.run(SORT)), float(browser.run(FILTER))]


if __name__ == "__main__":
    main()
