"""Edit distances between words or characters, counted by rapidfuzz or by compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from assay.encode.strings import StringEncoder, load_package, table
from assay.native.edits import edit_counts
from assay.native.library import library

Unit = Literal["words", "characters"]


@dataclass(frozen=True)
class EditCounts(StringEncoder):
    """How many words or characters must be changed to make the target of the prediction, and how many there are.

    Words are what lies between white space. Characters include the spaces, but not those at both ends. With `alignment`
    the rows also say how many are right: that depends on which of the shortest alignments is taken, and here it is the
    one that rapidfuzz gives for changing the target into the prediction, as in jiwer.
    """

    unit: Unit
    alignment: bool = False

    package: ClassVar[str] = "rapidfuzz"
    counts: ClassVar[bool] = True

    @cached_property
    def names(self) -> tuple[str, ...]:
        counted = ("target", "predicted", *(("right", "aligned") if self.alignment else ()))
        return f"{self.unit.removesuffix('s')} errors", *(f"{each} {self.unit}" for each in counted)

    def check(self, preds: Sequence[Any], target: Sequence[Any]) -> None:
        if not self._is_compiled:  # else `rows` does, where joining them has failed
            super().check(preds, target)

    @property
    def _is_compiled(self) -> bool:
        return not self.alignment and library() is not None

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        if self._is_compiled:
            try:
                return edit_counts(preds, target, by_words=self.unit == "words")
            except TypeError:
                super().check(preds, target)
                raise
        split = str.split if self.unit == "words" else str.strip
        predicted, wanted = list(map(split, preds)), list(map(split, target))
        levenshtein = load_package("rapidfuzz.distance").Levenshtein
        errors = np.fromiter(map(levenshtein.distance, wanted, predicted), np.int64)  # words by their 64-bit hashes
        columns = [errors, list(map(len, wanted)), list(map(len, predicted))]
        if self.alignment:
            right = [_right(levenshtein, *each) for each in zip(wanted, predicted, errors.tolist(), strict=True)]
            columns += [right, errors + np.array(right, np.int64)]
        return table(columns)


def _right(levenshtein: Any, target: Sequence[str], preds: Sequence[str], errors: int) -> int:
    """How many elements an alignment with so many errors leaves as they are."""
    longer, shorter = max(len(target), len(preds)), min(len(target), len(preds))
    beyond = errors - (longer - shorter)
    if beyond < 2:  # then nothing is both deleted and inserted, and every error beyond the lengths is a substitution
        return shorter - beyond
    edits: list[tuple[str, int, int]] = levenshtein.editops(target, preds).as_list()
    return len(target) - sum(edit[0] != "insert" for edit in edits)


@dataclass(frozen=True)
class EditDistances(StringEncoder):
    """The Levenshtein distance between the characters of both strings, where a substitution has a cost of its own."""

    substitution_cost: int = 1

    package: ClassVar[str] = "rapidfuzz"

    @property
    def names(self) -> tuple[str, ...]:
        return (f"edit distance, substitutions cost {self.substitution_cost}",)

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        distance = load_package("rapidfuzz.distance").Levenshtein.distance
        costs = (1, 1, self.substitution_cost)
        return table([[distance(a, b, weights=costs) for a, b in zip(preds, target, strict=True)]])
