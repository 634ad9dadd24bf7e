"""A value of a report with the samples behind it, and what each of them contributes to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.report.packed_array import Array
from assay.report.resampling import Resampling
from assay.report.samples import Samples
from assay.report.section import Section
from assay.report.slices import Slice
from assay.report.value import Value, terms_of


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
        lower, upper = (None if end is None else factor * end for end in (value.lower, value.upper))
        return replace(self, value=replace(value, value=factor * value.value, lower=lower, upper=upper), factor=factor)

    def has_terms(self) -> bool:
        """Whether it is known what each sample contributed."""
        return bool(self.value.numerator) and self.samples is not None

    def share(self, *, lenient: bool = False) -> tuple[Array, Array] | None:
        """Which samples are yes, and among which; None where the value is no share of samples.

        Recall is one: the true positives among the positives. Numbers are yes or no where they are 0 and 1.

        Args:
            lenient: numbers that are all 0, or all 1, are yes or no, too: known of another value of this metric.
        """
        assert self.samples is not None, self.value.name
        if self.factor != 1:
            return None
        yes = _yes_or_no(self.samples.column(self.value.numerator), 1 if lenient else 2)
        if yes is None:
            return None
        among = (
            _yes_or_no(self.samples.column(self.value.denominator), 1)
            if self.value.denominator
            else np.ones(len(yes), bool)
        )
        if among is None or (yes & ~among).any():
            return None
        return (yes, among) if self.members is None else (yes[self.members], among[self.members])

    def terms(self) -> Array:
        """What each sample contributes: booleans, or numbers whose mean is the value.

        A quotient R of two means has no such numbers. Its linearised terms ``R + (x - R w) / mean(w)`` have the mean R
        and, for many samples, its spread (Cochran 1977, Sampling Techniques, section 6.3).
        """
        assert self.samples is not None, self.value.name
        column = self.samples.column(self.value.numerator)
        if column.dtype.kind == "b" and not self.value.denominator and self.factor == 1:
            return column if self.members is None else column[self.members]
        terms, weights = terms_of(self.samples, self.value.numerator, self.value.denominator, self.members)
        if not self.value.denominator:
            return self.factor * terms
        with np.errstate(all="ignore"):
            quotient = terms.sum() / weights.sum()
            return np.asarray(self.factor * (quotient + (terms - quotient * weights) / weights.mean()))

    def effective_count(self) -> float:
        """How many samples of equal weight say as much: ``(Σ w)² / Σ w²`` (Kish 1965, Survey Sampling, section 8.2)."""
        assert self.samples is not None, self.value.name
        _, weights = terms_of(self.samples, self.value.numerator, self.value.denominator, self.members)
        largest = float(np.abs(weights).max(initial=0))
        if not largest or not math.isfinite(largest):
            return 0.0
        scaled = weights / largest
        return float(scaled.sum() ** 2 / (scaled**2).sum())


def _first(values: Sequence[Value], name: str) -> Value:
    return next(value for value in values if value.name == name)


def _yes_or_no(column: Array, least: int) -> Array | None:
    """A column as booleans; None where it holds other numbers than 0 and 1, or fewer different ones than ``least``."""
    if column.dtype.kind == "b":
        return column
    yes = column == 1
    if not (yes | (column == 0)).all() or len(np.unique(yes)) < least:
        return None
    return np.asarray(yes)


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
    for what in ("numerator", "denominator"):
        names = getattr(first, what), getattr(second, what)
        if first.numerator and second.numerator and names[0] != names[1]:
            return f"{names[0]!r} is counted in one, {names[1]!r} in the other"
    if a.has_terms() and b.has_terms() and not _may_be_of_one_kind(a, b):
        return "samples contribute yes or no in one, numbers in the other"
    return ""


def _may_be_of_one_kind(a: MeasuredValue, b: MeasuredValue) -> bool:
    """False where the samples of one are booleans, and those of the other are numbers that are not all 0 or 1."""
    columns = [each.samples.column(each.value.numerator) for each in (a, b) if each.samples is not None]
    kinds = {column.dtype.kind == "b" for column in columns}
    return len(kinds) == 1 or all(_yes_or_no(column, 0) is not None for column in columns)
