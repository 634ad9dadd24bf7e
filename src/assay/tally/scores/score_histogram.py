"""How many scores of each label fell into each bin: the state of many scores, and how it is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from assay.devices.placement import move
from assay.native import bins as native
from assay.native.library import takes
from assay.tally.base import State
from assay.tally.row_cells import RowCells
from assay.tally.scores.labelled_scores import ScoreSpec
from assay.tally.scores.score_bins import ScoreBins


@dataclass(frozen=True)
class ScoreHistogram:
    """Two fields of a state: `histogram`, int64 of shape `(groups, 2, bins)`, negatives and positives; and `unclear`.

    See `ScoreBins.place` for `unclear`. A known class is -1 where the target is ignored or no class.
    """

    data: ScoreSpec

    @cached_property
    def bins(self) -> ScoreBins:
        return ScoreBins(self.data.logits, (self.data.groups - 1).bit_length())

    def open(self, state: State, device: torch.device) -> None:
        """Make the fields where there are none."""
        if "histogram" not in state:
            with torch.inference_mode(False):
                shape = (self.data.groups, 2, self.bins.count)
                state["histogram"] = torch.zeros(shape, dtype=torch.int64, device=device)
                state["unclear"] = torch.zeros(2, dtype=torch.int64, device=device)

    def count(self, state: State, scores: Tensor, known: Tensor, compiled: bool) -> None:
        """Count scores `(rows, groups)` with their known classes, int64: in compiled code where that takes them."""
        if compiled and takes(scores):
            self.count_places(state, scores, known + 1)
            return
        self._add(state, scores, known)

    def count_places(self, state: State, scores: Tensor, place: Tensor) -> None:
        """Count float32 scores in host memory with targets as `ScoreRows` has them, in compiled code."""
        counts, classes = (state["histogram"], state["unclear"]), self.data.labels.num_classes
        native.count_scores(*counts, scores, place, classes, self.bins.layout)

    def count_cells(
        self, states: Mapping[int, State], scores: Tensor, known: Tensor, cells: RowCells, compiled: bool
    ) -> None:
        """Count scores into the states of their cells; rows of cells without a state are left out."""
        if compiled and takes(scores):
            tables = torch.zeros(cells.count, 2, dtype=torch.int64, device="cpu")
            for cell, state in states.items():
                tables[cell, 0], tables[cell, 1] = state["histogram"].data_ptr(), state["unclear"].data_ptr()
            classes = self.data.labels.num_classes
            native.count_cell_scores(tables, cells.segments, scores, known + 1, classes, self.bins.layout)
            return
        starts, order = cells.segments
        for cell, state in states.items():
            rows = move(order[starts[cell] : starts[cell + 1]], scores.device)
            self.count(state, scores.index_select(0, rows), known.index_select(0, rows), compiled)

    def _add(self, state: State, values: Tensor, known: Tensor) -> None:
        """Add scores to the histogram."""
        place, valid, unclear = self._places(values, known)
        state["histogram"].view(-1).scatter_add_(0, place, valid)
        state["unclear"] += unclear

    def places(self, values: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """The place of each score in the histogram, laid out flat, and 1 where it counts, else 0."""
        return self._places(values, known)[:2]

    def _places(self, values: Tensor, known: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        place, unclear = self.bins.place(values)
        valid = known.clamp(-1, 0).add_(1)
        if self.data.labels.multiclass:
            classes = torch.arange(self.data.groups, device=values.device)
            positive = torch.eq(known, classes).to(torch.int64)
            valid = valid.expand(place.shape)
        else:
            positive = known.clamp(min=0)
        if self.data.groups > 1:
            place += torch.arange(self.data.groups, device=values.device).mul_(2 * self.bins.count)
        place += positive.mul_(self.bins.count)
        return place.view(-1), valid.reshape(-1), unclear
