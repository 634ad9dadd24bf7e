"""Accelerate: every process counts its own samples, and nothing is gathered but counts."""

from __future__ import annotations

import warnings
from typing import Any

from torch import Tensor

from assay.errors import InvalidValuesWarning, describe
from assay.meter import Meter


def update(accelerator: Any, meter: Meter, preds: Any, target: Any = None, **columns: Tensor | None) -> None:
    """Count what this process predicted of a batch, without the samples that Accelerate repeats in the last one.

    Takes the place of `accelerator.gather_for_metrics` and an update with what it gathered: predictions stay where they
    are, and `meter.sync().compute()` at the end sums the counts of all processes. The value has the same bits.

    Args:
        accelerator: the `accelerate.Accelerator` that prepared the loader which is being iterated over.
        meter: what counts; one on each process.
        preds: predictions of this process for the batch, the first dimension of which is samples.
        target: the target.
        **columns: `weights=`, for a weighted meter, and the named columns that metrics take.

    Raises:
        InputError: as `Meter.update`.

    Warns:
        InvalidValuesWarning: the loader has no length, so that repeated samples cannot be distinguished from others.

    Example:
        >>> import torch
        >>> from accelerate import Accelerator
        >>> from assay import Accuracy, Meter
        >>> accelerator, meter = Accelerator(cpu=True), Meter(acc=Accuracy())
        >>> data = torch.utils.data.TensorDataset(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]))
        >>> for preds, target in accelerator.prepare(torch.utils.data.DataLoader(data, batch_size=2)):
        ...     update(accelerator, meter, preds, target)
        >>> meter.sync().compute()
        {'acc': tensor(0.6667, dtype=torch.float64)}

    Source: `Accelerator.gather_for_metrics` of Accelerate 1.15, which keeps the first `remainder` rows of what the
    processes gather in their order.
    """
    rows = _real_rows(accelerator, len(preds))
    preds, target, *others = (None if each is None else each[:rows] for each in (preds, target, *columns.values()))
    meter.update(preds, target, **dict(zip(columns, others, strict=True)))


def _real_rows(accelerator: Any, rows: int) -> int:
    state = accelerator.gradient_state
    if not state.end_of_dataloader or accelerator.num_processes == 1 or not accelerator.even_batches:
        return rows
    if state.remainder == -1:
        got, do = "a loader without a length", "Give the data set a __len__"
        warnings.warn(
            describe("accelerate", got, "one that tells which samples it repeats", do), InvalidValuesWarning, 3
        )
        return rows
    if not state.remainder:
        return rows
    left: int = state.remainder - accelerator.process_index * rows
    return min(max(left, 0), rows)
