"""Average precision of whatever TorchMetrics is on the path, under deterministic algorithms."""

import warnings

import torch
from torchmetrics.classification import BinaryAveragePrecision


def audit(device):
    """What ``assay audit`` runs."""
    warnings.simplefilter("ignore")
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(0)
    metric = BinaryAveragePrecision().to(device)
    metric.update(torch.rand(16, device=device), torch.arange(16, device=device) % 2)
    return metric.compute()
