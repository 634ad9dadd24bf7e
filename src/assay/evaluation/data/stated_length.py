"""Streams that say how many samples they have: more than that are samples that workers gave twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader, IterableDataset, default_collate

from assay.errors import ConfigError, describe
from assay.evaluation.nested_batch import row_count


@dataclass(frozen=True)
class StatedLength:
    """The length that an `IterableDataset` has in `__len__`, and how a loader makes batches of it.

    Attributes:
        samples: the length.
        batch_size: samples in a batch; the last batch of each worker may have fewer.
        workers: how many processes iterate over it.
        is_counted: batches have a row for each sample; else only their number is known.
    """

    samples: int
    batch_size: int
    workers: int
    is_counted: bool

    def checked(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches, as long as they can be of so many samples.

        Raises:
            ConfigError: there are more.
        """
        rows, incomplete = 0, max(0, self.workers - 1)
        for number, batch in enumerate(batches):
            rows += (row_count(batch) or 0) if self.is_counted else 0
            if rows > self.samples or number >= -(-self.samples // self.batch_size) + incomplete:
                self._refuse()
            yield batch

    def _refuse(self) -> None:
        by = f" from {self.workers} workers" if self.workers > 1 else ""
        got = f"more samples{by} than the {self.samples:,} that len(dataset) says"
        do = "Let each worker give its own share (torch.utils.data.get_worker_info() in __iter__)"
        if self.workers <= 1:
            do = "Correct __len__ or __iter__"
        do += ", or name ids=; to count every row all the same, pass (batch for batch in loader)"
        raise ConfigError(describe("data", got, "each sample once", do))


def stated_length(data: Any) -> StatedLength | None:
    """The length that the data set of a loader states; None if it states none, or yields batches itself."""
    if not isinstance(data, DataLoader) or not isinstance(data.dataset, IterableDataset) or data.batch_size is None:
        return None
    try:
        samples = len(data.dataset)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        return None
    return StatedLength(samples, data.batch_size, data.num_workers, data.collate_fn is default_collate)
