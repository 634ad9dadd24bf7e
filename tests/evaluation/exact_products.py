"""Models whose outputs do not depend on the batch a sample is in.

How torch adds up the products of a linear layer depends on the rows of the batch and on the processor: with AMX a row
alone may differ in its last bit from the same row among others. Where numbers and weights are sixteenths, products and
sums are exact, so equal bits are due to what a test is about.
"""

from __future__ import annotations

import torch
from torch import nn


def sixteenths(*shape: int, generator: torch.Generator | None = None) -> torch.Tensor:
    """Normal numbers, rounded to sixteenths."""
    return torch.randn(*shape, generator=generator).mul(16).round() / 16


def classifier(inputs: int, classes: int) -> nn.Sequential:
    """A linear layer with weights in sixteenths, and a softmax."""
    layer = nn.Linear(inputs, classes)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(weight.mul(16).round() / 16)
    return nn.Sequential(layer, nn.Softmax(1))
