"""Answers to questions beside those that are right: equal strings, and words in common."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from assay.encode.strings import StringEncoder, check_list, check_references_at, check_string, table
from assay.errors import InputError, describe

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_DIGITS = str.maketrans("", "", string.digits)


@dataclass(frozen=True)
class EqualStrings(StringEncoder):
    """Whether a prediction is equal to one of its references."""

    ignore_case: bool = False
    ignore_punctuation: bool = False
    ignore_numbers: bool = False

    several: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        ignored = [name for name in ("case", "punctuation", "numbers") if getattr(self, f"ignore_{name}")]
        return ("equal strings" + f" but for {' and '.join(ignored)}" * bool(ignored),)

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        several = ([each] if isinstance(each, str) else each for each in target)
        equal = [self._plain(pred) in map(self._plain, each) for pred, each in zip(preds, several, strict=True)]
        return table([equal])

    def _plain(self, text: str) -> str:
        text = text.lower() if self.ignore_case else text
        text = text.translate(_NO_PUNCTUATION) if self.ignore_punctuation else text
        return text.translate(_NO_DIGITS) if self.ignore_numbers else text


@dataclass(frozen=True)
class AnswerScores(StringEncoder):
    """Exact match and F1 of words of each answer, the best of all right answers, by the rules of SQuAD.

    Case, punctuation and articles do not count. Where there is no right answer, the empty one is right. Samples are
    strings, or dictionaries as in SQuAD.
    """

    names = "exact matches of answers", "F1 of answers"

    def check(self, preds: Sequence[Any], target: Sequence[Any]) -> None:
        check_list("preds", preds)
        check_list("target", target)
        for k, (pred, right) in enumerate(zip(preds, target, strict=True)):
            if isinstance(pred, Mapping):
                check_string(f"preds[{k}]['prediction_text']", _entry(f"preds[{k}]", pred, "prediction_text"))
            else:
                check_string(f"preds[{k}]", pred)
            _check_right_answers(f"target[{k}]", right)
            ids = [each["id"] for each in (pred, right) if isinstance(each, Mapping) and "id" in each]
            if ids and ids[0] != ids[-1]:
                do = "Put predictions and questions in the same order"
                raise InputError(describe(f"preds[{k}]", f"id {ids[0]!r}", f"the id of its target, {ids[1]!r}", do))

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        scores = [_best_score(pred, right) for pred, right in zip(preds, target, strict=True)]
        return table(list(zip(*scores, strict=True)) or [(), ()], np.float64)


def _entry(place: str, sample: Mapping[str, Any], key: str) -> Any:
    if key not in sample:
        expected = f"a dictionary with {key!r}"
        raise InputError(describe(place, f"keys {list(sample)}", expected, "Give samples in the form of SQuAD"))
    return sample[key]


def _check_right_answers(place: str, right: Any) -> None:
    if not isinstance(right, Mapping):
        check_references_at(place, right)
        return
    answers = _entry(place, right, "answers")
    if not isinstance(answers, Mapping):
        expected = "a dictionary with 'text'"
        raise InputError(describe(f"{place}['answers']", type(answers).__name__, expected, "Give the form of SQuAD"))
    texts = _entry(f"{place}['answers']", answers, "text")
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        expected = "a list of strings"
        raise InputError(describe(f"{place}['answers']['text']", type(texts).__name__, expected, "Give a list"))
    for i, text in enumerate(texts):
        check_string(f"{place}['answers']['text'][{i}]", text)


def _best_score(pred: Any, right: Any) -> tuple[float, float]:
    """Exact match and F1, each the highest over the right answers."""
    text = pred["prediction_text"] if isinstance(pred, Mapping) else pred
    answers = right["answers"]["text"] if isinstance(right, Mapping) else right
    predicted = _answer_words(text)
    wanted = list(map(_answer_words, [answers] if isinstance(answers, str) else answers)) or [[]]
    return max(float(predicted == each) for each in wanted), max(_f1(predicted, each) for each in wanted)


def _answer_words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def _f1(predicted: Sequence[str], wanted: Sequence[str]) -> float:
    """F1 of the words; of no words, whether both have none."""
    if not predicted or not wanted:
        return float(predicted == wanted)
    common = (Counter(predicted) & Counter(wanted)).total()
    return 2 * common / (len(predicted) + len(wanted))
