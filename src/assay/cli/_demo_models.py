"""Three small models, trained in seconds on data that ships with scikit-learn, and what they predict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay.errors import MissingDependencyError

SEED = 0
EPOCHS = 60


@dataclass(frozen=True)
class HeldOut:
    """What a model predicted for samples that it never saw.

    Args:
        title: which data.
        preds: probabilities `(N, C)` of C classes, probabilities `(N,)` of the second of two, or estimates `(N,)`.
        target: the truth, `(N,)`.
        ids: which rows of the data set they are, `(N,)`.
        classes: the names of the classes; none for a regression.
    """

    title: str
    preds: Tensor
    target: Tensor
    ids: Tensor
    classes: tuple[str, ...] = ()


class Task:
    """A data set, split in two, and a model for it; `train` yields once an epoch."""

    def __init__(self, title: str, data: Any, classes: tuple[str, ...] = ()) -> None:
        self.title, self.classes = title, classes
        features = torch.as_tensor(data.data, dtype=torch.float32)
        target = torch.as_tensor(data.target, dtype=torch.int64 if classes else torch.float32)
        order = torch.randperm(len(target), generator=torch.Generator().manual_seed(SEED))
        train, held_out = order[::2], order[1::2]
        mean, scale = features[train].mean(0), features[train].std(0).clamp_min(1e-6)
        features = (features - mean) / scale
        self._train = features[train], target[train]
        self._held_out = features[held_out], target[held_out]
        self._ids = held_out

    def train(self, epochs: int) -> Iterator[None]:
        """Train for some epochs in batches of 64; random numbers of the process stay as they were."""
        features, target = self._train
        self._shift, self._spread = (0.0, 1.0) if self.classes else (float(target.mean()), float(target.std()))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            outputs = len(self.classes) or 1
            self._model = nn.Sequential(nn.Linear(features.shape[1], 64), nn.GELU(), nn.Linear(64, outputs))
            optimizer = torch.optim.AdamW(self._model.parameters(), lr=3e-3, weight_decay=1e-2)
            for _ in range(epochs):
                for rows in torch.split(torch.randperm(len(target)), 64):
                    optimizer.zero_grad()
                    torch.autograd.backward(self._loss(self._model(features[rows]), target[rows]))
                    optimizer.step()
                yield

    def _loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        if self.classes:
            return nn.functional.cross_entropy(outputs, target)
        return nn.functional.mse_loss(outputs[:, 0], (target - self._shift) / self._spread)

    @torch.inference_mode()
    def evaluate(self) -> HeldOut:
        """Predict the half that was held out."""
        features, target = self._held_out
        outputs = self._model.eval()(features)
        if not self.classes:
            preds = outputs[:, 0] * self._spread + self._shift
        elif len(self.classes) == 2:
            preds = outputs.softmax(1)[:, 1]
        else:
            preds = outputs.softmax(1)
        return HeldOut(self.title, preds, target, self._ids, self.classes)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: for matrices this small, more threads wait for each other, long on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def tasks() -> tuple[Task, Task, Task]:
    """Handwritten digits (10 classes), breast cancer (two classes), diabetes (regression); nothing is downloaded.

    Raises:
        MissingDependencyError: scikit-learn, which brings the data, is not installed.
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", extra="demo", purpose="the data of the demo") from error
    digits, cancer = datasets.load_digits(), datasets.load_breast_cancer()
    return (
        Task("Handwritten digits", digits, tuple(map(str, digits.target_names))),
        Task("Breast cancer", cancer, tuple(map(str, cancer.target_names))),
        Task("Diabetes", datasets.load_diabetes()),
    )
