"""An epoch of evaluation with ten metrics inside Lightning, Ignite and Transformers: the host's own and assay's.

The same loader, model and host in the same run, one thread and its CPU time. What the host costs without metrics is the
base; the ratio is of what ten metrics add to it.
"""

from __future__ import annotations

import logging
import os
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from assay import Meter
from assay.integrations import as_torchmetrics, attach, compute_metrics
from assay.metrics import (
    Accuracy,
    CohenKappa,
    F1Score,
    JaccardIndex,
    MatthewsCorrCoef,
    Precision,
    Recall,
    Specificity,
)
from benchmarks.harness import Table, save

with warnings.catch_warnings():  # what they say of their own dependencies
    warnings.simplefilter("ignore")
    import ignite.metrics as ignites
    import lightning.pytorch as lightning
    import torchmetrics.classification as theirs
    from ignite.engine import create_supervised_evaluator
    from torchmetrics import MetricCollection
    from transformers import PrinterCallback, Trainer, TrainingArguments

CLASSES, WIDTH, BATCH = 10, 16, 32
MANY, FEW = 220, 20
ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "5"))
OURS = {
    "accuracy": Accuracy(num_classes=CLASSES),
    "top 5": Accuracy(num_classes=CLASSES, top_k=5),
    "balanced accuracy": Accuracy(num_classes=CLASSES, average="macro"),
    "precision": Precision(num_classes=CLASSES, average="macro"),
    "recall": Recall(num_classes=CLASSES, average="macro"),
    "F1": F1Score(num_classes=CLASSES, average="macro"),
    "specificity": Specificity(num_classes=CLASSES, average="macro"),
    "kappa": CohenKappa(num_classes=CLASSES),
    "Matthews": MatthewsCorrCoef(num_classes=CLASSES),
    "Jaccard": JaccardIndex(num_classes=CLASSES, average="macro"),
}


def torchmetrics() -> MetricCollection:
    """The same ten of TorchMetrics; it finds out itself which of them share a state."""
    return MetricCollection(
        {
            "accuracy": theirs.MulticlassAccuracy(CLASSES, average="micro"),
            "top 5": theirs.MulticlassAccuracy(CLASSES, average="micro", top_k=5),
            "balanced accuracy": theirs.MulticlassAccuracy(CLASSES),
            "precision": theirs.MulticlassPrecision(CLASSES),
            "recall": theirs.MulticlassRecall(CLASSES),
            "F1": theirs.MulticlassF1Score(CLASSES),
            "specificity": theirs.MulticlassSpecificity(CLASSES),
            "kappa": theirs.MulticlassCohenKappa(CLASSES),
            "Matthews": theirs.MulticlassMatthewsCorrCoef(CLASSES),
            "Jaccard": theirs.MulticlassJaccardIndex(CLASSES),
        }
    )


def of_ignite() -> dict[str, Any]:
    """Ten of Ignite, which lacks balanced accuracy, specificity and Matthews: others are in their place."""
    precision, recall = ignites.Precision(average=False), ignites.Recall(average=False)
    return {
        "accuracy": ignites.Accuracy(),
        "top 5": ignites.TopKCategoricalAccuracy(5),
        "precision": ignites.Precision(average="macro"),
        "recall": ignites.Recall(average="macro"),
        "F1": ignites.Fbeta(1, precision=precision, recall=recall),
        "kappa": ignites.CohenKappa(output_transform=lambda o: (o[0].argmax(1), o[1])),
        "matrix": ignites.ConfusionMatrix(CLASSES),
        "IoU": ignites.IoU(ignites.ConfusionMatrix(CLASSES)),
        "mIoU": ignites.mIoU(ignites.ConfusionMatrix(CLASSES)),
        "report": ignites.ClassificationReport(output_dict=True),
    }


class Classifier(lightning.LightningModule):
    """A small model, and the metrics that it logs."""

    def __init__(self, metrics: MetricCollection | None) -> None:
        super().__init__()
        self.net, self.metrics = net(), metrics

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        preds = self.net(batch[0])
        if self.metrics is not None:
            self.metrics.update(preds, batch[1])

    def on_validation_epoch_end(self) -> None:
        if self.metrics is not None:
            self.log_dict(self.metrics.compute())
            self.metrics.reset()


class Labelled(nn.Module):
    """The same model with the inputs and outputs that Transformers' Trainer wants."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net()

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(WIDTH, CLASSES)


def data(batches: int) -> TensorDataset:
    made = torch.Generator().manual_seed(0)
    rows = batches * BATCH
    return TensorDataset(torch.randn(rows, WIDTH, generator=made), torch.randint(CLASSES, (rows,), generator=made))


def in_lightning(metrics: Callable[[], MetricCollection | None]) -> Callable[[int], object]:
    def run(batches: int) -> object:
        trainer = lightning.Trainer(
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
        )
        return trainer.validate(Classifier(metrics()), DataLoader(data(batches), batch_size=BATCH), verbose=False)

    return run


def in_ignite(own: Callable[[], Mapping[str, Any]], meter: Meter | None) -> Callable[[int], object]:
    def run(batches: int) -> object:
        evaluator = create_supervised_evaluator(net(), dict(own()))
        if meter is not None:
            attach(evaluator, meter)
        return evaluator.run(DataLoader(data(batches), batch_size=BATCH)).metrics

    return run


class ByTorchMetrics:
    """What users of TorchMetrics write for a Trainer."""

    def __init__(self) -> None:
        self.metrics = torchmetrics()

    def __call__(self, prediction: Any, compute_result: bool = True) -> dict[str, float]:
        self.metrics.update(*(torch.as_tensor(each) for each in (prediction.predictions, prediction.label_ids)))
        if not compute_result:
            return {}
        values = {name: value.item() for name, value in self.metrics.compute().items()}
        self.metrics.reset()
        return values


def in_transformers(compute: Callable[[], Any], by_batch: bool) -> Callable[[int], object]:
    def run(batches: int) -> object:
        rows = [{"x": x, "labels": y} for x, y in data(batches)]
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder,
                per_device_eval_batch_size=BATCH,
                batch_eval_metrics=by_batch and compute() is not None,
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
            )
            trainer = Trainer(model=Labelled(), args=arguments, eval_dataset=rows, compute_metrics=compute())
            trainer.remove_callback(PrinterCallback)
            return trainer.evaluate()

    return run


HOSTS: dict[str, dict[str, Callable[[int], object]]] = {
    "Lightning": {
        "none": in_lightning(lambda: None),
        "theirs": in_lightning(torchmetrics),
        "assay": in_lightning(lambda: as_torchmetrics(OURS)),
    },
    "Ignite": {
        "none": in_ignite(dict, None),
        "theirs": in_ignite(of_ignite, None),
        "assay": in_ignite(dict, Meter(**OURS)),
    },
    "Transformers, at the end": {
        "none": in_transformers(lambda: None, False),
        "theirs": in_transformers(ByTorchMetrics, False),
        "assay": in_transformers(lambda: compute_metrics(OURS), False),
    },
    "Transformers, batch by batch": {
        "none": in_transformers(lambda: None, True),
        "theirs": in_transformers(ByTorchMetrics, True),
        "assay": in_transformers(lambda: compute_metrics(OURS), True),
    },
}


def spent(act: Callable[[int], object], batches: int) -> float:
    start = time.thread_time()
    act(batches)
    return time.thread_time() - start


def a_batch(acts: Mapping[str, Callable[[int], object]]) -> dict[str, list[float]]:
    """Seconds a batch in each round, without what an evaluation costs once."""
    order, found = random.Random(0), {name: [] for name in acts}
    for act in acts.values():
        act(2)
    for _ in range(ROUNDS):
        for name in order.sample(list(acts), len(acts)):
            found[name].append((spent(acts[name], MANY) - spent(acts[name], FEW)) / (MANY - FEW))
    return found


def main() -> None:
    """Print the table and keep it."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    header = ("host", "alone", "+ ten of its metrics", "+ ten of assay", "assay / its own")
    table = Table(f"µs a batch of {BATCH} in an epoch of evaluation", header)
    kept = {}
    for host, acts in HOSTS.items():
        times = kept[host] = a_batch(acts)
        base, own, ours = (statistics.median(times[name]) * 1e6 for name in ("none", "theirs", "assay"))
        ratio = (ours - base) / max(own - base, 1e-9)
        table.rows.append([host, f"{base:.0f}", f"+ {own - base:.0f}", f"+ {ours - base:.0f}", f"{ratio:.2f}"])
    table.notes.append("Its own are TorchMetrics' in Lightning and Transformers, Ignite's in Ignite.")
    save("integrations", [table], kept)


if __name__ == "__main__":
    main()
