"""Data sets of MosaicML Streaming, read by index: its iterators pad the shares of processes with samples of others."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, Dataset


class StreamedSamples(Dataset[Any]):
    """The samples of a `streaming.StreamingDataset`, each once, by their index on all processes.

    Args:
        streamed: the data set.
    """

    def __init__(self, streamed: Any) -> None:
        self.streamed = streamed

    def __len__(self) -> int:
        return int(self.streamed.num_samples)

    def __getitem__(self, index: int) -> Any:
        return self.streamed[index]


def by_index(data: Any) -> Any:
    """Data that can be read by index, where they are a `StreamingDataset` or a loader of one; else as they are.

    One that chooses other samples of its streams than all, each once, stays a stream.
    """
    if not isinstance(data, DataLoader):
        return StreamedSamples(data) if _has_each_sample_once(data) else data
    if data.batch_size is None or not _has_each_sample_once(data.dataset):
        return data
    return DataLoader(
        StreamedSamples(data.dataset),
        batch_size=data.batch_size,
        num_workers=data.num_workers,
        collate_fn=data.collate_fn,
        pin_memory=data.pin_memory,
        timeout=data.timeout,
        worker_init_fn=data.worker_init_fn,
        multiprocessing_context=data.multiprocessing_context,
        generator=data.generator,
        prefetch_factor=data.prefetch_factor,
    )


def _has_each_sample_once(data: Any) -> bool:
    names = {f"{each.__module__.partition('.')[0]}.{each.__name__}" for each in type(data).__mro__}
    if "streaming.StreamingDataset" not in names:
        return False
    chosen = [int(stream.choose) for stream in data.streams]
    return chosen == [int(count) for count in data.samples_per_stream] and data.epoch_size == data.num_samples
