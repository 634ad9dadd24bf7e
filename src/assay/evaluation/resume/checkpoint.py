"""Going on after a kill: what was counted, and of which samples, in files that are whole or not there.

Every rank writes one file. Their samples are disjoint, so files add up, and any number of ranks can go on from them. A
file whose samples are all in another one was taken over by it; a crash between writing and deleting does no harm.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay import __version__
from assay._atomic import Location, files_in, link_or_copy, local_copy, location, prepare_folder, write_whole
from assay.errors import StateError, describe
from assay.evaluation.data.coverage import CoverageTracker
from assay.evaluation.data.data_source import Trail
from assay.evaluation.observe.observers import Observers, part_of, prefixed
from assay.evaluation.processes.ranks import Ranks
from assay.evaluation.resume.identity import same
from assay.meter import Meter
from assay.meter.file import checksum

Folder: TypeAlias = "str | os.PathLike[str] | None"

SCHEMA = "assay.checkpoint/8"
MOST_OF_THE_TIME = 0.05
_ABOUT, _SUM = "assay.checkpoint", "sha256"
_METER, _OBSERVERS, _COUNTED, _IDS, _MARKS = "meter", "observers", "counted", "ids", "marks"
_ANEW = "Name another folder, or delete this one to start anew"


@dataclass(frozen=True)
class CheckpointPart:
    """What one file holds: counts, the samples that they are of, and how far a stream was read."""

    name: str
    state: dict[str, Tensor]
    observed: dict[str, Tensor]
    counted: NDArray[np.bool_]
    ids: tuple[NDArray[np.int64], NDArray[np.int64]]
    position: int
    rows: int
    repeated: int
    elapsed_s: float
    trail: str
    skipped: tuple[int, list[list[str]]]


class Checkpoints:
    """The files of an evaluation in a folder.

    Args:
        folder: where they are; None to keep none.
        run: what must be the same when an evaluation resumes; see `identity`.
        ranks: who evaluates together.
        every_s: how long to count between two files, in seconds; longer where writing takes long.
        trail: has seen the batches of a stream; None where the data are none.
    """

    def __init__(
        self, folder: Folder, run: dict[str, Any], ranks: Ranks, every_s: float, trail: Trail | None = None
    ) -> None:
        self._folder = None if folder is None else location("resume", folder)
        self._run, self._ranks, self._every_s, self._trail = run, ranks, every_s, trail
        self._next = time.monotonic() + every_s
        self._start = time.monotonic()
        self.before_s = 0.0
        self.resumed_rows = 0
        self._kept: set[str] = set()

    def restore(
        self, meter: Meter, observers: Observers, coverage: CoverageTracker
    ) -> tuple[NDArray[np.bool_] | None, int]:
        """Take over what files hold.

        Args:
            meter: gets this rank's share of the counts.
            observers: get its share of what observers counted.
            coverage: gets its share of the samples.

        Returns:
            Which samples were counted, on any rank; and how many batches of this rank's stream were.

        Raises:
            StateError: a file is cut short, changed, of another version, or of another evaluation.
        """
        if self._folder is None:
            return None, 0
        parts: list[CheckpointPart] = []
        self._ranks.gather(lambda: parts.extend(self._parts()))  # all have read before anyone writes
        place = self._ranks.place
        mine = [part for part in parts if _number(part.name) % place.count == place.own]
        for part in mine:
            if place.counts:
                part_meter = meter.fresh()
                part_meter.load_state_dict(part.state)
                meter.merge(part_meter)
                observers.add_state(part.observed)
                observers.fetch(self._fetch)
            coverage.rows += part.rows
            coverage.repeated += part.repeated
            coverage.ids.add(part.ids[0], part.ids[1].tolist())
            if coverage.expected is not None:
                coverage.counts[part.counted] = 1  # batches that were left out are tried again
            else:  # the stream goes on behind them
                rows, failures = part.skipped
                coverage.skipped_rows += rows
                coverage.failures += [(error, named) for error, named in failures]
        self.before_s = max((part.elapsed_s for part in parts), default=0.0)
        self.resumed_rows = sum(part.rows for part in parts)
        position = sum(part.position for part in mine)
        if self._trail is not None and mine:  # a stream has one file a rank
            self._trail.expected = position, mine[0].trail
        foreign = [part for part in mine if _number(part.name) >= place.count]
        if foreign and place.counts:
            self.save(meter, observers, coverage, position)
            for part in foreign:
                (self._folder / part.name).unlink()
        counted = None
        if coverage.expected is not None:
            counted = np.logical_or.reduce([np.zeros(len(coverage.expected), bool), *(part.counted for part in parts)])
        return counted, position

    @property
    def writes(self) -> bool:
        """Whether files are written."""
        return self._folder is not None

    def due(self) -> bool:
        """Whether it is time for the next file."""
        return self._folder is not None and time.monotonic() >= self._next

    def save(self, meter: Meter, observers: Observers, coverage: CoverageTracker, position: int) -> None:
        """Write this rank's file.

        Raises:
            StateError: the system refuses; the file from before is kept.
        """
        if self._folder is None or not self._ranks.place.counts:
            return
        start = time.monotonic()
        tensors = prefixed(_METER, meter.state_dict()) | prefixed(_OBSERVERS, observers.state())
        self._keep(observers.files())
        tensors[_COUNTED] = torch.from_numpy(np.packbits(coverage.counts > 0))
        tensors[_IDS], tensors[_MARKS] = map(torch.from_numpy, coverage.ids.arrays())
        header = {
            "schema": SCHEMA,
            "assay": __version__,
            "torch": torch.__version__,
            "run": self._run,
            "size": len(coverage.counts),
            "position": position,
            "rows": coverage.rows,
            "repeated": coverage.repeated,
            "skipped": [coverage.skipped_rows, coverage.failures],
            "trail": "" if self._trail is None else self._trail.at(position),
            "elapsed_s": self.before_s + start - self._start,
        }
        about = json.dumps(header, sort_keys=True)
        metadata = {_ABOUT: about, _SUM: checksum(about, tensors)}
        path = self._folder / f"rank-{self._ranks.place.own}.safetensors"
        from safetensors.torch import save_file  # here, so that evaluations without checkpoints need no safetensors

        with self._refused(path):
            write_whole(path, lambda part: save_file(tensors, part, metadata))
        end = time.monotonic()
        self._next = end + max(self._every_s, (end - start) / MOST_OF_THE_TIME)

    def _keep(self, files: Mapping[str, Path]) -> None:
        """Copy the files that a checkpoint names, which never change, to its folder."""
        assert self._folder is not None
        for name, path in files.items():
            if name not in self._kept:
                with self._refused(self._folder / name):
                    write_whole(self._folder / name, functools.partial(shutil.copyfile, path))
                self._kept.add(name)

    def _fetch(self, name: str, into: Path) -> None:
        """Copy a file of the folder to a path."""
        assert self._folder is not None
        with local_copy(self._folder / name) as copy:
            link_or_copy(copy, into)
        self._kept.add(name)

    @contextmanager
    def _refused(self, path: Location) -> Iterator[None]:
        """Report what the system refuses to write."""
        from safetensors import SafetensorError

        try:
            yield
        except (OSError, SafetensorError) as error:
            do = "Make room or change its rights; the same call then resumes from the last one that was written"
            raise StateError(describe(os.fspath(path), str(error), "a checkpoint that can be written", do)) from error

    def _parts(self) -> list[CheckpointPart]:
        assert self._folder is not None
        prepare_folder("resume", self._folder, "a folder for checkpoints")
        candidates = [self._read(path) for path in files_in(self._folder, "rank-*.safetensors")]
        candidates.sort(key=lambda part: (-int(part.counted.sum()), _number(part.name)))
        parts: list[CheckpointPart] = []
        for part in candidates:
            if part.counted.size and any(not (part.counted & ~other.counted).any() for other in parts):
                continue  # all of it is in another file
            if any((part.counted & other.counted).any() for other in parts):
                got = f"{part.name} with samples that another file has, too"
                raise StateError(describe(str(self._folder), got, "files of one evaluation", _ANEW))
            parts.append(part)
        return parts

    def _read(self, path: Location) -> CheckpointPart:
        from safetensors import SafetensorError, safe_open

        where = os.fspath(path)
        try:
            with local_copy(path) as copy, safe_open(copy, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            about, expected = metadata[_ABOUT], metadata[_SUM]
            header = json.loads(about)
        except (SafetensorError, KeyError, ValueError, RecursionError) as error:
            got = f"no whole checkpoint ({type(error).__name__}: {error})"
            raise StateError(describe(where, got, "what an evaluation wrote", _ANEW)) from error
        if checksum(about, tensors) != expected:
            raise StateError(describe(where, "bytes that were changed", "those of its checksum", _ANEW))
        self._check(where, header)
        size = header["size"]
        counted = np.unpackbits(tensors.pop(_COUNTED).numpy(), count=size).astype(bool)
        ids = tensors.pop(_IDS).numpy(), tensors.pop(_MARKS).numpy()
        state, observed = part_of(_METER, tensors), part_of(_OBSERVERS, tensors)
        numbers = (header[name] for name in ("position", "rows", "repeated", "elapsed_s", "trail", "skipped"))
        return CheckpointPart(path.name, state, observed, counted, ids, *numbers)

    def _check(self, where: str, header: dict[str, Any]) -> None:
        now = {"schema": SCHEMA, "assay": __version__, "torch": torch.__version__}
        for name, value in now.items():
            if header.get(name) != value:
                got, do = f"a checkpoint of {name} {header.get(name)}", f"Go on with that version. Or: {_ANEW}"
                raise StateError(describe(where, got, f"{name} {value}, for the same bits", do))
        others = [name for name, value in self._run.items() if not same(value, header["run"].get(name))]
        if others:
            got = f"a checkpoint of other {', '.join(others)}"
            raise StateError(describe(where, got, "one of this evaluation", _ANEW))


def _number(name: str) -> int:
    """The rank in a file's name."""
    digits = "".join(char for char in name if char.isdigit())
    return int(digits) if digits else 0
