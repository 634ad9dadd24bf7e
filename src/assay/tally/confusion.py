"""The confusion matrix: how often each predicted label met each true one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from assay.tally import exact
from assay.tally.base import Batch, Layout, Problem, Rule, State, Tally
from assay.tally.labels import Labels


@dataclass(frozen=True)
class Counts:
    """Counts as integers in units of `2 ** unit`; the unit is 0 unless the samples were weighted.

    `values` has dtype int64, or object (Python integers) when weighted.
    """

    values: np.ndarray
    unit: int = 0


@dataclass(frozen=True)
class Confusion(Tally):
    """Counts of (true label, predicted label), for each label of multilabel data.

    The state is one int64 table of shape `(labels, C + 3, C + 2)`. Its rows are the true label: below range, the `C`
    classes, above range, ignored; its columns the predicted label: below range, the `C` classes, above range or
    undecidable. What should not be there is so counted at no extra cost. Weighted counts are exact sums in limbs.

    Size: `8 (C + 3) (C + 2)` bytes per label; weighted, 68 times that.
    """

    labels: Labels
    weighted: bool = False

    @property
    def fields(self) -> Mapping[str, Rule]:
        return {"counts": "sum", "weights": "sum"} if self.weighted else {"counts": "sum"}

    @property
    def _shape(self) -> tuple[int, int, int]:
        return self.labels.groups, self.labels.num_classes + 3, self.labels.num_classes + 2

    def check(self, layout: Layout) -> None:
        self.labels.check(layout)

    def zero(self, device: torch.device) -> State:
        shape = self._shape
        state: State = {"counts": torch.zeros(shape, dtype=torch.int64, device=device)}
        if self.weighted:
            state["weights"] = torch.zeros(*shape, exact.num_limbs(1), dtype=torch.int64, device=device)
        return state

    def add(self, state: State, batch: Batch) -> None:
        _, rows, columns = self._shape
        column = self.labels.predicted(batch).clamp(-1, columns - 2)
        cell = torch.add(column, self.labels.rows(batch), alpha=columns).add_(1)
        cell += self.labels.group_start(batch, rows * columns)
        ones = batch.once("ones", lambda _: torch.ones_like(cell))
        state["counts"].view(-1).scatter_add_(0, cell, ones)
        if self.weighted:
            weights = exact.parts(self.labels.weights(batch))
            exact.add_to(state["weights"].view(-1, exact.num_limbs(1)), weights, cell)

    def settle(self, state: State, rows: int) -> State:
        return state | {"weights": exact.settled(state["weights"])} if self.weighted else state

    def problems(self, state: State) -> Sequence[Problem]:
        return label_problems(state["counts"].sum(0).numpy(), self.labels)

    def read(self, state: State) -> Counts:
        """The matrix of shape `(labels, C, C)`: true label by predicted label, without what was ignored."""
        if self.weighted:
            values, unit = exact.to_integers(state["weights"]), exact.origin(1)
        else:
            values, unit = state["counts"].numpy(), 0
        matrix = values[:, 1:-2, 1:-1].copy()
        ignored = self.labels.ignore_index
        if ignored is not None and 0 <= ignored < self.labels.num_classes:
            matrix[:, ignored] = 0
        return Counts(matrix, unit)


def label_problems(table: np.ndarray, labels: Labels) -> list[Problem]:
    """What a table of shape `(C + 3, C + 2)` says of labels that should not be there."""
    last = labels.num_classes - 1
    known = table[1:-2]
    problems = [
        Problem(f"targets are outside 0 ... {last}" + _besides(labels.ignore_index), int(table[[0, -2]].sum())),
        Problem(f"predictions are NaN or outside 0 ... {last}", int(known[:, [0, -1]].sum())),
    ]
    return [problem for problem in problems if problem.count]


def _besides(ignore_index: int | None) -> str:
    return "" if ignore_index is None else f" and are not ignore_index={ignore_index}"
