"""Clusters of samples that depend on each other: given to reports that lack them, and what values say with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from assay.errors import ConfigError, describe
from assay.report.inference.measured_value import MeasuredValue
from assay.report.per_sample.packed_array import Array, PackedArray
from assay.report.per_sample.resampling import named_clusters
from assay.report.per_sample.samples import Samples
from assay.report.report import Report
from assay.report.section import Section
from assay.report.value import Value
from assay.stats.clusters import FEWEST_CLUSTERS, ClusteredMean, sums_by_cluster
from assay.stats.sampling import label_numbers

Clusters: TypeAlias = "str | Mapping[Any, Any] | Callable[[Any], Any] | Iterable[Any]"
"""Which cluster each sample of a report is in; see `with_clusters`."""

INDEPENDENT = (
    "Samples are taken as independent: where several are of one passage, patient, video or user, pass cluster= "
    "(--cluster)."
)


def with_clusters(report: Report, cluster: Clusters | None) -> Report:
    """A report whose samples are in clusters.

    Values that are no means over samples lose their intervals and replicates, which took samples as independent.

    Args:
        report: the report.
        cluster: a regular expression that finds the cluster in the id of a sample (its first group where it has one), a
            function of the id, the clusters by id, or one for each sample in the order of the ids of the report. None
            leaves those that the report has.

    Raises:
        ConfigError: a sample has no cluster, or no section has samples.

    Example:
        >>> samples = Samples.pack(["a/1", "a/2", "b/1"], {})
        >>> found = with_clusters(Report("run", [Section("test", samples=samples)]), "^[^/]+").sections[0].samples
        >>> found.cluster, len(found.cluster_numbers[0])
        ('id', 2)
    """
    if cluster is None:
        return report
    if all(section.samples is None for section in report.sections):
        do = "Evaluate again with cluster= and keep_samples=True"
        raise ConfigError(describe("cluster", f"{report.title!r} without samples", "per-sample values", do))
    return replace(report, sections=tuple(_clustered(section, cluster) for section in report.sections))


def _clustered(section: Section, cluster: Clusters) -> Section:
    if section.samples is None:
        return section
    labels = list(_labels(section.samples, cluster))
    if len(labels) != len(section.samples):
        expected = f"{len(section.samples):,}, one for each sample of {section.name!r}"
        raise ConfigError(describe("cluster", f"{len(labels):,} clusters", expected, "Pass as many, in their order"))
    numbers = PackedArray.of(label_numbers(labels))
    samples = replace(section.samples, clusters=numbers, cluster="id" if isinstance(cluster, str) else "cluster")
    slices = tuple(
        replace(each, values=tuple(map(_without_interval, each.values)), resampling=None) for each in section.slices
    )
    values = tuple(map(_without_interval, section.values))
    return replace(section, values=values, samples=samples, slices=slices, resampling=None)


def _labels(samples: Samples, cluster: Any) -> Iterator[Any]:
    """The cluster of each sample, by its id or its place."""
    if isinstance(cluster, str | Mapping) or callable(cluster):
        yield from _labels_by_id(samples, cluster)
        return
    if not hasattr(cluster, "__iter__"):
        expected = "a regular expression or a function of ids, clusters by id, or one for each sample"
        raise ConfigError(describe("cluster", cluster, expected, "Pass '^[^/]+', say"))
    for place, label in enumerate(cluster):
        if _is_missing(label):
            raise without_cluster(f"{label} for the sample in place {place}")
        yield label


def _is_missing(label: Any) -> bool:
    """Whether a label is None, or what arrays and data frames have instead."""
    return label is None or (not isinstance(label, str) and str(label) in ("nan", "NaT", "<NA>"))


def _labels_by_id(samples: Samples, cluster: str | Mapping[Any, Any] | Callable[[Any], Any]) -> Iterator[Any]:
    of = _by_pattern(cluster) if isinstance(cluster, str) else cluster.get if isinstance(cluster, Mapping) else cluster
    for name in samples.ids.values.tolist():
        label = of(name)
        if label is None and isinstance(cluster, str):
            got = f"the regular expression {cluster!r:.60}, which finds nothing in the id {name!r:.60}"
            do = "Write ^[^/]+ for what is before the first slash; for a column, evaluate or score again with cluster="
            raise ConfigError(describe("cluster", got, "one that finds the cluster in each id", do))
        if _is_missing(label):
            raise without_cluster(f"{label} for the sample {name!r:.60}")
        yield label


def without_cluster(got: str) -> ConfigError:
    """The error of samples of which no cluster is known."""
    do = "Give each sample a cluster; one that is alone is a cluster of its own"
    return ConfigError(describe("cluster", got, "one for each sample", do))


def _by_pattern(written: str) -> Callable[[Any], str | None]:
    try:
        pattern = re.compile(written)
    except re.error as error:
        do = "Write ^[^/]+ for what is before the first slash, say"
        raise ConfigError(describe("cluster", f"{written!r} ({error})", "a regular expression of ids", do)) from error

    def found(name: Any) -> str | None:
        match = pattern.search(str(name))
        return None if match is None else match[1 if pattern.groups else 0]

    return found


def _without_interval(value: Value) -> Value:
    if value.numerator:
        return value
    note = "evaluate with cluster= for an interval: this report took samples as independent"
    return replace(value, lower=None, upper=None, safe_lower=None, safe_upper=None, replicates=None, note=note)


def are_clustered(measured: MeasuredValue) -> bool:
    """Whether it is known which cluster each sample of a value is in."""
    return measured.samples is not None and measured.samples.clusters is not None


@dataclass(frozen=True)
class ClusterCodes:
    """Which cluster each of some samples is in.

    Attributes:
        name: what clusters are.
        numbers: of the clusters, each once.
        codes: for each sample, where its cluster stands among the numbers.
    """

    name: str
    numbers: Array
    codes: Array

    @classmethod
    def of(cls, measured: MeasuredValue) -> ClusterCodes:
        """The clusters of the samples that a value rests on."""
        assert measured.samples is not None, measured.value.name
        numbers, codes = measured.samples.cluster_numbers
        if measured.members is not None:
            present, codes = np.unique(codes[measured.members], return_inverse=True)
            numbers = numbers[present]
        return cls(measured.samples.cluster, numbers, codes)

    def __str__(self) -> str:
        return named_clusters(self.name, len(self.numbers))

    def sums(self, terms: Iterable[Array]) -> Array:
        """What the samples of each cluster add up to; terms come in the order of the samples, some at a time."""
        return sums_by_cluster(terms, self.codes, len(self.numbers))

    def mean(self, terms: Iterable[Array], weights: Iterable[Array] | None = None) -> ClusteredMean | str:
        """The mean of terms, with the error that clusters show; or why they are too few, as a part of a sentence.

        Args:
            terms: what the samples contribute, in order, some at a time.
            weights: of a quotient of two means, the weights of the samples.
        """
        sizes = np.bincount(self.codes, minlength=len(self.numbers)).astype(np.float64)
        heavy = sizes if weights is None else self.sums(weights)
        known = int(np.count_nonzero(heavy))
        if known < FEWEST_CLUSTERS:
            return f"{named_clusters(self.name, known)}: fewer than {FEWEST_CLUSTERS} say nothing of others"
        return ClusteredMean.of(self.sums(terms), sizes, heavy)


def clustered_mean(measured: MeasuredValue) -> ClusteredMean | str:
    """The mean that a value is, with the error that its clusters show; or why they are too few."""
    return ClusterCodes.of(measured).mean(measured.term_chunks(), weights_of(measured))


def weights_of(measured: MeasuredValue) -> list[Array] | None:
    """The weights of a quotient of two means; None of a mean."""
    if not measured.value.denominator or measured.samples is None:
        return None
    weights = measured.samples.column(measured.value.denominator).astype(np.float64)
    return [weights if measured.members is None else weights[measured.members]]


def assumption(section: Section) -> str:
    """What is assumed of the samples of a section, in a sentence.

    Example:
        >>> assumption(Section("test", samples=Samples.pack(range(4), {}, clusters=[7, 7, 8, 9], cluster="passage")))
        '4 samples in 3 clusters of passage: samples of one cluster may depend on each other, clusters do not.'
    """
    rest = "samples of one cluster may depend on each other, clusters do not."
    if section.samples is not None and section.samples.clusters is not None:
        numbers, _ = section.samples.cluster_numbers
        return f"{len(section.samples):,} samples in {named_clusters(section.samples.cluster, len(numbers))}: {rest}"
    if section.resampling is not None and section.resampling.cluster:
        return f"{section.resampling.count:,} samples in {named_clusters(section.resampling.cluster)}: {rest}"
    return INDEPENDENT
