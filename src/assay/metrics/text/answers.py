"""Answers to questions: exact match, and F1 of words as in SQuAD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from assay.encode.answers import AnswerScores, EqualStrings
from assay.encode.strings import StringEncoder
from assay.metrics.base import SHARE
from assay.metrics.text.base import TextQuotient


@dataclass(frozen=True)
class SQuAD(TextQuotient):
    """F1 of the words of answers, or how many answers are right, by the rules of SQuAD.

    `sum(w score) / sum(w)`, of the right answer that fits best. Case, punctuation and the articles a, an and the do not
    count. Where there is no right answer (SQuAD 2.0), the empty one is right.

    Rounding: F1 of each sample is computed in float64 from integers; their sum is exact.

    Shapes: `preds` is a list of dictionaries with `prediction_text`, and `target` one of dictionaries with `answers`,
    which is a dictionary with the list `text`, both in the same order; an `id` in both must be the same. Or `preds` is
    a list of strings, and `target` a list with a string, or a list of strings, for each of them.

    Returns:
        float64, shape `()`; between 0 and 1 (the script of SQuAD shows percent). NaN without data.

    Raises:
        ConfigError: an unknown measure.
        InputError: a sample of another form, something that is no string, or ids that differ; the message has the
            position.

    Example:
        >>> preds = [{"prediction_text": "in the year 1976", "id": "7"}]
        >>> target = [{"answers": {"answer_start": [97], "text": ["1976"]}, "id": "7"}]
        >>> SQuAD()(preds, target)
        tensor(0.5000, dtype=torch.float64)
        >>> SQuAD("exact_match")(["The answer!", "no"], ["answer", ["yes", "no"]])
        tensor(1., dtype=torch.float64)

    Source: Rajpurkar, Jia, Liang, Know What You Don't Know, ACL 2018, 784-789.
    """

    measure: Annotated[Literal["f1", "exact_match"], "F1 of the words, or equality."] = "f1"

    higher_is_better = True
    exact_terms = False
    inputs: ClassVar[str] = "references"
    examples = ({}, {"measure": "exact_match"})
    encoder = AnswerScores()

    @property
    def columns(self) -> tuple[str, str]:
        exact, f1 = self.encoder.names
        return (f1 if self.measure == "f1" else exact), ""


@dataclass(frozen=True)
class StringExactMatch(TextQuotient):
    """The fraction of predictions that are equal to their target, or to one of several.

    `sum(w (preds == target)) / sum(w)`. All characters count, white space included, but for those that are ignored.

    Shapes: `preds` is a list of strings; `target` a list with a string, or a list of references, for each of them.
    Weights are one number a prediction.

    Returns:
        float64, shape `()`; between 0 and 1. NaN without data.

    Raises:
        InputError: something that is no string, such as None or bytes, or an empty list of references; the message has
            its position. A reference may be the empty string.

    Example:
        >>> StringExactMatch(ignore_case=True)(["Yes", "no"], ["yes", ["yes", "maybe"]])
        tensor(0.5000, dtype=torch.float64)

    Source: Rajpurkar, Zhang, Lopyrev, Liang, EMNLP 2016, 2383-2392.
    """

    value_range = SHARE

    ignore_case: Annotated[bool, "True ignores case."] = False
    ignore_punctuation: Annotated[bool, "True leaves out the punctuation marks of ASCII."] = False
    ignore_numbers: Annotated[bool, "True leaves out the digits of ASCII."] = False

    higher_is_better = True
    inputs: ClassVar[str] = "references"
    examples = ({}, {"ignore_case": True, "ignore_punctuation": True})

    @property
    def encoder(self) -> StringEncoder:
        return EqualStrings(self.ignore_case, self.ignore_punctuation, self.ignore_numbers)

    @property
    def columns(self) -> tuple[str, str]:
        return self.encoder.names[0], ""
