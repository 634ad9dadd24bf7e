"""Where the tensors of a collective must be."""

from __future__ import annotations

import torch
import torch.distributed as dist


def collective_device(group: dist.ProcessGroup | None = None) -> torch.device:
    """The device on which a process group exchanges tensors.

    The CPU where the group has a backend for it, since what is exchanged is read there; else the current device of the
    accelerator that its backend serves.

    Example:
        >>> device_of("cpu:gloo,cuda:nccl")
        device(type='cpu')
    """
    return device_of(dist.get_backend_config(group))


def device_of(config: str) -> torch.device:
    """The device for a backend configuration such as `"cpu:gloo,cuda:nccl"`."""
    kinds = [part.partition(":")[0] for part in config.split(",")]
    if "cpu" in kinds:
        return torch.device("cpu")
    return torch.device(kinds[0], torch.accelerator.current_device_index())
