"""Data whose batches say which samples they hold, in any order of the loader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from assay.errors import ConfigError, describe
from assay.evaluation.data.data_source import check_iterable, is_dataset
from assay.evaluation.nested_batch import row_count, structure

NUMBER, BATCH = "number", "batch"


def indexed_batches(data: Any, batch_size: int) -> Any:
    """The same data as batches `{"number": int64 (B,), "batch": the batch}`.

    Numbers are indices of the data set, or positions where there are only batches.

    Args:
        data: a loader, a data set with indices, or batches that can be iterated over more than once.
        batch_size: of a data set that comes without a loader.

    Raises:
        ConfigError: data that can be iterated over once only, or that are none.
    """
    if isinstance(data, DataLoader) and not isinstance(data.dataset, IterableDataset):
        if data.batch_sampler is None:
            return _Stream(data)
        return DataLoader(
            _IndexedDataset(data.dataset),
            batch_sampler=data.batch_sampler,
            collate_fn=_Collate(data.collate_fn),
            num_workers=data.num_workers,
            generator=data.generator,
        )
    if is_dataset(data):
        return DataLoader(_IndexedDataset(data), batch_size=batch_size, collate_fn=_Collate(default_collate))
    if isinstance(data, IterableDataset):
        return _Stream(DataLoader(data, batch_size=batch_size))
    check_iterable(data)
    if iter(data) is data:
        do = "Pass a list of the batches, or the loader itself"
        raise ConfigError(describe("data", f"a {type(data).__name__}, which gives its batches once", "all of them", do))
    return _Stream(data)


class _IndexedDataset(Dataset[tuple[int, Any]]):
    def __init__(self, data: Any) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: int) -> tuple[int, Any]:
        return index, self._data[index]


@dataclass(frozen=True)
class _Collate:
    inner: Callable[[list[Any]], Any]

    def __call__(self, samples: list[tuple[int, Any]]) -> dict[str, Any]:
        numbers = torch.tensor([number for number, _ in samples], device="cpu")
        return {NUMBER: numbers, BATCH: self.inner([sample for _, sample in samples])}


@dataclass(frozen=True)
class _Stream:
    batches: Iterable[Any]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        start = 0
        for batch in self.batches:
            rows = row_count(batch)
            if rows is None:
                do = "Give tensors with one row for each sample"
                raise ConfigError(describe("batch", structure(batch), "rows that can be counted", do))
            yield {NUMBER: torch.arange(start, start + rows, device="cpu"), BATCH: batch}
            start += rows
