"""What samples in clusters say of a value, and of the difference of two: whole clusters take the place of samples."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from assay.report.inference.clusters import ClusterCodes, are_clustered, clustered_mean, weights_of
from assay.report.inference.evidence import (
    MEAN,
    SHARE_INTERVAL,
    UP_TO,
    UP_TO_IN_SLICES,
    Evidence,
    PairedShares,
    Shares,
    differences_of,
    joined_risks,
    none_if_nan,
    paired_counts,
)
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.spread import (
    NOT_FINITE,
    ROUNDING,
    is_finite,
    spread_of_clusters,
    spread_of_pairs,
    spread_of_two,
)
from assay.report.per_sample.aligned_chunks import reordered
from assay.report.per_sample.packed_array import Array
from assay.stats import effect_sizes
from assay.stats.clusters import ClusteredMean, difference_of
from assay.stats.intervals import (
    FEWEST,
    two_sided_z,
)
from assay.stats.moments import SampleMoments
from assay.stats.paired_shares import paired_proportions, paired_ratio


def interval_of_clusters(measured: MeasuredValue, confidence_level: float, safe: bool) -> Evidence:
    """The interval of a mean or a share of samples in clusters."""
    if not is_finite(measured):
        return Evidence(note=NOT_FINITE)
    found = clustered_mean(measured)
    if isinstance(found, str):
        return Evidence(note=found)
    of = ClusterCodes.of(measured)
    if (share := measured.share()) is not None:
        ends = found.share_interval(int(share[1].sum()), confidence_level, safe=safe)
        return Evidence(
            *ends, method=f"{SHARE_INTERVAL[safe]} for {of}", risky="both" if found.effective < FEWEST else ""
        )
    if not found.error > ROUNDING * abs(found.mean) / math.sqrt(found.effective):
        return Evidence(note="all clusters contribute the same, which says nothing of others")
    return Evidence(*found.interval(confidence_level, safe=safe), method=f"{MEAN}, for {of}", risky=found.risky)


def paired_clusters(
    a: MeasuredValue,
    b: MeasuredValue,
    shares: Shares,
    position: Array,
    confidence_level: float,
    seed: int,
    safe: bool = False,
) -> Evidence:
    """Two values of the same samples in clusters: the differences of each cluster are added up."""
    clusters = _shared_clusters(a, b, position)
    if isinstance(clusters, str):
        return Evidence(paired=True, note=clusters)
    differences = differences_of(a, b, position)
    found = clusters.mean(differences(), weights_of(a))
    if isinstance(found, str):
        return Evidence(paired=True, note=found)
    p, test = found.test(seed, UP_TO if a.members is None else UP_TO_IN_SLICES)
    risky = "both" if found.effective < FEWEST else ""
    if (counts := paired_counts(shares, position)) is not None:
        for_one = _pairs_for_one(counts, clusters, confidence_level)
        lower, upper = _clustered_shares(counts, found, for_one, a.factor, confidence_level, safe)
        down, up, n = (int(each.sum()) for each in (counts.down, counts.up, counts.among))
        spread = spread_of_pairs(down, up, n, for_one)
        odds = none_if_nan(effect_sizes.odds_ratio(down, up))
        method = f"{test}, widest of three intervals for {clusters}"
        return Evidence(lower, upper, p, odds, "odds ratio", method, paired=True, risky=risky, spread=spread)
    moments = SampleMoments.of(differences)
    size = max(float(np.abs(chunk).max()) for each in (a, b) for chunk in each.term_chunks())
    if moments.largest - moments.least <= ROUNDING * size or not found.error:
        differs = moments.least or moments.largest
        note = "all clusters differ by the same, which says nothing of others" if differs else "no sample differs"
        return Evidence(p=p, method=test, paired=True, note=note)
    effect = moments.mean / moments.deviation
    method = f"{test}, {MEAN}, for {clusters}"
    ends, spread = found.interval(confidence_level, safe=safe), spread_of_clusters(found, moments)
    return Evidence(*ends, p, effect, "Cohen's dz", method, paired=True, risky=found.risky or risky, spread=spread)


def _shared_clusters(a: MeasuredValue, b: MeasuredValue, position: Array) -> ClusterCodes | str:
    """The clusters of samples that are paired, in the order of the first; or why they are not known."""
    first, second = (ClusterCodes.of(each) if are_clustered(each) else None for each in (a, b))
    if second is not None:
        second = replace(second, codes=reordered(second.codes, position))
    if first is None or second is None:
        return first or second or ""
    same = np.array_equal(first.numbers, second.numbers) and np.array_equal(first.codes, second.codes)
    return first if same else f"samples are in other clusters in the two ({first}, {second})"


def _pairs_for_one(shares: PairedShares, clusters: ClusterCodes, confidence_level: float) -> float:
    """How many pairs of yes or no in clusters say as much as one independent pair."""
    down, up, n = (int(each.sum()) for each in (shares.down, shares.up, shares.among))
    apart = (shares.up.astype(np.float64) - shares.down) * (len(shares.among) / n)
    pairs = clusters.mean([apart], [shares.among.astype(np.float64)])
    assert not isinstance(pairs, str), pairs
    differing = len(np.unique(clusters.codes[shares.down | shares.up]))
    return pairs.pairs_for_one(down, up, n, differing, confidence_level)


def _clustered_shares(
    shares: PairedShares, found: ClusteredMean, for_one: float, factor: float, confidence_level: float, safe: bool
) -> tuple[float, float]:
    """The interval of paired shares in clusters, the second minus a factor times the first.

    The widest of Student's of clusters and of the intervals of as many independent pairs as clusters show: few pairs
    that differ are no proof that no others do.
    """
    down, up, both, n = (int(each.sum()) for each in (shares.down, shares.up, shares.both, shares.among))
    counts = down / for_one, up / for_one, n / for_one
    if factor == 1:
        lower, upper = paired_proportions(*counts, confidence_level)
    else:
        share, ends = (both + down) / n, paired_ratio(both / for_one, *counts, confidence_level)
        lower, upper = (share * (end - factor) for end in ends)
    if found.error:
        least, most = found.interval(confidence_level, safe=safe)
        lower, upper = min(lower, least), max(upper, most)
    return lower, upper


def unpaired_clusters(
    a: MeasuredValue, b: MeasuredValue, shares: Shares, confidence_level: float, safe: bool = False
) -> Evidence:
    """Two values of other samples, whose clusters may be the same in part."""
    if not (are_clustered(a) and are_clustered(b)):
        return Evidence(note="clusters are known of one side only: evaluate both with the same cluster=")
    clusters = [ClusterCodes.of(each) for each in (a, b)]
    first, second = (clustered_mean(each) for each in (a, b))
    if isinstance(first, str) or isinstance(second, str):
        return Evidence(note=first if isinstance(first, str) else str(second))
    _, in_a, in_b = np.intersect1d(clusters[0].numbers, clusters[1].numbers, return_indices=True)
    correlation = 0.0
    if clusters[0].name == clusters[1].name and first.error and second.error:
        correlation = float((first.apart[in_a] / first.error) @ (second.apart[in_b] / second.error))
    p, (lower, upper) = difference_of(first, second, confidence_level, correlation)
    if shares is not None:
        least, most = _newcombe_of_clusters(replace(a, factor=1.0), b, shares, a.factor, confidence_level, safe)
        lower, upper = min(lower, least), max(upper, most)
    elif not upper > lower:
        return Evidence(p=p, note="all clusters of a side contribute the same, which says nothing of others")
    risky = "both" if min(first.effective, second.effective) < FEWEST else joined_risks(first.risky, second.risky)
    method = f"Welch's test and interval of clusters: {clusters[0]}, {clusters[1]}"
    error = (upper - lower) / (2 * two_sided_z(confidence_level))
    spread = spread_of_two(error, first.effective, second.effective)
    return Evidence(lower, upper, p, method=method, risky=risky, spread=spread)


def _newcombe_of_clusters(
    a: MeasuredValue, b: MeasuredValue, shares: Shares, factor: float, confidence_level: float, safe: bool
) -> tuple[float, float]:
    """Newcombe's interval of two shares of other samples in clusters, the second minus a factor times the first."""
    assert shares is not None, a.value.name
    ends = []
    for each, (_, among) in zip((a, b), shares, strict=True):
        mean = clustered_mean(each)
        assert not isinstance(mean, str), mean
        ends.append((mean.mean, *mean.share_interval(int(among.sum()), confidence_level, safe=safe)))
    (p1, l1, u1), (p2, l2, u2) = ends
    apart = p2 - factor * p1
    return apart - math.hypot(p2 - l2, factor * (u1 - p1)), apart + math.hypot(u2 - p2, factor * (p1 - l1))
