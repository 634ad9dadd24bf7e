"""The compiled reading of sums and counting of labels against the same in torch and Python."""

from __future__ import annotations

import pytest
import torch

from assay.decide import Argmax
from assay.native import values
from assay.native.library import library
from assay.tally.base import Batch
from assay.tally.labels.confusion import Confusion
from assay.tally.labels.labels import Labels
from assay.tally.sums import exact

pytestmark = pytest.mark.skipif(library() is None, reason="assay has no compiled code here")

LIMITS = (1, 1 << 20, 1 << 32, 1 << 62)


def value_of(limbs: list[int]) -> int:
    return sum(word << (exact.WORD * k) for k, word in enumerate(limbs))


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("first", [0, 3, 7])
def test_integers_are_those_of_their_words(limit: int, first: int) -> None:
    generator = torch.Generator().manual_seed(limit % 997 + first)
    limbs = torch.randint(-limit, limit + 1, (2, 3, 8), generator=generator)
    limbs[..., :first] = 0
    limbs[0, 0] = 0
    integers, zeros = values.integers(limbs)
    assert [value << (exact.WORD * zeros) for value in integers] == [
        value_of(words) for words in limbs.view(6, 8).tolist()
    ]
    assert all(type(value) is int for value in integers)


@pytest.mark.parametrize("word", [1, -1, (1 << 63) - 1, -(1 << 63), 1 << 31, -(1 << 31), (1 << 32) - 1])
def test_the_last_word_has_all_of_its_bits(word: int) -> None:
    limbs = torch.zeros(2, 4, dtype=torch.int64)
    limbs[0, 3], limbs[1, 0] = word, word
    integers, zeros = values.integers(limbs)
    assert [value << (exact.WORD * zeros) for value in integers] == [word << 96, word]


def test_zeros_are_zeros() -> None:
    assert values.integers(torch.zeros(2, 5, dtype=torch.int64)) == ([0, 0], 0)


@pytest.mark.parametrize(("word", "canonical"), [(0, True), ((1 << 32) - 1, True), (1 << 32, False), (-1, False)])
def test_words_below_the_last_are_unsigned_in_the_canonical_form(word: int, canonical: bool) -> None:
    limbs = torch.zeros(3, 4, dtype=torch.int64)
    limbs[1, 2], limbs[2, 3] = word, -5
    assert values.is_canonical(limbs) == canonical


@pytest.mark.parametrize("ignore_index", [None, -1, 2, 9])
@pytest.mark.parametrize("preds", [torch.rand(200, 5), torch.randint(-2, 8, (200,))], ids=["scores", "labels"])
def test_labels_are_counted_as_in_torch(preds: torch.Tensor, ignore_index: int | None) -> None:
    target = torch.randint(-3, 10, (200,), dtype=torch.int32)
    tally = Confusion(Labels(5, Argmax(), ignore_index=ignore_index))
    compiled, in_torch = (tally.zero(torch.device("cpu")) for _ in range(2))
    tally.add(compiled, Batch(preds, target, compiled=True))
    tally.add(in_torch, Batch(preds, target))
    assert torch.equal(compiled["counts"], in_torch["counts"])
    assert compiled["counts"].sum() == 200
