"""Quotients of true and false positives and negatives as values: what is multiplied with each of them, and summed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from assay.errors import ConfigError, describe
from assay.metrics.base import ANY_NUMBER, NOT_NEGATIVE, SHARE

if TYPE_CHECKING:
    from assay.metrics.classification.label_metrics import Outcomes

OUTCOMES = ("tp", "fp", "fn", "tn")
LARGEST_DENOMINATOR = 1 << 20
"""Of the fractions by which outcomes of single samples are multiplied, in int64."""

_TERM = re.compile(r"([+-]?) *(?:(\d+(?:/0*[1-9]\d*)?|[^\W\d]\w*)[ *]+)?(tp|fp|fn|tn) *")

Array: TypeAlias = Any
"""Integers of each class: a NumPy array `(K,)` of Python integers; or also of each sample, a tensor `(N, K)`."""


@dataclass(frozen=True)
class Ratio:
    """A sum of outcomes divided by another sum of outcomes.

    The terms of a sum are `tp`, `fp`, `fn` and `tn`, each with an integer, a fraction or a name before it:
    `Ratio("tp", "tp + 1/2 fp + 1/2 fn")`, or `Ratio("tp", "tp + alpha fp + beta fn")` with the fields `alpha` and
    `beta` of the metric, whose floats are taken as the fractions that they are. So the value is exact.

    Attributes:
        above: what is divided.
        below: by what it is divided.

    Raises:
        ConfigError: a sum that is none of such terms, as one with a float in it.

    Example:
        >>> Ratio("2 tp", "2 tp + fn + fp").weights()
        OutcomeWeights(above=(2, 0, 0, 0), below=(2, 1, 1, 0))
    """

    above: str
    below: str

    def __post_init__(self) -> None:
        self.names  # noqa: B018  raises for what is no sum

    @cached_property
    def names(self) -> frozenset[str]:
        """The fields that it names."""
        terms = (*_terms(self.above), *_terms(self.below))
        return frozenset(weight for _, weight, _ in terms if weight.isidentifier())

    def weights(self, metric: object = None, largest_denominator: int = 0) -> OutcomeWeights:
        """What each outcome is multiplied with.

        Args:
            metric: has the fields that the sums name.
            largest_denominator: to which fractions are rounded; 0 for as they are.

        Raises:
            ConfigError: a field is no finite number; below, a number is negative or all are 0.
        """
        values = tuple((name, _fraction(name, getattr(metric, name, None))) for name in sorted(self.names))
        return _weights(self, values, largest_denominator)


@dataclass(frozen=True)
class OutcomeWeights:
    """The integers with which `tp`, `fp`, `fn` and `tn` are multiplied, above and below."""

    above: tuple[int, ...]
    below: tuple[int, ...]

    def __call__(self, of: Outcomes) -> tuple[Array, Array]:
        """Numerators and denominators of each class."""
        outcomes = of.tp, of.fp, of.fn, of.tn
        return _weighted(self.above, outcomes), _weighted(self.below, outcomes)

    @property
    def value_range(self) -> tuple[float, float]:
        """The least and the largest value that the quotient can have."""
        if min(self.above) < 0:
            return ANY_NUMBER
        return SHARE if all(a <= b for a, b in self._pairs) else NOT_NEGATIVE

    @property
    def of_samples(self) -> bool:
        """Whether it is a share of some samples: each counts once below, and once or not above."""
        return self.value_range == SHARE and max(self.below) == 1

    @property
    def of_support(self) -> bool:
        """Whether it divides by how often a class is the target: weighted by that, the average is of pooled classes."""
        tp, fp, fn, tn = self.below
        return tp == fn and not fp and not tn

    @property
    def pooled(self) -> str:
        """Which share of the samples it is where the classes are pooled, "correct" or "wrong"; empty where neither.

        A wrong sample is then a false positive of one class and a false negative of another.
        """
        (tp, fp, fn, tn), (tp_below, fp_below, fn_below, tn_below) = self.above, self.below
        if tn or tn_below or tp_below != fp_below + fn_below:
            return ""
        return {(tp_below, 0): "correct", (0, tp_below): "wrong"}.get((tp, fp + fn), "")

    def largest(self, classes: int) -> int:
        """How many times as large as the number of labels the denominator of so many pooled classes may be."""
        tp, fp, fn, tn = self.below
        return max(tp, fp + fn) + tn * classes

    def is_quotient(self, above: Iterable[float], below: Iterable[float]) -> bool:
        """Whether other numbers of each outcome give the same quotient."""
        own, others = (*self.above, *self.below), (*above, *below)
        return all(a * y == b * x for a, x in zip(own, others, strict=True) for b, y in zip(own, others, strict=True))

    def function_of(self, share: OutcomeWeights) -> tuple[int, int, int, int] | None:
        """Integers with which this is `(a s + b) / (c s + d)` of a share `s` of samples, and increases with it.

        None where it is no such function: where it tells samples apart that the share does not.
        """
        kinds: dict[tuple[int, int], set[tuple[int, int]]] = {(0, 0): {(0, 0)}, (0, 1): set(), (1, 1): set()}
        if share.of_samples:
            for kind, own in zip(zip(share.above, share.below, strict=True), self._pairs, strict=True):
                kinds[kind].add(own)
        if not all(len(each) == 1 for each in kinds.values()):
            return None
        ((b, d),), ((above, below),) = kinds[0, 1], kinds[1, 1]
        return (above - b, b, below - d, d) if above * d > b * below else None

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.above, self.below, strict=True))


@lru_cache
def _weights(ratio: Ratio, values: tuple[tuple[str, Fraction], ...], largest_denominator: int) -> OutcomeWeights:
    sums = [_sum(text, dict(values)) for text in (ratio.above, ratio.below)]
    if largest_denominator:
        sums = [[each.limit_denominator(largest_denominator) for each in weights] for weights in sums]
    unit = math.lcm(*(each.denominator for weights in sums for each in weights))
    above, below = (tuple(int(each * unit) for each in weights) for weights in sums)
    if min(below) < 0 or not any(below):
        of = ", ".join(f"{weight} {name}" for name, weight in zip(OUTCOMES, sums[1], strict=True))
        do = "Choose arguments for which it is" if values else "Write a denominator that is"
        raise ConfigError(describe(repr(ratio.below), of, "0 or more of each, and more than 0 of one", do))
    return OutcomeWeights(above, below)


def _sum(text: str, values: Mapping[str, Fraction]) -> list[Fraction]:
    """What each of `OUTCOMES` is multiplied with."""
    weights = dict.fromkeys(OUTCOMES, Fraction(0))
    for sign, weight, outcome in _terms(text):
        value = values[weight] if weight in values else Fraction(weight)
        weights[outcome] += -value if sign == "-" else value
    return list(weights.values())


@lru_cache
def _terms(text: str) -> tuple[tuple[str, str, str], ...]:
    """The terms of a sum: each a sign, a number or a name, and an outcome."""
    terms = [_TERM.fullmatch(part.strip()) for part in re.findall(r"[+-]?[^+-]+", str(text))]
    if not terms or not all(terms):
        expected = "a sum of tp, fp, fn and tn, each with an integer, a fraction or the name of a field before it"
        do = "Write it as in Ratio('tp', 'tp + 1/2 fp + beta fn'): numbers with a point would not be exact"
        raise ConfigError(describe("Ratio", repr(text), expected, do))
    return tuple((sign, weight or "1", outcome) for sign, weight, outcome in (each.groups() for each in terms if each))


def _fraction(name: str, value: Any) -> Fraction:
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(describe(name, repr(value), "a finite number", f"Pass {name} as a number")) from error


def _weighted(weights: Iterable[int], outcomes: Iterable[Array]) -> Array:
    terms = [each if weight == 1 else weight * each for weight, each in zip(weights, outcomes, strict=True) if weight]
    return sum(terms[1:], terms[0]) if terms else 0 * next(iter(outcomes))
