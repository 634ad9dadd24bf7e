"""Samples assigned to groups by a hash of their ids: the bootstrap of tallies resamples the groups.

The group of a sample depends on its id and a seed, on nothing else. So any split over batches and processes counts the
same groups, and the intervals that are drawn from them have the same bits.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from assay.evaluation.observers import SampleRows, Tensors, as_bytes, from_bytes, part_of, prefixed
from assay.evaluation.partition import Partition
from assay.evaluation.per_sample import PerSampleRecorder
from assay.meter import Meter
from assay.meter.intervals import ConfidenceInterval, bootstrap, group_count, needing_bootstrap
from assay.stats.sampling import groups_of, numbers_of


class BootstrapGroups:
    """One meter a group, of the metrics whose intervals have to be drawn.

    Which these are is seen from the first rows: the others have a closed-form interval, or one of the mean of what
    each sample contributed.

    Args:
        like: the meter of all metrics.
        recorder: what each sample contributes, where that is kept.
        seed: which deal.
        alone: whether one process counts everything; then a sample without an id is identified by its
            position in the stream.
    """

    def __init__(self, like: Meter, recorder: PerSampleRecorder | None, seed: int, alone: bool) -> None:
        self._like, self._recorder, self._seed, self._alone = like, recorder, seed, alone
        self._names: list[str] | None = None
        self._groups = 0
        self._partition: Partition | None = None
        self.nameless = False

    @property
    def idle(self) -> bool:
        """Whether nothing has to be drawn, or nothing can be."""
        return self._names == [] or self.nameless

    def empty(self) -> BootstrapGroups:
        """Groups without samples."""
        return BootstrapGroups(self._like, self._recorder, self._seed, self._alone)

    def count(self, rows: SampleRows) -> None:
        """Count rows into the meters of their groups."""
        if self._names is None:
            without = () if self._recorder is None else tuple(self._recorder.terms)
            needing = needing_bootstrap(self._like, independent=rows.are_single, without=without)
            self._choose([] if needing is None else list(needing.metrics))
        if self._partition is None:
            return
        if rows.ids is not None:
            numbers = numbers_of(rows.ids)
        elif rows.index is not None:
            numbers = rows.index
        else:
            numbers = np.arange(rows.first, rows.first + len(rows))
            self.nameless = not self._alone
        if not self.nameless:
            self._partition.count(rows, groups_of(numbers, self._seed, self._groups), lambda code: (str(code),))

    def _choose(self, names: list[str]) -> None:
        """Count these metrics from now on."""
        self._names = names
        if names:
            meter = self._like.fresh({name: self._like.metrics[name] for name in names})
            self._groups = group_count(meter)
            self._partition = Partition(meter)

    def state(self) -> dict[str, Tensor]:
        """What was counted, as tensors."""
        counted = {} if self._partition is None else prefixed("meters", self._partition.state())
        return {"about": as_bytes({"nameless": self.nameless, "names": self._names}), **counted}

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave."""
        about = from_bytes(tensors["about"])
        self.nameless |= about["nameless"]
        if about["names"] is None:
            return
        if self._names is None:
            self._choose(about["names"])
        if self._names != about["names"]:  # samples of one process were pixels, say, and those of another were not
            self.nameless = True
        elif self._partition is not None:
            self._partition.add_state(part_of("meters", tensors))

    def intervals(self, confidence_level: float, n_resamples: int) -> dict[str, ConfidenceInterval]:
        """The intervals of all values, by their names; none where it is not known which sample is which."""
        if self.nameless or self._partition is None:
            return {}
        meters = [meter for _, meter in sorted(self._partition.meters.items())]
        return bootstrap(meters, confidence_level, n_resamples, self._seed) if meters else {}
