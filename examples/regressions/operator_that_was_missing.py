"""Packing of 4-bit weights with an operator that Apple GPUs lacked under torch 2.4.

TorchChat called it there: pytorch/torchchat#719; the kernel came with pytorch/pytorch#128965. What follows is the call,
under the rules of that release; one that packs on the CPU and says so; and one that leaves it to a plan, which needs
no packing operator (``examples/quantize_where_an_operator_is_missing.py`` shows what the plan says).

    ASSAY_PRETEND_TORCH=2.4 assay audit examples/regressions/operator_that_was_missing.py:quantize --device mps
"""

import torch

from assay.quantize import plan


def weights(device):
    """Integers from 0 to 15, as a layer's weights after rounding."""
    return (torch.arange(32 * 64, device=device) % 16).reshape(32, 64).int()


def quantize(device):
    """Pack on the device."""
    return torch.ops.aten._convert_weight_to_int4pack(weights(device), 2)


def fixed(device):
    """Pack on the CPU, once, when the model is loaded."""
    return torch.ops.aten._convert_weight_to_int4pack_for_cpu(weights(device).cpu(), 2)


def planned(device):
    """Plan for the device, round where the weights are, and run there."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    plan(model, "int4, int8", device=device, release="2.4").apply(model)
    return model.to(device)(torch.ones(2, 256, device=device))
