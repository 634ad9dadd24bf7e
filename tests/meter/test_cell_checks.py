"""What a device counts for slices and groups is checked when it is read."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
import torch
from benchmarks.proof.faults import KINDS, FaultyOperator
from benchmarks.proof.rounding import OtherRounding

from assay.errors import DeviceFaultError
from assay.meter import Meter
from assay.meter.cells import CellMeters
from assay.metrics import Accuracy, F1Score, LogLoss, MeanSquaredError
from assay.pretend import pretend
from laws import bits

ROWS, CELLS = 48, 5
BY_NAME = {kind.name: kind for kind in KINDS}


@pytest.fixture(scope="module", autouse=True)
def mps():
    with pretend("mps"):
        yield


def meter_of(name):
    return {
        "confusion": lambda: Meter(f1=F1Score(num_classes=4)),
        "classes": lambda: Meter(accuracy=Accuracy(num_classes=4)),
        "numbers": lambda: Meter(mse=MeanSquaredError()),
        "rows": lambda: Meter(loss=LogLoss(num_classes=4)),
    }[name]()


def batches(name, device):
    random = torch.Generator().manual_seed(3)
    for size in (ROWS, ROWS - 8):
        if name == "numbers":
            both = torch.randn(size, generator=random), torch.randn(size, generator=random)
        else:
            both = torch.rand(size, 4, generator=random).softmax(1), torch.randint(4, (size,), generator=random)
        cells = torch.randint(CELLS, (size,), generator=random).numpy()
        yield tuple(each.to(device) for each in both), cells


def counted(name, device, fingerprints=True):
    like = Meter(fingerprints=fingerprints, **meter_of(name).metrics)
    cells = CellMeters(like)
    for (preds, target), places in batches(name, device):
        cells.count(like.arguments(preds, target, None, {}), places, CELLS, {})
    return cells


def values(cells):
    return [bits(cells.meter(cell).states()) for cell in range(CELLS)]


CASES = ("confusion", "classes", "numbers", "rows")


@pytest.mark.parametrize("name", CASES)
def test_sound_cells_are_those_of_the_cpu(name):
    assert values(counted(name, "mps")) == values(counted(name, "cpu"))


@pytest.mark.parametrize("name", ["numbers", "rows"])
def test_a_device_that_rounds_otherwise_is_not_accused(name):
    with OtherRounding("mps"):
        values(counted(name, "mps"))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "fault",
    [
        "a scatter loses one",
        "a scatter doubles one",
        "int64 wraps at 32 bits",
        "half of a copy from the device is missing",
        "a copy from the device is stale",
        "a copy from the device is not initialized",
    ],
)
@pytest.mark.parametrize("call", [1, 2])
def test_faults_of_the_count_are_found(name, fault, call):
    sound = values(counted(name, "mps"))
    faulty = FaultyOperator(BY_NAME[fault], "mps", call, seed=0)
    with faulty, suppress(DeviceFaultError):
        assert values(counted(name, "mps")) == sound, "a fault that changed counts was found"


def test_a_count_in_another_cell_breaks_a_law_of_both():
    """Also without fingerprints: each cell has as many targets as rows."""
    cells = counted("confusion", "mps", fingerprints=False)
    (table,) = cells._tables_of[torch.device("mps:0")]
    place = tuple(int(each) for each in table["counts"][0].to("cpu").nonzero()[0])
    table["counts"][(0, *place)] -= 1
    table["counts"][(1, *place)] += 1
    with pytest.raises(DeviceFaultError, match="the cells of the table add up to the targets"):
        cells.counts()


def test_a_count_in_another_place_of_its_cell_has_another_fingerprint():
    cells = counted("confusion", "mps")
    (table,) = cells._tables_of[torch.device("mps:0")]
    counts = table["counts"][2, 0].to("cpu")
    first, second = counts[1:-2, 1:-1].nonzero()[:2] + 1
    table["counts"][(2, 0, *first.tolist())] -= 1
    table["counts"][(2, 0, *second.tolist())] += 1
    with pytest.raises(DeviceFaultError, match="which other operators have added up"):
        cells.total()


def test_cells_that_come_later_and_batches_of_other_shapes_are_no_fault():
    like = meter_of("classes")
    cells = CellMeters(like)
    for size, count in ((6, 2), (7, 9)):
        preds = torch.rand(size, 4).softmax(1).to("mps")
        target = torch.randint(4, (size,)).to("mps")
        cells.count(like.arguments(preds, target, None, {}), np.arange(size) % count, count, {})
    preds, target = torch.rand(3, 4, 5).softmax(1).to("mps"), torch.randint(4, (3, 5)).to("mps")
    cells.count(like.arguments(preds, target, None, {}), np.arange(3), 9, {})
    assert cells.total().rows == 6 + 7 + 3
