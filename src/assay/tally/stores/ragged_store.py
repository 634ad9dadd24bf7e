"""Every sample of a ragged column as the state of a tally."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import to_host
from assay.errors import ConfigError, describe
from assay.tally.base import Batch, BatchLayout, Rule, State, Tally, TensorLayout
from assay.tally.conservation import HostCount, Laws, equal
from assay.tally.ragged import Lengths, Ragged
from assay.tally.stores.sample_store import ANY, SampleStore

Groups: TypeAlias = tuple[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], ...]
"""For each group of items, such as the detections of an image, its fields and the shape of an item in each."""
_SAMPLES = "samples"


@dataclass(frozen=True, eq=False)
class RaggedArrays:
    """Ragged samples on the CPU, in canonical order: as `Ragged`, with arrays."""

    items: Mapping[str, Mapping[str, np.ndarray]]
    lengths: Mapping[str, Lengths]

    @classmethod
    def of(cls, column: Ragged) -> RaggedArrays:
        """The samples of a column, copied to the CPU."""
        items = {
            group: {name: _array(to_host(tensor)) for name, tensor in fields.items()}
            for group, fields in column.items.items()
        }
        return cls(items, column.lengths)

    def __len__(self) -> int:
        return len(next(iter(self.lengths.values())))


@dataclass(frozen=True)
class RaggedStore(Tally):
    """Every sample of a ragged column. State: one `SampleStore` a group, and one with the lengths of the samples.

    All stores are concatenated in the same order when states merge, so items stay with their sample. Samples have no
    order: the canonical one is that of a digest of their content.

    Args:
        column: the name of the column.
        groups: the groups of items.
    """

    column: str
    groups: Groups
    uses_target = False

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column})

    @property
    def fields(self) -> Mapping[str, Rule]:
        return dict.fromkeys((_SAMPLES, *(group for group, _ in self.groups)), "samples")

    def check(self, layout: BatchLayout) -> None:
        if layout.weights is not None:
            do = "Leave the weights out"
            raise ConfigError(describe("weights", "a tensor", "none: samples of variable length have no weights", do))

    def zero(self, device: torch.device) -> State:
        stores = {
            group: SampleStore({name: TensorLayout(ANY, tail) for name, tail in fields})
            for group, fields in self.groups
        }
        lengths = {group: TensorLayout(torch.int64, ()) for group, _ in self.groups}
        return {_SAMPLES: SampleStore(lengths), **stores}

    def add(self, state: State, batch: Batch) -> None:
        column = batch.ragged[self.column]
        for group, fields in column.items.items():
            state[group].append(**fields)
        state[_SAMPLES].append(**{group: torch.from_numpy(each.copy()) for group, each in column.lengths.items()})

    def canonicalize(self, state: State, rows: int) -> State:
        column = self._column(state)
        column = column.select(np.argsort(_digests(column), kind="stable"))
        lengths = {group: torch.from_numpy(each) for group, each in column.lengths.items()}
        stores = {group: state[group].replaced(fields) for group, fields in column.items.items()}
        return {_SAMPLES: state[_SAMPLES].replaced(lengths), **stores}

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        samples = state[_SAMPLES]
        yield from equal("every sample is kept", given.rows, samples.rows)
        for group, _ in self.groups:
            items = int(samples.column(group).sum())
            yield from equal(f"the lengths of {group!r} add up to its items", items, state[group].rows)

    def compute(self, state: State) -> RaggedArrays:
        """The samples as arrays."""
        return RaggedArrays.of(self._column(state))

    def _column(self, state: State) -> Ragged:
        """All samples on the CPU."""
        items = {group: {name: state[group].column(name) for name, _ in fields} for group, fields in self.groups}
        return Ragged(items, {group: state[_SAMPLES].column(group).numpy() for group, _ in self.groups})


def _array(values: Tensor) -> np.ndarray:
    """Numbers as float64 or int64."""
    return values.to(torch.float64 if values.is_floating_point() else torch.int64).contiguous().numpy()


def _digests(column: Ragged) -> np.ndarray:
    """For each sample a digest of its lengths and of the bytes of its items."""
    lengths = np.stack(list(column.lengths.values()), 1).astype("<i8")
    parts: list[Sequence[bytes | memoryview]] = [[each.tobytes() for each in lengths]]
    for group, fields in column.items.items():
        ends = np.cumsum(column.lengths[group])
        for tensor in fields.values():
            raw = memoryview(tensor.contiguous().view(-1).view(torch.uint8).numpy())  # type: ignore[arg-type]
            edges = [0, *(ends * tensor[:0].new_empty(tensor.shape[1:]).nbytes).tolist()]
            parts.append([raw[start:stop] for start, stop in pairwise(edges)])
    rows = map(b"".join, zip(*parts, strict=True))
    return np.array([hashlib.blake2b(row, digest_size=16).digest() for row in rows], dtype="S16")
