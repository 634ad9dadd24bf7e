"""Scores of two and of more classes."""

from __future__ import annotations

import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from assay.metrics.classification.ranking import AUROC, AveragePrecision

AREAS = [(AUROC, roc_auc_score), (AveragePrecision, average_precision_score)]


def gaussians(count, *, distance=1.0, positives=0.5, scale=1.0, seed=0):
    """Logits of two normal distributions, and labels."""
    generator = torch.Generator().manual_seed(seed)
    target = (torch.rand(count, generator=generator) < positives).long()
    target[:2] = torch.tensor([0, 1])
    return (torch.randn(count, generator=generator) + distance * target) * scale, target


def classes(count, num_classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, num_classes, (count,), generator=generator)
    preds = torch.randn(count, num_classes, generator=generator)
    preds[torch.arange(count), target] += 1
    return preds.softmax(1), target
