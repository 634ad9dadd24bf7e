"""A model that stops after some batches, as a machine does."""

from __future__ import annotations

from torch import nn


class Counters:
    """What a model counts is no part of what it is: that is what it is pickled from."""

    def __init__(self, left=0):
        self.left, self.rows = left, 0

    def __reduce__(self):
        return Counters, ()


class Stops(nn.Module):
    """Predicts so many batches, and then stops."""

    def __init__(self, batches):
        super().__init__()
        self.counters = Counters(batches)

    def forward(self, x):
        if not self.counters.left:
            raise KeyboardInterrupt
        self.counters.left -= 1
        self.counters.rows += len(x)
        return x
