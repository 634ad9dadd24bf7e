"""Scores of translations beside one or more references: BLEU, chrF and TER."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np
from torch import Tensor

from assay.encode.strings import StringEncoder, load_package
from assay.encode.translation import (
    CharacterNGramCounts,
    NGramCounts,
    Tokenizer,
    TranslationEdits,
    f_scores,
    sacrebleu_tokenizer,
)
from assay.errors import ConfigError, describe
from assay.metrics.base import NOT_NEGATIVE, SHARE, number
from assay.metrics.exact_arithmetic import rounded, rounded_quotient
from assay.metrics.text.base import TextMetric, TextQuotient
from assay.tally.sums.exact import Number
from assay.tally.sums.row_sums import RowTotals

SmoothMethod = Literal["exp", "floor", "add-k", "none"]
SMOOTH_VALUES: dict[str, float] = {"floor": 0.1, "add-k": 1.0}


@dataclass(frozen=True)
class NGramPrecision(TextMetric):
    """A score that is computed from the precisions of n-grams and a penalty for what is too short.

    Shapes: `preds` is a list of strings; `target` a list with a string, or a list of references, for each of them.
    Weights are one number a prediction.

    Returns:
        float64, shape `()`; between 0 and 1. NaN without data.

    Raises:
        ConfigError: `n_gram` below 1, or another argument that is not one of its values.
        InputError: something that is no string, such as None or bytes, or an empty list of references; the message has
            its position. A reference may be the empty string.
    """

    value_range = SHARE

    n_gram: Annotated[int, "the longest n-grams that are counted."] = 4

    higher_is_better = True
    inputs: ClassVar[str] = "references"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_gram < 1:
            raise ConfigError(describe("n_gram", self.n_gram, "1 or more", "Pass n_gram=4"))

    def compute(self, counts: RowTotals) -> Tensor:
        predicted, closest, *grams = counts.sums[0]
        if not counts.count:
            return number(math.nan)
        common, total = grams[: self.n_gram], grams[self.n_gram :]
        if not predicted or not any(common):
            return number(0)
        penalty = math.exp(min(0.0, 1 - rounded_quotient(closest, predicted)))
        return number(penalty * self.mean_precision(common, total))

    @abstractmethod
    def mean_precision(self, common: Sequence[Number], total: Sequence[Number]) -> float:
        """The geometric mean of the precisions, from the n-grams of each order in common and in the predictions."""


def _order_weights(weights: Sequence[float] | None, n_gram: int) -> tuple[float, ...] | None:
    """The weights of the orders as floats.

    Raises:
        ConfigError: they are not one for each order, finite and 0 or more.
    """
    if weights is None:
        return None
    weights = tuple(map(float, weights))
    if len(weights) != n_gram:
        raise ConfigError(
            describe("weights", f"{len(weights)} numbers", f"{n_gram} numbers", "Give one for each order")
        )
    if not all(0 <= weight < math.inf for weight in weights):
        do = "Leave weights out to weight all orders equally"
        raise ConfigError(describe("weights", weights, "finite numbers of 0 or more", do))
    return weights


@dataclass(frozen=True)
class BLEUScore(NGramPrecision):
    """BLEU of words between white space: how many n-grams of the translations are in the references.

    `min(1, exp(1 - r / c)) prod((common_n / predicted_n) ** weights_n)`, with the sums over all samples: n-grams that a
    prediction and one of its references have, those of the predictions, the words `c` of the predictions and `r` of the
    references that are closest in length. Nothing else is tokenized, and case counts: to report or compare BLEU take
    `SacreBLEUScore`.

    Rounding: the counts are exact, and the formula is computed from them in float64.

    Example:
        >>> BLEUScore()(["the cat is on the mat"], [["there is a cat on the mat", "a cat is on the mat"]])
        tensor(0.7598, dtype=torch.float64)

    Source: Papineni, Roukos, Ward, Zhu, ACL 2002, 311-318; smoothing: Lin and Och, Coling 2004, 501-507.
    """

    smooth: Annotated[bool, "True adds 1 to both counts of n-grams of two words or more."] = False
    weights: Annotated[tuple[float, ...] | None, "one for each order; None weights them equally."] = None

    examples = ({}, {"n_gram": 2, "smooth": True}, {"n_gram": 2, "weights": (0.75, 0.25)})

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", _order_weights(self.weights, self.n_gram))

    @property
    def encoder(self) -> StringEncoder:
        return NGramCounts(self.n_gram)

    def mean_precision(self, common: Sequence[Number], total: Sequence[Number]) -> float:
        if not all(common):
            return 0.0
        weights = self.weights or [1 / self.n_gram] * self.n_gram
        logs = 0.0
        for n, (have, of, weight) in enumerate(zip(common, total, weights, strict=True)):
            if self.smooth and n:
                have, of = have + 1, of + 1
            logs += weight * math.log(rounded_quotient(have, of))
        return math.exp(logs)


@dataclass(frozen=True)
class SacreBLEUScore(NGramPrecision):
    """BLEU as sacrebleu computes it: with its tokenizers, its smoothing, and a signature to report.

    `min(1, exp(1 - r / c)) prod(common_n / predicted_n) ** (1 / n_gram)`, with the sums over all samples: n-grams that
    a prediction and one of its references have, those of the predictions, the tokens `c` of the predictions and `r` of
    the references that are closest in length. It is sacrebleu's corpus score divided by 100.

    Rounding: the counts are exact, and the formula is computed from them in float64.

    Raises:
        ConfigError: `n_gram` below 1, another argument that is not one of its values, or a tokenizer whose packages are
            not installed.
        InputError: something that is no string, such as None or bytes, or an empty list of references; the message has
            its position. A reference may be the empty string.
        MissingDependencyError: the package sacrebleu of the extra `text` is not installed.

    Example:
        >>> metric = SacreBLEUScore()
        >>> metric(["The cat is on the mat."], [["There is a cat on the mat.", "A cat is on the mat."]])
        tensor(0.8091, dtype=torch.float64)
        >>> metric.signature().rpartition("|")[0]
        'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp'

    Source: Post, A Call for Clarity in Reporting BLEU Scores, WMT 2018, 186-191.
    """

    tokenize: Annotated[
        Tokenizer,
        "sacrebleu's tokenizer: '13a', 'intl', 'zh', 'char' or 'none'; with MeCab also 'ja-mecab' and 'ko-mecab'.",
    ] = "13a"
    lowercase: Annotated[bool, "True ignores case."] = False
    smooth_method: Annotated[
        SmoothMethod, "what stands for an order without n-grams in common: 'exp', 'floor', 'add-k' or 'none'."
    ] = "exp"
    smooth_value: Annotated[float | None, "of 'floor' (0.1 if None) and 'add-k' (1 if None)."] = None
    effective_order: Annotated[bool, "True leaves out orders that no prediction has, as for single sentences."] = False
    weights: Annotated[
        tuple[float, ...] | None,
        "the exponents of the precisions, one for each order; None takes `1 / n_gram`, as sacrebleu. Not with "
        "`effective_order`.",
    ] = None

    examples = (
        {},
        {"tokenize": "intl", "lowercase": True, "smooth_method": "floor"},
        {"tokenize": "char", "smooth_method": "add-k", "n_gram": 3},
        {"tokenize": "none", "smooth_method": "none", "effective_order": True},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smooth_value is not None and not 0 <= self.smooth_value < math.inf:
            do = "Leave smooth_value out for sacrebleu's"
            raise ConfigError(describe("smooth_value", self.smooth_value, "a finite number of 0 or more", do))
        if self.smooth_method not in SMOOTH_VALUES:
            do = "Pass smooth_method='floor' or 'add-k', too"
            self._refuse_without_effect("smooth_value", f"smooth_method={self.smooth_method!r}", do)
        object.__setattr__(self, "weights", _order_weights(self.weights, self.n_gram))
        if self.weights is not None and self.effective_order:
            do = "Leave weights out, or write effective_order=False"
            raise ConfigError(describe("weights", f"{self.weights} with effective_order=True", "one of the two", do))
        sacrebleu_tokenizer(self.tokenize)  # raises where it needs packages that are missing

    @property
    def encoder(self) -> StringEncoder:
        return NGramCounts(self.n_gram, self.tokenize, self.lowercase)

    def signature(self, num_references: int | Literal["var"] = 1) -> str:
        """What sacrebleu writes beside a score, so that others can compute the same one; and weights, which it lacks.

        Args:
            num_references: how many references each prediction had; "var" where not all had as many.
        """
        smooth = self.smooth_method
        value = SMOOTH_VALUES.get(smooth) if self.smooth_value is None else self.smooth_value
        shown = f"{smooth}[{value:.2f}]" if smooth in SMOOTH_VALUES else smooth
        parts = {
            "nrefs": num_references,
            "case": "lc" if self.lowercase else "mixed",
            "eff": "yes" if self.effective_order else "no",
            "tok": sacrebleu_tokenizer(self.tokenize).signature(),
            "smooth": shown,
            **({} if self.weights is None else {"weights": "/".join(f"{each:g}" for each in self.weights)}),
            "version": load_package("sacrebleu").__version__,
        }
        return "|".join(f"{name}:{each}" for name, each in parts.items())

    def mean_precision(self, common: Sequence[Number], total: Sequence[Number]) -> float:
        method = self.smooth_method
        value = SMOOTH_VALUES.get(method, 0.0) if self.smooth_value is None else self.smooth_value
        logs, orders, missing = 0.0, 0, 1
        for n, (have, of) in enumerate(zip(common, total, strict=True)):
            if method == "add-k" and n:
                have, of = have + Fraction(value), of + Fraction(value)
            if not of:
                break
            orders += 1
            if not have and method == "exp":
                missing *= 2
                have = Fraction(1, missing)
            elif not have and method == "floor":
                have = Fraction(value)
            if not have:
                return 0.0
            log = math.log(rounded_quotient(have, of))
            logs += log if self.weights is None else self.weights[n] * log
        if orders < self.n_gram and not self.effective_order:
            return 0.0
        return math.exp(logs / orders if self.weights is None else logs)


@dataclass(frozen=True)
class CHRFScore(TextMetric):
    """chrF, or with words chrF++: the F-score of n-grams of characters.

    `(1 + beta²) P R / (beta² P + R)`, with the precision `P` and the recall `R` of n-grams, each the mean over the
    orders of characters and of words, from the sums over all samples; it is sacrebleu's corpus score divided by 100. Of
    several references, the one with the highest score of its sentence counts.

    Rounding: the counts are exact, and the formula is computed from them in float64.

    Shapes: `preds` is a list of strings; `target` a list with a string, or a list of references, for each of them.
    Weights are one number a prediction.

    Returns:
        float64, shape `()`; between 0 and 1. NaN without data.

    Raises:
        ConfigError: orders below 1 (of words below 0), or a `beta` that is not above 0.
        InputError: something that is no string, such as None or bytes, or an empty list of references; the message has
            its position. A reference may be the empty string.

    Example:
        >>> CHRFScore()(["the cat is on the mat"], [["there is a cat on the mat", "a cat is on the mat"]])
        tensor(0.8648, dtype=torch.float64)

    Source: Popović, chrF++, WMT 2017, 612-618; sacrebleu.
    """

    value_range = SHARE

    n_char_order: Annotated[int, "the longest n-grams of characters."] = 6
    n_word_order: Annotated[int, "the longest n-grams of words; 2 is chrF++, 0 is chrF."] = 2
    beta: Annotated[float, "how much recall counts against precision."] = 2.0
    lowercase: Annotated[bool, "True ignores case."] = False
    whitespace: Annotated[bool, "True counts white space as characters."] = False
    eps_smoothing: Annotated[
        bool, "True takes the mean of the F-scores of all orders, as chrF++.py and TorchMetrics."
    ] = False

    higher_is_better = True
    inputs: ClassVar[str] = "references"
    examples = ({}, {"n_word_order": 0, "lowercase": True}, {"n_char_order": 3, "beta": 1, "eps_smoothing": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("n_char_order", 1), ("n_word_order", 0)):
            if getattr(self, name) < least:
                raise ConfigError(
                    describe(name, getattr(self, name), f"{least} or more", f"Pass {name}={2 + 4 * least}")
                )
        if not 0 < self.beta < math.inf:
            raise ConfigError(describe("beta", self.beta, "a number above 0", "Pass beta=2"))

    @property
    def encoder(self) -> StringEncoder:
        orders = self.n_char_order, self.n_word_order
        return CharacterNGramCounts(*orders, self.beta, self.lowercase, self.whitespace, self.eps_smoothing)

    def compute(self, counts: RowTotals) -> Tensor:
        if not counts.count:
            return number(math.nan)
        totals = self.totals(counts).values()
        unit = 1 if max(totals) < 1 << 1000 else max(totals)  # a product of sums of large weights is beyond float64
        sums = [np.array([rounded(each / unit)]) for each in totals]
        return number(float(f_scores(sums, self.beta, self.eps_smoothing)[0]))


@dataclass(frozen=True)
class TranslationEditRate(TextQuotient):
    """Translation edit rate (TER): edits of words and shifts of phrases, as a fraction of the words of the references.

    `sum(w edits) / sum(w words)`: the fewest insertions, deletions, substitutions and shifts that make one of the
    references of the prediction, as Tercom finds them, by sacrebleu; and the average number of words of the references.
    It is sacrebleu's corpus score divided by 100.

    Shapes: `preds` is a list of strings; `target` a list with a string, or a list of references, for each of them.
    Weights are one number a prediction.

    Returns:
        float64, shape `()`; 0 or more. Infinite if no reference has a word and a prediction has one; NaN if none has.

    Raises:
        InputError: something that is no string, such as None or bytes, or an empty list of references; the message has
            its position. A reference may be the empty string.
        MissingDependencyError: the package sacrebleu of the extra `text` is not installed.

    Example:
        >>> TranslationEditRate()(["the cat is on the mat"], [["there is a cat on the mat", "a cat is on the mat"]])
        tensor(0.1538, dtype=torch.float64)

    Source: Snover, Dorr, Schwartz, Micciulla, Makhoul, AMTA 2006, 223-231; sacrebleu.
    """

    value_range = NOT_NEGATIVE

    normalize: Annotated[bool, "True separates punctuation from words and undoes XML entities."] = False
    no_punctuation: Annotated[bool, "True leaves punctuation out."] = False
    lowercase: Annotated[bool, "True ignores case."] = True
    asian_support: Annotated[bool, "with the first two, also for Chinese, Japanese and Korean characters."] = False

    higher_is_better = False
    inputs: ClassVar[str] = "references"
    examples = ({}, {"normalize": True, "no_punctuation": True, "lowercase": False})

    @property
    def encoder(self) -> StringEncoder:
        return TranslationEdits(self.normalize, self.no_punctuation, self.lowercase, self.asian_support)

    @property
    def columns(self) -> tuple[str, str]:
        edits, words = self.encoder.names
        return edits, words
