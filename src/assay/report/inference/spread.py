"""How much values vary from sample to sample: their standard errors, and what these say of differences."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from assay.report.inference.clusters import are_clustered, clustered_mean
from assay.report.inference.measured_value import MeasuredValue
from assay.report.per_sample.packed_array import Array
from assay.stats.clusters import ClusteredMean
from assay.stats.distributions import normal_quantile
from assay.stats.moments import SampleMoments
from assay.stats.power import Spread

LARGEST = np.float64(1e140)  # the squares of larger numbers, and sums of them, may be more than a float holds
NOT_FINITE = f"there are no samples, or some are not finite, or above {LARGEST:g}"
ROUNDING = 1e-6  # terms may be float32: what differs by less is rounding


def are_alike(terms: Array, size: float | None = None) -> bool:
    """Whether numbers differ by rounding only; ``size`` is that of the numbers that they were computed from."""
    scale = float(np.abs(terms).max()) if size is None else size
    return float(np.ptp(terms)) <= ROUNDING * scale


def is_finite(measured: MeasuredValue) -> bool:
    """Whether there are samples, and all contribute something finite, of which there is a variance."""
    if measured.is_of_booleans:
        return bool(len(measured.samples or ()) if measured.members is None else measured.members.any())
    sizes = [len(chunk) if (np.abs(chunk) <= LARGEST).all() else -1 for chunk in measured.term_chunks()]
    return -1 not in sizes and sum(sizes) > 0


def why_no_error(measured: MeasuredValue) -> str:
    """Why the standard error of a value is not known; empty where it is."""
    if measured.has_terms():
        terms = measured.terms()
        if len(terms) < 2 or not np.isfinite(terms).all():
            return "there are fewer than two samples, or some are not finite"
        if are_clustered(measured) and isinstance(found := clustered_mean(measured), str):
            return found
        return "all samples contribute the same" if are_alike(terms.astype(np.float64)) else ""
    value = measured.value
    if value.lower is None or value.upper is None or value.confidence_level is None:
        why = f" ({value.note})" if value.note and value.lower is None else ""
        return f"neither samples nor an interval of a known level{why}"
    if not (math.isfinite(value.lower) and math.isfinite(value.upper)):
        return "the stored interval is undefined or infinite"
    if not value.lower <= value.value <= value.upper:
        return "the stored interval does not contain the value"
    return "the stored interval is a point" if value.lower == value.upper else ""


def standard_error(measured: MeasuredValue) -> float:
    value = measured.value
    if measured.has_terms() and are_clustered(measured):
        found = clustered_mean(measured)
        assert not isinstance(found, str), found
        return found.error
    if measured.has_terms():
        terms = measured.terms().astype(np.float64)
        return float(terms.std(ddof=1)) / math.sqrt(len(terms))
    assert value.lower is not None, value.name
    assert value.upper is not None, value.name
    assert value.confidence_level is not None, value.name
    return (value.upper - value.lower) / (2 * normal_quantile((1 + value.confidence_level) / 2))


def spread_of_pairs(down: int, up: int, n: int, for_one: float = 1.0) -> Spread:
    """Of n pairs of yes or no, as many of which say as much as one independent pair."""
    differing = (down + up) / n
    return Spread(n / for_one, differing - ((up - down) / n) ** 2, differing, for_one)


def spread_of_two_shares(s1: int, n1: int, s2: int, n2: int) -> Spread:
    """Of two shares of other samples: how many are yes, and of how many."""
    p, q = s1 / n1, s2 / n2
    return Spread(_samples_each(n1, n2), p * (1 - p) + q * (1 - q), p * (1 - q) + q * (1 - p))


def spread_of_two(error: float, n1: float, n2: float) -> Spread:
    """Of two values of other samples whose difference has this standard error; n1 and n2 are the numbers of samples."""
    units = _samples_each(n1, n2)
    return Spread(units, error * error * units)


def _samples_each(n1: float, n2: float) -> float:
    """How many samples on either side say as much as these: the harmonic mean."""
    return 2 / (1 / n1 + 1 / n2)


def spread_of_clusters(found: ClusteredMean, moments: SampleMoments) -> Spread:
    """Of numbers in clusters, from their moments; clusters are taken to say no more than independent samples."""
    design_effect = max(1.0, (found.error / moments.error) ** 2)
    return Spread(found.effective, design_effect * moments.error**2 * found.effective, design_effect=design_effect)


def spread_of(measured: MeasuredValue, confidence_level: float = 0.95) -> Spread | str:
    """How much the difference from an independent model of the same value would vary; or why that is not known.

    Args:
        measured: the value.
        confidence_level: the one that comparisons will have.

    Example:
        >>> from assay.report import Samples, Value
        >>> samples = Samples.pack(range(10), {"correct": [True] * 9 + [False]})
        >>> found = spread_of(MeasuredValue(Value("accuracy", 0.9, numerator="correct"), samples))
        >>> found.units, round(found.differing, 2)
        (10, 0.18)
    """
    if measured.has_terms() and not is_finite(measured):
        return NOT_FINITE
    clusters = clustered_mean(measured) if measured.has_terms() and are_clustered(measured) else None
    if isinstance(clusters, str):
        return clusters
    share = measured.share() if measured.has_terms() else None
    if share is not None:
        yes, count = (int(each.sum()) for each in share)
        if not count:
            return "there are no samples"
        differing = 2 * (yes / count) * (1 - yes / count)
        units = clusters.independent_samples(count, confidence_level) if clusters else count
        return Spread(units, differing, differing, count / units)
    if why := why_no_error(measured):
        return why
    if measured.has_terms():
        moments = SampleMoments.of(measured.term_chunks)
        one = spread_of_clusters(clusters, moments) if clusters else Spread(moments.count, moments.deviation**2)
    elif not (known := measured.count):
        return "the number of its samples is not known"
    else:
        one = Spread(known, standard_error(measured) ** 2 * known)
    return replace(one, variance=2 * one.variance)
