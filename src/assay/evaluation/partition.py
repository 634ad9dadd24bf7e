"""Rows assigned to meters by a label: those of slices, and those of the groups that intervals come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from assay.evaluation.observers import Array, SampleRows, Tensors, as_bytes, from_bytes, part_of, prefixed
from assay.meter import Meter

Label: TypeAlias = tuple[str, ...]

STAGE_BYTES = 1 << 14
"""Of each meter: rows come by the thousand, so staging them again gains little."""


class Partition:
    """Equal meters, one a label, each of which counts the rows with that label.

    Args:
        like: the meter that they are made like.
    """

    def __init__(self, like: Meter) -> None:
        self.like = like
        self.meters: dict[Label, Meter] = {}

    def count(self, rows: SampleRows, codes: Array, label_of: Callable[[int], Label]) -> None:
        """Count rows.

        Args:
            rows: the rows.
            codes: integers `(N,)`, one for each label.
            label_of: the label of a number.
        """
        for code, batch in rows.batch.by_code(codes):
            self._meter(label_of(code)).count(batch)

    def _meter(self, label: Label) -> Meter:
        meter = self.meters.get(label)
        if meter is None:
            meter = self.meters[label] = self.like.fresh(stage_bytes=STAGE_BYTES)
        return meter

    def state(self) -> dict[str, Tensor]:
        """What was counted, as tensors on the CPU."""
        tensors = {"labels": as_bytes(list(self.meters))}
        for number, meter in enumerate(self.meters.values()):
            tensors.update(prefixed(str(number), meter.state_dict()))
        return tensors

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave."""
        for number, label in enumerate(from_bytes(tensors["labels"])):
            counted = self.like.fresh()
            counted.load_state_dict(part_of(str(number), tensors))
            self._meter(tuple(label)).merge(counted)
