"""The compiled labels and ranks against the same in torch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import decide
from assay.metrics import Accuracy
from assay.native import labels as native
from assay.native.library import MISSING, library
from assay.tally.base import Batch
from assay.tally.labels.confusion import Confusion
from assay.tally.labels.labels import Labels
from assay.tally.row_cells import RowCells

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

SIZES = [1, 2, 3, 8, 10, 31, 32, 33, 64, 65, 100, 128, 1000]


def drawn(kind: str, classes: int, rows: int = 300) -> torch.Tensor:
    generator = torch.Generator().manual_seed(classes)
    scores = torch.randn(rows, classes, generator=generator)
    match kind:
        case "normal":
            return scores
        case "tied":
            return scores.round()
        case "zeros of both signs":
            return torch.zeros_like(scores).copysign(scores)
        case "infinite":
            return torch.where(scores > 1, math.inf, torch.where(scores < -1, -math.inf, scores))
        case "all -inf":
            return torch.full_like(scores, -math.inf)
        case "some NaN":
            marked = scores.masked_fill(torch.rand(rows, classes, generator=generator) < 0.5 / classes, math.nan)
            return torch.where(torch.rand(rows, 1, generator=generator) < 0.1, -marked, marked)
    raise AssertionError(kind)


KINDS = ["normal", "tied", "zeros of both signs", "infinite", "all -inf", "some NaN"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", SIZES)
def test_same_labels_and_ranks_as_torch(kind: str, classes: int) -> None:
    scores = drawn(kind, classes)
    target = torch.randint(classes, (len(scores),), generator=torch.Generator().manual_seed(0))
    assert torch.equal(native.first_largest(scores), decide.first_largest(scores))
    assert torch.equal(native.first_largest(scores.t().contiguous().t()), decide.first_largest(scores))
    assert torch.equal(native.target_rank(scores, target), decide.target_rank(scores, target))


@pytest.mark.parametrize("classes", SIZES)
def test_what_torch_says_is_the_first_of_the_largest(classes: int) -> None:
    scores = drawn("tied", classes)
    expected = [max(range(classes), key=lambda c, row=row: (row[c], -c)) for row in scores.tolist()]
    assert native.first_largest(scores).tolist() == expected


@given(st.lists(st.lists(st.floats(width=32), min_size=5, max_size=5), min_size=1, max_size=8), st.integers(0, 4))
def test_any_floats(rows: list[list[float]], target: int) -> None:
    scores = torch.tensor(rows, dtype=torch.float32)
    wanted = torch.full((len(rows),), target)
    assert torch.equal(native.first_largest(scores), decide.first_largest(scores))
    assert torch.equal(native.target_rank(scores, wanted), decide.target_rank(scores, wanted))


def test_strided_scores() -> None:
    images = torch.randn(4, 10, 5, 6)
    target = torch.randint(10, (4, 5, 6))
    assert Accuracy(num_classes=10)(images, target).item() == (images.argmax(1) == target).double().mean().item()


LABELS = [-(2**63), -2, -1, 0, 1, 2, 3, 4, 11, 2**32, 2**63 - 1]


@pytest.mark.parametrize("ignore_index", [None, -1, 1, 7, 2**63 - 1])
@pytest.mark.parametrize("classes", [2, 3, 30])  # 30: more cells than are counted side by side
@pytest.mark.parametrize("rows", [1, 1024, 3000])
def test_labels_are_counted_as_by_torch(rows: int, classes: int, ignore_index: int | None) -> None:
    generator = torch.Generator().manual_seed(rows + classes)
    preds, target = (torch.tensor(LABELS)[torch.randint(0, len(LABELS), (rows,), generator=generator)] for _ in "pt")
    labels = Labels(classes, decide.Argmax(), ignore_index=ignore_index)
    assert same_counts(labels, preds, target)


@pytest.mark.parametrize("ignore_index", [None, -1, 0, 9, 15, 16])
@pytest.mark.parametrize("classes", [2, 10, 16, 17])
@pytest.mark.parametrize("odd", [None, -1, 15, 16, 17, 2**32, 2**63 - 1, -(2**63)])
def test_many_labels_are_counted_as_by_torch(odd: int | None, classes: int, ignore_index: int | None) -> None:
    """Blocks of labels below 16 are counted two rows at a time; others, and the last rows, one by one."""
    generator = torch.Generator().manual_seed(classes)
    rows = 2**18 + 7
    preds, target = torch.randint(0, min(classes + 2, 16), (2, rows), generator=generator)
    if odd is not None:
        preds[[0, 5000, rows - 1]] = odd
        target[[1, 3, 7001, rows - 2]] = odd
    assert same_counts(Labels(classes, decide.Argmax(), ignore_index=ignore_index), preds, target)


SCORES = [0.0, -0.0, 0.5, 0.5 + 2.0**-24, 1.0, 1 + 2.0**-23, -(2.0**-149), 2.0**-149, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("rows", [1, 1024, 3000])
def test_scores_are_counted_as_by_torch(rows: int, threshold: float, logits: bool) -> None:
    generator = torch.Generator().manual_seed(rows)
    scores = torch.tensor([*SCORES, threshold])[torch.randint(0, len(SCORES) + 1, (2 * rows,), generator=generator)]
    target = torch.tensor(LABELS)[torch.randint(0, len(LABELS), (rows,), generator=generator)]
    labels = Labels(2, decide.Threshold(threshold, logits), ignore_index=3, multiclass=False)
    assert same_counts(labels, scores[::2], target)


def same_counts(labels: Labels, preds: torch.Tensor, target: torch.Tensor) -> bool:
    """Whether compiled code and torch count the same rows into the same table."""
    states = []
    for compiled in (True, False):
        states.append(Confusion(labels).zero(torch.device("cpu")))
        Confusion(labels).add(states[-1], Batch(preds, target, None, compiled=compiled))
    assert int(states[0]["counts"].sum()) == len(target)
    return torch.equal(states[0]["counts"], states[1]["counts"])


ANY_LABEL = st.one_of(st.integers(-3, 5), st.sampled_from(LABELS))


@pytest.mark.parametrize("ignore_index", [None, -1, 1, 7])
@given(st.lists(st.tuples(ANY_LABEL, ANY_LABEL, st.integers(0, 3)), max_size=1100))
def test_labels_of_cells_are_counted_one_by_one(ignore_index: int | None, rows: list[tuple[int, int, int]]) -> None:
    preds, target, cells = (torch.tensor([row[k] for row in rows], dtype=torch.int64) for k in range(3))
    expected = torch.zeros(4, 1, 6, 5, dtype=torch.int64)
    for predicted, label, cell in rows:
        place = 5 if label == ignore_index else min(max(label, -1), 3) + 1
        expected[cell, 0, place, min(max(predicted, -1), 3) + 1] += 1
    for compiled in (True, False):
        states = {"counts": torch.zeros_like(expected)}
        tally = Confusion(Labels(3, decide.Argmax(), ignore_index=ignore_index))
        tally.add_cells(states, Batch(preds, target, None, compiled=compiled), RowCells(cells, 4))
        assert torch.equal(states["counts"], expected)


def test_pixels_of_scores_are_counted_in_the_cell_of_their_image() -> None:
    scores, target = torch.rand(4, 3, 5, 6), torch.randint(0, 3, (4, 5, 6))
    tally, found = Confusion(Labels(3, decide.Argmax(), multiclass=True)), []
    for compiled in (True, False):
        found.append({"counts": torch.zeros(2, 1, 6, 5, dtype=torch.int64)})
        batch = Batch(scores, target, None, compiled=compiled)
        tally.add_cells(found[-1], batch, RowCells(torch.tensor([1, 0, 1, 1]), 2))
    assert found[0]["counts"].sum((1, 2, 3)).tolist() == [30, 90]
    assert torch.equal(found[0]["counts"], found[1]["counts"])


EDGES = [0.0, -0.0, 0.25, 0.5, math.nextafter(0.5, 1), 1.0, 1.0000001, -1e-9, math.inf, -math.inf, math.nan, 7.0]


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 1.0])
def test_scores_above_a_threshold_are_those_of_torch(threshold: float, logits: bool) -> None:
    scores = torch.tensor(EDGES * 20, dtype=torch.float32).view(4, -1)
    decision = decide.Threshold(threshold, logits)
    expected = decision(decide.Rows(scores, scores))
    found = native.above(scores, decision.level, logits)
    assert torch.equal(found, expected)
    assert found.dtype == expected.dtype
    assert set(found.flatten().tolist()) >= {2, 0 if threshold == 1 else 1}
