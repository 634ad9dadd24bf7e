"""ROUGE of each summary: n-grams and longest common subsequences of words, by the rules of the package rouge-score."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from assay.encode.ngrams import TokenLists, first_best
from assay.encode.strings import Integers, StringEncoder, load_package, references, table

_WORD = re.compile("[a-z0-9]+")
_SHORT = 3  # words of so many letters have no stem


@dataclass(frozen=True)
class RougeScores(StringEncoder):
    """Precision, recall and F-score of each prediction; of several references, of the one with the highest F-score.

    Words are runs of the letters a to z and digits, in lower case; all else separates them. `rouge` is "rouge1" to
    "rouge9" for n-grams, "rougeL" for the longest common subsequence, and "rougeLsum" for the union of those of the
    sentences, which are lines.
    """

    rouge: str
    use_stemmer: bool = False

    several: ClassVar[bool] = True

    @property
    def package(self) -> str:  # type: ignore[override]
        return "nltk" if self.use_stemmer else "rapidfuzz" if self.rouge == "rougeL" else ""

    @property
    def names(self) -> tuple[str, ...]:
        of = " of stems" if self.use_stemmer else ""
        return tuple(f"{self.rouge} {each}{of}" for each in ("precision", "recall", "F-score"))

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        wanted, each = references(target)
        common, predicted, lengths = self._counts(preds, wanted, each)
        precision, recall = common / np.maximum(predicted, 1), common / np.maximum(lengths, 1)
        above, below = 2 * precision * recall, precision + recall
        scores = np.divide(above, below, where=below > 0, out=np.zeros(len(below)))
        best = first_best(scores, each)
        return table([column[best] for column in (precision, recall, scores)], np.float64)

    def _counts(self, preds: Sequence[str], wanted: Sequence[str], each: Integers) -> tuple[Integers, ...]:
        """For each reference: what it has in common with its prediction, what the prediction has, and what it has."""
        owners = np.repeat(np.arange(len(preds)), each)
        if self.rouge == "rougeLsum":
            texts = [[list(map(self._words, text.split("\n"))) for text in several] for several in (preds, wanted)]
            common = [_summary_matches(text, texts[0][owner]) for text, owner in zip(texts[1], owners, strict=True)]
            predicted, lengths = (np.array([sum(map(len, text)) for text in several], np.int64) for several in texts)
            return np.array(common, np.int64), predicted[owners], lengths
        words, targets = (list(map(self._words, several)) for several in (preds, wanted))
        lists = TokenLists.of_words(words, targets, each)
        order = 1 if self.rouge == "rougeL" else int(self.rouge.removeprefix("rouge"))
        predicted, lengths = np.split(lists.counts(order)[:, -1], [len(preds)])
        if self.rouge != "rougeL":
            *_, matches = lists.matches(order)
            return matches.by_reference(), predicted[owners], lengths
        similarity = load_package("rapidfuzz.distance").LCSseq.similarity
        common = [similarity(text, words[owner]) for text, owner in zip(targets, owners, strict=True)]
        return np.array(common, np.int64), predicted[owners], lengths

    def _words(self, text: str) -> list[str]:
        words = _WORD.findall(text.lower())
        if not self.use_stemmer:
            return words
        stem = _stemmer()
        return [stem(word) if len(word) > _SHORT else word for word in words]


@cache
def _stemmer() -> Callable[[str], str]:
    stem: Callable[[str], str] = cache(load_package("nltk.stem.porter").PorterStemmer().stem)
    return stem


def _summary_matches(target: Sequence[Sequence[str]], preds: Sequence[Sequence[str]]) -> int:
    """How many words of the sentences of a target are in a common subsequence with a sentence of the prediction.

    No word counts more often than either text has it.
    """
    left = Counter(word for sentence in target for word in sentence)
    left &= Counter(word for sentence in preds for word in sentence)
    matches = 0
    for sentence in target:
        places = set().union(*(_common_places(sentence, other) for other in preds))
        for place in sorted(places):
            if left[sentence[place]] > 0:
                left[sentence[place]] -= 1
                matches += 1
    return matches


def _common_places(target: Sequence[str], preds: Sequence[str]) -> list[int]:
    """The places in a target of one of its longest common subsequences with a prediction: the one of rouge-score.

    A row of the table of lengths is one integer, whose bit `i` is 0 where the length grows at word `i` of the target
    (Hyyrö, String Processing and Information Retrieval 2004); so a row costs a few operations.
    """
    places: dict[str, int] = {}
    for i, word in enumerate(target):
        places[word] = places.get(word, 0) | 1 << i
    every = (1 << len(target)) - 1
    rows = [every]
    for word in preds:
        row = rows[-1]
        same = row & places.get(word, 0)
        rows.append(((row + same) | (row - same)) & every)

    def length(i: int, j: int) -> int:
        return i - (rows[j] & ((1 << i) - 1)).bit_count()

    i, j, taken = len(target), len(preds), []
    while i and j:
        if target[i - 1] == preds[j - 1]:
            i, j = i - 1, j - 1
            taken.append(i)
        elif length(i, j - 1) > length(i - 1, j):
            j -= 1
        else:
            i -= 1
    return taken
