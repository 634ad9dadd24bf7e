"""What an example of the demo is, and three of them: small models for data that ships with scikit-learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from assay.errors import MissingDependencyError
from assay.metrics.base import Metric
from assay.metrics.parsing import open_metrics
from assay.report import Table

SEED = 0


class Example(ABC):
    """Something that the demo trains and measures.

    Attributes:
        title: which data.
        epochs: how often training goes over its data.
        model: what was trained.
        options: further options of `evaluate`.
    """

    title: str
    epochs: ClassVar[int]
    model: Callable[..., Any]
    options: Mapping[str, Any]

    @property
    @abstractmethod
    def held_out(self) -> Any:
        """Input, target and id of the samples that are not trained on."""

    @property
    @abstractmethod
    def metrics(self) -> dict[str, Metric]:
        """What is measured, by name."""

    @abstractmethod
    def train(self, epochs: int) -> Iterator[None]:
        """Train; yields once an epoch. Random numbers of the process stay as they were."""

    def tables(self) -> tuple[Table, ...]:
        """What else the report shows."""
        return ()


class DemoModel(nn.Module):
    """A net whose outputs become probabilities `(N, C)` of C classes, `(N,)` of the second of two, or estimates `(N,)`.

    Args:
        net: gives one output a class, or one.
        classes: how many classes; 0 for a regression.
        shift: what estimates are from 0.
        spread: the unit of estimates.
    """

    def __init__(self, net: nn.Module, classes: int, shift: float = 0.0, spread: float = 1.0) -> None:
        super().__init__()
        self.net, self.classes, self.shift, self.spread = net, classes, shift, spread

    def forward(self, features: Tensor) -> Tensor:
        """The scores of some rows of features."""
        outputs: Tensor = self.net(features)
        if not self.classes:
            return outputs[:, 0] * self.spread + self.shift
        return outputs.softmax(1)[:, 1] if self.classes == 2 else outputs.softmax(1)


_METRICS = "Accuracy=acc; Macro F1=f1:average=macro; Matthews correlation=mcc; Macro AUROC=auroc; Log loss=nll"
_TWO = "Accuracy=acc; Sensitivity=recall; Specificity=specificity; AUROC=auroc; Average precision=ap; Brier score=brier"
_NUMBERS = "R²=r2; Root mean squared error=rmse; Mean absolute error=mae; Pearson correlation=pearson; Concordance=ccc"


class Task(Example):
    """A data set of rows of features, split in two, and a model for it.

    Args:
        title: which data.
        data: the data set, as scikit-learn has it; of images their pixels, else features of one scale.
        classes: the names of the classes; none for a regression.
        slices: by what samples are grouped.
    """

    epochs = 60

    def __init__(
        self,
        title: str,
        data: Any,
        classes: tuple[str, ...] = (),
        slices: Mapping[str, Any] | None = None,
    ) -> None:
        self.title, self.classes = title, classes
        self.options = {"classes": classes, "slices": slices, "batch_size": 128}
        features = torch.as_tensor(data.data, dtype=torch.float32, device="cpu")
        target = torch.as_tensor(data.target, dtype=torch.int64 if classes else torch.float32, device="cpu")
        order = torch.randperm(len(target), generator=torch.Generator().manual_seed(SEED), device="cpu")
        train, held_out = order[::2], order[1::2]
        if hasattr(data, "images"):
            features = torch.as_tensor(data.images, dtype=torch.float32, device="cpu")[:, None] / data.images.max()
        else:
            mean, scale = features[train].mean(0), features[train].std(0).clamp_min(1e-6)
            features = (features - mean) / scale
        self._train = features[train], target[train]
        self._held_out = TensorDataset(features[held_out], target[held_out], held_out)
        shift, spread = (0.0, 1.0) if classes else (float(target[train].mean()), float(target[train].std()))
        self.model: DemoModel = DemoModel(nn.Identity(), len(classes), shift, spread)

    @property
    def held_out(self) -> TensorDataset:
        return self._held_out

    @property
    def metrics(self) -> dict[str, Metric]:
        """The usual metrics, as they are written on the command line."""
        if not self.classes:
            return open_metrics(_NUMBERS.split("; "))
        shared = {"num_classes": len(self.classes)} if len(self.classes) > 2 else {}
        texts = (_METRICS if shared else _TWO).split("; ")
        return open_metrics([*texts, "Calibration error=ece"], shared)

    def train(self, epochs: int) -> Iterator[None]:
        """Train in batches of 64."""
        features, target = self._train
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            outputs = len(self.classes) or 1
            inputs = features[0].numel()
            net = nn.Sequential(nn.Flatten(), nn.Linear(inputs, 64), nn.GELU(), nn.Linear(64, outputs))
            self.model.net = net
            optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
            for _ in range(epochs):
                for rows in torch.split(torch.randperm(len(target), device="cpu"), 64):
                    optimizer.zero_grad()
                    torch.autograd.backward(self._loss(net(features[rows]), target[rows]))
                    optimizer.step()
                yield

    def _loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        if self.classes:
            return nn.functional.cross_entropy(outputs, target)
        return nn.functional.mse_loss(outputs[:, 0], (target - self.model.shift) / self.model.spread)

    @torch.inference_mode()
    def predictions(self) -> tuple[Tensor, Tensor]:
        """What the model gives for the half that was held out, and what is right."""
        features, target, _ = self.held_out.tensors
        return self.model(features), target


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
    """Handwritten digits (10 classes), breast cancer (two classes), diabetes (regression); nothing is downloaded."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", extra="demo", purpose="the data of the demo") from error
    digits, cancer = datasets.load_digits(), datasets.load_breast_cancer()
    return (
        Task("Handwritten digits", digits, tuple(map(str, digits.target_names))),
        Task("Breast cancer", cancer, tuple(map(str, cancer.target_names))),
        Task("Diabetes", datasets.load_diabetes(), slices={"sex": _sex, "age": _age, "sex x age": ("sex", "age")}),
    )


def _sex(batch: Any) -> list[str]:
    """The two codes that the diabetes data have, in the second feature."""
    return ["1" if each < 0 else "2" for each in batch[0][:, 1].tolist()]


def _age(batch: Any) -> list[str]:
    return ["below the mean" if each < 0 else "above the mean" for each in batch[0][:, 0].tolist()]
