"""A recall written by hand, with two frequent device bugs: a float64 state, and a state that stays on the CPU.

assay audit examples/audit/recall.py:Recall --device mps,cuda:1,xpu
"""

import torch


class Recall:
    """The share of positives that were found."""

    def __init__(self):
        self.found = torch.zeros((), dtype=torch.float64)
        self.positives = torch.zeros((), dtype=torch.float64)

    def update(self, preds, target):
        self.found += ((preds > 0.5) & (target == 1)).sum()
        self.positives += (target == 1).sum()

    def compute(self):
        return self.found / self.positives

    def to(self, device):
        """Move the state."""
        self.found, self.positives = self.found.to(device), self.positives.to(device)
        return self
