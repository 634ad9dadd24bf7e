"""Loaders that Accelerate has prepared: they repeat samples so that all processes have equally many."""

from __future__ import annotations

import sys
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from assay.errors import ConfigError, describe
from assay.evaluation.processes.ranks import Ranks

_MODULE = "accelerate.data_loader"


def unprepared(data: Any, ranks: Ranks, has_ids: bool) -> Any:
    """The loader inside one that Accelerate has prepared, whose sampler tells which samples are repeated.

    Args:
        data: anything.
        ranks: who evaluates together.
        has_ids: batches bring the ids of their samples, so that one which comes twice is counted once.

    Raises:
        ConfigError: the samples that it repeats for several processes cannot be known.
    """
    if type(data).__module__ != _MODULE:
        return data
    inner = data.base_dataloader
    has_indices = not isinstance(inner.dataset, IterableDataset) and inner.batch_sampler is not None
    if has_indices and type(inner).__iter__ is DataLoader.__iter__ and not getattr(data, "skip_batches", 0):
        if not ranks.alone and getattr(data, "rng_types", None) is not None:  # as the loader does before each epoch
            sys.modules[_MODULE].synchronize_rng_states(data.rng_types, data.synchronized_generator)
        return inner
    if ranks.alone or has_ids:
        return data
    got = f"a {type(data).__name__} of Accelerate without indices"
    do = "Pass the data set, or the loader from before accelerator.prepare, or ids="
    raise ConfigError(describe("data", got, "samples that are known, as it repeats some in its last batch", do))
