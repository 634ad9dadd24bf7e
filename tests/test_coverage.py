"""The law that intervals cover: docs/coverage.md has every metric that names one, and its cells come out again."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.coverage import __main__ as coverage
from benchmarks.coverage import detections
from benchmarks.coverage.rows import LEAST, measured

from assay.encode.boxes import DETECTIONS, TRUTHS
from assay.metrics import MeanAveragePrecision
from assay.metrics.catalogue import NO_NUMBER, interval_of
from assay.metrics.samples import public_metrics

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"


def lines():
    """The rows of the tables of intervals: the name, the samples, the cells, and why some are marked."""
    text = PAGE.read_text("utf-8").partition("<!-- decisions -->")[0]
    text = re.sub(r"(?s)<!-- detections -->.*<!-- /detections -->", "", text)  # columns of its own
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


@pytest.mark.parametrize("source", detections.SOURCES, ids=lambda source: source.about)
def test_weighted_images_have_the_values_of_images_that_are_repeated(source):
    """A replicate of the simulation is what the metric says of the drawn images."""
    random = np.random.default_rng(0)
    data, weights = detections.images(source, random, 20), random.poisson(1, (2, 20))
    found = detections.values_of(data, len(source.classes), weights)
    for k, row in enumerate(weights):
        drawn = np.repeat(np.arange(20), row)
        preds, target = (
            [{name: torch.from_numpy(data.field(group, name)[data.image(group) == n]) for name in names} for n in drawn]
            for group, names in ((DETECTIONS, ("boxes", "scores", "labels")), (TRUTHS, ("boxes", "labels")))
        )
        values = MeanAveragePrecision()(preds, target)
        assert [found[name][k] for name in detections.NAMES] == pytest.approx(
            [float(values[name]) for name in detections.NAMES], abs=1e-12
        )


def test_the_page_has_the_table_of_detections():
    text = PAGE.read_text("utf-8").partition("<!-- detections -->")[2].partition("<!-- /detections -->")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")
    ]
    assert len(rows) == len(detections.SOURCES) * len(detections.NAMES)
    assert all(float(cell.removesuffix(" †")) <= 5 for row in rows for cell in row[5:])
