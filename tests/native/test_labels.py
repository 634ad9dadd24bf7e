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
