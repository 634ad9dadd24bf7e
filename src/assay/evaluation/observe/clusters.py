"""Clusters of samples that depend on each other, as integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.errors import ConfigError, describe
from assay.evaluation.observe.slice_values import MISSING, CodedLists, CodedValues, values_of_batches
from assay.report.inference.clusters import without_cluster
from assay.report.per_sample.packed_array import Array
from assay.stats.sampling import label_numbers


def is_selector(cluster: Any) -> bool:
    """Whether clusters are a part of each batch: a name, a position or a function."""
    return isinstance(cluster, str | int) or callable(cluster)


def cluster_name(cluster: Any) -> str:
    """What a report calls clusters: the part of a batch, or the column of a table; empty where there are none.

    Example:
        >>> cluster_name("passage"), cluster_name(2), cluster_name(None)
        ('passage', 'cluster', '')
    """
    return "" if cluster is None else cluster if isinstance(cluster, str) else "cluster"


@dataclass(frozen=True)
class ClustersByIndex:
    """The cluster of each sample of data with indices."""

    numbers: Array

    @classmethod
    def of(cls, cluster: Any, count: int | None) -> ClustersByIndex | None:
        """Clusters that were given as an array; None where they are a part of each batch, or there are none.

        Args:
            cluster: what `evaluate` was given.
            count: how many samples the data have; None of a stream.

        Raises:
            ConfigError: there is not one for each sample, or samples have no indices.
        """
        if cluster is None or is_selector(cluster):
            return None
        numbers = cluster_numbers([cluster])
        if count is None:
            do = "Name a part of the batch: cluster='passage'"
            raise ConfigError(describe("cluster", "an array for a stream, whose samples have no index", "a part", do))
        if len(numbers) != count:
            expected = f"{count:,}, one for each sample of the data"
            raise ConfigError(describe("cluster", f"{len(numbers):,} clusters", expected, "Pass as many"))
        return cls(numbers)


def cluster_numbers(batches: Sequence[Any]) -> Array:
    """The clusters of samples as integers of 64 bits, see `label_numbers`.

    Args:
        batches: clusters of the samples of some batches: tensors, arrays, lists, or coded columns.

    Raises:
        ConfigError: a sample has none, or several.

    Example:
        >>> cluster_numbers([[3, 4], [4]])
        array([3, 4, 4])
    """
    return np.concatenate([_numbers(each) for each in batches])


def _numbers(values: Any) -> Array:
    if isinstance(values, CodedLists):
        raise ConfigError(describe("cluster", "lists of values", "one cluster a sample", "Name another column"))
    if isinstance(values, CodedValues):
        codes, texts = values
        _check([texts[code] for code in np.flatnonzero(np.bincount(codes, minlength=len(texts))).tolist()])
        numbers: Array = label_numbers(texts)[codes]
        return numbers
    different, codes = np.unique(values_of_batches([values], "cluster"), return_inverse=True)
    labels = [MISSING if each != each else each for each in different.tolist()]
    _check(labels)
    return label_numbers(labels)[codes]


def _check(labels: Sequence[Any]) -> None:
    if MISSING in labels:
        raise without_cluster("samples without one")
