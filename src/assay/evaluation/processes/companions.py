"""What processes tell each other while they evaluate one model together: a few bytes a batch, and who is late."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from typing import Any, NoReturn, Self

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import to_host
from assay.errors import ConfigError, SyncError, describe
from assay.evaluation.nested_batch import digest
from assay.evaluation.processes.links import Group
from assay.evaluation.processes.place import Place

MOST_COMPARED = 64
"""Batches whose outputs are compared between processes: what is wrong with them shows in the first."""
_VALUES = 4096
_DIGEST_BYTES = 1 << 15
_TOLERANCE = 2e-3
_MARGIN_S = 2.0
_OF_A_COLLECTIVE = re.compile(r"gloo|nccl|process ?group|connection (closed|reset)|timed out|timeout", re.IGNORECASE)


class Companions:
    """The processes that this one shares samples or forwards with.

    Used as a context, in which they have connections of their own, so that nothing waits longer than `timeout_s`.

    Args:
        place: where this process stands.
        store: where they find each other; another one for each evaluation.
        timeout_s: how long to wait for another process.
        groups: those in which the model communicates; they wait as long, and afterwards as before.
    """

    def __init__(self, place: Place, store: Any, timeout_s: float, groups: Sequence[Any] = ()) -> None:
        self.place, self._store, self._timeout_s, self._groups = place, store, timeout_s, groups
        self._members: _Peers | None = None
        self._step: _Peers | None = None
        self._inputs = b""
        self._outputs: list[Tensor] = []
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        limit_s = self._timeout_s + _MARGIN_S
        for group in self._groups:
            self._exit.enter_context(waits_at_most(group, limit_s))
        if all(dist.get_backend(group) == "gloo" for group in self._groups):
            self._exit.enter_context(messages_wait_at_most(limit_s))
        if len(self.place.members) > 1:
            self._members = self._peers("members", self.place.members)
        self._step = self._peers("step", self.place.step) if self.place.needs_repeats else self._members
        return self

    def __exit__(self, *_: object) -> None:
        self._members = self._step = None
        self._exit.close()

    def largest(self, number: int) -> int:
        """The largest of the numbers of the processes with the same samples."""
        return number if self._members is None else self._members.largest(number)[0]

    def _peers(self, name: str, ranks: Group) -> _Peers:
        return _Peers(self._store, name, self.place.rank, ranks, self._timeout_s + _MARGIN_S)

    def any_failed(self, number: int, index: Any, batch: Any, failed: bool) -> bool:
        """Whether a member could not load this batch.

        Args:
            number: of the batch.
            index: of its samples, where they have some.
            batch: what this process loaded; None for a batch that is repeated.
            failed: whether it could not.

        Raises:
            ConfigError: members have different batches.
        """
        if self._members is None:
            return failed
        content = b"failed" if failed else digest(batch, _DIGEST_BYTES).encode()
        marks = b"" if index is None else index.tobytes()
        self._inputs = hashlib.blake2b(self._inputs + content + marks, digest_size=7).digest()
        mark = int.from_bytes(self._inputs)
        some_failed, largest, smallest = self._members.largest(int(failed), mark, -mark)
        if not some_failed and largest != -smallest:
            self._refuse_inputs(number, self._members.exchange(mark))
        if some_failed:
            self._inputs = b""
        return bool(some_failed)

    def _refuse_inputs(self, number: int, marks: Sequence[int]) -> NoReturn:
        most = max(set(marks), key=lambda each: (marks.count(each), -marks.index(each)))
        others = [str(rank) for rank, each in zip(self.place.members, marks, strict=True) if each != most]
        members = ", ".join(map(str, self.place.members))
        got = f"other samples on rank {', '.join(others)} than on the others of ranks {members} (batch {number})"
        do = "Give them the same data in the same order, without random augmentation, or say with mesh= how they stand"
        raise ConfigError(describe("data", got, "the same samples on processes that share a model", do))

    def most(self, count: int) -> int:
        """The largest of all counts of the processes whose forwards communicate."""
        return count if self._step is None else self._step.largest(count)[0]

    def borrowed(self, batch: Any) -> Any:
        """A batch of another process for one that has none of its own; all of them call it at once.

        Args:
            batch: one of this process; None where it has none.
        """
        if self._step is None:
            return batch
        have = self._step.exchange(batch is not None)
        if all(have) or not any(have):
            return batch
        is_giver = self.place.step.index(self.place.rank) == have.index(True)
        given = self._step.exchange(batch if is_giver else None)
        return given[have.index(True)] if batch is None else batch

    def note_outputs(self, preds: Any) -> None:
        """Keep what tells whether members predict the same."""
        if self._members is not None and len(self._outputs) < MOST_COMPARED and isinstance(preds, Tensor):
            self._outputs.append(_mark(preds))

    def outputs(self) -> tuple[Group, NDArray[np.float32]]:
        """The members that have outputs, and the marks of this process's; of one without outputs itself and none."""
        marks = to_host(torch.stack(self._outputs)).numpy() if self._outputs else np.empty((0, 3), np.float32)
        return self.place.predict if self.place.has_outputs else (self.place.rank,), marks


class _Peers:
    """Some processes, connected to each other.

    Args:
        store: where they find each other.
        name: of this set of processes.
        rank: this one.
        ranks: all of them.
        timeout_s: how long to wait for one.
    """

    def __init__(self, store: Any, name: str, rank: int, ranks: Group, timeout_s: float) -> None:
        c10d: Any = dist.distributed_c10d
        self._store = c10d.PrefixStore(f"{name}/{ranks[0]}", store)
        self._own, self._size, self._exchanges = ranks.index(rank), len(ranks), 0
        limit = timedelta(seconds=timeout_s)
        # A group of `new_group` would find the addresses of one that was destroyed under its name.
        self._group = c10d.ProcessGroupGloo(self._store, self._own, self._size, limit)
        self._options = c10d.AllreduceOptions()
        self._options.reduceOp = c10d.ReduceOp.MAX

    def largest(self, *numbers: int) -> list[int]:
        """Of each number the largest of all processes."""
        told = torch.tensor(numbers, dtype=torch.int64, device="cpu")
        self._group.allreduce([told], self._options).wait()
        result: list[int] = told.tolist()
        return result

    def exchange(self, value: Any) -> list[Any]:
        """The values of all processes, through the store."""
        self._exchanges += 1
        self._store.set(f"{self._exchanges}/{self._own}", pickle.dumps(value))
        return [pickle.loads(self._store.get(f"{self._exchanges}/{k}")) for k in range(self._size)]


def check_outputs(marks: Sequence[tuple[Group, NDArray[np.float32]]]) -> None:
    """Raise where processes that were given the same samples predicted something else.

    Args:
        marks: `Companions.outputs` of each process, by rank.

    Raises:
        ConfigError: names the processes.
    """
    for rank, (members, own) in enumerate(marks):
        first = marks[members[0]][1]
        batches = min(len(own), len(first))
        near = np.abs(own[:batches, 0] - first[:batches, 0]) <= _TOLERANCE * first[:batches, 1] + 1e-6
        is_same = near & (own[:batches, 2] == first[:batches, 2])
        if len(own) != len(first) or not is_same.all():
            batch = int(np.argmin(is_same)) if not is_same.all() else batches
            got = f"other predictions on rank {rank} than on rank {members[0]} for the same samples (batch {batch})"
            do = "Let the model, or preds=, give whole outputs on each of them, or say with mesh= how they stand"
            raise ConfigError(describe("outputs of the model", got, "the same on processes that share a model", do))


def _mark(preds: Tensor) -> Tensor:
    """A weighted sum of some values, the sum of their sizes, and how many there are, without reading them."""
    flat = preds.detach().reshape(-1)
    values = flat[:: max(1, flat.numel() // _VALUES)].to(torch.float32).nan_to_num(0.0, 1e9, -1e9)
    weights = torch.cos(torch.arange(len(values), dtype=torch.float32, device=values.device) * 2.4)
    size = torch.full((), float(flat.numel()), dtype=torch.float32, device=values.device)
    return torch.stack([(values * weights).sum(), values.abs().sum(), size])


def is_of_a_collective(error: BaseException) -> bool:
    """Whether an error says that other processes did not come, or are gone."""
    if isinstance(error, SyncError):
        return error.__cause__ is not None and is_of_a_collective(error.__cause__)
    kinds = tuple(kind for kind in (getattr(dist, "DistError", None),) if kind is not None)
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and bool(_OF_A_COLLECTIVE.search(str(error))))


@contextmanager
def waits_at_most(group: Any, seconds: float) -> Iterator[None]:
    """A group whose collectives raise after so many seconds, and afterwards as before."""
    change = getattr(dist.distributed_c10d, "_set_pg_timeout", None)
    before = None
    with suppress(Exception):  # what a backend waits for is known where it has options
        before = group._get_backend(torch.device("cpu")).options._timeout
    if change is None or before is None or before <= timedelta(seconds=seconds):
        yield
        return
    change(timedelta(seconds=seconds), group)
    try:
        yield
    finally:
        change(before, group)


@contextmanager
def messages_wait_at_most(seconds: float) -> Iterator[None]:
    """Inside, a wait for a message of one process to another raises after so many seconds, if the caller names none.

    The timeout that a gloo group is given later holds for collectives; `irecv` and `isend`, of which pipelines are
    made, wait as long as the group was first made to wait, by default 30 minutes (seen with torch 2.13).
    """
    work: Any = dist.Work
    wait = work.wait

    def waits(self: Any, timeout: timedelta = timedelta(seconds=seconds)) -> Any:
        return wait(self, timeout)

    work.wait = waits
    try:
        yield
    finally:
        work.wait = wait
