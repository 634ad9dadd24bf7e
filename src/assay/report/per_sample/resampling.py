"""Which samples the replicates of values rest on: values of two reports with the same resamples can be paired."""

from __future__ import annotations

from dataclasses import field

from assay._records import OPTIONAL, Record
from assay.errors import ConfigError, describe


class Resampling(Record):
    """How samples were resampled: randomly assigned to groups by their ids, which are then drawn (docs/intervals.md).

    Args:
        seed: of the assignment and of the draws.
        groups: to how many groups samples were assigned.
        filled: how many groups have samples.
        count: how many samples there are.
        ids: the sum and the exclusive or of the hashes of all ids, in hexadecimal digits.
        targets: the sum of the hashes of all ids with their targets; empty where there are none.
        cluster: what the clusters are that were assigned to groups as a whole; empty where samples were.

    Raises:
        ConfigError: more groups have samples than there are.
    """

    seed: int
    groups: int
    filled: int
    count: int
    ids: str
    targets: str = ""
    cluster: str = field(default="", metadata=OPTIONAL)

    def _check(self) -> None:
        if not 0 <= self.filled <= min(self.groups, self.count):
            got, expected = f"{self.filled} filled groups", f"at most {min(self.groups, self.count)}"
            raise ConfigError(describe("Resampling.filled", got, expected, "Count the groups that have samples"))


def named_clusters(name: str, count: int | None = None) -> str:
    """Clusters in a sentence.

    Args:
        name: what they are: ``"cluster"`` where they have no other name.
        count: how many they are, where that is known.

    Example:
        >>> named_clusters("passage", 60), named_clusters("cluster", 60), named_clusters("passage")
        ('60 clusters of passage', '60 clusters', 'clusters of passage')
    """
    counted = "clusters" if count is None else f"{count:,} cluster{'' if count == 1 else 's'}"
    return counted if name == "cluster" else f"{counted} of {name}"


def why_not_alike(a: Resampling, b: Resampling) -> str:
    """Why values cannot be paired replicate by replicate, as a part of a sentence; empty where they can.

    Example:
        >>> why_not_alike(Resampling(0, 128, 128, 900, "a1"), Resampling(7, 128, 128, 900, "a1"))
        'samples were resampled with the seeds 0 and 7: evaluate with one seed'
    """
    if bool(a.cluster) != bool(b.cluster):
        by = [named_clusters(each.cluster) if each.cluster else "samples" for each in (a, b)]
        return f"{by[0]} were resampled in one, {by[1]} in the other: evaluate both with the same cluster="
    if (a.count, a.ids) != (b.count, b.ids):
        return f"other samples: {a.count:,} and {b.count:,}, with other ids{' or clusters' if a.cluster else ''}"
    if a.targets and b.targets and a.targets != b.targets:
        return "samples have other targets"
    if a.seed != b.seed:
        return f"samples were resampled with the seeds {a.seed} and {b.seed}: evaluate with one seed"
    if (a.groups, a.filled) != (b.groups, b.filled):
        return f"samples were resampled in {a.groups} and {b.groups} groups: evaluate the same metrics"
    return ""
