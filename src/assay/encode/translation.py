"""Counts of translations beside their references: n-grams of words for BLEU, of characters for chrF, edits for TER."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from torch import Tensor

from assay.encode.ngrams import TokenLists, first_best
from assay.encode.strings import Floats, Integers, StringEncoder, load_package, references, table
from assay.errors import ConfigError, describe

Tokenizer = Literal["none", "13a", "intl", "zh", "char", "ja-mecab", "ko-mecab"]
PUNCTUATION = frozenset(string.punctuation)
EPSILON = 1e-16  # sacrebleu's


@dataclass(frozen=True)
class NGramCounts(StringEncoder):
    """The counts that BLEU is made of: lengths, and n-grams of each order in common and in the prediction.

    With a tokenizer of sacrebleu, its rules hold; without, words are what lies between white space, and of references
    whose lengths are equally close the first counts, as in TorchMetrics.
    """

    order: int = 4
    tokenizer: Tokenizer | None = None
    lowercase: bool = False

    several: ClassVar[bool] = True

    @property
    def package(self) -> str:  # type: ignore[override]
        return "sacrebleu" if self.tokenizer else ""

    @property
    def names(self) -> tuple[str, ...]:
        orders = range(1, self.order + 1)
        counts = (f"{what} {n}-grams" for what in ("common", "predicted") for n in orders)
        return "predicted tokens", "closest target tokens", *counts

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        wanted, each = references(target)
        lists = TokenLists.of_words(list(map(self._split, preds)), list(map(self._split, wanted)), each)
        predicted, lengths = np.split(lists.lengths, [len(preds)])
        distance = np.abs(lengths - np.repeat(predicted, each)).astype(np.float64)
        if self.tokenizer:  # of two that are equally close, the shorter one
            distance += lengths / (2 * lengths.max(initial=0) + 1)
        closest = lengths[first_best(-distance, each)]
        common = [matches.by_sample() for matches in lists.matches(self.order)]
        return table([predicted, closest, *common, *lists.counts(self.order)[: len(preds)].T])

    def _split(self, text: str) -> list[str]:
        text = text.lower() if self.lowercase else text
        return sacrebleu_tokenizer(self.tokenizer)(text.rstrip()).split() if self.tokenizer else text.split()


class SacreBLEUTokenizer(Protocol):
    """What sacrebleu's tokenizers are."""

    def __call__(self, text: str) -> str: ...

    def signature(self) -> str:
        """What sacrebleu writes beside a score."""


@cache
def sacrebleu_tokenizer(name: Tokenizer) -> SacreBLEUTokenizer:
    """A tokenizer of sacrebleu.

    Raises:
        ConfigError: the packages that it needs are not installed.
    """
    try:
        tokenizer: SacreBLEUTokenizer = load_package("sacrebleu.metrics.bleu").BLEU(tokenize=name).tokenizer
    except RuntimeError as error:  # sacrebleu's, where MeCab or its dictionary is missing
        do = f'Run: pip install "sacrebleu[{name.removesuffix("-mecab")}]"'
        raise ConfigError(describe("tokenize", f"{name!r} without MeCab", "MeCab and its dictionary", do)) from error
    return tokenizer


@dataclass(frozen=True)
class CharacterNGramCounts(StringEncoder):
    """The counts that chrF is made of: n-grams of the prediction, of the target, and in common, for each order.

    Of several references, those of the one with the highest F-score, the first of equal ones.
    """

    char_order: int = 6
    word_order: int = 0
    beta: float = 2.0
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False

    several: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        orders = [f"{n}-grams of characters" for n in range(1, self.char_order + 1)]
        orders += [f"{n}-grams of words" for n in range(1, self.word_order + 1)]
        return tuple(f"{what} {each}" for each in orders for what in ("predicted", "target", "common"))

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        wanted, each = references(target)
        if self.lowercase:
            preds, wanted = [text.lower() for text in preds], [text.lower() for text in wanted]
        kept = preds, wanted
        if not self.whitespace:
            kept = ["".join(text.split()) for text in preds], ["".join(text.split()) for text in wanted]
        counts = _triples(TokenLists.of_characters(*kept, each), self.char_order)
        if self.word_order:
            words = list(map(_words, preds)), list(map(_words, wanted))
            counts += _triples(TokenLists.of_words(*words, each), self.word_order)
        scores = f_scores([count.astype(np.float64) for count in counts], self.beta, self.eps_smoothing)
        best = first_best(scores, each)
        return table([count[best] for count in counts])


def _triples(lists: TokenLists, order: int) -> list[Integers]:
    """For each order what each reference, its prediction and both have: prediction, reference, in common."""
    columns: list[Integers] = []
    preds, wanted = np.split(lists.counts(order), [lists.samples])
    for n, matches in enumerate(lists.matches(order)):
        target = wanted[:, n]
        columns += [np.where(target > 0, preds[lists.owners, n], 0), target, matches.by_reference()]
    return columns


def _words(text: str) -> list[str]:
    """Words, with a punctuation mark at the end or else at the beginning as a word of its own."""
    words: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in PUNCTUATION:
            words += word[:-1], word[-1]
        elif len(word) > 1 and word[0] in PUNCTUATION:
            words += word[0], word[1:]
        else:
            words.append(word)
    return words


def f_scores(counts: Sequence[Floats], beta: float, eps_smoothing: bool = False) -> Floats:
    """chrF from the counts of each order: predicted, target and common n-grams, each of shape `(N,)`.

    Precision and recall are averaged over the orders that both sides have; with `eps_smoothing` the F-scores are, over
    all orders, and what is not defined counts as 1e-16. Both as in sacrebleu.
    """
    if eps_smoothing:
        scores = [_f(_ratio(m, p, EPSILON), _ratio(m, t, EPSILON), beta, EPSILON) for p, t, m in _by_order(counts)]
        return sum(scores, np.zeros(len(counts[0]))) / len(scores)
    precision = recall = orders = np.zeros(len(counts[0]))
    for predicted, target, common in _by_order(counts):
        both = (predicted > 0) & (target > 0)
        precision = precision + both * _ratio(common, predicted, 0)
        recall = recall + both * _ratio(common, target, 0)
        orders = orders + both
    orders = np.maximum(orders, 1)
    return _f(precision / orders, recall / orders, beta, 0)


def _by_order(counts: Sequence[Floats]) -> Iterator[tuple[Floats, Floats, Floats]]:
    return zip(counts[::3], counts[1::3], counts[2::3], strict=True)


def _f(precision: Floats, recall: Floats, beta: float, undefined: float) -> Floats:
    return _ratio((1 + beta**2) * precision * recall, beta**2 * precision + recall, undefined)


def _ratio(above: Floats, below: Floats, undefined: float) -> Floats:
    quotient: Floats = np.divide(above, below, where=below > 0, out=np.full(len(below), float(undefined)))
    return quotient


@dataclass(frozen=True)
class TranslationEdits(StringEncoder):
    """The edits that TER counts, by sacrebleu, and the average length of the references."""

    normalize: bool = False
    no_punctuation: bool = False
    lowercase: bool = True
    asian_support: bool = False

    several: ClassVar[bool] = True
    package: ClassVar[str] = "sacrebleu"
    names = "translation edits", "average target words"

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        score = load_package("sacrebleu.metrics.ter").TER(
            self.normalize, self.no_punctuation, self.asian_support, case_sensitive=not self.lowercase
        )
        several = [[each] if isinstance(each, str) else list(each) for each in target]
        scores = [score.sentence_score(*pair) for pair in zip(preds, several, strict=True)]
        return table([[each.num_edits for each in scores], [each.ref_length for each in scores]], np.float64)
