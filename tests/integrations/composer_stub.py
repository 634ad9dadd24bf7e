"""What assay needs of Composer, as `composer/models/base.py`, `core/evaluator.py` and `trainer/trainer.py` define it.

Composer cannot be installed beside a torch of today. The evaluation below does what its Trainer does with a model, and
moves outputs to the CPU, alone, where it is told to, as the releases before 0.21.2 did on an Apple GPU
(mosaicml/composer#3094). `make test-integrations` runs the same checks in two real releases.
"""

from __future__ import annotations

import copy
import re
import sys
import types

import torch
import torchmetrics


class ComposerModel(torch.nn.Module):
    """The base of models."""

    def __init__(self) -> None:
        super().__init__()
        self.logger = None


class Evaluator:
    """Data with the patterns of metrics."""

    def __init__(self, *, label, dataloader, metric_names=None, subset_num_batches=None, eval_interval=None):
        if metric_names is not None and not isinstance(metric_names, list):
            raise ValueError("metric_names")
        self.label, self.dataloader, self.metric_names = label, dataloader, metric_names


def to(device, tree):
    """Every tensor of a batch on a device."""
    if isinstance(tree, torch.Tensor):
        return tree.to(device)
    if isinstance(tree, dict):
        return {name: to(device, part) for name, part in tree.items()}
    return [to(device, part) for part in tree]


def outputs_alone(outputs):
    """What the Trainer moved on an Apple GPU: outputs, one level deep, and no batch."""
    if isinstance(outputs, dict):
        return {name: part.cpu() if isinstance(part, torch.Tensor) else part for name, part in outputs.items()}
    return outputs.cpu() if isinstance(outputs, torch.Tensor) else outputs


def evaluate(model, evaluator, device="cpu", moved=False):
    """What `Trainer.eval` does with metrics: copies, filters, updates, reads."""
    metrics = {}
    for name, metric in copy.deepcopy(model.get_metrics(is_train=False)).items():
        patterns = evaluator.metric_names
        if patterns is None or any(re.match(f".*{each}.*", name, re.IGNORECASE) for each in patterns):
            assert isinstance(metric, torchmetrics.Metric)
            metrics[name] = metric.to("cpu" if moved else device)
            metrics[name].reset()
    model = model.to(device).eval()
    with torch.no_grad():
        for batch in evaluator.dataloader:
            batch = to(device, batch)
            outputs = model.eval_forward(batch)
            for metric in metrics.values():
                model.update_metric(batch, outputs_alone(outputs) if moved else outputs, metric)
    return {name: metric.compute() for name, metric in metrics.items()}


def installed(monkeypatch):
    """Let this be the package that is imported."""
    package = types.ModuleType("composer")
    package.ComposerModel, package.Evaluator = ComposerModel, Evaluator
    monkeypatch.setitem(sys.modules, "composer", package)
