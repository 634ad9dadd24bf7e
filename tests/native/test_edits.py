"""The compiled distances between texts against rapidfuzz and the same in Python."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from assay.encode import edits, extended_edits
from assay.errors import InputError
from assay.metrics import CharErrorRate, ExtendedEditDistance, WordErrorRate
from assay.native import edits as native
from assay.native.library import library
from thinning import draws, one_of_each

pytestmark = pytest.mark.skipif(library() is None, reason="assay was installed without a C compiler")

SPACES = [chr(point) for point in range(0x10000) if chr(point).isspace()]
LETTERS = [*"abcabcabc", "ä", "a\u0301", "火", "😀", "\0", "\ud800", "\u200b", "\u180e"]
ALPHABETS = [(LETTERS, SPACES), ([*"abc\0"], [*"   \t\r\n", "\r\n"]), ([*"abcäÿ\0"], [*"  \n\x1c\x1e\x85\xa0"])]
"""Letters and white space whose characters have 4 bytes; and 1 byte, in ASCII and in Latin-1."""


def text(chance: random.Random, most: int, letters: list[str] = LETTERS, spaces: list[str] = SPACES) -> str:
    return "".join(chance.choice(spaces if chance.random() < 0.2 else letters) for _ in range(chance.randrange(most)))


def drawn(seed: int, most_pairs: int = 6) -> tuple[list[str], list[str]]:
    """Pairs of a few characters or of several words of 64 bits, far from each other or near."""
    chance = random.Random(seed)
    most, count = chance.choice([2, 20, 150, 600]), chance.randrange(most_pairs + 1)
    alphabet = chance.choice(ALPHABETS)
    target = [text(chance, most, *alphabet) for _ in range(count)]
    if chance.random() < 0.5:
        return [text(chance, most, *alphabet) for _ in range(count)], target
    return [
        each[: len(each) // 2] + chance.choice(["", "x ", "yy"]) + each[len(each) // 2 + 1 :] for each in target
    ], target


@pytest.mark.parametrize("metric", [WordErrorRate(), CharErrorRate()])
def test_they_are_rapidfuzzs(metric, monkeypatch):
    for seed in draws(200):
        preds, target = drawn(seed, most_pairs=20)
        compiled = metric.encoder.rows(preds, target)
        with monkeypatch.context() as patch:
            patch.setattr(edits, "library", lambda: None)
            assert torch.equal(compiled, metric.encoder.rows(preds, target))


def plain_counts(pred: list[str], target: list[str]) -> list[int]:
    """The errors, and how many elements there are, by the recurrence of Levenshtein."""
    row = list(range(len(target) + 1))
    for i, element in enumerate(pred):
        below = [i + 1]
        for j, other in enumerate(target):
            below.append(min(row[j] + (element != other), row[j + 1] + 1, below[j] + 1))
        row = below
    return [row[-1], len(target), len(pred)]


ODD = st.text(
    st.sampled_from([*"ab ", "\0", "\n", "\x1c", "\x85", "\xa0", "ä", "\u0301", "\u2028", "\ud800", "\udc00", "😀"])
)
SIMILAR = ["a", "a\0", "aaaaaaa", "aaaaaaaa", "aaaaaaaab", "baaaaaaab", "äaaaaaaab"]
LONG_WORDS = st.lists(st.sampled_from(SIMILAR)).map(" ".join)


@given(st.lists(st.tuples(ODD | LONG_WORDS, ODD | LONG_WORDS), max_size=20))
def test_they_are_pythons(pairs):
    """Of several texts at once: NUL, surrogates, combining characters, all kinds of white space, and nothing."""
    preds, target = [pred for pred, _ in pairs], [wanted for _, wanted in pairs]
    words = [plain_counts(pred.split(), wanted.split()) for pred, wanted in pairs]
    assert native.edit_counts(preds, target, by_words=True).tolist() == words
    characters = [plain_counts([*pred.strip()], [*wanted.strip()]) for pred, wanted in pairs]
    assert native.edit_counts(preds, target, by_words=False).tolist() == characters


def test_more_pairs_than_are_counted_together():
    """Rows are counted in blocks; a row in any of them is that row alone."""
    chance = random.Random(1)
    preds, target = ([text(chance, 80) for _ in range(300)] for _ in range(2))
    for by_words in (True, False):
        alone = [native.edit_counts([a], [b], by_words)[0].tolist() for a, b in zip(preds, target, strict=True)]
        assert native.edit_counts(preds, target, by_words).tolist() == alone


@pytest.mark.parametrize("letters", ["ab", "aä", "a火"])
@pytest.mark.parametrize("spaces", [" ", "\x1e"])
@pytest.mark.parametrize("by_words", [True, False])
def test_long_texts_that_differ_here_and_there(letters, spaces, by_words):
    """Texts of several strips, beside short and empty ones; with the character that lies between texts, or without."""
    chance = random.Random(0)
    preds, target = ["", "a", "", spaces], ["", "", "a", "a"]
    for length in (30, 63, 64, 65, 127, 128, 129, 200, 500):
        words = ["".join(chance.choices(letters, k=chance.randrange(1, 12))) for _ in range(length)]
        wrong = [chance.choice(words) if chance.random() < 0.1 else word for word in words if chance.random() < 0.95]
        target.append(spaces.join(words))
        preds.append((2 * spaces).join(wrong) + spaces)
    unit = (lambda text: text.split()) if by_words else (lambda text: text.strip())
    wanted = [
        [Levenshtein.distance(unit(a), unit(b)), len(unit(b)), len(unit(a))] for a, b in zip(preds, target, strict=True)
    ]
    assert native.edit_counts(preds, target, by_words).tolist() == wanted


@pytest.mark.parametrize("metric", [WordErrorRate(), CharErrorRate()])
@pytest.mark.parametrize("wrong", [None, b"a", 3, ["a"]])
@pytest.mark.parametrize("argument", ["preds", "target"])
def test_what_is_no_string_has_its_place_in_the_error(metric, wrong, argument):
    lists = {"preds": ["a"] * 3, "target": ["a"] * 3}
    lists[argument][1] = wrong
    with pytest.raises(InputError, match=rf"{argument}\[1\]"):
        metric(**lists)


def test_strings_of_a_class_of_their_own():
    class Name(str):
        def __len__(self) -> int:
            return 0

    assert native.edit_counts([Name("a\x1eb")], [Name("a c")], by_words=True).tolist() == [[1, 2, 2]]


def test_a_default_device_changes_nothing():
    with torch.device("meta"):
        counts = native.edit_counts(["a b\x1e"], ["a c"], by_words=True)
    assert counts.tolist() == [[1, 2, 2]]


def test_white_space_is_what_python_says():
    """Every code point between two words: they are one or two as `str.split` has it."""
    every = [f"a{chr(point)}b" for point in range(sys.maxunicode + 1)]
    counted = native.edit_counts(every, every, by_words=True)
    assert (counted[:, 0] == 0).all()
    assert np.array_equal(counted[:, 1], np.array([len(each.split()) for each in every]))


def test_many_distinct_words():
    chance = random.Random(0)
    words = [f"{k:x}" for k in range(20_000)]
    other = [word for word in words if chance.random() < 0.99]
    assert native.edit_counts([" ".join(other)], [" ".join(words)], True).tolist() == [
        [len(words) - len(other), len(words), len(other)]
    ]


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("costs", [{}, {"alpha": 0.1, "rho": 0.5, "deletion": 0.3, "insertion": 0.7}])
@one_of_each()
def test_extended_edits_are_pythons(language, costs, monkeypatch):
    encoder = ExtendedEditDistance(language, **costs).encoder
    for seed in draws(60):
        preds, target = drawn(4 * seed)
        compiled = encoder.rows(preds, target)
        with monkeypatch.context() as patch:
            patch.setattr(extended_edits, "library", lambda: None)
            assert torch.equal(compiled, encoder.rows(preds, target))
