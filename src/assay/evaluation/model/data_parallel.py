"""Models in `DistributedDataParallel`: processes evaluate different numbers of batches, so its forward cannot run."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def unwrapped(model: Any) -> Any:
    """The model inside, whose forward meets no other process; any other model unchanged."""
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model


def buffers_of_rank_0(model: Any) -> list[Tensor]:
    """The buffers, such as running means, that each forward of the wrapper broadcasts from rank 0."""
    is_wrapped = isinstance(model, nn.parallel.DistributedDataParallel)
    return list(model.buffers()) if is_wrapped and model.broadcast_buffers else []


def broadcast_buffers(model: Any) -> None:
    """Make these buffers those of rank 0; on all processes."""
    with torch.no_grad():
        for buffer in buffers_of_rank_0(model):
            dist.broadcast(buffer, dist.get_global_rank(model.process_group, 0), model.process_group)
