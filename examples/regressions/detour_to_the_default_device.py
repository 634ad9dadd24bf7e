"""A cumulative sum that goes by way of the CPU and comes back to the default GPU.

TorchMetrics did so under deterministic algorithms up to release 1.4.0.post0 (``_cumsum`` in its ``utilities/data.py``),
so AUROC and average precision failed on every GPU but the first. What follows is a small form of the same idea, and
one that comes back to where it left.

    assay audit examples/regressions/detour_to_the_default_device.py:average_precision --device cuda:1
"""

import torch


def cumulative(values):
    """The cumulative sum, on the CPU where CUDA's may differ from run to run."""
    if torch.are_deterministic_algorithms_enabled() and values.is_cuda:
        return values.cpu().cumsum(0).cuda()  # the bug: this is cuda:0
    return values.cumsum(0)


def fixed_cumulative(values):
    """The same, back on the device it came from."""
    if torch.are_deterministic_algorithms_enabled() and values.is_cuda:
        return values.cpu().cumsum(0).to(values.device)
    return values.cumsum(0)


def average_precision(device, total=cumulative):
    """The mean of the precision at each hit, in the order of the scores."""
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(0)
    scores, target = torch.rand(16, device=device), (torch.arange(16, device=device) % 2).float()
    hits = target[scores.argsort(descending=True)]
    ranks = torch.arange(1, 17, device=device)
    return (total(hits) / ranks * hits).sum() / hits.sum()


def fixed(device):
    """The same with the fixed sum."""
    return average_precision(device, fixed_cumulative)
