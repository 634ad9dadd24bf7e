"""The same models and samples in the loops of other libraries, written as their documentation has it."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from benchmarks.meshes.models import CLASSES, samples

PRELOADED = ["accelerate", "lightning", "torchmetrics", "transformers"]


def of_accelerate(model: nn.Module, count: int, batch: int) -> float:
    """`Accelerator.prepare` and `gather_for_metrics`."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(DataLoader(samples(count), batch))
    preds, target = [], []
    with torch.no_grad():
        for x, y in loader:
            of_batch, of_target = accelerator.gather_for_metrics((model(x).argmax(1), y))
            preds.append(of_batch)
            target.append(of_target)
    return float(torch.eq(torch.cat(preds), torch.cat(target)).double().mean())


class _Named(Dataset):
    def __init__(self, inner: Dataset) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, k: int):
        x, y = self.inner[k]
        return {"x": x, "labels": y}


class _WithLoss(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, labels: Tensor):
        logits = self.inner(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def of_trainer(model: nn.Module, count: int, batch: int) -> float:
    """`Trainer.evaluate` of transformers."""
    from transformers import Trainer, TrainingArguments

    def metrics(found):
        return {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())}

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, use_cpu=True, per_device_eval_batch_size=batch, report_to=[], disable_tqdm=True
        )
        trainer = Trainer(_WithLoss(model), arguments, eval_dataset=_Named(samples(count)), compute_metrics=metrics)
        return trainer.evaluate()["eval_accuracy"]


def of_torchmetrics(model: nn.Module, count: int, batch: int) -> float:
    """TorchMetrics with a `DistributedSampler`, which Lightning's `DDPStrategy` adds to each loader by default."""
    from torchmetrics.classification import MulticlassAccuracy

    data, metric = samples(count), MulticlassAccuracy(CLASSES, average="micro")
    with torch.no_grad():
        for x, y in DataLoader(data, batch, sampler=DistributedSampler(data, shuffle=False)):
            metric.update(model(x), y)
    return float(metric.compute())


def of_lightning(model: nn.Module, count: int, batch: int) -> float:
    """`Trainer.test` of Lightning with TorchMetrics; `DDPStrategy`, in the processes that are there."""
    import lightning
    from lightning.fabric.plugins.environments import TorchElasticEnvironment
    from lightning.pytorch.strategies import DDPStrategy
    from torchmetrics.classification import MulticlassAccuracy

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.metric = model, MulticlassAccuracy(CLASSES, average="micro")

        def test_step(self, batch, number):
            self.metric.update(self.inner(batch[0]), batch[1])
            self.log("accuracy", self.metric)

    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(torch.distributed.get_world_size()),
        strategy=DDPStrategy(process_group_backend="gloo", cluster_environment=TorchElasticEnvironment()),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (found,) = trainer.test(Module(), DataLoader(samples(count), batch), verbose=False)
    return found["accuracy"]


OTHERS: dict[str, Callable[[Any, int, int], float]] = {
    "Accelerate": of_accelerate,
    "Trainer": of_trainer,
    "Lightning": of_lightning,
    "TorchMetrics": of_torchmetrics,
}
