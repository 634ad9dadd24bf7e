"""Rows assigned to meters by a label: those of slices, and those of the groups that intervals come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import move
from assay.evaluation.observers import Array, SampleRows, Tensors, as_bytes, from_bytes, part_of, prefixed
from assay.meter import Meter

Label: TypeAlias = tuple[str, ...]

STAGE_BYTES = 1 << 14
"""Of each meter: rows come by the thousand, so staging them again gains little."""
COPIED_BYTES = 1 << 25
"""Rows of more than that (a batch of images) are not copied into another order, but counted one by one."""


class Partition:
    """Equal meters, one a label, each of which counts the rows with that label.

    Args:
        like: the meter that they are made like.
    """

    def __init__(self, like: Meter) -> None:
        self._like = like
        self.meters: dict[Label, Meter] = {}

    def count(self, rows: SampleRows, codes: Array, label_of: Callable[[int], Label]) -> None:
        """Count rows.

        Args:
            rows: the rows.
            codes: integers `(N,)`, one for each label.
            label_of: the label of a number.
        """
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
        if rows.batch.nbytes > COPIED_BYTES:
            for row, code in enumerate(codes.tolist()):
                self._meter(label_of(code)).count(rows.batch.rows(slice(row, row + 1)))
            return
        index = move(torch.from_numpy(order), rows.preds.device)
        batch = rows.batch.map(lambda tensor: tensor.index_select(0, index))
        for start, stop in zip(starts, np.append(starts[1:], len(codes)), strict=True):
            self._meter(label_of(int(ordered[start]))).count(batch.rows(slice(start, stop)))

    def _meter(self, label: Label) -> Meter:
        meter = self.meters.get(label)
        if meter is None:
            meter = self.meters[label] = self._like.fresh(stage_bytes=STAGE_BYTES)
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
            counted = self._like.fresh()
            counted.load_state_dict(part_of(str(number), tensors))
            self._meter(tuple(label)).merge(counted)
