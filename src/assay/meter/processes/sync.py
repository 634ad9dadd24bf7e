"""Adding up what the processes of a group have counted, in one collective where the states are small.

The first collective is a sum of int64 of one length, for any metrics, so that ranks with other metrics find
out instead of waiting for each other. Each rank writes into a slot of its own what the others have to know of it; the
counts follow. A second collective is needed for what did not fit into the first one, and for samples and late tables,
whose sizes the first one tells: a gathering where there are just samples, about as many on each rank; else a sum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from assay.devices.collective import collective_device
from assay.devices.placement import to_host
from assay.errors import DeviceFaultError, SyncError, describe
from assay.meter.counting.tally_plan import TallyPlan
from assay.meter.options import metrics_text
from assay.tally.base import Rule, State, Tally, merge
from assay.tally.stores.sample_store import SampleStore
from assay.tally.sums.fingerprints import of_table

FIRST_WORDS = 1 << 15  # 256 KiB of counts in the first collective
RANK_WORDS = 1 << 8  # and 2 KiB for each rank
_SLOT = 4  # of a rank: its fingerprint (2), whether it failed, its number of rows
_TEXT_WORDS = 64  # words of text that tell how ranks differ
_MOST_DIMENSIONS = 6
_DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)


def synced(
    plan: TallyPlan, counted: Callable[[], tuple[Sequence[State], int]], group: dist.ProcessGroup | None = None
) -> tuple[list[State], int]:
    """The sum of what all ranks have counted; every rank gets the same.

    Args:
        plan: what is counted, the same on all ranks.
        counted: gives this rank's canonical states and its number of rows. When it raises, all ranks raise.
        group: the process group; None for the default one.

    Returns:
        The merged states on the CPU, not canonical, and the number of rows.

    Raises:
        SyncError: the ranks count different things, a rank failed, or a collective did. Nothing of this rank changed.
        DeviceFaultError: what a collective gave is not what the ranks have sent.
    """
    ranks = _Ranks(dist.get_rank(group), dist.get_world_size(group), group)
    if ranks.own < 0:
        raise SyncError(
            describe("sync", "a group without this rank", "a group that this rank is in", "Call it on its members only")
        )
    tallies = plan.tallies
    metrics = {name: plan.metrics[name] for name in sorted(plan.metrics)}  # ranks may list them in any order
    described = f"Meter({metrics_text(metrics, plan.labels)}{', weighted=True' if plan.weighted else ''})"
    exchange = _Exchange(tallies, [field for k, tally in enumerate(tallies) for field in _Field.of(k, tally)], ranks)
    failure: Exception | None = None
    try:
        states, rows = counted()
        body = exchange.body(states)
    except Exception as error:  # the other ranks wait for this one, so it takes part with nothing, and then raises
        failure = error
        states, rows = [tally.zero(torch.device("cpu")) for tally in tallies], 0
        body = exchange.body(states)
    slots, head, rest = _first(ranks, _fingerprint(described), failure is not None, rows, body)
    _agree(ranks, slots, failure, described)
    parts = exchange.finish(states, head, rest)
    return [merge(tally, [part[k] for part in parts]) for k, tally in enumerate(tallies)], int(slots[:, 3].sum())


@dataclass(frozen=True)
class _Ranks:
    """The members of a group, and this one among them."""

    own: int
    count: int
    group: dist.ProcessGroup | None

    def summed(self, vector: Tensor) -> Tensor:
        """The sum of all ranks' vectors, on the CPU.

        Raises:
            DeviceFaultError: it is not what the ranks sent.
        """
        with _collective():
            moved = _with_check(vector).to(collective_device(self.group))
            dist.all_reduce(moved, group=self.group)
            total = to_host(moved)
        return _checked(total)

    def gathered(self, vector: Tensor) -> Tensor:
        """A row for each rank with its vector, all of one length, on the CPU.

        Raises:
            DeviceFaultError: a row is not what its rank sent.
        """
        with _collective():
            moved = _with_check(vector).to(collective_device(self.group))
            rows = moved.new_empty(self.count, len(moved))
            dist.all_gather(list(rows), moved, group=self.group)
            gathered = to_host(rows)
        return torch.stack([_checked(row) for row in gathered])

    def slots(self, width: int) -> Tensor:
        """An empty slot per rank."""
        return torch.zeros(self.count, width, dtype=torch.int64, device="cpu")


def _with_check(vector: Tensor) -> Tensor:
    """A vector with its fingerprint as the last word; that of a sum of vectors is the sum of theirs."""
    return torch.cat([vector, of_table(vector).view(1)])


def _checked(vector: Tensor) -> Tensor:
    """What `_with_check` was given, or the sum of what it was given on several ranks."""
    words, expected = vector[:-1], int(vector[-1])
    found = int(of_table(words))
    if found != expected:
        law = "what arrives is what the processes have sent"
        do = "The devices or the network between them are at fault: save each meter with to_file, and add the files up"
        message = describe("sync", f"words with the checksum {found}", f"the checksum {expected}, as {law}", do)
        raise DeviceFaultError(message, where="sync", law=law)
    return words


@contextmanager
def _collective() -> Iterator[None]:
    """Inside, every error of a backend becomes a `SyncError`."""
    try:
        yield
    except Exception as error:
        raise SyncError(
            describe(
                "sync",
                f"{type(error).__name__}: {error}",
                "a collective that ends",
                "The meter is as it was: save it with to_file and add the files up, or call sync again",
            )
        ) from error


def _first(
    ranks: _Ranks, fingerprint: tuple[int, int], failed: bool, rows: int, body: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The first collective: the slots of all ranks, the sum of what fitted of the bodies, and what did not fit."""
    slots = ranks.slots(_SLOT)
    slots[ranks.own] = torch.tensor([*fingerprint, failed, rows], device="cpu")
    vector = torch.zeros(FIRST_WORDS + RANK_WORDS * ranks.count, dtype=torch.int64, device="cpu")
    start = slots.numel()
    head, rest = body[: len(vector) - start], body[len(vector) - start :]
    vector[:start] = slots.view(-1)
    vector[start : start + len(head)] = head
    vector = ranks.summed(vector)
    return vector[:start].view_as(slots), vector[start : start + len(head)], rest


def _fingerprint(described: str) -> tuple[int, int]:
    first, second = np.frombuffer(hashlib.sha256(described.encode()).digest()[:16], "<i8").tolist()
    return first, second


def _agree(ranks: _Ranks, slots: Tensor, failure: Exception | None, described: str) -> None:
    """Raise on every rank when one of them failed, or counts something else."""
    failed = slots[:, 2].nonzero().flatten().tolist()
    if failed:
        own = f" ({type(failure).__name__}: {failure})" if failure is not None else ""
        raise SyncError(
            describe(
                "sync", f"a failure on {_rank_text(failed)}{own}", "states of all ranks", "See the error of that rank"
            )
        ) from failure
    if bool((slots[:, :2] == slots[:1, :2]).all()):
        return
    texts = ranks.slots(_TEXT_WORDS)
    text = described.encode()[: _TEXT_WORDS * 8].ljust(_TEXT_WORDS * 8, b"\0")
    texts[ranks.own] = torch.from_numpy(np.frombuffer(text, "<i8").astype(np.int64))
    all_texts = ranks.summed(texts.view(-1)).view_as(texts)
    meters = [row.astype("<i8").tobytes().rstrip(b"\0").decode(errors="replace") for row in all_texts.numpy()]
    groups = [[r for r in range(ranks.count) if slots[r, :2].tolist() == pair] for pair in _distinct(slots[:, :2])]
    got = " and ".join(f"{meters[members[0]]} on {_rank_text(members)}" for members in groups)
    raise SyncError(describe("sync", got, "equal metrics on all ranks", "Make the same meter on all ranks"))


def _distinct(rows: Tensor) -> list[list[int]]:
    groups: list[list[int]] = []
    for row in rows.tolist():
        if row not in groups:
            groups.append(row)
    return groups


def _rank_text(ranks: Sequence[int]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


@dataclass(frozen=True)
class _Field:
    """A field of a tally's state, and how it travels."""

    tally: int
    name: str
    rule: Rule
    shape: tuple[int, ...] = ()
    tails: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Of samples: the columns, and the shape of a row of each."""

    @staticmethod
    def of(index: int, tally: Tally) -> list[_Field]:
        zero = tally.zero(torch.device("cpu"))
        fields = []
        for name, rule in tally.fields.items():
            value = zero.get(name)
            if isinstance(value, SampleStore):
                tails = tuple((column, value.columns[column].tail) for column in value.columns)
                fields.append(_Field(index, name, rule, tails=tails))
            else:
                fields.append(_Field(index, name, rule, () if value is None else tuple(value.shape)))
        return fields

    @property
    def size_words(self) -> int:
        """How many words tell the size of a field whose size the description does not fix."""
        return {"sum": 0, "max": 0, "late": 2 + _MOST_DIMENSIONS, "samples": 2 + len(self.tails)}[self.rule]

    def size(self, state: State) -> list[int]:
        """Whether the field is there, and its shape; for samples how many, and their dtypes."""
        value = state.get(self.name)
        if value is None or not self.size_words:
            return [0] * self.size_words
        if self.rule == "late":
            return [1, value.ndim, *value.shape, *[0] * (_MOST_DIMENSIONS - value.ndim)]
        return [1, value.rows, *(_DTYPES.index(value.column(column).dtype) for column, _ in self.tails)]


@dataclass(frozen=True)
class _Region:
    """A stretch of the second collective: a late table, which all ranks add to, or a column of one rank's samples."""

    field: _Field
    rank: int | None
    column: str | None
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def words(self) -> int:
        return -(-prod(self.shape) * self.dtype.itemsize // 8)

    def written(self, state: State, into: Tensor) -> None:
        """Put this rank's part into the region."""
        value = state[self.field.name]
        if self.column is not None:
            value = value.column(self.column)
        raw = value.contiguous().view(-1).view(torch.uint8)
        into.view(torch.uint8)[: len(raw)] = raw

    def read(self, words: Tensor) -> Tensor:
        raw = words.view(torch.uint8)[: prod(self.shape) * self.dtype.itemsize]
        return raw.clone().view(self.dtype).view(self.shape)


def _widths(regions: Sequence[_Region], ranks: int) -> list[int]:
    """How many words the regions of each rank take."""
    return [sum(region.words for region in regions if region.rank == rank) for rank in range(ranks)]


def _cheaper_gathered(regions: Sequence[_Region], ranks: int) -> bool:
    """Whether nothing is to be added, and rows as long as the longest take no more than the two ways of a sum."""
    widths = _widths(regions, ranks)
    return all(region.rank is not None for region in regions) and 0 < ranks * max(widths) <= 2 * sum(widths)


@dataclass(frozen=True)
class _Exchange:
    """What the ranks send each other: a body whose length the descriptions fix, and then what varies."""

    tallies: Sequence[Tally]
    fields: Sequence[_Field]
    ranks: _Ranks

    @property
    def _sizes_width(self) -> int:
        return sum(field.size_words for field in self.fields)

    def _fixed(self) -> Iterator[tuple[_Field, tuple[int, ...]]]:
        """The fields in the body, with their shapes there: `max` has a slot for each rank."""
        for field in self.fields:
            if field.rule == "sum":
                yield field, field.shape
            elif field.rule == "max":
                yield field, (self.ranks.count, *field.shape)

    def body(self, states: Sequence[State]) -> Tensor:
        """The sizes of what varies, a slot for each rank, and the counts."""
        sizes = self.ranks.slots(self._sizes_width)
        own = [word for field in self.fields for word in field.size(states[field.tally])]
        sizes[self.ranks.own] = torch.tensor(own, dtype=torch.int64, device="cpu")
        parts = [sizes.view(-1)]
        for field, shape in self._fixed():
            value = states[field.tally][field.name]
            if field.rule == "max":
                slots = torch.zeros(shape, dtype=torch.int64, device="cpu")
                slots[self.ranks.own] = value
                value = slots
            parts.append(value.reshape(-1))
        return torch.cat(parts)

    def finish(self, states: Sequence[State], head: Tensor, rest: Tensor) -> list[list[State]]:
        """The states whose merge is everything, after a second collective where there is something left."""
        size_words = self.ranks.count * self._sizes_width
        if len(head) < size_words:  # so many ranks and fields that not even the sizes fitted
            head, rest = torch.cat([head, self.ranks.summed(rest)]), rest[:0]
        sizes = head[:size_words].view(self.ranks.count, -1)
        regions = list(self._regions(sizes))
        if not len(rest) and _cheaper_gathered(regions, self.ranks.count):
            regions.sort(key=lambda region: region.rank or 0)
            widths = _widths(regions, self.ranks.count)
            own = torch.zeros(max(widths), dtype=torch.int64, device="cpu")
            self._write([region for region in regions if region.rank == self.ranks.own], states, own)
            rows = self.ranks.gathered(own)
            varying = torch.cat([row[:width] for row, width in zip(rows, widths, strict=True)])
        else:
            varying = torch.zeros(sum(region.words for region in regions), dtype=torch.int64, device="cpu")
            self._write(regions, states, varying)
            if len(rest) + len(varying):
                both = self.ranks.summed(torch.cat([rest, varying]))
                head, varying = torch.cat([head, both[: len(rest)]]), both[len(rest) :]
        return self._parts(head[size_words:], regions, varying)

    def _write(self, regions: Sequence[_Region], states: Sequence[State], into: Tensor) -> None:
        """Put this rank's part of the regions, which lie one after the other, into a vector."""
        start = 0
        for region in regions:
            state = states[region.field.tally]
            if region.rank == self.ranks.own or (region.rank is None and region.field.name in state):
                region.written(state, into[start : start + region.words])
            start += region.words

    def _regions(self, sizes: Tensor) -> Iterator[_Region]:
        start = 0
        for field in self.fields:
            announced = sizes[:, start : start + field.size_words].tolist()
            start += field.size_words
            if field.rule == "late" and any(row[0] for row in announced):
                shape = next(row[2 : 2 + row[1]] for row in announced if row[0])
                yield _Region(field, None, None, torch.int64, tuple(shape))
            elif field.rule == "samples":
                for rank, (there, rows, *dtypes) in enumerate(announced):
                    for (column, tail), code in zip(field.tails, dtypes, strict=True):
                        if there:
                            yield _Region(field, rank, column, _DTYPES[code], (rows, *tail))

    def _parts(self, body: Tensor, regions: Sequence[_Region], varying: Tensor) -> list[list[State]]:
        """A list of states per rank; what was added up on the way is in the first of them."""
        parts: list[list[State]] = [[{} for _ in self.tallies] for _ in range(self.ranks.count)]
        start = 0
        for field, shape in self._fixed():
            value = body[start : start + prod(shape)].view(shape)
            start += prod(shape)
            parts[0][field.tally][field.name] = value.amax(0) if field.rule == "max" else value.clone()
        columns: dict[tuple[_Field, int], dict[str, Tensor]] = {}
        start = 0
        for region in regions:
            value = region.read(varying[start : start + region.words])
            start += region.words
            if region.rank is None or region.column is None:
                parts[0][region.field.tally][region.field.name] = value
            else:
                columns.setdefault((region.field, region.rank), {})[region.column] = value
        for (field, rank), values in columns.items():
            parts[rank][field.tally][field.name] = self._store(field).replaced(values)
        return parts

    def _store(self, field: _Field) -> SampleStore:
        store: SampleStore = self.tallies[field.tally].zero(torch.device("cpu"))[field.name]
        return store
