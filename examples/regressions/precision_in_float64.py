"""Precision that counts in float64, which Apple GPUs do not have.

PyTorch Ignite's Precision and Recall did so up to release 0.5.1: pytorch/ignite#3326. What follows is a small form of
the same idea, and one that counts in integers.

    assay audit examples/regressions/precision_in_float64.py --device mps
"""

import torch
from torch.nn.functional import one_hot

from assay.audit import Case

CLASSES = 3


class Precision:
    """The share of predictions of each class that are right."""

    def __init__(self):
        self.correct = self.found = 0

    def update(self, preds, target):
        found = one_hot(preds.argmax(1), CLASSES).to(torch.float64)  # the bug
        true = one_hot(target, CLASSES).to(torch.float64)
        self.correct += (found * true).sum(0)
        self.found += found.sum(0)

    def compute(self):
        return self.correct / self.found

    def to(self, device):
        """There is nothing to move: the first sum makes the state."""
        return self


class FixedPrecision(Precision):
    """Counts are int64, which holds them exactly on every device."""

    def update(self, preds, target):
        found = one_hot(preds.argmax(1), CLASSES)
        self.correct += (found * one_hot(target, CLASSES)).sum(0)
        self.found += found.sum(0)


def audit_cases():
    """What ``assay audit`` runs: both, with two batches that have every class."""
    target = torch.arange(12) % CLASSES
    batches = tuple((one_hot(target.roll(k), CLASSES).float(), target) for k in (0, 1))
    return [Case(metric.__name__, metric, batches) for metric in (Precision, FixedPrecision)]
