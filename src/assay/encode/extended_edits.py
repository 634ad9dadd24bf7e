"""The extended edit distance of each sentence: edits of characters, jumps at spaces, and a penalty for repetitions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from assay.encode.ngrams import first_best
from assay.encode.strings import Integers, StringEncoder, references, table
from assay.native.edits import extended_edits
from assay.native.library import library

_RULES = [
    (re.compile(r"([.!?,])"), r" \1"),
    (re.compile(r"\s+"), " "),
    (re.compile(r"(\d) ([.,]) (\d)"), r"\1\2\3"),
    (re.compile(r"(Dr|Jr|Prof|Rev|Gen|Mr|Mt|Mrs|Ms) ."), r"\1."),
    (re.compile(r"e \. g \."), "e.g."),
    (re.compile(r"i \. e \."), "i.e."),
    (re.compile(r"U \. S \."), "U.S."),
]
"""What English text becomes: punctuation is a word, but for numbers and some abbreviations."""


@dataclass(frozen=True)
class ExtendedEdits(StringEncoder):
    """The extended edit distance of each prediction; of several references, the smallest."""

    language: Literal["en", "ja"] = "en"
    alpha: float = 2.0
    rho: float = 0.3
    deletion: float = 0.2
    insertion: float = 1.0

    several: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        costs = (self.language, self.alpha, self.rho, self.deletion, self.insertion)
        return (f"extended edit distance {costs}",)

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        wanted, each = references(target)
        prepared = (self._prepared(text) for text in np.repeat(np.array([*preds, None], object)[:-1], each))
        pairs = zip(prepared, map(self._prepared, wanted), strict=True)
        distances = np.array([self._distance(*pair) for pair in pairs], np.float64)
        return table([distances[first_best(-distances, each)]], np.float64)

    def _prepared(self, text: str) -> str:
        text = text.rstrip()
        if self.language == "ja":
            return unicodedata.normalize("NFKC", text)
        for pattern, replacement in _RULES:
            text = pattern.sub(replacement, text)
        return f" {text} "

    def _distance(self, pred: str, target: str) -> float:
        path = _path if library() is None else extended_edits
        cost, visits = path(pred, target, self.alpha, self.deletion, self.insertion)
        coverage = self.rho * int(np.where(visits < 0, 1, visits).sum())
        return min(1.0, (cost + coverage) / (len(target) + coverage)) if target or coverage else 0.0


def _path(pred: str, target: str, alpha: float, deletion: float, insertion: float) -> tuple[float, Integers]:
    """What `extended_edits` gives; `row[i]` is the cost of the cheapest path to place `i` of the prediction."""
    visits = np.full(len(pred) + 1, -1, np.int64)
    row = [0.0] + [1.0] * len(pred)
    for wanted in target:
        cost = row[0] + 1.0
        costs = [cost]
        for predicted, diagonal, above in zip(pred, row, row[1:], strict=False):
            cost = min(cost + deletion, diagonal + (predicted != wanted), above + insertion)
            costs.append(cost)
        least = min(costs)
        visits[costs.index(least)] += 1
        row = [min(cost, alpha + least) for cost in costs] if wanted == " " else costs
    return row[-1], visits
