"""An evaluation that takes the outputs to the CPU and leaves the batch behind.

MosaicML Composer's Trainer did so on Apple GPUs up to release 0.21.1: mosaicml/composer#2385, #3094. What follows is a
small form of the same idea, and one that moves both.

    assay audit examples/regressions/outputs_moved_alone.py:evaluate --device mps
"""

import torch
from torch.nn.functional import cross_entropy


def batches():
    """Two batches of inputs and labels."""
    torch.manual_seed(0)
    return [(torch.rand(8, 4), torch.arange(8) % 3) for _ in range(2)]


def evaluate(device):
    """The mean loss of a small model; takes the outputs to the CPU, where the arithmetic is trusted."""
    model, losses = torch.nn.Linear(4, 3).to(device), []
    for batch in batches():
        inputs, target = (tensor.to(device) for tensor in batch)
        outputs = model(inputs).cpu()
        losses.append(cross_entropy(outputs, target))  # the bug: the target is still on the device
    return torch.stack(losses).mean()


def fixed(device):
    """The same with outputs and target in one place."""
    model, losses = torch.nn.Linear(4, 3).to(device), []
    for inputs, target in batches():
        outputs = model(inputs.to(device)).cpu()
        losses.append(cross_entropy(outputs, target))
    return torch.stack(losses).mean()
