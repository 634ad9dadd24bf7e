"""Random scores and labels of each task, with what an oracle is given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

CLASSES, LABELS = 5, 3
TASKS = {"binary": {}, "multiclass": {"num_classes": CLASSES}, "multilabel": {"num_labels": LABELS}}
AVERAGES = ("micro", "macro", "weighted", None)
every_task = pytest.mark.parametrize("task", TASKS)
every_average = pytest.mark.parametrize(
    ("task", "average"),
    [("binary", None), *((task, average) for task in ("multiclass", "multilabel") for average in AVERAGES)],
)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


def arguments(task, average):
    """Those of a metric; binary data has no average."""
    return TASKS[task] if task == "binary" else {**TASKS[task], "average": average}


class Sample(NamedTuple):
    """What assay gets (scores, target, weights) and what the oracle gets (labels, target, weights)."""

    scores: Tensor
    target: Tensor
    weights: Tensor | None
    predicted: np.ndarray

    @property
    def oracle(self) -> tuple[np.ndarray, np.ndarray]:
        return self.target.numpy(), self.predicted

    @property
    def sample_weight(self) -> np.ndarray | None:
        return None if self.weights is None else self.weights.double().numpy()

    def measured_by(self, metric):
        return metric(self.scores, self.target, weights=self.weights)


def sample(task: str, weighted: bool = False, rows: int = 60, seed: int = 0) -> Sample:
    """Random data; in multiclass data the last class neither occurs nor is predicted, the one before only predicted."""
    generator = torch.Generator().manual_seed(seed)
    shape = {"binary": (rows,), "multiclass": (rows, CLASSES), "multilabel": (rows, LABELS)}[task]
    scores = torch.rand(shape, generator=generator)
    weights = torch.rand(rows, generator=generator) + 0.1 if weighted else None
    if task != "multiclass":
        target = torch.randint(0, 2, shape, generator=generator)
        return Sample(scores, target, weights, (scores > 0.5).long().numpy())
    scores[:, -1] = 0
    target = torch.randint(0, CLASSES - 2, (rows,), generator=generator)
    return Sample(scores, target, weights, scores.numpy().argmax(1))


def close(value: Tensor, expected) -> None:
    assert value.dtype == torch.float64
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-12, atol=1e-15)
