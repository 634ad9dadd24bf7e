"""Data seen as batches: of known indices where the data set can be asked for any sample, else as they come."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from traceback import walk_tb
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch._utils import ExceptionWrapper
from torch.utils.data import DataLoader, IterableDataset, default_collate

from assay.errors import ConfigError, StateError, describe
from assay.evaluation.data.coverage import Lists, SampleAssignment, assign_samples
from assay.evaluation.data.mosaic_streaming import by_index
from assay.evaluation.data.prepared_loaders import unprepared
from assay.evaluation.data.stated_length import stated_length
from assay.evaluation.errors import BatchError, loading_advice
from assay.evaluation.nested_batch import digest, structure
from assay.evaluation.processes.ranks import Ranks

Index: TypeAlias = NDArray[np.int64] | None
ANOTHERS = object()
"""In place of a batch that another rank counts."""
_BY = "Pass sharded=True if every rank has samples of its own, sharded=False if all ranks have the same"


@dataclass(slots=True)
class Unit:
    """A batch: the indices of its samples where they are known, and its content or the error that loading it raised.

    One that is not `own` has no content: the model is called once more with some batch, whose samples do not count.
    """

    index: Index
    data: Any
    error: Exception | None = None
    own: bool = True


Units: TypeAlias = Generator[Unit, None, None]


@dataclass(frozen=True)
class DataSource:
    """What this rank evaluates.

    Attributes:
        shares: whose samples are whose; None for a stream.
        batches: this rank's batches; for a stream from the number given, else those of the lists given.
        total: how many batches this rank has, where that is known.
        how: how the data are seen, in words.
        unused: how many samples of the data set the loader gives to nobody.
        dataset: the data set; None for a stream.
        read: samples by their indices, each as a batch of its own.
    """

    shares: SampleAssignment | None
    batches: Callable[[Lists | int], Units]
    total: int | None
    how: str
    unused: int = 0
    dataset: Any = None
    read: Callable[[list[int]], list[Unit]] = lambda index: []


class Trail:
    """A digest of the batches of a stream so far: a stream resumes only where it is the same up to there.

    Args:
        digest: of a batch.

    Attributes:
        expected: the number of batches that were counted before, and their digest.
    """

    def __init__(self, digest: Callable[[Any], str]) -> None:
        self._digest = digest
        self._count = 0
        self._before = self._now = ""
        self.expected: tuple[int, str] = 0, ""

    def step(self, batch: Any) -> None:
        """Add a batch.

        Raises:
            StateError: the batches so far are not those that were counted before.
        """
        now = hashlib.sha256((self._now + self._digest(batch)).encode()).hexdigest()
        count, digest = self.expected
        if self._count + 1 == count and now != digest:
            self._refuse(f"a stream whose first {count:,} batches are not those that were counted before")
        self._count, self._before, self._now = self._count + 1, self._now, now

    def end(self) -> None:
        """Note that the stream ended.

        Raises:
            StateError: it is shorter than what was counted before.
        """
        if self._count < self.expected[0]:
            self._refuse(f"a stream of {self._count:,} batches, after {self.expected[0]:,} were counted before")

    def at(self, position: int) -> str:
        """The digest of so many batches: all that came, all but the last, or, before those came, all counted before."""
        if position == self._count:
            return self._now
        return self._before if position == self._count - 1 else self.expected[1]

    def _refuse(self, got: str) -> None:
        do = "Give the same batches in the same order, or name another folder"
        raise StateError(describe("data", got, "the stream that the checkpoint is of", do))


class _Lists:
    """A batch sampler that gives the lists that it was given."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    def __iter__(self) -> Iterator[list[int]]:
        return (batch.tolist() for batch in self._lists)

    def __len__(self) -> int:
        return len(self._lists)


def open_source(
    data: Any,
    ranks: Ranks,
    *,
    batch_size: int | None,
    num_workers: int,
    pin: bool,
    sharded: bool | None,
    trail: Trail | None = None,
    has_ids: bool = False,
) -> DataSource:
    """Understand the data.

    A `DataLoader` over a data set with indices is made again with the same sampler, whose indices are read beforehand;
    a data set gets a loader; anything else that can be iterated over is a stream of batches.

    Args:
        data: a loader, a data set or batches.
        ranks: who evaluates together.
        batch_size: of a data set without a loader; None where a stream gives batches.
        num_workers: the same.
        pin: whether the loader puts batches into pinned memory.
        sharded: every rank's data are its own; False: all ranks have the same; None: find out.
        trail: sees every batch of a stream, also those that are not counted again.
        has_ids: batches bring the ids of their samples, so that one which comes twice is counted once.

    Raises:
        ConfigError: the data are nothing of that, or ranks cannot tell whether they have the same.
    """
    data = unprepared(data, ranks, has_ids)
    given, data = data, by_index(data)
    if data is not given:
        sharded = None  # all processes read all samples of it by index, also where its iterator splits them
    if isinstance(data, DataLoader) and _has_indices(data):
        return _indexed(data, ranks, pin, sharded)
    if not isinstance(data, DataLoader) and is_dataset(data):
        if batch_size is None:
            got, expected = "a data set of samples with batch_size=None", "a stream of batches, or a batch size"
            raise ConfigError(describe("data", got, expected, "Leave batch_size out"))
        loader = DataLoader(data, batch_size=batch_size, num_workers=num_workers, collate_fn=default_collate)
        return _indexed(loader, ranks, pin, sharded)
    if isinstance(data, IterableDataset):
        data = DataLoader(data, batch_size=batch_size, num_workers=num_workers)
    check_iterable(data)
    return _stream(data, ranks, sharded, trail, has_ids)


def is_dataset(data: Any) -> bool:
    """Whether a sample can be asked for by its index, and there is an end."""
    if isinstance(data, list | tuple | dict | str | bytes | torch.Tensor | IterableDataset):
        return False
    return hasattr(data, "__getitem__") and hasattr(data, "__len__")


def check_iterable(data: Any) -> None:
    """Raise unless data are batches that can be iterated over.

    Raises:
        ConfigError: they are not.
    """
    if isinstance(data, str | bytes | dict | torch.Tensor) or not hasattr(data, "__iter__"):
        got, expected = structure(data), "a data loader, a data set, or batches one can iterate over"
        do = "Wrap tensors in torch.utils.data.TensorDataset"
        raise ConfigError(describe("data", got, expected, do))


def _has_indices(loader: DataLoader[Any]) -> bool:
    """Whether a loader asks its data set for samples by index, in torch's own way."""
    own_way = type(loader).__iter__ is DataLoader.__iter__
    return own_way and not isinstance(loader.dataset, IterableDataset) and loader.batch_sampler is not None


def _indexed(loader: DataLoader[Any], ranks: Ranks, pin: bool, sharded: bool | None) -> DataSource:
    size, lists = _size_and_lists(loader, ranks)
    if sharded is None and not ranks.alone:
        sharded = _is_sharded(loader.dataset, size, ranks)
    start, whole = 0, size
    if sharded and not ranks.alone:  # a rank's indices follow those of the ranks before it
        sizes = ranks.by_coordinate(ranks.gather(lambda: size))
        start, whole = sum(sizes[: ranks.place.own]), sum(sizes)
    shares = assign_samples([batch + start for batch in lists] if start else lists, whole, ranks)

    def batches(left: Lists | int) -> Units:
        assert not isinstance(left, int)
        own = [batch - start for batch in left] if start else left
        return _loaded(_again(loader, own, pin), left, loader.num_workers > 0)

    def read(index: list[int]) -> list[Unit]:
        lists = [np.array([each]) for each in index]
        with _random_state_unchanged(loader.generator):
            again = _again(loader, [each - start for each in lists], pin=False, workers=1)
            return list(_loaded(again, lists, loader.num_workers > 0))

    how = f"a data set of {whole:,} samples, by index{'; every rank has its own' if start or whole > size else ''}"
    unused = whole - int(shares.expected.sum())
    return DataSource(shares, batches, len(shares.lists), how, unused, loader.dataset, read)


@contextmanager
def _random_state_unchanged(generator: torch.Generator | None) -> Iterator[None]:
    """Random numbers as if the block had drawn none."""
    states = random.getstate(), np.random.get_state(), None if generator is None else generator.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if generator is not None and states[2] is not None:
            generator.set_state(states[2])


def _size_and_lists(loader: DataLoader[Any], ranks: Ranks) -> tuple[int, Lists]:
    """The size of the data set, and the batches that its sampler gives; a failure of one rank is raised on all."""
    result: list[tuple[int, Lists]] = []

    def read() -> None:
        size = len(loader.dataset)  # type: ignore[arg-type]
        assert loader.batch_sampler is not None
        lists = [_indices(batch, size) for batch in loader.batch_sampler]
        result.append((size, lists))

    ranks.gather(read)
    return result[0]


def _indices(batch: Iterable[Any], size: int) -> NDArray[np.int64]:
    values = list(batch)
    index = np.asarray(values)
    if index.dtype.kind not in "iu" and values:
        expected = "integers from the sampler"
        raise ConfigError(describe("data", structure(values), expected, "Pass the batches themselves as an iterable"))
    index = index.astype(np.int64)
    index = np.where(index < 0, index + size, index)
    if len(index) and not (index.min() >= 0 and index.max() < size):
        got = f"index {int(index.max())} from the sampler"
        raise ConfigError(describe("data", got, f"indices below {size}", "Correct the sampler"))
    return index


def _is_sharded(dataset: Any, size: int, ranks: Ranks) -> bool:
    """Whether every rank's data set is its own; when ranks cannot tell, it must be said."""
    samples = ranks.gather(lambda: (size, [digest(dataset[k]) for k in sorted({0, size // 2, size - 1}) if size]))
    if all(each == samples[0] for each in samples):
        return False
    sizes = ", ".join(f"{count:,}" for count, _ in samples)
    got = f"data sets of {sizes} samples, whose samples differ between the ranks"
    raise ConfigError(describe("data", got, "the same data set on all ranks, or sharded=", _BY))


def _again(loader: DataLoader[Any], lists: Lists, pin: bool, workers: int | None = None) -> Iterator[Any]:
    """The same loader, for these batches, with at most so many workers."""
    options: dict[str, Any] = {}
    workers = min(loader.num_workers, len(lists), loader.num_workers if workers is None else workers)
    if workers:
        options["prefetch_factor"] = loader.prefetch_factor
        options["multiprocessing_context"] = loader.multiprocessing_context
        options["worker_init_fn"] = loader.worker_init_fn
        options["timeout"] = loader.timeout
    new_loader: DataLoader[Any] = DataLoader(
        loader.dataset,
        batch_sampler=_Lists(lists),
        collate_fn=loader.collate_fn,
        num_workers=workers,
        pin_memory=pin or loader.pin_memory,
        generator=loader.generator,
        **options,
    )
    return iter(new_loader)


def _loaded(iterator: Iterator[Any], lists: Lists, with_workers: bool) -> Units:
    """Batches with their indices; the loader gives them in the order of its lists.

    After an error that is not of one batch a loader may give any later batch, or none for ever: it is not asked again.
    """
    try:
        for index in lists:
            try:
                unit = Unit(index, next(iterator))
            except StopIteration:
                got = f"no batch for {len(index)} indices"
                raise BatchError(describe("data", got, "one batch a list of indices", "Run without workers")) from None
            except Exception as error:
                if with_workers and not _is_of_a_batch(error):
                    raise broken_loader(error) from error
                unit = Unit(index, None, error)
            yield unit
    finally:
        _end_workers(iterator)


def _end_workers(iterator: Iterator[Any] | None) -> None:
    """End the workers of a loader now; torch's signal handler may raise once more for one that is dead."""
    end = getattr(iterator, "_shutdown_workers", None)  # without it, they end when the iterator is thrown away
    if end is not None:
        with suppress(RuntimeError):
            end()


def _is_of_a_batch(error: Exception) -> bool:
    """Whether a worker sent an error in place of a batch; any other is of the loader."""
    return any(frame.f_code is ExceptionWrapper.reraise.__code__ for frame, _ in walk_tb(error.__traceback__))


def is_of_the_loader(error: BaseException) -> bool:
    """Whether it says that a worker is dead: torch raises that by a signal, at any time."""
    return isinstance(error, RuntimeError) and str(error).startswith("DataLoader worker (pid")


def broken_loader(error: BaseException) -> BatchError:
    """The error of a loader that cannot go on."""
    got = f"{type(error).__name__}: {error}"
    do = "Find out what ended the worker (less memory: fewer workers); with resume= the same call resumes"
    return BatchError(describe("data loader", got, "workers that live until the last batch", do))


def _stream(data: Iterable[Any], ranks: Ranks, sharded: bool | None, trail: Trail | None, has_ids: bool) -> DataSource:
    length = None if has_ids else stated_length(data)

    def batches(start: Lists | int) -> Units:
        assert isinstance(start, int)
        items = _items(data) if length is None else length.checked(_items(data))
        same = False
        if not ranks.alone:
            first = list(islice(items, 1))
            items, same = chain(first, items), _is_same(first, ranks, sharded)
        for number, batch in enumerate(items):
            if trail is not None:
                trail.step(batch)
            if number >= start:
                yield Unit(None, ANOTHERS if same and number % ranks.place.count != ranks.place.own else batch)
        if trail is not None:
            trail.end()

    total = len(data) if isinstance(data, list | tuple) else None
    return DataSource(None, batches, total, "a stream of batches")


def _items(data: Iterable[Any]) -> Iterator[Any]:
    """The items of a stream; one that breaks cannot be resumed, and says where it broke."""
    number = 0
    iterator: Iterator[Any] | None = None
    try:
        iterator = iter(data)
        for item in iterator:
            yield item
            number += 1
    except Exception as error:
        with_workers = isinstance(data, DataLoader) and data.num_workers > 0
        if is_of_the_loader(error) or (with_workers and not _is_of_a_batch(error)):
            _end_workers(iterator)
            raise broken_loader(error) from error
        got = f"{type(error).__name__}: {error}"
        usual = "Correct the data; what was counted before is in the checkpoint, if resume= was given"
        do = loading_advice(error) or usual
        raise BatchError(describe(f"batch number {number} of the stream", got, "a batch", do)) from error


def _is_same(first: list[Any], ranks: Ranks, sharded: bool | None) -> bool:
    """Whether all ranks iterate over the same batches, so that they are assigned in turns."""
    if sharded is not None:
        return not sharded
    everyone = ranks.gather(lambda: [digest(each) for each in first])
    firsts = [digests[0] for digests in ranks.by_coordinate(everyone) if digests]
    if len(set(firsts)) == len(firsts):
        return False
    got = "the same first batch on several ranks"
    raise ConfigError(describe("data", got, "batches of each rank's own, or sharded=", _BY))
