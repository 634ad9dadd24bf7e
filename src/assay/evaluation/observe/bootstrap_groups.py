"""Samples assigned to groups by a hash of their ids: the bootstrap of tallies resamples the groups.

The group of a sample depends on its id and a seed, on nothing else. So any split over batches and processes counts the
same groups, and the intervals that are drawn from them have the same bits. Two models that are evaluated on the same
samples have the same resamples, and can be compared replicate by replicate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from torch import Tensor

from assay.evaluation.observe.observers import Array, SampleRows, Tensors, as_bytes, from_bytes, part_of, prefixed
from assay.evaluation.observe.partition import Label, Partition
from assay.evaluation.observe.per_sample import PerSampleRecorder
from assay.evaluation.observe.sample_hashes import digests_by_code, groups_of
from assay.meter import Meter
from assay.meter.cells import STAGE_BYTES
from assay.meter.resampling.intervals import (
    GROUPS,
    group_count,
    is_biased,
    needing_bootstrap,
    scale_of,
)
from assay.meter.resampling.replicates import FEWEST_GROUPS, ConfidenceInterval, CountedGroups, replicate_interval
from assay.report.per_sample.resampling import Resampling
from assay.stats.bootstrap import LEAST
from assay.stats.sampling import SampleDigest, in_clusters
from assay.tally.base import State
from assay.tally.late_items import LateItems

SLICE_GROUPS = 32
"""Of a slice. Its standard error has 12 % of error by that, and Student's t is 4 % larger than for 128."""
SLICE_RESAMPLES = 100
"""Of a slice at most; `resamples_of_slices` says how many of each where there are many."""
ALL_RESAMPLES = 2000
MOST_BYTES = 1 << 28
"""What the groups of all slices by one part may take; of more slices than that, none is resampled."""
NO_IDS = "samples have no ids, so processes cannot assign them to the same groups; pass ids= to identify them"
TOO_MANY_SLICES = "the groups of so many slices take too much memory"
FEW_GROUPS = f"too few samples: fewer than {FEWEST_GROUPS} groups of the bootstrap have any"


def resamples_of_slices(n_resamples: int, slices: int) -> int:
    """How often the groups of each slice are resampled: less often where there are many slices.

    Example:
        >>> [resamples_of_slices(400, slices) for slices in (5, 40, 300)]
        [100, 50, 25]
    """
    return min(n_resamples, SLICE_RESAMPLES, max(LEAST, ALL_RESAMPLES // max(1, slices)))


@dataclass(frozen=True)
class Resampled:
    """What the bootstrap gives of some samples.

    Attributes:
        intervals: of the values, by their names.
        reasons: why others have none, by the names of the values, or of metrics where nothing was resampled.
        replicates: by the names of the values, the value in each resample of the groups.
        resampling: which samples were resampled, and how; None where it is not known which sample is which.
    """

    intervals: Mapping[str, ConfidenceInterval] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    replicates: Mapping[str, Array] = field(default_factory=dict)
    resampling: Resampling | None = None


class BootstrapGroups:
    """One meter a group, of the metrics whose intervals have to be drawn or that cannot be paired sample by sample.

    Which these are is seen from the first rows: the others are means of what each sample contributed; where samples
    have no ids, those with a closed-form interval are left out, too.

    Args:
        like: the meter of all metrics.
        recorder: what each sample contributes, where that is kept.
        seed: of the assignment and the draws.
        alone: whether one process counts everything; then a sample without an id is identified by its
            position in the stream.
        most: how many groups at most.
        cluster: what the clusters are that come to groups as a whole; empty where samples are independent.
    """

    def __init__(
        self,
        like: Meter,
        recorder: PerSampleRecorder | None,
        seed: int,
        alone: bool,
        most: int = GROUPS,
        cluster: str = "",
    ) -> None:
        self._cluster = cluster
        self._like, self._recorder, self._seed, self._alone, self._most = like, recorder, seed, alone, most
        self._names: list[str] | None = None
        self._groups = 0
        self._partition: Partition | None = None
        self._digests: dict[Label, SampleDigest] = {}
        self._group_bytes = 0
        self.identified = True
        self.nameless = False
        self.too_many = False

    @property
    def idle(self) -> bool:
        """Whether nothing has to be drawn, or nothing can be."""
        return self._names == [] or self.nameless or self.too_many

    def empty(self, most: int | None = None) -> BootstrapGroups:
        """Groups without samples."""
        return BootstrapGroups(self._like, self._recorder, self._seed, self._alone, most or self._most, self._cluster)

    def count(
        self, rows: SampleRows, codes: Array | None = None, label_of: Callable[[int], Label] = lambda code: ()
    ) -> None:
        """Count rows into the meters of their groups.

        Args:
            rows: the rows.
            codes: integers `(N,)`, one for each slice; None for all samples.
            label_of: the label of a number.
        """
        if self._names is None:
            self._choose(self._needed(rows))
        if self._partition is None or self.idle:
            return
        numbers = rows.id_numbers
        if numbers is None:
            numbers = rows.positions
            self.identified, self.nameless = False, not self._alone
            if self.nameless:
                return
        groups = groups_of(numbers if rows.clusters is None else rows.clusters, self._seed, self._groups)
        if rows.clusters is not None:
            numbers = in_clusters(numbers, rows.clusters)
        if self.identified:
            digests = digests_by_code(numbers, rows.target_numbers, codes)
        else:  # no one asks which samples they are
            digests = dict.fromkeys([0] if codes is None else np.unique(codes).tolist(), SampleDigest())
        for code, digest in digests.items():
            self._add_digest(label_of(code), digest)
        size = self._groups
        cells = groups if codes is None else codes * size + groups
        self._partition.count(rows, cells, lambda code: (*label_of(code // size), str(code % size)))
        self._limit()

    def _needed(self, rows: SampleRows) -> list[str]:
        """The metrics to count. Of a stream it is not known whether what samples contribute can be kept to its end."""
        without: Collection[str] = ()
        if self._recorder is not None and self._recorder.keeps_all:
            without = self._recorder.terms
        independent = rows.are_single and rows.id_numbers is None and rows.clusters is None
        needing = needing_bootstrap(self._like, independent=independent, without=without)
        return [] if needing is None else list(needing.metrics)

    def _choose(self, names: list[str]) -> None:
        """Count these metrics from now on."""
        self._names = names
        if names:
            meter = self._like.fresh({name: self._like.metrics[name] for name in names})
            self._groups = group_count(meter, most=self._most)
            self._group_bytes = meter.plan.state_bytes + 2 * STAGE_BYTES
            self._partition = Partition(meter)

    def _add_digest(self, label: Label, digest: SampleDigest) -> None:
        self._digests[label] = self._digests.get(label, SampleDigest()) + digest

    def _limit(self) -> None:
        """Let go of groups that take too much."""
        assert self._partition is not None
        if len(self._digests) > 1 and len(self._partition) * self._group_bytes > MOST_BYTES:
            self.too_many = True
            self._partition.clear()
            self._digests.clear()

    def state(self) -> dict[str, Tensor]:
        """What was counted, as tensors."""
        about = {
            "nameless": self.nameless,
            "identified": self.identified,
            "too_many": self.too_many,
            "names": self._names,
            "digests": [[label, asdict(digest)] for label, digest in self._digests.items()],
        }
        counted = {} if self._partition is None else prefixed("meters", self._partition.state())
        return {"about": as_bytes(about), **counted}

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave."""
        about = from_bytes(tensors["about"])
        self.nameless |= about["nameless"]
        self.identified &= about["identified"]
        self.too_many |= about["too_many"]
        if about["names"] is None:
            return
        if self._names is None:
            self._choose(about["names"])
        if self._names != about["names"]:  # samples of one process were pixels, say, and those of another were not
            self.nameless = True
        elif self._partition is not None and not self.too_many:
            self._partition.add_state(part_of("meters", tensors))
            for label, digest in about["digests"]:
                self._add_digest(tuple(label), SampleDigest(**digest))
            self._limit()

    def resampled(
        self,
        confidence_level: float,
        n_resamples: int,
        without: Collection[str] = (),
        with_interval: Collection[str] = (),
        label: Label = (),
        elements: int | None = None,
    ) -> Resampled:
        """Intervals and replicates of all values; none where it is not known which sample is which.

        Args:
            confidence_level: of the intervals.
            n_resamples: how often the groups are resampled.
            without: names of metrics that need neither.
            with_interval: names of metrics that need no interval; nor replicates, where no one knows of which samples.
            label: of a slice; all samples by default.
            elements: how many kept samples the replicates of one tally may read in all.
        """
        names = [name for name in self._names or () if name not in without]
        if self.nameless or self.too_many:
            return Resampled(reasons=dict.fromkeys(names, NO_IDS if self.nameless else TOO_MANY_SLICES))
        if not self.identified:
            names = [name for name in names if name not in with_interval]
        if self._partition is None or label not in self._digests or not (names or self.identified):
            return Resampled()
        groups = self._groups_of(label, self._partition)
        values = groups.drawn_values(n_resamples, self._seed, names, elements)
        found = {
            name: replicate_interval(
                value,
                replicates,
                confidence_level,
                groups.filled,
                scale_of(name, self._like.metrics),
                biased_upwards=is_biased(name, self._like.metrics),
            )
            for name, (value, *replicates) in values.items()
        }
        intervals = {name: each for name, each in found.items() if isinstance(each, ConfidenceInterval)}
        reasons = {name: each for name, each in found.items() if isinstance(each, str)}
        if groups.filled < FEWEST_GROUPS:
            reasons = dict.fromkeys(names, FEW_GROUPS)
        if not self.identified:
            return Resampled(intervals, reasons)
        replicates = {name: np.array(each[1:]) for name, each in values.items()}
        digest = self._digests[label]
        resampling = Resampling(
            self._seed,
            self._groups,
            groups.filled,
            digest.count,
            f"{digest.ids:016x}{digest.ids_xor:016x}",
            "" if digest.targets is None else f"{digest.targets:016x}",
            self._cluster,
        )
        return Resampled(intervals, reasons, replicates, resampling)

    @staticmethod
    def _groups_of(label: Label, partition: Partition) -> CountedGroups:
        """What was counted of the groups of a slice."""
        labels = sorted(each for each in partition.labels if each[:-1] == label)
        states = LateItems(len(labels), lambda k: _settled(partition, labels[k]))
        return CountedGroups(partition.like, states, partition.rows_of(labels), partition.sums_of(labels))


def _settled(partition: Partition, label: Label) -> Sequence[State]:
    """The states of a label in a form to compute from, each made when it is asked for."""
    tallies, (states, rows) = partition.like.tallies, partition.counted(label)
    return LateItems(len(tallies), lambda k: tallies[k].settle(states[k], rows))
