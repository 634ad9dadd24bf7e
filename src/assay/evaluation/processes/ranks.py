"""The processes that evaluate together: who is there, what they tell each other, and what happens when one is gone.

What is exchanged before and after the loop goes through collectives. In between every rank only says that it is alive,
through the group's store, so that nobody waits for hours for a rank that is gone.
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from assay.devices.collective import collective_device
from assay.devices.placement import to_host
from assay.errors import AssayError, describe
from assay.evaluation.errors import RankError
from assay.evaluation.processes.companions import is_of_a_collective
from assay.evaluation.processes.place import apart

T = TypeVar("T")

BEAT_S = 0.5
TIMEOUT_S = 60.0
PHASES = ("loading", "comparing", "predicting", "counting", "reporting")
"""What a rank does with a batch."""

_FAILED, _BEAT, _READY, _AT = "failed", "beat", "ready", "at"
_calls = 0


def local_rank() -> int | None:
    """The number of this process among those of this machine, which torchrun tells; None where there is but one."""
    number = os.environ.get("LOCAL_RANK")
    return int(number) if number is not None and number.isdigit() else None


@contextmanager
def process_group() -> Iterator[None]:
    """The group of `torchrun`'s processes; nothing where there is one already, or one process only."""
    wanted = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "MASTER_ADDR" in os.environ
    if not dist.is_available() or dist.is_initialized() or not wanted:
        yield
        return
    from torch.distributed.distributed_c10d import PrefixStore  # not in a torch without distributed
    from torch.distributed.rendezvous import rendezvous

    # Torchrun's processes meet in its own store, also after a restart, where the addresses of the processes before it
    # are still written: each start has keys of its own (pytorch/pytorch#135712).
    store, rank, count = next(rendezvous("env://"))
    start = f"assay/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{count}"
    dist.init_process_group(  # gloo, for what is exchanged is in host memory on every device
        "gloo", store=PrefixStore(start, store), rank=rank, world_size=count
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


class Ranks:
    """This process and the others of the default group.

    Used as a context: when the block raises, the other ranks are notified, and raise a `RankError` within a second or
    at their next batch. A rank that says nothing for `timeout_s` seconds is taken for dead.

    Args:
        timeout_s: how long a rank may be silent.
        only_this: take this process for the only one.

    Attributes:
        place: which samples this process is given, and with whom; by default each has its own.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S, only_this: bool = False) -> None:
        together = dist.is_available() and dist.is_initialized() and not only_this
        self.own = dist.get_rank() if together else 0
        self.count = dist.get_world_size() if together else 1
        self.place = apart(self.own, self.count)
        self.timeout_s = timeout_s
        self.lost = ""
        self._position: tuple[int, str] = -1, ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._store: Any = None
        self._meetings = 0
        self._here: dict[int, float] = {}

    @property
    def store(self) -> Any:
        """Where the ranks of this evaluation find what others tell them; None where there is one process only."""
        return self._store

    @property
    def on_this_machine(self) -> int:
        """How many of the processes are on this machine, as torchrun tells; all of them where it does not."""
        number = os.environ.get("LOCAL_WORLD_SIZE", "")
        return min(int(number), self.count) if number.isdigit() else self.count

    @property
    def alone(self) -> bool:
        """Whether there is one process only."""
        return self.count == 1

    def __enter__(self) -> Self:
        if not self.alone:
            self._store = _store(self.timeout_s)
            self._store.add(f"{_BEAT}/{self.own}", 1)  # from now on, silence means something
            self._thread = threading.Thread(target=self._live, name="assay-ranks", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            return
        alone = None
        if isinstance(error, RankError):
            pass
        elif isinstance(error, Exception) and is_of_a_collective(error):
            alone = self.left_alone(error)
        elif error is not None:
            with suppress(Exception):
                self._store.set(f"{_FAILED}/{self.own}", f"{type(error).__name__}: {error}"[:2000])
        self._stop.set()
        self._thread.join(2 * BEAT_S)
        if alone is not None:
            raise alone from error

    def check(self) -> None:
        """Raise when another rank is gone.

        Raises:
            RankError: names it, and says why it ended where it could tell.
        """
        if self.lost:
            raise RankError(
                describe("ranks", self.lost, f"{self.count} ranks that work", "See the error of that rank; run again")
            )

    def note(self, batch: int, doing: str) -> None:
        """Keep where this rank is, for the others to see when one of them waits for too long."""
        self._position = batch, doing

    def left_alone(self, error: BaseException) -> RankError:
        """The error of a rank whose collective with others ended in an error: says who failed, or who is behind.

        Args:
            error: what the collective raised.
        """
        self._tell_position()
        end = time.monotonic() + 4 * BEAT_S
        while not self.lost and time.monotonic() < end:  # one that failed says so, and the others say where they are
            time.sleep(BEAT_S / 5)
        batch, doing = self._position
        got = self.lost
        if not got:
            others = self.place.step if len(self.place.step) > 1 else range(self.count)
            positions = {rank: self._position_of(rank) for rank in others if rank != self.own}
            least = min(positions.values())
            last = [str(rank) for rank, position in positions.items() if position == least]
            named = f"rank {last[0]} is" if len(last) == 1 else f"ranks {', '.join(last)} are"
            where = f"in batch {least[0]}" if least[0] >= 0 else "of which nothing was heard"
            got = f"batch {batch} ({doing}), to which other ranks did not come; {named} the last, {where}"
        first = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        do = "See the error of that rank; run again"
        return RankError(describe("ranks", f"{got} ({first})", f"{self.count} ranks that work", do))

    def _tell_position(self) -> None:
        with suppress(Exception):
            batch, doing = self._position
            self._store.set(f"{_AT}/{self.own}", f"{batch} {doing}")

    def _position_of(self, rank: int) -> tuple[int, int]:
        """In which batch a rank was, and what it did there, as far as it said."""
        with suppress(Exception):
            if self._store.check([f"{_AT}/{rank}"]):
                batch, _, doing = self._store.get(f"{_AT}/{rank}").decode().partition(" ")
                return int(batch), PHASES.index(doing)
        return -1, 0

    def _place_text(self, rank: int) -> str:
        """In words, where a rank was, as far as it said."""
        batch, doing = self._position_of(rank)
        return f" (last in batch {batch}, {PHASES[doing]})" if batch >= 0 else ""

    def gather(self, make: Callable[[], T]) -> list[T]:
        """What `make` gives on every rank, by rank; a failure of one is raised on all.

        Raises:
            RankError: another rank failed.
        """
        if self.alone:
            return [make()]
        failure: Exception | None = None
        answer: tuple[str, Any] = ("", None)
        try:
            answer = ("", make())
        except Exception as error:
            failure, answer = error, (f"{type(error).__name__}: {error}", None)
        self._arrive(self.timeout_s)
        everyone: list[Any] = [None] * self.count
        dist.all_gather_object(everyone, answer)
        if failure is not None:
            raise failure
        for rank, (problem, _) in enumerate(everyone):
            if problem:
                self.lost = f"a failure of rank {rank} ({problem})"
                self.check()
        return [value for _, value in everyone]

    def by_coordinate(self, values: Sequence[T]) -> list[T]:
        """Of a value for each rank those of the first rank of each data-parallel coordinate."""
        return [values[rank] for rank in self.place.leaders]

    def gather_to_first(self, make: Callable[[], T]) -> list[T]:
        """What `make` gives on every rank, by rank, on the first rank; nothing on the others.

        Raises:
            RankError: another rank failed.
        """
        own: list[T] = []
        self.gather(lambda: own.append(make()))  # a failure of one is raised on all
        if self.alone:
            return own
        everyone: list[Any] | None = [None] * self.count if self.own == 0 else None
        dist.gather_object(own[0], everyone, dst=0)
        return everyone or []

    def files_to_first(self, files: Mapping[str, Path], folder: Path) -> dict[str, Path]:
        """The files of all ranks on the machine of the first one, by name; on the others those that are there.

        Args:
            files: the files of this rank, each small enough to be in memory.
            folder: where to put those of other ranks.

        Raises:
            RankError: another rank failed.
        """
        found = dict(files)
        for rank, names in enumerate(self.gather(lambda: list(files))):
            for name in names if rank else ():
                sent = self.gather_to_first(functools.partial(_content, files[name] if rank == self.own else None))
                if sent:
                    found[name] = folder / name
                    found[name].write_bytes(sent[rank])
        return found

    def from_first(self, value: T) -> T:
        """What rank 0 has."""
        if self.alone:
            return value
        holder = [value if self.own == 0 else None]
        dist.broadcast_object_list(holder, src=0)
        return holder[0]  # type: ignore[return-value]

    def least(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """The smallest of all ranks' values, place by place."""
        return self._reduced(values, dist.ReduceOp.MIN)

    def total(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sum of all ranks' values, place by place."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def _reduced(self, values: NDArray[np.int32], how: Any) -> NDArray[np.int32]:
        if self.alone or not len(values):
            return values
        moved = torch.from_numpy(values.copy()).to(collective_device())
        dist.all_reduce(moved, op=how)
        reduced: NDArray[np.int32] = to_host(moved).numpy()
        return reduced

    def meet(self) -> None:
        """Wait until all ranks are here, and notice when one will not come.

        Raises:
            RankError: a rank failed or is gone.
        """
        if not self.alone:
            self._arrive(math.inf)

    def _arrive(self, limit_s: float) -> None:
        """Wait until all ranks are here, and notice one that will not come, or has not come after so many seconds."""
        if self._store is None:
            return
        self._meetings += 1
        place, start, pause_s = f"{_READY}/{self._meetings}", time.monotonic(), 0.0005
        self._store.add(f"{place}/{self.own}", 1)
        self._store.add(place, 1)
        while int(self._store.add(place, 0)) < self.count:
            self.check()
            if time.monotonic() - start > limit_s:
                self._refuse_late(place, start, limit_s)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.01)
        self.check()

    def _refuse_late(self, place: str, start: float, limit_s: float) -> None:
        """Raise where a rank that began to evaluate does not come; the first one may take longer to make the report."""
        is_end = self._position[1] == PHASES[-1]
        for rank, since in sorted(dict(self._here).items()):
            late = time.monotonic() - max(start, since) > limit_s and not self._store.check([f"{place}/{rank}"])
            if late and not (is_end and rank == 0):
                doing = "the report is made" if is_end else "the evaluation is prepared"
                got = f"{limit_s:.0f} s without rank {rank}{self._place_text(rank)} while {doing}"
                do = "See what that rank does, or pass a larger rank_timeout_s="
                raise RankError(describe("ranks", got, f"{self.count} ranks that work", do))

    def _live(self) -> None:
        """Say that this rank is alive, and look after the others."""
        told = self._position
        heard = dict.fromkeys(set(range(self.count)) - {self.own}, (-1, time.monotonic()))
        while not self._stop.wait(BEAT_S):
            try:
                self._store.add(f"{_BEAT}/{self.own}", 1)
                if self._position != told:
                    told = self._position
                    self._tell_position()
                for rank, (last, since) in heard.items():
                    if self._store.check([f"{_FAILED}/{rank}"]):
                        message = self._store.get(f"{_FAILED}/{rank}").decode(errors="replace")
                        self.lost = f"a failure of rank {rank} ({message})"
                        return
                    beat = int(self._store.add(f"{_BEAT}/{rank}", 0))
                    if beat:
                        self._here.setdefault(rank, time.monotonic())
                    if beat != last or not beat:  # one that is not here yet is waited for, as collectives do
                        heard[rank] = beat, time.monotonic()
                    elif time.monotonic() - since > self.timeout_s:
                        where = self._place_text(rank)
                        self.lost = f"no sign of life of rank {rank}{where} for {self.timeout_s:.0f} s"
                        return
            except Exception as error:  # the rank that keeps the store is gone
                if not self._stop.is_set():
                    self.lost = f"no answer of the ranks' store ({type(error).__name__})"
                return


def _content(path: Path | None) -> bytes:
    return b"" if path is None else path.read_bytes()


def _store(timeout_s: float) -> Any:
    """A part of the group's store for this evaluation; all ranks make as many as this one."""
    global _calls
    _calls += 1
    find = getattr(dist.distributed_c10d, "_get_default_store", None)
    if find is None:
        raise AssayError(describe("torch.distributed", "no store", "the store of the group", "Use a tested torch"))
    store = find()
    with suppress(Exception):  # a connection of its own, so that heartbeats do not wait for anything else
        store = store.clone()
    store = dist.distributed_c10d.PrefixStore(f"assay/evaluation/{_calls}", store)
    with suppress(Exception):
        store.set_timeout(timedelta(seconds=timeout_s))
    return store
