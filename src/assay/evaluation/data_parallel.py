"""Models in `DistributedDataParallel`: processes evaluate different numbers of batches, so its forward cannot run."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn


def unwrapped(model: Any) -> Any:
    """The model inside, whose forward meets no other process; any other model as it is."""
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model


def broadcast_buffers(model: Any) -> None:
    """Make buffers, such as running means, those of rank 0, as each forward of the wrapper does; on all processes."""
    if not isinstance(model, nn.parallel.DistributedDataParallel) or not model.broadcast_buffers:
        return
    first = dist.get_global_rank(model.process_group, 0)
    with torch.no_grad():
        for buffer in model.buffers():
            dist.broadcast(buffer, first, model.process_group)
