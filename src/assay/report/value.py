"""A number with its name, and which samples it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field

import numpy as np

from assay._records import OPTIONAL, Record
from assay.errors import ConfigError, describe
from assay.render.text import interval, number
from assay.report.per_sample.packed_array import Array, PackedArray
from assay.report.per_sample.samples import Samples
from assay.stats.scales import SCALES

CLOSE = 1e-5
"""How near a value is to the mean of its column, against the mean size of what is added: terms may be float32."""


class Value(Record):
    """One number with its name.

    Args:
        name: what was measured.
        value: the number, in full precision; NaN where it is undefined.
        lower: the lower end of an interval that goes with it, if there is one.
        upper: the upper end.
        count: how many samples it rests on.
        note: what a reader must know: what the interval is, why the value is undefined.
        confidence_level: the confidence level of the interval, between 0 and 1, where that is known.
        higher_is_better: whether higher values are better; None where that is not known.
        numerator: the column of `Samples` that the value is the mean of; empty where it is no mean over samples.
        denominator: the column by whose mean that mean is divided: recall is ``true positives`` over ``positives``.
        replicates: what the value changes by in each resample of the groups of samples, as float32, so that values of
            two reports can be paired; see `assay.report.per_sample.resampling`.
        scale: the function of the mean that the value is, of `assay.stats.scales.SCALES`: ``"root"`` of a root mean
            squared error; empty where it is the mean itself.
        safe_lower: the lower end by which a gate decides, where that of the interval may miss more often than its level
            says; -inf where no number is known that does not.
        safe_upper: the upper end, likewise.
        signature: the metric with all its options, the number of samples and the version of assay, in one line.
        not_compared: of a value of a slice, why it is never named as the worst: its samples lack classes over which the
            mean is; empty where it is compared.
        biased_upwards: few samples give higher values on average, as of mean average precision, so a gate takes ends of
            differences that are further out.

    Raises:
        ConfigError: the confidence level is invalid, there is a ``denominator`` without a ``numerator``, or no such
            ``scale``.

    Example:
        >>> Value("accuracy", 0.94, count=450).value
        0.94
    """

    name: str
    value: float
    lower: float | None = None
    upper: float | None = None
    count: int | None = None
    note: str = ""
    confidence_level: float | None = None
    higher_is_better: bool | None = None
    numerator: str = ""
    denominator: str = ""
    replicates: PackedArray | None = None
    scale: str = field(default="", metadata=OPTIONAL)
    safe_lower: float | None = field(default=None, metadata=OPTIONAL)
    safe_upper: float | None = field(default=None, metadata=OPTIONAL)
    signature: str = field(default="", metadata=OPTIONAL)
    not_compared: str = field(default="", metadata=OPTIONAL)
    biased_upwards: bool = field(default=False, metadata=OPTIONAL)

    def _check(self) -> None:
        if self.scale not in SCALES:
            known = ", ".join(filter(None, SCALES))
            raise ConfigError(describe("Value.scale", repr(self.scale), f"one of {known}", "Leave it out of a mean"))
        if self.confidence_level is not None:
            check_confidence_level("Value.confidence_level", self.confidence_level)
        if self.denominator and not self.numerator:
            got, do = f"{self.denominator!r} without a numerator", "Pass the column to divide as numerator="
            raise ConfigError(describe("Value.denominator", got, "a numerator, too", do))

    def __float__(self) -> float:
        """The number: ``float(report["accuracy"])``."""
        return self.value

    def __repr__(self) -> str:
        """One line: the name, the number, and its interval."""
        shown = f"{self.name} {number(self.value)} {interval(self.lower, self.upper)}".rstrip()
        return f"<Value {shown}>"

    def check_terms(self, samples: Samples | None, members: Array | None = None) -> None:
        """Raise where this is not the mean, or the quotient of means, of the columns that it names.

        Args:
            samples: what holds the columns.
            members: which of the samples count, as a mask; all by default.

        Raises:
            ConfigError: there is no such column, or its mean is another number.
        """
        if not self.numerator:
            return
        if samples is None:
            got = f"column {self.numerator!r} of no samples"
            raise ConfigError(describe(f"Value {self.name!r}", got, "samples in the section", "Pass samples="))
        if samples.is_stored:
            return
        with np.errstate(all="ignore"):
            *totals, divisor = _totals(samples, self.numerator, self.denominator, members)
            value = float(SCALES[self.scale].mean(np.float64(self.value)))
            mean, size = (float(np.divide(total, divisor)) for total in totals)
        if math.isnan(mean) or math.isinf(mean):
            fits = math.isnan(value) or value == mean
        else:
            fits = abs(value - mean) <= CLOSE * abs(size)
        if not fits:
            of = f"the {self.scale} of the mean" if self.scale else "the mean"
            of += f" of {self.numerator!r}" + (f" over that of {self.denominator!r}" if self.denominator else "")
            do = "Name the column that it is the mean of, or none"
            expected = f"{float(SCALES[self.scale].of(mean))!r}, {of}"
            raise ConfigError(describe(f"Value {self.name!r}", self.value, expected, do))


def check_confidence_level(what: str, level: float) -> None:
    """Raise where a confidence level is invalid.

    Raises:
        ConfigError: it is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ConfigError(describe(what, level, "a number between 0 and 1", "Pass 0.95 for 95 %"))


def methods(values: Iterable[Value]) -> tuple[str, ...]:
    """How the intervals of values were found, metrics of one method together: the lines below a table of them.

    Example:
        >>> ends = {"lower": 0.9, "upper": 0.96, "confidence_level": 0.95, "note": "Wilson's interval"}
        >>> methods([Value("accuracy", 0.94, **ends), Value("recall", 0.93, **ends), Value("F1", 0.9)])
        ("Intervals of 95 %: accuracy, recall: Wilson's interval.",)
    """
    levels: dict[float | None, dict[str, dict[str, None]]] = {}
    for value in values:
        if value.lower is not None and value.upper is not None:
            levels.setdefault(value.confidence_level, {}).setdefault(value.note, {})[value.name] = None
    lines = []
    for level, notes in levels.items():
        of = "Intervals" if level is None else f"Intervals of {100 * level:g} %"
        texts = [f"{', '.join(names)}: {note}" for note, names in notes.items() if note]
        lines.append(f"{of}: {'; '.join(texts)}." if texts else f"{of}.")
    return tuple(lines)


def terms_of(samples: Samples, numerator: str, denominator: str, members: Array | None = None) -> tuple[Array, Array]:
    """The terms and the weights of a value, as float64; the weights are ones where there is no denominator."""
    chosen = slice(None) if members is None else members
    terms = samples.column(numerator)[chosen].astype(np.float64)
    return terms, samples.column(denominator)[chosen].astype(np.float64) if denominator else np.ones(len(terms))


def _totals(samples: Samples, numerator: str, denominator: str, members: Array | None) -> tuple[float, float, float]:
    """The sum of the terms of a value, that of their magnitudes, and what both are divided by."""
    column = samples.column(numerator)
    if column.dtype == np.bool_ and not denominator:
        held = int(np.count_nonzero(column if members is None else column & members))
        return held, held, len(column) if members is None else int(np.count_nonzero(members))
    terms, weights = terms_of(samples, numerator, denominator, members)
    divisor = float(weights.sum()) if denominator else len(terms)
    return float(terms.sum()), float(np.abs(terms).sum()), divisor
