"""What was counted of rows: by the meter of the metrics, by slices, and by what else observes samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.evaluation.arguments.preparation import sample_observers
from assay.evaluation.observe.clusters import cluster_numbers
from assay.evaluation.observe.observers import SampleRows, part_of, prefixed
from assay.evaluation.observe.per_sample import PerSampleRecorder
from assay.evaluation.observe.slices import Slicer
from assay.meter import Meter
from assay.meter.cells import put_together, uncounted
from assay.meter.file import counts_in_state, from_sparse, sparse
from assay.meter.inputs.arguments import Arguments
from assay.scoring.options import ScoreOptions
from assay.scoring.rows import TableRows


class RowCounts:
    """Counts of rows, which add up.

    Args:
        whole: an empty meter of all metrics and of what diagnostics need.
        like: an empty meter of the metrics.
        options: how rows are measured.
        expected: how many rows the whole table has; 0 where that is not known.

    Attributes:
        whole: an empty meter of everything.
        observers: what follows the rows beside the meter, by name.
    """

    def __init__(self, whole: Meter, like: Meter, options: ScoreOptions, expected: int) -> None:
        self.whole = whole
        self.observers = sample_observers(
            like.fresh(stage_bytes=0), options.slice_spec, options, expected, alone=True, keeps_documents=False
        )
        slicer = self.observers.get("slices")
        self._slicer = slicer if isinstance(slicer, Slicer) else None
        self._rest = whole.fresh() if self._slicer is None else uncounted(whole, self._slicer.like)
        self._total: Meter | None = None

    @property
    def meter(self) -> Meter:
        """What was counted of all rows: the sum of the slices, and what no slice needs."""
        if self._total is None:
            of_slices = [] if self._slicer is None else [self._slicer.total()]
            self._total = put_together(self.whole, *of_slices, *([] if self._rest is None else [self._rest]))
        return self._total

    @property
    def keeps_names(self) -> bool:
        """Whether it is kept what each row is called."""
        recorder = self.observers.get("samples")
        return "queries" in self.observers or (isinstance(recorder, PerSampleRecorder) and not recorder.full)

    def count(
        self,
        rows: TableRows,
        arguments: Arguments,
        index: NDArray[np.int64] | None,
        ids: list[Any] | None,
        numbers: NDArray[np.int64],
        cluster: str,
    ) -> None:
        """Count rows.

        Args:
            rows: the rows.
            arguments: what the meter is given of them.
            index: the integers that they are called by.
            ids: the strings that they are called by.
            numbers: what identifies them.
            cluster: the column of their clusters; empty for none.
        """
        raw = None
        if self.whole.takes_raw:
            raw = list(zip(rows.preds, rows.target or [""] * len(rows.preds), strict=True))
        parts = {name: [values] for name, values in rows.parts.items()}
        self._total = None
        with torch.no_grad():
            if self._rest is not None:
                self._rest.count(arguments)
            clusters = cluster_numbers(parts[cluster]) if cluster else None
            sample_rows = SampleRows(arguments, index, ids, 0, parts, raw, numbers, clusters=clusters)
            for observer in self.observers.values():
                if not getattr(observer, "idle", False):
                    observer.count(sample_rows)

    def merge(self, others: Iterable[RowCounts]) -> None:
        """Add the counts of other rows."""
        self._total = None
        rests = []
        for other in others:
            for name, observer in self.observers.items():
                observer.add_state(other.observers[name].state())
            rests += [] if other._rest is None else [other._rest]
        if self._rest is not None:
            self._rest.merge(*rests)

    def tensors(self) -> dict[str, Tensor]:
        """The counts as tensors by name."""
        tensors = {} if self._rest is None else prefixed("meter", sparse(self._rest.state_dict()))
        for name, observer in self.observers.items():
            tensors |= prefixed(f"observer {name}", observer.state())
        return tensors

    def add_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Add what `tensors` gave."""
        self._total = None
        if self._rest is not None:
            self._rest.counts.extend(*counts_in_state(self._rest.plan, from_sparse(part_of("meter", tensors))))
        for name, observer in self.observers.items():
            observer.add_state(part_of(f"observer {name}", tensors))
