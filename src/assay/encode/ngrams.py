"""How many n-grams predictions and references have in common, for whole batches at once.

A batch is one flat array of tokens as small integers. An n-gram is an integer, too: that of its first n - 1 tokens and
that of the last one, side by side in one int64, or numbered anew where they do not fit. So n-grams are sorted and
searched as integers, and equal integers are equal n-grams.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from assay.encode.strings import Integers

BITS = 63


@dataclass(frozen=True, eq=False)
class TokenLists:
    """Predictions, and behind them all their references, as one array of tokens.

    Attributes:
        tokens: small integers, list after list.
        lengths: of each list.
        samples: how many of the lists are predictions.
        owners: which prediction each of the other lists is a reference for.
    """

    tokens: Integers
    lengths: Integers
    samples: int
    owners: Integers

    @classmethod
    def of_words(cls, preds: Sequence[Sequence[str]], target: Sequence[Sequence[str]], each: Integers) -> TokenLists:
        """Lists of words; `each` says how many references every prediction has."""
        ids: defaultdict[str, int] = defaultdict()
        ids.default_factory = ids.__len__
        lists = [*preds, *target]
        tokens = np.fromiter(map(ids.__getitem__, chain.from_iterable(lists)), np.int64)
        return cls(tokens, _lengths(lists), len(preds), np.repeat(np.arange(len(preds)), each))

    @classmethod
    def of_characters(cls, preds: Sequence[str], target: Sequence[str], each: Integers) -> TokenLists:
        """The characters of strings."""
        texts = [*preds, *target]
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        present = np.zeros(int(points.max(initial=0)) + 1, np.int64)
        present[points] = 1
        tokens = (present.cumsum() - 1)[points]
        return cls(tokens, _lengths(texts), len(preds), np.repeat(np.arange(len(preds)), each))

    def counts(self, order: int) -> Integers:
        """How many n-grams of each order from 1 to `order` every list has, of shape `(lists, order)`."""
        left: Integers = np.maximum(self.lengths[:, None] - np.arange(order), 0)
        return left

    def matches(self, order: int) -> Iterator[Matches]:
        """What predictions and references have in common, for each n from 1 to `order`."""
        ends = np.repeat(self.lengths.cumsum(), self.lengths)
        left = ends - np.arange(len(self.tokens))  # how many tokens of its list begin here
        lists = np.repeat(np.arange(len(self.lengths)), self.lengths)
        room = BITS - len(self.lengths).bit_length()
        width = int(self.tokens.max(initial=0)).bit_length()
        grams, bits = self.tokens, width
        for n in range(1, order + 1):
            if n > 1:
                if bits + width > room:
                    grams, bits = _renumbered(grams)
                last = len(self.tokens) - n + 1
                grams, bits = (grams[: max(last, 0)] << width) | self.tokens[n - 1 :], bits + width
            whole = left[: len(grams)] >= n
            yield self._matches((lists[: len(grams)][whole] << bits) | grams[whole], bits)

    def _matches(self, keys: Integers, bits: int) -> Matches:
        """The common n-grams, from the list and the n-gram of every place as one key."""
        keys, counts = np.unique(keys, return_counts=True)
        first = int(np.searchsorted(keys, self.samples << bits))  # of the references
        preds, references = keys[:first], keys[first:]
        reference = (references >> bits) - self.samples
        wanted = (self.owners[reference] << bits) | (references & ((1 << bits) - 1))
        place = np.searchsorted(preds, wanted)
        common = np.flatnonzero(preds[np.minimum(place, max(first - 1, 0))] == wanted) if first else place[:0]
        place = place[common]
        return Matches(np.minimum(counts[place], counts[first:][common]), reference[common], place, preds >> bits, self)


@dataclass(frozen=True, eq=False)
class Matches:
    """N-grams of references that the prediction has, too.

    Attributes:
        counts: how often, the smaller of both.
        references: of which reference.
        places: which of the distinct n-grams of the predictions.
        predictions: the prediction of each distinct n-gram.
        lists: what was counted.
    """

    counts: Integers
    references: Integers
    places: Integers
    predictions: Integers
    lists: TokenLists

    def by_reference(self) -> Integers:
        """How many n-grams each reference has in common with its prediction."""
        return _sums(self.references, self.counts, len(self.lists.owners))

    def by_sample(self) -> Integers:
        """How many n-grams of each prediction its references have, each as often as the reference that has most."""
        most = np.zeros(len(self.predictions), np.int64)
        np.maximum.at(most, self.places, self.counts)
        return _sums(self.predictions, most, self.lists.samples)


def _sums(index: Integers, values: Integers, size: int) -> Integers:
    return np.bincount(index, weights=values, minlength=size).astype(np.int64)  # float64 holds such counts exactly


def _lengths(lists: Sequence[Sequence[str]]) -> Integers:
    return np.fromiter(map(len, lists), np.int64, len(lists))


def _renumbered(grams: Integers) -> tuple[Integers, int]:
    distinct, numbers = np.unique(grams, return_inverse=True)
    return numbers.astype(np.int64), len(distinct).bit_length()


def first_best(values: Iterable[float] | np.ndarray, each: Integers) -> Integers:
    """The index of the largest value of each group of consecutive values; of equal ones the first."""
    values = np.asarray(values)
    starts = each.cumsum() - each
    if (each == 1).all():
        return starts
    groups = np.repeat(np.arange(len(each)), each)
    order = np.lexsort((np.arange(len(values)), -values, groups))
    return order[starts]
