"""How many scores of each label lie between given thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import constants
from assay.errors import ConfigError, describe
from assay.tally.base import Batch, BatchLayout, InvalidValues, Rule, State, Tally, Whole
from assay.tally.conservation import HostCount, Laws, no_sum_without_counts, not_negative
from assay.tally.labels.confusion import LARGEST_STATE
from assay.tally.row_cells import RowCells
from assay.tally.scores.curves import Ranking
from assay.tally.scores.labelled_scores import KINDS, ScoreRows, ScoreSpec
from assay.tally.sums import exact
from assay.tally.sums.fingerprints import (
    Fingerprint,
    FingerprintSize,
    of_counts_with_weights,
    of_places,
    residues,
    residues_at,
)
from assay.tally.sums.row_sums import add_invalid


@dataclass(frozen=True)
class ThresholdCounts(Tally):
    """Counts of scores by label and by how many of the thresholds they reach.

    A group is what is ranked against each other, as in `ScoreTally`. Logits go through a sigmoid or a softmax in
    float32 (float64 for float64 inputs) first. A threshold is compared as the float32 that it is.

    State, int64: `counts (groups, 2, thresholds + 1)` and `invalid`; weighted, also `weights`, exact sums of the
    weights in each cell. Size: 8 bytes a cell, and 0.6 KiB more where it is weighted.
    """

    data: ScoreSpec
    thresholds: tuple[float, ...]
    weighted: bool = False
    has_cells = True

    def __post_init__(self) -> None:
        size = 8 * math.prod(self._shape) * (1 + exact.num_limbs(1) * self.weighted)
        if size > LARGEST_STATE:
            got = f"{len(self.thresholds)}, whose counts take {size / 2**30:.1f} GiB"
            raise ConfigError(
                describe("thresholds", got, f"at most {LARGEST_STATE >> 30} GiB", "Give fewer thresholds, or None")
            )

    @property
    def _shape(self) -> tuple[int, int, int]:
        return self.data.groups, 2, len(self.thresholds) + 1

    @property
    def fields(self) -> Mapping[str, Rule]:
        return dict.fromkeys(["counts", "invalid"] + ["weights"] * self.weighted, "sum")

    def check(self, layout: BatchLayout) -> None:
        self.data.check(layout)

    def zero(self, device: torch.device) -> State:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        state = {"counts": zeros(*self._shape), "invalid": zeros(len(KINDS))}
        if self.weighted:
            state["weights"] = zeros(*self._shape, exact.num_limbs(1))
        return state

    def add(self, state: State, batch: Batch) -> None:
        rows = self.data.with_probabilities(batch)
        state["invalid"] += self.data.count_invalid(rows)
        self._add_at(state, rows, *self._places(rows))

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        return FingerprintSize(int(self.weighted))

    def fingerprint(self, batch: Batch) -> Fingerprint:
        rows = self.data.with_probabilities(batch)
        place, counted = self._places(rows)
        found = [residues_at(residues(self._weights(rows, counted)), place).view(1)] if self.weighted else []
        return Fingerprint(of_places(place, counted), torch.cat([place.new_zeros(0), *found]))

    def fingerprint_of(self, state: State) -> Fingerprint:
        return of_counts_with_weights(state["counts"], state.get("weights"))

    def add_cells(self, states: State, batch: Batch, cells: RowCells) -> None:
        rows = self.data.with_probabilities(batch)
        cells = cells.repeated(len(rows.scores) // max(1, len(cells)))
        add_invalid(states["invalid"], batch, self.data.invalid_rows(rows), cells)
        place, counted = self._places(rows)
        place += cells.repeated(self.data.groups).numbers * math.prod(self._shape)
        self._add_at(states, rows, place, counted)

    def _add_at(self, state: State, rows: ScoreRows, place: Tensor, counted: Tensor) -> None:
        state["counts"].view(-1).scatter_add_(0, place, counted)
        if rows.weights is not None:
            exact.add_to(state["weights"].view(-1, exact.num_limbs(1)), self._weights(rows, counted), place)

    @staticmethod
    def _weights(rows: ScoreRows, counted: Tensor) -> exact.Parts:
        """One finite weight for each score that counts."""
        assert rows.weights is not None, "the layout was checked"
        finite = rows.weights.masked_fill(torch.ne(rows.weights - rows.weights, 0), 0)
        return exact.parts(finite.expand(rows.scores.shape).reshape(-1)).times_sign(counted)

    def _places(self, rows: ScoreRows) -> tuple[Tensor, Tensor]:
        """The place of every score among the counts, laid out flat, and 1 where it counts, else 0."""
        values, known = rows.scores, self.data.known(rows)
        place = torch.bucketize(values.contiguous(), constants(self.thresholds, values), right=True)
        groups = torch.arange(self.data.groups, device=values.device)
        positive = torch.eq(known, groups) if self.data.labels.multiclass else torch.gt(known, 0)
        _, _, width = self._shape
        place += positive.to(torch.int64).mul_(width).add_(groups, alpha=2 * width)
        return place.view(-1), known.clamp(-1, 0).add_(1).expand(place.shape).reshape(-1)

    def canonicalize(self, state: State, rows: int) -> State:
        return state | {"weights": exact.canonical(state["weights"])} if self.weighted else state

    def canonicalize_cells(self, states: State, rows: Whole) -> State:
        return self.canonicalize(states, int(rows.sum()))

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        return self.data.invalid_values(state["invalid"])

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "counts", "invalid")
        counts = state["counts"].numpy()
        of_groups = counts.sum((1, 2)).tolist()
        yield from self.data.counted_laws(self.data.rows_of(given), of_groups, state["invalid"].tolist())
        if self.weighted:
            law = "a cell that counted nothing has no weight"
            yield from no_sum_without_counts(law, counts, state["weights"])

    def compute(self, state: State) -> tuple[Ranking, ...]:
        """One ranking for each group, whose last entry is what reaches no threshold."""
        counts = _smallest(exact.to_integers(state["weights"])) if self.weighted else state["counts"].numpy()
        falling = np.append(np.array(self.thresholds[::-1]), -math.inf)
        single = np.ones(len(falling), dtype=bool)
        return tuple(Ranking(falling, of[1, ::-1], of[0, ::-1], single, at_thresholds=True) for of in counts)


def _smallest(counts: np.ndarray) -> np.ndarray:
    """Python integers without the factors of two that all of them have."""
    low = int(np.bitwise_or.reduce(counts, axis=None))
    return counts >> ((low & -low).bit_length() - 1) if low else counts
