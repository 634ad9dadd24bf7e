"""Error rates of words and characters, as in speech recognition, and edit distances."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from torch import Tensor

from assay.encode.edits import EditCounts, EditDistances
from assay.encode.extended_edits import ExtendedEdits
from assay.encode.strings import StringEncoder
from assay.errors import ConfigError, describe
from assay.metrics.base import NOT_NEGATIVE, SHARE, number
from assay.metrics.exact_arithmetic import quotient, quotient_of_rows, rounded
from assay.metrics.per_sample import SampleTerms
from assay.metrics.text.base import TextMetric, TextQuotient
from assay.tally.base import Batch
from assay.tally.sums.exact import Number
from assay.tally.sums.polynomials import QuotientOfSums, RowSum, SumOf
from assay.tally.sums.row_sums import RowTotals

_ALIGNMENT = EditCounts("words", alignment=True)


@dataclass(frozen=True)
class WordErrorRate(TextQuotient):
    """Word error rate (WER): wrong, missing and added words, as a fraction of the words of the targets.

    `sum(w (S + D + I)) / sum(w N)` with the substitutions, deletions and insertions of the shortest alignment, and
    `N` words in the target. Words are what lies between white space; case and punctuation count.

    Returns:
        float64, shape `()`; 0 or more, and above 1 where many words were added. A target without words adds its
        insertions only. Infinite if no target has a word and a prediction has one; NaN if none has.

    Example:
        >>> WordErrorRate()(["this is the prediction"], ["this is a reference"])
        tensor(0.5000, dtype=torch.float64)

    Source: Morris, Maier, Green, Interspeech 2004, 2765-2768.
    """

    value_range = NOT_NEGATIVE
    higher_is_better = False
    encoder = EditCounts("words")
    columns = encoder.names[0], encoder.names[1]


@dataclass(frozen=True)
class CharErrorRate(TextQuotient):
    """Character error rate (CER): wrong, missing and added characters, as a fraction of those of the targets.

    `sum(w (S + D + I)) / sum(w N)` with the substitutions, deletions and insertions of the shortest alignment, and
    `N` characters in the target. Characters are Unicode code points, spaces between words included; white space at both
    ends of a string does not count, as in jiwer.

    Returns:
        float64, shape `()`; 0 or more, and above 1 where many characters were added. Infinite if all targets are empty
        and a prediction is not; NaN if all are.

    Example:
        >>> CharErrorRate()(["abc d"], ["abd d"])
        tensor(0.2000, dtype=torch.float64)

    Source: Morris, Maier, Green, Interspeech 2004, 2765-2768, of characters.
    """

    value_range = NOT_NEGATIVE
    higher_is_better = False
    encoder = EditCounts("characters")
    columns = encoder.names[0], encoder.names[1]


@dataclass(frozen=True)
class MatchErrorRate(TextQuotient):
    """Match error rate (MER): the fraction of the aligned words that are wrong.

    `sum(w (S + D + I)) / sum(w (H + S + D + I))` with the hits, substitutions, deletions and insertions of the shortest
    alignment; of several, the one that jiwer takes.

    Returns:
        float64, shape `()`; between 0 and 1. NaN if there is no word at all.

    Example:
        >>> MatchErrorRate()(["this is the prediction"], ["this is a reference"])
        tensor(0.5000, dtype=torch.float64)

    Source: Morris, Maier, Green, Interspeech 2004, 2765-2768.
    """

    value_range = SHARE

    higher_is_better = False
    encoder = EditCounts("words", alignment=True)
    columns = "word errors", "aligned words"


def _preserved(total: Mapping[str, Number]) -> Number:
    """The word information preserved, exactly."""
    words, predicted, right = (total[f"{each} words"] for each in ("target", "predicted", "right"))
    return quotient(right * right, words * predicted) if words and predicted else quotient(0, words + predicted)


_WORDS, _PREDICTED, _RIGHT = (
    SumOf(RowSum(0, _ALIGNMENT.names.index(f"{each} words"))) for each in ("target", "predicted", "right")
)
_PRESERVED = QuotientOfSums(_RIGHT * _RIGHT, _WORDS * _PREDICTED)
_LOST = QuotientOfSums(_WORDS * _PREDICTED - _RIGHT * _RIGHT, _WORDS * _PREDICTED)


@dataclass(frozen=True)
class WordInfoPreserved(TextMetric):
    """Word information preserved (WIP).

    `H / N * H / P` with the sums over all samples: `H` of the words that are right in the shortest alignment (of
    several, the one that jiwer takes), `N` of the words of the targets, and `P` of those of the predictions.

    Returns:
        float64, shape `()`; between 0 and 1. NaN if there is no word at all, and 0 if only one side has words.

    Example:
        >>> WordInfoPreserved()(["this is the prediction"], ["this is a reference"])
        tensor(0.2500, dtype=torch.float64)

    Source: Morris, Maier, Green, Interspeech 2004, 2765-2768.
    """

    value_range = SHARE
    higher_is_better = True
    encoder = _ALIGNMENT

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return _PRESERVED

    def compute(self, counts: RowTotals) -> Tensor:
        return number(rounded(_preserved(self.totals(counts))))


@dataclass(frozen=True)
class WordInfoLost(TextMetric):
    """Word information lost (WIL).

    `1 - H / N * H / P` with the sums over all samples: `H` of the words that are right in the shortest alignment (of
    several, the one that jiwer takes), `N` of the words of the targets, and `P` of those of the predictions.

    Returns:
        float64, shape `()`; between 0 and 1. NaN if there is no word at all, and 1 if only one side has words.

    Example:
        >>> WordInfoLost()(["this is the prediction"], ["this is a reference"])
        tensor(0.7500, dtype=torch.float64)

    Source: Morris, Maier, Green, Interspeech 2004, 2765-2768.
    """

    value_range = SHARE
    higher_is_better = False
    encoder = _ALIGNMENT

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return _LOST

    def compute(self, counts: RowTotals) -> Tensor:
        return number(rounded(1 - _preserved(self.totals(counts))))


@dataclass(frozen=True)
class EditDistance(TextQuotient):
    """Levenshtein distance between the characters of the prediction and those of the target.

    `sum(w distance) / sum(w)`: the cheapest way to make one string of the other by insertions and deletions of a
    character, at 1 each, and substitutions. All characters count, white space included.

    Returns:
        float64, shape `()`; 0 or more. NaN without data.

    Raises:
        ConfigError: a negative `substitution_cost`, or an unknown `reduction`.
        InputError: something that is no string, such as None or bytes; the message has its position.
        MissingDependencyError: a package of the extra `text` is not installed.

    Example:
        >>> EditDistance()(["rain", "lnaguaeg"], ["shine", "language"])
        tensor(3.5000, dtype=torch.float64)

    Source: Levenshtein, Soviet Physics Doklady 10 (1966), 707-710.
    """

    value_range = NOT_NEGATIVE

    substitution_cost: Annotated[int, "what replacing a character costs; 2 is an insertion and a deletion."] = 1
    reduction: Annotated[Literal["mean", "sum"], "the mean over the samples, or their sum."] = "mean"

    higher_is_better = False
    examples = ({}, {"substitution_cost": 2}, {"reduction": "sum"})
    unchanged_by = frozenset({"swap"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.substitution_cost < 0:
            do = "Pass substitution_cost=1"
            raise ConfigError(describe("substitution_cost", self.substitution_cost, "0 or more", do))

    @property
    def encoder(self) -> StringEncoder:
        return EditDistances(self.substitution_cost)

    @property
    def columns(self) -> tuple[str, str]:
        return self.encoder.names[0], ""

    @property
    def estimates(self) -> bool:
        return self.reduction == "mean"

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return quotient_of_rows(self.reduction)

    def compute(self, counts: RowTotals) -> Tensor:
        if self.reduction == "mean" or not counts.count:
            return super().compute(counts)
        return number(rounded(self.totals(counts)[self.columns[0]]))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return super().per_sample(batch) if self.reduction == "mean" else None


@dataclass(frozen=True)
class ExtendedEditDistance(TextQuotient):
    """Extended edit distance (EED): the mean over the sentences of edits of characters, where jumps are cheap.

    `sum(w distance) / sum(w)`, with the cheapest path through the prediction for the characters of the target, which
    may jump where a word ends, and a penalty for characters that are visited more than once; divided by the length of
    the target, and at most 1. Of several references, the one with the smallest distance counts.

    Rounding: the distance of each sentence is computed in float64; their sum is exact.

    Shapes: `preds` is a list of strings; `target` a list with a string, or a list of references, for each of them.
    Weights are one number a prediction.

    Returns:
        float64, shape `()`; between 0 and 1. NaN without data.

    Raises:
        ConfigError: an unknown language, or a cost that is negative or not finite.
        InputError: something that is no string, such as None or bytes, or an empty list of references; the message has
            its position. A reference may be the empty string.

    Example:
        >>> ExtendedEditDistance()(["this is the prediction"], ["this is the reference"])
        tensor(0.3835, dtype=torch.float64)

    Source: Stanchev, Wang, Ney, EED, WMT 2019, 514-520.
    """

    value_range = NOT_NEGATIVE

    language: Annotated[Literal["en", "ja"], "whose rules for punctuation and characters hold."] = "en"
    alpha: Annotated[float, "what a jump costs."] = 2.0
    rho: Annotated[float, "what a repetition costs."] = 0.3
    deletion: Annotated[float, "what leaving out a character costs."] = 0.2
    insertion: Annotated[float, "what adding a character costs."] = 1.0

    higher_is_better = False
    exact_terms = False
    inputs: ClassVar[str] = "references"
    examples = ({}, {"language": "ja", "alpha": 1.0, "rho": 0.5})

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "rho", "deletion", "insertion"):
            if not 0 <= getattr(self, name) < math.inf:
                do = f"Leave {name} out for its default"
                raise ConfigError(describe(name, getattr(self, name), "a finite number, 0 or more", do))

    @property
    def encoder(self) -> StringEncoder:
        return ExtendedEdits(self.language, self.alpha, self.rho, self.deletion, self.insertion)

    @property
    def columns(self) -> tuple[str, str]:
        return self.encoder.names[0], ""
