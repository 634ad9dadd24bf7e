"""Samples that a sampler gave twice, so that all processes have as many: how many rows of a loader are real.

`torch.utils.data.DistributedSampler` repeats the first samples at the end, and frameworks that do not know it count
them twice (pytorch/pytorch#25162). Where a framework shows its loader, the repeated rows are the last ones of each
process.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import DistributedSampler


def real_rows(loader: Any) -> int | None:
    """How many of the rows that a loader gives this process are no repetition; None where nothing is repeated.

    Args:
        loader: a `DataLoader`, or anything with the sampler of one.

    Example:
        >>> from torch.utils.data import DataLoader
        >>> data = list(range(5))
        >>> samplers = [DistributedSampler(data, num_replicas=3, rank=rank, shuffle=False) for rank in range(3)]
        >>> [list(sampler) for sampler in samplers]
        [[0, 3], [1, 4], [2, 0]]
        >>> [real_rows(DataLoader(data, sampler=sampler)) for sampler in samplers]
        [2, 2, 1]
    """
    sampler = _sampler(loader)
    if not isinstance(sampler, DistributedSampler) or sampler.drop_last or not _in_order(sampler):
        return None
    size: int = len(sampler.dataset)  # type: ignore[arg-type]
    if sampler.total_size == size:
        return None
    rank, ranks = int(sampler.rank), int(sampler.num_replicas)
    return max(0, -(-(size - rank) // ranks))


def _in_order(sampler: Any) -> bool:
    """Whether samples come in the order of torch's own sampler; Lightning's subclass of it keeps that order."""
    own_way = type(sampler).__iter__ is DistributedSampler.__iter__
    return own_way or type(sampler).__module__.partition(".")[0] in ("lightning", "pytorch_lightning")


def _sampler(loader: Any) -> Any:
    """The sampler of single samples that a loader was made with."""
    sampler = getattr(loader, "sampler", None)
    inner = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    return inner if isinstance(inner, DistributedSampler) else sampler
