"""What samples say of one value, and of the difference of two: the test and the interval that fit what is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from assay.report import resampling, statistics
from assay.report.distributions import normal_quantile, normal_two_sided
from assay.report.packed import Array
from assay.report.samples import Samples, align, is_known_to_be_the_same
from assay.report.value import Value, columns_of


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
    """

    lower: float | None = None
    upper: float | None = None
    p: float | None = None
    effect: float | None = None
    scale: str = ""
    method: str = ""
    paired: bool = False
    note: str = ""


@dataclass(frozen=True)
class Measured:
    """A value, and the samples behind it where they were kept.

    Args:
        value: the value.
        samples: the samples of its section.
        members: which of them it rests on, as a mask; all unless given.
    """

    value: Value
    samples: Samples | None = None
    members: Array | None = None

    def has_terms(self) -> bool:
        """Whether it is known what each sample contributed."""
        return bool(self.value.column) and self.samples is not None

    def share(self) -> tuple[Array, Array] | None:
        """Which samples are yes, and among which; None where the value is no share of samples.

        Recall is one: the true positives among the positives.
        """
        assert self.samples is not None, self.value.name
        yes = self.samples.column(self.value.column)
        among = self.samples.column(self.value.over) if self.value.over else np.ones(len(yes), dtype=bool)
        if yes.dtype.kind != "b" or among.dtype.kind != "b" or (yes & ~among).any():
            return None
        return (yes, among) if self.members is None else (yes[self.members], among[self.members])

    def terms(self) -> Array:
        """What each sample contributes: booleans, or numbers whose mean is the value.

        A quotient R of two means has no such numbers. Its linearised terms ``R + (x - R w) / mean(w)`` have the mean R
        and, for many samples, its spread (Cochran 1977, Sampling Techniques, section 6.3).
        """
        assert self.samples is not None, self.value.name
        column = self.samples.column(self.value.column)
        if column.dtype.kind == "b" and not self.value.over:
            return column if self.members is None else column[self.members]
        terms, weights = columns_of(self.samples, self.value.column, self.value.over, self.members)
        if not self.value.over:
            return terms
        with np.errstate(all="ignore"):
            quotient = terms.sum() / weights.sum()
            return np.asarray(quotient + (terms - quotient * weights) / weights.mean())


def interval_of(measured: Measured, level: float, seed: int = 0) -> Evidence:
    """The interval of one value: from its samples, else the stored one where it has the level asked for.

    Args:
        measured: the value.
        level: the confidence level.
        seed: where the random numbers of the bootstrap start.

    Returns:
        The interval and how it was found, or no interval and why.

    Example:
        >>> samples = Samples.pack(range(10), {"correct": [True] * 9 + [False]})
        >>> found = interval_of(Measured(Value("accuracy", 0.9, column="correct"), samples), 0.95)
        >>> round(found.lower, 4), found.method
        (0.5958, "Wilson's interval")
    """
    value = measured.value
    if measured.has_terms():
        share = measured.share()
        if share is None:
            return _interval_of_terms(measured.terms(), level, seed, _up_to(measured))
        lower, upper = statistics.wilson(int(share[0].sum()), int(share[1].sum()), level)
        return Evidence(lower, upper, method="Wilson's interval")
    if value.lower is None or value.upper is None:
        return Evidence(note="neither samples nor an interval are stored")
    if math.isnan(value.lower) or math.isnan(value.upper):
        return Evidence(note="the stored interval is undefined")
    if value.level is None:
        return Evidence(note="the level of the stored interval is not known")
    if value.level < level:
        return Evidence(note=f"the stored interval is of level {value.level:g}, not {level:g}")
    return Evidence(value.lower, value.upper, method=f"stored interval of level {value.level:g}")


def _interval_of_terms(terms: Array, level: float, seed: int, up_to: int) -> Evidence:
    if len(terms) < 2 or not np.isfinite(terms).all():
        return Evidence(note="there are fewer than two samples, or some are not finite")
    if (terms == terms[0]).all():
        return Evidence(note="all samples contribute the same, which says nothing of others")
    (lower, upper), method = resampling.interval(terms, level, seed, up_to)
    return Evidence(lower, upper, method=method)


def _up_to(measured: Measured) -> int:
    return resampling.UP_TO if measured.members is None else resampling.UP_TO_IN_SLICES


def why_not_the_same(a: Measured, b: Measured) -> str:
    """Why two values of one name are different metrics; empty where nothing says so.

    Example:
        >>> a, b = Value("loss", 1.0, better="lower"), Value("loss", 1.0, better="higher")
        >>> why_not_the_same(Measured(a), Measured(b))
        "'lower' is better in one, 'higher' in the other"
    """
    first, second = a.value, b.value
    if first.better and second.better and first.better != second.better:
        return f"{first.better!r} is better in one, {second.better!r} in the other"
    for what in ("column", "over"):
        names = getattr(first, what), getattr(second, what)
        if first.column and second.column and names[0] != names[1]:
            return f"{names[0]!r} is counted in one, {names[1]!r} in the other"
    if a.has_terms() and b.has_terms() and (a.terms().dtype != b.terms().dtype):
        return "samples contribute yes or no in one, numbers in the other"
    return ""


def difference(
    a: Measured, b: Measured, level: float = 0.95, seed: int = 0, whole: Array | str | None = None
) -> Evidence:
    """What is known of the difference of two values, the second minus the first.

    Paired by sample where that can be done; else unpaired, with the reason as note.

    Args:
        a: the first, the baseline.
        b: the second.
        level: the confidence level.
        seed: where random numbers start.
        whole: what `align` says of all samples of both, where that is known.

    Example:
        >>> of = lambda *right: Samples.pack(range(len(right)), {"correct": np.array(right, dtype=bool)})
        >>> a, b = (Measured(Value("accuracy", 0.5, column="correct"), of(1, 0, 1, 0)) for _ in range(2))
        >>> difference(a, b).p
        1.0
    """
    if not math.isfinite(a.value.value) or not math.isfinite(b.value.value):
        return Evidence(note="undefined or infinite on one side")
    if not a.has_terms() or not b.has_terms():
        return _of_intervals(a, b, level)
    assert a.samples is not None, a.value.name
    assert b.samples is not None, b.value.name
    terms = a.terms(), b.terms()
    if not all(len(each) and np.isfinite(each).all() for each in terms):
        return Evidence(note="no samples, or some contribute nothing finite")
    position = pair(a, b, whole)
    shares = a.share(), b.share()
    if isinstance(position, str):
        found = _unpaired_shares(shares, level) or _unpaired(*terms, level)
        return replace(found, note=f"not paired: {position}")
    found = _paired_shares(shares, position, level) or _paired(terms[0], terms[1][position], level, seed, _up_to(a))
    if is_known_to_be_the_same(a.samples, b.samples):
        return found
    alone = "paired by ids alone: no targets, no name of the data"
    return replace(found, note=f"{found.note}; {alone}" if found.note else alone)


def pair(a: Measured, b: Measured, whole: Array | str | None = None) -> Array | str:
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
        >>> pair(*(Measured(Value("x", 2.0, column="x"), each, mask) for each, mask in zip(samples, masks)))
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


_Shares: TypeAlias = tuple[tuple[Array, Array] | None, tuple[Array, Array] | None]


def _paired_shares(shares: _Shares, position: Array, level: float) -> Evidence | None:
    """Two shares among the same samples; None where they are none."""
    if shares[0] is None or shares[1] is None:
        return None
    (a, among), (b, other) = shares[0], (each[position] for each in shares[1])
    if not np.array_equal(among, other):
        return None
    down, up = int((a & ~b).sum()), int((~a & b).sum())
    lower, upper = statistics.paired_proportions(down, up, int(among.sum()), level)
    p, odds = statistics.mcnemar(down, up), statistics.odds_ratio(down, up)
    method = "McNemar mid-p, Bonett-Price interval"
    return Evidence(lower, upper, p, _known(odds), "odds ratio", method, paired=True)


def _unpaired_shares(shares: _Shares, level: float) -> Evidence | None:
    if shares[0] is None or shares[1] is None:
        return None
    s1, n1, s2, n2 = (int(each.sum()) for share in (shares[0], shares[1]) for each in share)
    p, (lower, upper) = statistics.two_proportions(s1, n1, s2, n2, level)
    effect = statistics.cohens_h(s1 / n1, s2 / n2)
    return Evidence(lower, upper, p, effect, "Cohen's h", "score test, Newcombe's interval")


def _paired(a: Array, b: Array, level: float, seed: int, up_to: int) -> Evidence:
    apart = b - a
    if len(apart) < 2:
        return Evidence(paired=True, note="there are fewer than two samples")
    p, test = resampling.paired_test(apart, seed, up_to)
    if (apart == apart[0]).all():  # nothing to draw from
        same = float(apart[0])
        return Evidence(same, same, p, None, "", test, paired=True)
    (lower, upper), how = resampling.interval(apart, level, seed, up_to)
    return Evidence(lower, upper, p, statistics.cohens_dz(apart), "Cohen's dz", f"{test}, {how}", paired=True)


def _unpaired(a: Array, b: Array, level: float) -> Evidence:
    if min(len(a), len(b)) < 2:
        return Evidence()
    p, (lower, upper) = statistics.welch(a, b, level)
    return Evidence(lower, upper, p, _known(statistics.cohens_d(a, b)), "Cohen's d", "Welch's test and interval")


def _of_intervals(a: Measured, b: Measured, level: float) -> Evidence:
    """Two intervals as if they were of independent and normal values: the most that can be said without samples."""
    errors = [_standard_error(each) for each in (a, b)]
    if errors[0] is None or errors[1] is None:
        return Evidence(note="neither samples nor intervals of a known level on both sides")
    error, apart = math.hypot(errors[0], errors[1]), b.value.value - a.value.value
    half = error * normal_quantile((1 + level) / 2)
    p = normal_two_sided(apart / error) if error else float(apart == 0)
    note = "not paired: no samples on both sides; intervals taken as normal and independent"
    return Evidence(apart - half, apart + half, p, method="z test of two intervals", note=note)


def _standard_error(measured: Measured) -> float | None:
    value = measured.value
    if measured.has_terms():
        terms = measured.terms().astype(np.float64)
        return float(terms.std(ddof=1)) / math.sqrt(len(terms)) if len(terms) > 1 and np.isfinite(terms).all() else None
    if value.lower is None or value.upper is None or value.level is None:
        return None
    width = value.upper - value.lower
    return width / (2 * normal_quantile((1 + value.level) / 2)) if math.isfinite(width) else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
