"""Concordance correlation whose state stays on the CPU unless somebody moves the metric.

TorchMetrics' ConcordanceCorrCoef is made on the CPU, as all its metrics are: Lightning-AI/torchmetrics#2964. What
follows is a small form of the same idea, and one whose state is born where the first batch is.

    assay audit examples/regressions/state_on_the_cpu.py --device cuda:1 --usage not-moved
"""

import torch

from assay.audit import Case


class ConcordanceCorrCoef:
    """How well two rows of numbers agree, from sums of them, of their squares and of their products."""

    def __init__(self):
        self.sums = torch.zeros(6)

    def moments(self, preds, target):
        """Number, sums, sums of squares, and the sum of products."""
        ones = torch.ones_like(preds)
        rows = torch.stack([ones, preds, target, preds * preds, target * target, preds * target])
        return rows.sum(1)

    def update(self, preds, target):
        self.sums += self.moments(preds, target)  # the bug: the batch may be elsewhere

    def compute(self):
        n, x, y, xx, yy, xy = self.sums
        apart = (x / n - y / n) ** 2
        return 2 * (xy / n - x * y / n**2) / (xx / n - (x / n) ** 2 + yy / n - (y / n) ** 2 + apart)

    def to(self, device):
        """Move the state."""
        self.sums = self.sums.to(device)
        return self


class FixedConcordanceCorrCoef(ConcordanceCorrCoef):
    """The state goes where the batch is."""

    def update(self, preds, target):
        self.sums = self.sums.to(preds.device) + self.moments(preds, target)


def audit_cases():
    """What ``assay audit`` runs: both, with two batches."""
    torch.manual_seed(0)
    batches = tuple((torch.rand(16), torch.rand(16)) for _ in range(2))
    return [Case(metric.__name__, metric, batches) for metric in (ConcordanceCorrCoef, FixedConcordanceCorrCoef)]
