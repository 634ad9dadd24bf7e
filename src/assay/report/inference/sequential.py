"""Intervals that hold at any number of looks, of values and of differences: for samples that are added to a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from assay.errors import ConfigError, describe
from assay.report.inference.clusters import ClusterCodes, are_clustered
from assay.report.inference.evidence import Evidence, shares_of
from assay.report.inference.measured_value import MeasuredValue
from assay.report.per_sample.aligned_chunks import are_in_order
from assay.report.per_sample.packed_array import Array
from assay.report.per_sample.samples import Samples, align, is_known_to_be_the_same
from assay.stats.betting import betting_interval, clustered_betting_interval

Ranges: TypeAlias = Mapping[str, tuple[float, float]]
"""By the names of metrics, the least and the largest number that a sample can contribute."""

METHOD = "betting interval, at any number of looks"
OF_CLUSTERS = (
    "samples are in clusters, the largest of which must be known before any is seen: bound the change against a "
    "baseline that has all samples"
)


@dataclass(frozen=True, eq=False)
class ClusterSizes:
    """How many samples each cluster has, which is known before any of them is seen.

    Attributes:
        numbers: of the clusters, rising.
        sizes: of each.
    """

    numbers: Array
    sizes: Array

    @classmethod
    def of(cls, clusters: Array) -> ClusterSizes:
        """From the cluster of each sample.

        Example:
            >>> ClusterSizes.of(np.array([7, 3, 7])).sizes.tolist()
            [1, 2]
        """
        return cls(*np.unique(clusters, return_counts=True))

    @property
    def largest(self) -> int:
        return int(self.sizes.max())

    def are_whole(self, codes: ClusterCodes) -> Array | str:
        """Which clusters of samples that were seen so far are whole; or why that is not known."""
        places = np.minimum(np.searchsorted(self.numbers, codes.numbers), len(self.numbers) - 1)
        if not np.array_equal(self.numbers[places], codes.numbers):
            return f"samples are in other clusters ({codes})"
        is_whole = np.bincount(codes.codes) == self.sizes[places]
        if (~is_whole).sum() > 1:
            open_ = int((~is_whole).sum())
            return f"{open_:,} clusters are incomplete: measure all samples of a cluster one after another"
        return np.asarray(is_whole)


@dataclass(frozen=True)
class SequentialIntervals:
    """How values and differences get intervals that hold at any number of looks.

    They are of means of bounded samples: of yes or no, and of numbers whose range is given.

    Args:
        confidence_level: the confidence level.
        ranges: what samples of metrics of numbers can contribute.
        cluster_sizes: of samples in clusters, where these are known.

    Raises:
        ConfigError: a range is no range.
    """

    confidence_level: float
    ranges: Ranges
    cluster_sizes: ClusterSizes | None = None

    def __post_init__(self) -> None:
        for name, (low, high) in self.ranges.items():
            if not -math.inf < low < high < math.inf:
                do = "Pass the least and the largest number that a sample can have, such as (0, 1)"
                raise ConfigError(describe(f"range of {name}", f"{low:g}, {high:g}", "two finite numbers", do))

    def of(self, measured: MeasuredValue) -> Evidence:
        """The interval of one value, or why it has none."""
        if why := self._why_not(measured):
            return Evidence(note=why)
        if are_clustered(measured) and self.cluster_sizes is None:
            return Evidence(note=OF_CLUSTERS)
        if (share := measured.share()) is not None:
            yes, among = share
            if not among.any():
                return Evidence(note="there are no samples")
            low, high, terms = 0.0, 1.0, yes[among].astype(np.float64)
        else:
            found = self._bounded(measured)
            if isinstance(found, str):
                return Evidence(note=found)
            low, high, terms = found
        bounds = low, high, self.confidence_level
        if not are_clustered(measured):
            return Evidence(*betting_interval(terms, *bounds), method=METHOD)
        clusters = self._whole_clusters(measured, terms)
        if isinstance(clusters, str):
            return Evidence(note=clusters)
        return Evidence(*clustered_betting_interval(*clusters, *bounds), method=METHOD)

    def _whole_clusters(self, measured: MeasuredValue, terms: Array) -> tuple[Array, Array, int] | str:
        """The sums of terms over whole clusters, their sizes and the largest one; or why they are not known."""
        assert self.cluster_sizes is not None
        if measured.value.denominator:
            return _quotient_of_clusters(measured)
        every, chosen = ClusterCodes.of(replace(measured, members=None)), ClusterCodes.of(measured)
        is_whole = self.cluster_sizes.are_whole(every)
        if isinstance(is_whole, str):
            return is_whole
        is_whole = is_whole[np.searchsorted(every.numbers, chosen.numbers)]
        sizes = np.bincount(chosen.codes)[is_whole].astype(np.float64)
        return chosen.sums([terms])[is_whole], sizes, self.cluster_sizes.largest

    def difference(self, a: MeasuredValue, b: MeasuredValue) -> Evidence:
        """The interval of the second minus the first on the samples of the second, all of which the first must have."""
        for each, side in ((a, "the baseline"), (b, "the run")):
            if why := self._why_not(each):
                return Evidence(note=f"{why} ({side})")
        same = on_the_same_samples(a, b)
        if isinstance(same, str):
            return Evidence(note=f"not paired: {same}")
        pairs = self._pairs(*same)
        if isinstance(pairs, str):
            return Evidence(note=pairs)
        low, high, first, second = pairs
        least, most = sorted((a.factor * low, a.factor * high))
        bounds = low - most, high - least, self.confidence_level
        if are_clustered(a) or are_clustered(b):
            clusters = _whole_clusters(a, same[1], second - a.factor * first)
            if isinstance(clusters, str):
                return Evidence(note=clusters)
            ends = clustered_betting_interval(*clusters, *bounds)
        else:
            ends = betting_interval(second - a.factor * first, *bounds)
        samples = [each.samples for each in same if each.samples is not None]
        note = "" if is_known_to_be_the_same(*samples) else "paired by ids alone: no targets, no name of the data"
        return Evidence(*ends, method=METHOD, paired=True, note=note)

    def _pairs(self, a: MeasuredValue, b: MeasuredValue) -> tuple[float, float, Array, Array] | str:
        """The range of the samples of two means, and the numbers of both, sample by sample."""
        if (shares := shares_of(a, b)) is not None:
            (first, among), (second, others) = shares
            if not np.array_equal(among, others):
                return "not paired: the two are shares of other samples"
            if not among.any():
                return "there are no samples"
            return 0.0, 1.0, first[among].astype(np.float64), second[among].astype(np.float64)
        found = self._bounded(replace(a, factor=1.0)), self._bounded(b)
        if isinstance(found[0], str) or isinstance(found[1], str):
            return found[0] if isinstance(found[0], str) else str(found[1])
        return *found[0], found[1][2]

    def _why_not(self, measured: MeasuredValue) -> str:
        name = measured.value.name
        if not measured.has_terms():
            return f"{name} is no mean over kept samples, and of others none is known that holds at any number of looks"
        return f"{name} is a function of a mean without bounds" if measured.value.scale else ""

    def _bounded(self, measured: MeasuredValue) -> tuple[float, float, Array] | str:
        """The range of the samples of a mean, and their numbers."""
        name = measured.value.name
        if measured.value.denominator:
            return f"{name} is a quotient of two means, of which none is known that holds at any number of looks"
        if name not in self.ranges:
            return f"the range of what a sample adds to {name} is not known: give it, as in --range {name}=0,1"
        low, high = self.ranges[name]
        terms = measured.terms().astype(np.float64)
        if not len(terms):
            return "there are no samples"
        if not (low <= terms.min() and terms.max() <= high):
            return f"samples of {name} are beyond the range from {low:g} to {high:g} that was given"
        return low, high, terms


def _whole_clusters(all_samples: MeasuredValue, so_far: MeasuredValue, terms: Array) -> tuple[Array, Array, int] | str:
    """The sums of terms over whole clusters, their sizes and the largest one; or why they are not known.

    Which clusters are whole is known by the baseline, which has all samples.
    """
    if not (are_clustered(all_samples) and are_clustered(so_far)):
        return "clusters are known of one side only: evaluate both with the same cluster="
    if so_far.value.denominator:
        return _quotient_of_clusters(so_far)
    every, present = ClusterCodes.of(all_samples), ClusterCodes.of(so_far)
    known = ClusterSizes(every.numbers, np.bincount(every.codes))
    is_whole = known.are_whole(present)
    if isinstance(is_whole, str):
        return is_whole
    return present.sums([terms])[is_whole], np.bincount(present.codes)[is_whole].astype(np.float64), known.largest


def _quotient_of_clusters(measured: MeasuredValue) -> str:
    return f"{measured.value.name} is a quotient, of which none is known for clusters at any number of looks"


def on_the_same_samples(a: MeasuredValue, b: MeasuredValue) -> tuple[MeasuredValue, MeasuredValue] | str:
    """Both values on the samples of the second, in their order; or why that is not possible."""
    first, second = _chosen(a), _chosen(b)
    if len(first) and len(second) and first.ids.is_text != second.ids.is_text:
        return "ids are numbers in one and texts in the other"
    there, ids = first.ids.values, second.ids.values
    if len(there) > len(ids):
        order = np.argsort(there, kind="stable")
        places = order[np.minimum(np.searchsorted(there[order], ids), len(there) - 1)]
        if missing := int((there[places] != ids).sum()):
            return f"{missing:,} samples of the run are not in the baseline"
        first, second = (replace(each, data="") for each in (first.where(places), second))  # of all targets, it differs
    position = align(second, first)
    if isinstance(position, str):
        return position
    first = first if are_in_order(position) else first.where(position)
    return replace(a, samples=first, members=None), replace(b, samples=second, members=None)


def _chosen(measured: MeasuredValue) -> Samples:
    assert measured.samples is not None, measured.value.name
    return measured.samples if measured.members is None else measured.samples.where(measured.members)
