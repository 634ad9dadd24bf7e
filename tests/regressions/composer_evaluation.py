"""Composer's real Trainer evaluates a small model.

The releases of 2024 do not import beside a torch of today: what they need of torchvision and of a client for a paid
service is never used here and is stubbed, and three names of torch that have moved are put where they were.
"""

import importlib.machinery
import sys
import types
import warnings

import torch
import torch.amp.grad_scaler
import torch.cuda.amp.grad_scaler
from torch.utils.data import DataLoader, TensorDataset

STUBBED = (
    "mcli mcli.api mcli.api.exceptions mcli.config mcli.models mcli.models.run_config torchvision torchvision.datasets "
    "torchvision.datasets.folder torchvision.io torchvision.models torchvision.models._utils torchvision.models.resnet "
    "torchvision.models.segmentation torchvision.models.segmentation.deeplabv3 torchvision.ops torchvision.transforms "
    "torchvision.transforms.functional torchvision.utils"
)
MOVED = ("OptState", "_MultiDeviceReplicator", "_refresh_per_optimizer_state")


class Stub(types.ModuleType):
    """A module in which every name is an empty class."""

    __path__: list[str] = []  # noqa: RUF012 - of a package; the import system reads it

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def prepare():
    """Make the old release importable."""
    warnings.simplefilter("ignore")
    for name in STUBBED.split():
        sys.modules[name] = Stub(name)
        sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
    for name in MOVED:
        setattr(torch.cuda.amp.grad_scaler, name, getattr(torch.amp.grad_scaler, name))


def audit(device):
    """What ``assay audit`` runs."""
    prepare()
    from composer import Trainer
    from composer.metrics.metrics import CrossEntropy
    from composer.models import ComposerClassifier
    from torchmetrics import MetricCollection

    torch.manual_seed(0)
    metrics = [MetricCollection([CrossEntropy()]) for _ in range(2)]
    model = ComposerClassifier(torch.nn.Linear(4, 3), train_metrics=metrics[0], val_metrics=metrics[1], num_classes=3)
    data = DataLoader(TensorDataset(torch.rand(8, 4), torch.arange(8) % 3), batch_size=4)
    Trainer(model=model, eval_dataloader=data, device=device.type, progress_bar=False, loggers=[]).eval()
