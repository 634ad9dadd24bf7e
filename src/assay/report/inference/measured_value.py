"""A value of a report with the samples behind it, and what each of them contributes to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.report.per_sample.packed_array import Array, PackedArray
from assay.report.per_sample.resampling import Resampling
from assay.report.per_sample.samples import Samples
from assay.report.section import Section
from assay.report.slices import Slice
from assay.report.value import Value, terms_of
from assay.stats.moments import exact_sum
from assay.stats.scales import SCALES

IN_MEMORY = 1 << 20
"""Samples up to which terms are in memory as floats."""


@dataclass(frozen=True)
class MeasuredValue:
    """A value, and the samples behind it where they were kept.

    Args:
        value: the value.
        samples: the samples of its section.
        members: which of them it rests on, as a mask; all by default.
        resampling: what its replicates rest on.
        factor: what the terms and the replicates are multiplied by; the value is already.
    """

    value: Value
    samples: Samples | None = None
    members: Array | None = None
    resampling: Resampling | None = None
    factor: float = 1.0

    @classmethod
    def of(cls, section: Section, name: str, part: Slice | None = None) -> MeasuredValue:
        """A value of a section, or of one of its slices; the first of this name.

        Args:
            section: the section.
            name: of the value.
            part: the slice; None for all samples.
        """
        if part is None:
            return cls(_first(section.values, name), section.samples, None, section.resampling)
        members = None if part.members is None else part.members.values
        samples = None if members is None else section.samples
        return cls(_first(part.values, name), samples, members, part.resampling)

    def scaled(self, factor: float) -> MeasuredValue:
        """This many times the value, of the same samples."""
        value = self.value
        ends = {name: getattr(value, name) for name in ("lower", "upper", "safe_lower", "safe_upper")}
        ends = {name: None if end is None else factor * end for name, end in ends.items()}
        return replace(self, value=replace(value, value=factor * value.value, **ends), factor=factor)

    def of_mean(self) -> MeasuredValue:
        """The mean that the value is a function of."""
        mean = float(SCALES[self.value.scale].mean(np.float64(self.value.value)))
        return replace(self, value=replace(self.value, value=mean, scale=""))

    def has_terms(self) -> bool:
        """Whether it is known what each sample contributed."""
        return bool(self.value.numerator) and self.samples is not None

    @property
    def count(self) -> int | None:
        """How many samples it rests on, of a recall the positives; None where that is not known."""
        if self.samples is None or not self.has_terms():
            return self.resampling.count if self.value.count is None and self.resampling else self.value.count
        share = self.share()
        if share is not None:
            return int(share[1].sum())
        return len(self.samples) if self.members is None else int(self.members.sum())

    def share(self, *, lenient: bool = False) -> tuple[Array, Array] | None:
        """Which samples are yes, and among which; None where the value is no share of samples, or `factor` times one.

        Recall is one: the true positives among the positives. Numbers are yes or no where they are 0 and 1.

        Args:
            lenient: numbers that are all 0, or all 1, are yes or no, too: known of another value of this metric.
        """
        assert self.samples is not None, self.value.name
        if self.value.scale:
            return None
        yes = _yes_or_no(self.samples.packed(self.value.numerator), 1 if lenient else 2)
        if yes is None:
            return None
        among = (
            _yes_or_no(self.samples.packed(self.value.denominator), 1)
            if self.value.denominator
            else np.ones(len(yes), bool)
        )
        if among is None or (yes & ~among).any():
            return None
        return (yes, among) if self.members is None else (yes[self.members], among[self.members])

    def terms(self) -> Array:
        """What each sample contributes: booleans, or numbers whose mean is the value.

        A quotient R of two means has no such numbers. Its linearised terms ``R + (x - R w) / mean(w)`` have the mean R
        and, for many samples, its spread (Cochran 1977, Sampling Techniques, section 6.3). So have those of a function
        f of a mean m, ``f(m) + f'(m) (x - m)``.
        """
        assert self.samples is not None, self.value.name
        if self.value.scale:
            means = replace(self.of_mean(), factor=1.0).terms().astype(np.float64)
            return self.factor * SCALES[self.value.scale].around(means, float(means.mean()))
        if self.is_of_booleans:
            column = self.samples.column(self.value.numerator)
            return column if self.members is None else column[self.members]
        terms, weights = terms_of(self.samples, self.value.numerator, self.value.denominator, self.members)
        if not self.value.denominator:
            return self.factor * terms
        with np.errstate(all="ignore"):
            quotient = terms.sum() / weights.sum()
            return np.asarray(self.factor * (quotient + (terms - quotient * weights) / weights.mean()))

    @property
    def is_large(self) -> bool:
        """Whether it rests on more samples than should be in memory as floats."""
        return self.samples is not None and self.members is None and len(self.samples) > IN_MEMORY

    @property
    def is_of_booleans(self) -> bool:
        """Whether `terms` are booleans."""
        if not self.has_terms() or self.value.denominator or self.factor != 1:
            return False
        assert self.samples is not None, self.value.name
        return not self.value.scale and self.samples.packed(self.value.numerator).is_yes_or_no

    def term_chunks(self) -> Iterator[Array]:
        """`terms` as floats; where there are many samples, some thousand of them at a time."""
        assert self.samples is not None, self.value.name
        if not self.is_large:
            yield self.terms().astype(np.float64)
            return
        if self.value.scale:
            plain = replace(self.of_mean(), factor=1.0)
            mean = exact_sum(plain.term_chunks()) / len(self.samples)
            for chunk in plain.term_chunks():
                yield self.factor * SCALES[self.value.scale].around(chunk, mean)
            return
        if not self.value.denominator:
            for chunk in self.samples.packed(self.value.numerator).chunks():
                yield self.factor * chunk.astype(np.float64)
            return
        total = exact_sum(terms for terms, _ in self._term_pairs())
        weight = exact_sum(weights for _, weights in self._term_pairs())
        with np.errstate(all="ignore"):
            quotient = float(np.divide(total, weight))
            mean = weight / len(self.samples)
            for terms, weights in self._term_pairs():
                yield self.factor * (quotient + (terms - quotient * weights) / mean)

    def _term_pairs(self) -> Iterator[tuple[Array, Array]]:
        """Terms and weights of a quotient, some thousand at a time."""
        assert self.samples is not None, self.value.name
        columns = [self.samples.packed(name) for name in (self.value.numerator, self.value.denominator)]
        for terms, weights in zip(*(each.chunks() for each in columns), strict=True):
            yield terms.astype(np.float64), weights.astype(np.float64)

    def effective_count(self) -> float:
        """How many samples of equal weight say as much: ``(Σ w)² / Σ w²`` (Kish 1965, Survey Sampling, section 8.2)."""
        assert self.samples is not None, self.value.name
        if self.is_large:
            return self._effective_count_of_many()
        _, weights = terms_of(self.samples, self.value.numerator, self.value.denominator, self.members)
        largest = float(np.abs(weights).max(initial=0))
        if not largest or not math.isfinite(largest):
            return 0.0
        scaled = weights / largest
        return float(scaled.sum() ** 2 / (scaled**2).sum())

    def _effective_count_of_many(self) -> float:
        assert self.samples is not None, self.value.name
        if not self.value.denominator:
            return float(len(self.samples))
        largest = max(float(np.abs(weights).max(initial=0)) for _, weights in self._term_pairs())
        if not largest or not math.isfinite(largest):
            return 0.0
        weight = exact_sum(weights / largest for _, weights in self._term_pairs())
        return weight**2 / exact_sum((weights / largest) ** 2 for _, weights in self._term_pairs())


def _first(values: Sequence[Value], name: str) -> Value:
    return next(value for value in values if value.name == name)


def _yes_or_no(column: PackedArray, least: int) -> Array | None:
    """A column as booleans; None where it holds other numbers than 0 and 1, or fewer different ones than ``least``."""
    if column.is_yes_or_no:
        return column.values
    parts = [np.zeros(0, bool)]
    for chunk in column.chunks():
        yes = chunk == 1
        if not (yes | (chunk == 0)).all():
            return None
        parts.append(yes)
    yes = np.concatenate(parts)
    return None if int(yes.any()) + int(not yes.all()) < least else yes


def why_not_the_same(a: MeasuredValue, b: MeasuredValue) -> str:
    """Why two values of one name are different metrics; empty where nothing says so.

    Example:
        >>> a, b = Value("loss", 1.0, higher_is_better=False), Value("loss", 1.0, higher_is_better=True)
        >>> why_not_the_same(MeasuredValue(a), MeasuredValue(b))
        'lower values are better in one, higher values in the other'
    """
    first, second = a.value, b.value
    directions = first.higher_is_better, second.higher_is_better
    if None not in directions and directions[0] != directions[1]:
        words = [{True: "higher", False: "lower", None: ""}[each] for each in directions]
        return f"{words[0]} values are better in one, {words[1]} values in the other"
    if first.numerator and second.numerator and first.scale != second.scale:
        scales = (each.scale or "mean" for each in (first, second))
        return f"{' in one, '.join(scales)} in the other"
    for what in ("numerator", "denominator"):
        names = getattr(first, what), getattr(second, what)
        if first.numerator and second.numerator and names[0] != names[1]:
            return f"{names[0]!r} is counted in one, {names[1]!r} in the other"
    if a.has_terms() and b.has_terms() and not _may_be_of_one_kind(a, b):
        return "samples contribute yes or no in one, numbers in the other"
    return ""


def _may_be_of_one_kind(a: MeasuredValue, b: MeasuredValue) -> bool:
    """False where the samples of one are booleans, and those of the other are numbers that are not all 0 or 1."""
    columns = [each.samples.packed(each.value.numerator) for each in (a, b) if each.samples is not None]
    kinds = {column.is_yes_or_no for column in columns}
    return len(kinds) == 1 or all(_yes_or_no(column, 0) is not None for column in columns)
