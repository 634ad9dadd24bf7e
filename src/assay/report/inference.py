"""What samples say of one value, and of the difference of two: the test and the interval that fit what is stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from assay.report.packed_array import Array
from assay.report.resampling import Resampling, why_not_alike
from assay.report.samples import Samples, align, is_known_to_be_the_same
from assay.report.section import Section
from assay.report.slices import Slice
from assay.report.value import Value, terms_of
from assay.stats import effect_sizes, hypothesis_tests
from assay.stats.bootstrap import LEAST, paired_bootstrap
from assay.stats.distributions import normal_quantile, normal_two_sided
from assay.stats.intervals import FEWEST, clopper_pearson, mean_interval, paired_proportions, risky_end

UP_TO = 10_000
"""Samples from which on paired differences are tested by Student's t: their mean is as good as normal."""

UP_TO_IN_SLICES = 1_000
"""The same where a mean is one of many, those of the slices of a section: flipping signs for each would take long."""

_ALIKE = 1e-6  # terms may be float32: what differs by less is rounding


@dataclass(frozen=True)
class Evidence:
    """What is known of a number besides the number.

    Args:
        lower: the lower end of its interval; None where there is none.
        upper: the upper end.
        p: how likely a difference at least as large is, were there none; None where that was not tested.
        effect: the size of the difference on the scale that ``scale`` names.
        scale: what the effect size is.
        method: how interval and p were found.
        paired: whether the same samples were compared.
        note: what could not be done, and why.
        risky: the end of the interval that may miss more often than its level says: ``"lower"``, ``"upper"`` or
            ``"both"``; empty where neither does. A gate passes nothing by such an end.
    """

    lower: float | None = None
    upper: float | None = None
    p: float | None = None
    effect: float | None = None
    scale: str = ""
    method: str = ""
    paired: bool = False
    note: str = ""
    risky: str = ""


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


def interval_of(measured: MeasuredValue, confidence_level: float) -> Evidence:
    """The interval of one value: from its samples, else the stored one where it has the level asked for.

    Args:
        measured: the value.
        confidence_level: the confidence level.

    Returns:
        The interval and how it was found, or no interval and why.

    Example:
        >>> samples = Samples.pack(range(10), {"correct": [True] * 9 + [False]})
        >>> found = interval_of(MeasuredValue(Value("accuracy", 0.9, numerator="correct"), samples), 0.95)
        >>> round(found.lower, 3), found.method
        (0.555, 'Clopper-Pearson interval')
    """
    value = measured.value
    if measured.has_terms():
        share = measured.share()
        if share is None:
            return _interval_of_terms(measured, confidence_level)
        lower, upper = clopper_pearson(int(share[0].sum()), int(share[1].sum()), confidence_level)
        return Evidence(lower, upper, method="Clopper-Pearson interval")
    if value.lower is None or value.upper is None:
        return Evidence(note="neither samples nor an interval are stored")
    if math.isnan(value.lower) or math.isnan(value.upper):
        return Evidence(note="the stored interval is undefined")
    if not value.lower <= value.value <= value.upper:
        return Evidence(note=f"the stored interval [{value.lower:g}, {value.upper:g}] does not contain the value")
    if value.lower == value.upper:
        return Evidence(note="the stored interval is a point, which says nothing of other samples")
    if value.confidence_level is None:
        return Evidence(note="the level of the stored interval is not known")
    if value.confidence_level < confidence_level:
        return Evidence(
            note=f"the stored interval is of confidence level {value.confidence_level:g}, not {confidence_level:g}"
        )
    method = f"stored interval of confidence level {value.confidence_level:g}"
    return Evidence(value.lower, value.upper, method=method, risky="both" if _is_few(value.count) else "")


def _is_few(count: int | None) -> bool:
    return count is not None and count < FEWEST


def _interval_of_terms(measured: MeasuredValue, confidence_level: float) -> Evidence:
    terms = measured.terms()
    if len(terms) < 2 or not np.isfinite(terms).all():
        return Evidence(note="there are fewer than two samples, or some are not finite")
    if _are_alike(terms):
        return Evidence(note="all samples contribute the same, which says nothing of others")
    count = measured.effective_count()
    lower, upper = mean_interval(terms, confidence_level, count)
    return Evidence(lower, upper, method=MEAN, risky=risky_end(terms, count))


MEAN = "Student's interval, corrected for skewness"
"""How the interval of a mean of numbers is found."""


def _are_alike(terms: Array, size: float | None = None) -> bool:
    """Whether numbers differ by rounding only; ``size`` is that of the numbers that they were computed from."""
    scale = float(np.abs(terms).max()) if size is None else size
    return float(np.ptp(terms)) <= _ALIKE * scale


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


REPORT, SAMPLES = "report", "samples"
"""What is equal of two sections: the whole report, or all that was stored of each sample."""


def have_equal_samples(a: Samples | None, b: Samples | None, position: Array | str | None) -> bool:
    """Whether all that was stored of each sample is the same in two reports: columns and decisions.

    That takes decisions or numbers: of yes or no alone, different models are often right on the same samples.

    Args:
        a: the samples of one section.
        b: those of the other.
        position: what `align` says of them.

    Example:
        >>> first, second = (Samples.pack(ids, {"loss": np.array(ids) / 7}) for ids in ([0, 1], [1, 0]))
        >>> have_equal_samples(first, second, align(first, second))
        True
    """
    if a is None or b is None or position is None or isinstance(position, str):
        return False
    columns = {column.name: column.values.values for column in a.columns}
    others = {column.name: column.values.values for column in b.columns}
    if columns.keys() != others.keys() or (a.decision is None) != (b.decision is None):
        return False
    pairs = [(values, others[name]) for name, values in columns.items()]
    if a.decision is not None and b.decision is not None:
        pairs.append((a.decision.values, b.decision.values))
    elif all(values.dtype.kind == "b" for values in columns.values()):
        return False
    return all(_are_equal(first, second[position]) for first, second in pairs)


def _are_equal(a: Array, b: Array) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f")


def _have_equal_inputs(a: MeasuredValue, b: MeasuredValue, whole: Array | str | None, equal: str) -> bool:
    """Whether two values are the same number of the same inputs, in sections of which ``equal`` says what is equal.

    A value that is no mean over samples must also have the same interval, or samples that hold numbers and not only
    decisions: equal decisions may come from other scores.
    """
    first, second = a.value, b.value
    if not equal or first.value != second.value:
        return False
    if a.samples is not None and isinstance(pair(a, b, whole), str):
        return False
    if equal == REPORT or (first.numerator and second.numerator):
        return True
    if (first.lower, first.upper, first.confidence_level) != (second.lower, second.upper, second.confidence_level):
        return False
    return first.lower is not None or _hold_numbers(a.samples)


def _hold_numbers(samples: Samples | None) -> bool:
    if samples is None:
        return False
    series = [column.values for column in samples.columns]
    series += [] if samples.decision is None else [samples.decision]
    return any(each.values.dtype.kind == "f" for each in series)


def difference(
    a: MeasuredValue,
    b: MeasuredValue,
    confidence_level: float = 0.95,
    seed: int = 0,
    whole: Array | str | None = None,
    *,
    equal: str = "",
) -> Evidence:
    """What is known of the difference of two values, the second minus the first.

    Paired by sample where that can be done; else unpaired, with the reason as note. The difference of equal inputs is 0
    exactly.

    Args:
        a: the first, the baseline.
        b: the second.
        confidence_level: the confidence level.
        seed: where random numbers start.
        whole: what `align` says of all samples of both, where that is known.
        equal: `REPORT` where both are of the same report, `SAMPLES` where all that was stored of each sample is the
            same (see `have_equal_samples`), else empty.

    Example:
        >>> of = lambda *right: Samples.pack(range(len(right)), {"correct": np.array(right, dtype=bool)})
        >>> a, b = (MeasuredValue(Value("accuracy", 0.5, numerator="correct"), of(1, 0, 1, 0)) for _ in range(2))
        >>> difference(a, b).p
        1.0
    """
    if not math.isfinite(a.value.value) or not math.isfinite(b.value.value):
        return Evidence(note="undefined or infinite on one side")
    if _have_equal_inputs(a, b, whole, equal):
        return Evidence(0.0, 0.0, 1.0, method="equal inputs", paired=True)
    if not a.has_terms() or not b.has_terms():
        why = _why_not_resampled_alike(a, b)
        return _of_intervals(a, b, why, confidence_level) if why else _of_replicates(a, b, confidence_level)
    assert a.samples is not None, a.value.name
    assert b.samples is not None, b.value.name
    terms = a.terms(), b.terms()
    if not all(len(each) and np.isfinite(each).all() for each in terms):
        return Evidence(note="no samples, or some contribute nothing finite")
    position = pair(a, b, whole)
    shares = _shares(a, b)
    if isinstance(position, str):
        evidence = _unpaired_shares(shares, confidence_level) or _unpaired(a, b, confidence_level)
        return replace(evidence, note="; ".join(part for part in (f"not paired: {position}", evidence.note) if part))
    evidence = _paired_shares(shares, position, confidence_level) or _paired(a, b, position, confidence_level, seed)
    if is_known_to_be_the_same(a.samples, b.samples):
        return evidence
    alone = "paired by ids alone: no targets, no name of the data"
    return replace(evidence, note=f"{evidence.note}; {alone}" if evidence.note else alone)


def pair(a: MeasuredValue, b: MeasuredValue, whole: Array | str | None = None) -> Array | str:
    """Which terms of ``b`` belong to the samples of the terms of ``a``.

    Args:
        a: a value with its samples, on all of them or on a slice.
        b: another, on the same slice.
        whole: what `align` says of all samples of both, where that is known.

    Returns:
        For each term of ``a`` the position of its partner, or why there are none, as a part of a sentence.

    Example:
        >>> samples = Samples.pack([7, 8, 9], {"x": [1.0, 2.0, 3.0]}), Samples.pack([9, 8, 7], {"x": [3.0, 2.0, 1.0]})
        >>> masks = np.array([True, False, True]), np.array([True, False, True])
        >>> pair(*(MeasuredValue(Value("x", 2.0, numerator="x"), each, mask) for each, mask in zip(samples, masks)))
        array([1, 0])
    """
    assert a.samples is not None, a.value.name
    assert b.samples is not None, b.value.name
    position = align(a.samples, b.samples) if whole is None else whole
    if isinstance(position, str) or (a.members is None and b.members is None):
        return position
    first, second = (np.ones(len(position), bool) if m is None else m for m in (a.members, b.members))
    if not np.array_equal(first, second[position]):
        return "the slice holds other samples in the two"
    return np.asarray((np.cumsum(second) - 1)[position[first]])


_Shares: TypeAlias = tuple[tuple[Array, Array], tuple[Array, Array]] | None


def _shares(a: MeasuredValue, b: MeasuredValue) -> _Shares:
    """Both values as shares of samples; None where one is none."""
    first, second = a.share(), b.share()
    if (first is None) != (second is None):
        first, second = a.share(lenient=True), b.share(lenient=True)
    return None if first is None or second is None else (first, second)


def _paired_shares(shares: _Shares, position: Array, confidence_level: float) -> Evidence | None:
    """Two shares among the same samples; None where they are none."""
    if shares is None:
        return None
    (a, among), (b, other) = shares[0], (each[position] for each in shares[1])
    if not np.array_equal(among, other):
        return None
    down, up = int((a & ~b).sum()), int((~a & b).sum())
    lower, upper = paired_proportions(down, up, int(among.sum()), confidence_level)
    p, odds = hypothesis_tests.mcnemar(down, up), effect_sizes.odds_ratio(down, up)
    method = "McNemar mid-p, Bonett-Price interval"
    return Evidence(lower, upper, p, _none_if_nan(odds), "odds ratio", method, paired=True)


def _unpaired_shares(shares: _Shares, confidence_level: float) -> Evidence | None:
    if shares is None:
        return None
    s1, n1, s2, n2 = (int(each.sum()) for share in shares for each in share)
    if not n1 or not n2:
        return Evidence(note="no samples on one side")
    p, (lower, upper) = hypothesis_tests.two_proportions(s1, n1, s2, n2, confidence_level)
    effect = effect_sizes.cohens_h(s1 / n1, s2 / n2)
    return Evidence(lower, upper, p, effect, "Cohen's h", "score test, Newcombe's interval")


def _paired(a: MeasuredValue, b: MeasuredValue, position: Array, confidence_level: float, seed: int) -> Evidence:
    first, second = a.terms().astype(np.float64), b.terms()[position].astype(np.float64)
    apart = second - first
    if len(apart) < 2:
        return Evidence(paired=True, note="there are fewer than two samples")
    p, test = hypothesis_tests.paired_test(apart, seed, UP_TO if a.members is None else UP_TO_IN_SLICES)
    if _are_alike(apart, float(max(np.abs(first).max(), np.abs(second).max()))):
        note = "all samples differ by the same, which says nothing of others"
        return Evidence(p=p, method=test, paired=True, note=note if apart.any() else "no sample differs")
    count = min(a.effective_count(), b.effective_count())
    effect, risky = effect_sizes.cohens_dz(apart), risky_end(apart, count)
    return Evidence(
        *mean_interval(apart, confidence_level, count),
        p,
        effect,
        "Cohen's dz",
        f"{test}, {MEAN}",
        paired=True,
        risky=risky,
    )


def _unpaired(a: MeasuredValue, b: MeasuredValue, confidence_level: float) -> Evidence:
    first, second = a.terms(), b.terms()
    if min(len(first), len(second)) < 2:
        return Evidence(note="there are fewer than two samples on one side")
    p, ends = hypothesis_tests.welch(first, second, confidence_level)
    effect = _none_if_nan(effect_sizes.cohens_d(first, second))
    if _are_alike(first) and _are_alike(second):
        note = "all samples of a side contribute the same, which says nothing of others"
        return Evidence(p=p, effect=effect, scale="Cohen's d", method="Welch's test", note=note)
    return Evidence(*ends, p, effect, "Cohen's d", "Welch's test and interval", risky=_risky_of_two(a, b))


def _risky_of_two(a: MeasuredValue, b: MeasuredValue) -> str:
    """Of the second minus the first: what is risky at the upper end of the first is so at the lower of both."""
    turned = {"lower": "upper", "upper": "lower"}
    ends = {risky_end(b.terms(), b.effective_count())}
    first = risky_end(a.terms(), a.effective_count())
    ends = (ends | {turned.get(first, first)}) - {""}
    return "both" if len(ends) > 1 else "".join(ends)


def _why_not_resampled_alike(a: MeasuredValue, b: MeasuredValue) -> str:
    """Why two values cannot be paired replicate by replicate; empty where they can."""
    without = [
        side
        for each, side in ((a, "the baseline"), (b, "the run"))
        if each.value.replicates is None or each.resampling is None
    ]
    if without:
        if a.has_terms() != b.has_terms():
            return f"{'the run' if a.has_terms() else 'the baseline'} has no per-sample values (evaluate both alike)"
        has = "have" if len(without) > 1 else "has"
        return f"{' and '.join(without)} {has} no replicates (evaluate a data set, or with ids=, and with intervals)"
    assert a.resampling is not None, a.value.name
    assert b.resampling is not None, b.value.name
    return why_not_alike(a.resampling, b.resampling)


def _of_replicates(a: MeasuredValue, b: MeasuredValue, confidence_level: float) -> Evidence:
    """Two values whose samples were resampled alike: the spread of their difference over the replicates."""
    assert a.value.replicates is not None, a.value.name
    assert b.value.replicates is not None, b.value.name
    assert a.resampling is not None, a.value.name
    assert b.resampling is not None, b.value.name
    count = min(len(a.value.replicates), len(b.value.replicates))  # the first draws are the same ones
    first, second = (each.factor * each.value.replicates.values[:count] for each in (a, b))  # type: ignore[union-attr]
    changes = second - first
    known, groups, apart = changes[np.isfinite(changes)], a.resampling.filled, b.value.value - a.value.value
    note = "" if a.resampling.targets and b.resampling.targets else "paired by ids alone: no targets"
    method = f"paired bootstrap: {count} draws of {groups} groups, Student's interval"
    if len(known) < max(LEAST, count / 2):
        return Evidence(paired=True, note="most replicates are undefined on one side")
    if _are_alike(known, max(abs(a.value.value), abs(b.value.value))):
        same = (
            "no replicate differs" if not apart else "all replicates differ by the same, which says nothing of others"
        )
        return Evidence(p=None if apart else 1.0, method=method, paired=True, note=same)
    ends = paired_bootstrap(apart, known, groups, confidence_level)
    risky = "both" if a.resampling.count < FEWEST else ""
    return Evidence(*ends, method=method, paired=True, note=note, risky=risky)


def _of_intervals(a: MeasuredValue, b: MeasuredValue, why_not_paired: str, confidence_level: float) -> Evidence:
    """Two intervals as if they were of independent and normal values: the most that can be said without samples."""
    for each, side in ((a, "the baseline"), (b, "the run")):
        if why := _why_no_error(each):
            return Evidence(note=f"not tested: {why} ({side})")
    error, apart = math.hypot(_standard_error(a), _standard_error(b)), b.value.value - a.value.value
    half = error * normal_quantile((1 + confidence_level) / 2)
    note = f"not paired: {why_not_paired}; intervals taken as normal and independent"
    risky = "both" if _is_few(a.value.count) or _is_few(b.value.count) else ""
    method = "z test of two intervals"
    return Evidence(apart - half, apart + half, normal_two_sided(apart / error), method=method, note=note, risky=risky)


def _why_no_error(measured: MeasuredValue) -> str:
    """Why the standard error of a value is not known; empty where it is."""
    if measured.has_terms():
        terms = measured.terms()
        if len(terms) < 2 or not np.isfinite(terms).all():
            return "there are fewer than two samples, or some are not finite"
        return "all samples contribute the same" if _are_alike(terms.astype(np.float64)) else ""
    value = measured.value
    if value.lower is None or value.upper is None or value.confidence_level is None:
        return "neither samples nor an interval of a known level"
    if not (math.isfinite(value.lower) and math.isfinite(value.upper)):
        return "the stored interval is undefined or infinite"
    if not value.lower <= value.value <= value.upper:
        return "the stored interval does not contain the value"
    return "the stored interval is a point" if value.lower == value.upper else ""


def _standard_error(measured: MeasuredValue) -> float:
    value = measured.value
    if measured.has_terms():
        terms = measured.terms().astype(np.float64)
        return float(terms.std(ddof=1)) / math.sqrt(len(terms))
    assert value.lower is not None, value.name
    assert value.upper is not None, value.name
    assert value.confidence_level is not None, value.name
    return (value.upper - value.lower) / (2 * normal_quantile((1 + value.confidence_level) / 2))


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value
