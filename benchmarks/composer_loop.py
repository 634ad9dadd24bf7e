"""Composer's `Trainer.eval` over ready batches, where Composer lies in a folder of its own.

Its releases ask for another torch and torchvision, so it is not installed beside them. It does run with a torch of
today when what it imports of torchvision, which it does not use here, is stubbed. This makes the folder:

    python -m pip install --no-deps --target $COMPOSER mosaicml==0.32.1 torchmetrics==1.7.4 torch-optimizer==0.3.0 \
        pytorch_ranger psutil coolname tabulate py-cpuinfo importlib-metadata==6.11.0 zipp tqdm requests urllib3 idna \
        certifi charset-normalizer lightning-utilities
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

FOLDER = os.environ.get("COMPOSER", "")
STUBBED = (
    "mcli mcli.api mcli.api.exceptions mcli.config mcli.models mcli.models.run_config torchvision torchvision.datasets "
    "torchvision.datasets.folder torchvision.io torchvision.models torchvision.models._utils torchvision.models.resnet "
    "torchvision.models.segmentation torchvision.models.segmentation.deeplabv3 torchvision.ops torchvision.transforms "
    "torchvision.transforms.functional torchvision.utils"
)


class _Stub(types.ModuleType):
    """A module in which every name is an empty class."""

    __path__: list[str] = []  # noqa: RUF012 - of a package; the import system reads it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def loops(net: nn.Module, classes: int) -> dict[str, Callable[[Any], object]]:
    """Composer's evaluation without and with accuracy; nothing where it is not there."""
    if not FOLDER:
        return {}
    warnings.simplefilter("ignore")
    if "composer" not in sys.modules:
        _import()
    from composer import Trainer  # type: ignore[import-not-found]
    from composer.models import ComposerModel  # type: ignore[import-not-found]
    from torchmetrics.classification import MulticlassAccuracy

    class Batches:
        """Ready batches as a loader: Composer asks for their size, and takes a list for several loaders."""

        batch_size = 32

        def __init__(self, batches: list[Any]) -> None:
            self._batches = batches

        def __iter__(self) -> Iterator[Any]:
            return iter(self._batches)

        def __len__(self) -> int:
            return len(self._batches)

    class Model(ComposerModel):  # type: ignore[misc]
        def __init__(self, metrics: dict[str, Any]) -> None:
            super().__init__()
            self.net, self.metrics = net, metrics

        def forward(self, batch: Any) -> torch.Tensor:
            outputs: torch.Tensor = self.net(batch[0])
            return outputs

        def loss(self, outputs: Any, batch: Any) -> torch.Tensor:
            return nn.functional.cross_entropy(outputs, batch[1])

        def get_metrics(self, is_train: bool) -> dict[str, Any]:
            return {} if is_train else self.metrics

        def update_metric(self, batch: Any, outputs: Any, metric: Any) -> None:
            metric.update(outputs, batch[1])

    def evaluated(metrics: dict[str, Any]) -> Callable[[Any], object]:
        trainer = Trainer(model=Model(metrics), device="cpu", progress_bar=False, loggers=[])
        return lambda some: trainer.eval(eval_dataloader=Batches(some))

    accuracy = {"accuracy": MulticlassAccuracy(num_classes=classes, average="micro")}
    return {"Composer's eval, no metric": evaluated({}), "Composer's eval, Accuracy": evaluated(accuracy)}


def _import() -> None:
    sys.path.insert(0, FOLDER)
    for name in STUBBED.split():
        sys.modules[name] = _Stub(name)
        sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
    import composer  # type: ignore[import-not-found] # noqa: F401
