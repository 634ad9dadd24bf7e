"""The law that intervals cover: docs/coverage.md has every metric that names one, and its cells come out again."""

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.coverage import __main__ as coverage
from benchmarks.coverage.rows import LEAST, measured

from assay.metrics.catalogue import NO_NUMBER, interval_of
from assay.metrics.samples import public_metrics

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"


def lines():
    """The rows of the tables of intervals: the name, the samples, the cells, and why some are marked."""
    text = PAGE.read_text("utf-8").partition("<!-- decisions -->")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ") and "(" in line]
    return [[cell.strip() for cell in row.removeprefix("|").removesuffix("|").split("|")] for row in rows]


def test_each_metric_that_names_an_interval_is_simulated():
    named = {name for name, kind in public_metrics().items() if interval_of(kind) not in ("bootstrap", NO_NUMBER)}
    named -= {name for name in named if interval_of(public_metrics()[name]).startswith("none")}
    simulated = {found.group(1) for row in lines() if (found := re.match(r"`(\w+)`", row[0]))}
    assert named - simulated == set(), "add a row to benchmarks/coverage, and write the page anew"


def test_what_covers_less_is_marked_and_says_why():
    for row in lines():
        marked = [cell for cell in row[2:7] if cell.endswith("†")]
        assert bool(marked) == bool(row[7]), row


@pytest.mark.slow
@pytest.mark.parametrize("part", ["labels", "scores", "samples", "moments"])
def test_a_sample_of_the_table_comes_out_again(part):
    random = np.random.default_rng(0)
    rows = list(coverage.PARTS[part]())
    for row in random.choice(np.array(rows, dtype=object), 4, replace=False):
        for size in row.sizes[:2]:
            cells = measured(row, size, 0.2)
            assert row.reason or not any(cell.covered < LEAST - 0.06 for cell in cells.values()), (row.about, cells)
