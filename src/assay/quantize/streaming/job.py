"""Models larger than memory: quantized from safetensors files, one tensor at a time, into files of the same form."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from assay import __version__
from assay._atomic import local_path, write_text, write_whole
from assay.errors import AssayError, ConfigError, InvalidValuesError, StateError, describe
from assay.progress import ProgressBar
from assay.quantize.files.container import Metadata, sha256, writing
from assay.quantize.files.description import NO_CHECKSUM, tensors_of
from assay.quantize.files.fileset import SHARD_BYTES, SUFFIX, FileSet
from assay.quantize.planning.plan import Plan
from assay.quantize.planning.recipe import Recipe, RecipeLike
from assay.quantize.rounding import quantize_weight
from assay.quantize.streaming.conversions import SCALES, Conversions, ModelLike, TensorConversion, plan_conversions
from assay.quantize.streaming.tensor_source import CONFIG, WEIGHTS, TensorSource

JOURNAL, LOCK, ORIGIN = ".assay-journal.jsonl", ".assay-lock", "assay.origin"
METHODS = ("nearest", "search", "hqq")


@dataclass(frozen=True)
class StreamResult:
    """What was written.

    Attributes:
        target: the folder.
        files: those with weights, in order.
        quantized: how many weights became integers.
        skipped: layers that were skipped, and why.
        bytes_before: of all tensors of the source.
        bytes_after: of all files with weights.
        seconds: how long this run took.
        resumed: weights that an earlier run had written.
        notes: what else a reader should know.
    """

    target: Path
    files: tuple[str, ...]
    quantized: int
    skipped: Mapping[str, str]
    bytes_before: int
    bytes_after: int
    seconds: float
    resumed: int
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        resumed = f", {self.resumed} of them before" if self.resumed else ""
        sizes = f"{self.bytes_before / 1e6:,.1f} MB -> {self.bytes_after / 1e6:,.1f} MB"
        lines = [f"{self.target}: {self.quantized} weights quantized{resumed}; {sizes} in {self.seconds:,.1f} s"]
        lines += [f"  skipped: {name}: {why}" for name, why in self.skipped.items()]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def quantize_shards(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    recipe: RecipeLike | Plan = "int4",
    *,
    model: ModelLike = "auto",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    method: str | None = None,
    shard_bytes: int = SHARD_BYTES,
    progress: bool | None = None,
) -> StreamResult:
    """Quantize a model that need not fit into memory, from safetensors files to safetensors files.

    One tensor is in memory at a time, so that the largest layer is what counts. After a kill at any point, the same
    call resumes: what is on the disk and still belongs to the source is kept, and the result has the same bytes.

    Args:
        source: a folder as Hugging Face writes it, or one safetensors file.
        target: the folder to write; other files of the source (configuration, tokenizer) are copied into it.
        recipe: what :meth:`Recipe.parse` reads, or a :class:`Plan`, of which exactly what it says is done.
        model: what says which tensors belong to linear layers: a module, which may be on the meta device, a factory,
            ``"auto"`` (the model of ``config.json`` where Transformers has it, else names) or ``"names"`` (what is 2-D
            and named ``weight``; an embedding by its name).
        include: patterns; where there are any, other layers are skipped.
        exclude: patterns of layers that are skipped.
        method: ``"nearest"`` (the default, unless the plan says otherwise), ``"search"`` or ``"hqq"``; methods with
            calibration data need the model.
        shard_bytes: the most that one file of the target may hold.
        progress: show a bar; None: where there is a terminal.

    Returns:
        What was written.

    Raises:
        ConfigError: the source is no model of floats, nothing can be quantized, the target holds something else or
            cannot be written.
        StateError: the plan is of another model, a file is cut short, the source changed, or the disk is full.
        InvalidValuesError: a weight holds NaN or infinity.
    """
    start = time.monotonic()
    planned = recipe if isinstance(recipe, Plan) else Recipe.parse(recipe)
    method = method or (planned.method if isinstance(planned, Plan) else "nearest")
    if method not in METHODS:
        do = 'Pass method="nearest", or apply the plan to the model in memory'
        raise ConfigError(describe("method", repr(method), " or ".join(map(repr, METHODS)), do))
    if type(shard_bytes) is not int or shard_bytes < 1:
        raise ConfigError(describe("shard_bytes", repr(shard_bytes), "a number of bytes", "Pass 5 * 10**9"))
    read = TensorSource(source)
    folder = _target(read, Path(target))
    plan = plan_conversions(read, planned, model, include, exclude)
    work = _StreamJob(read, folder, plan, method, shard_bytes)
    with _alone(folder):
        resumed = work.run(progress)
    return work.result(resumed, time.monotonic() - start)


@dataclass(frozen=True)
class WrittenWeight:
    """One weight that is written: the SHA-256 of its source, and of each tensor that was made from it."""

    name: str
    source: str
    tensors: Mapping[str, str]


class Journal:
    """A file whose first line is the job, and each further line one weight that is on the disk.

    Args:
        path: where it is.
        job: what must be the same to go on.

    Raises:
        StateError: it belongs to another job.
    """

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        self.path = path
        self.done: dict[str, WrittenWeight] = {}
        if not path.exists():
            write_text(path, json.dumps(dict(job), sort_keys=True) + "\n")
        whole, _, rest = path.read_bytes().rpartition(b"\n")
        if rest:  # a line that a kill cut short
            os.truncate(path, len(whole) + 1)
        do = "Go on as it was begun, or name another folder, or delete this one to start anew"
        try:
            first, *lines = (json.loads(line) for line in whole.decode().splitlines())
            self.done = {line["name"]: WrittenWeight(**line) for line in lines}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StateError(describe(str(path), f"no journal ({error})", "its own lines", do)) from error
        if others := [name for name in job if first.get(name) != job[name]]:
            got = f"a job that was begun with another {', '.join(others)}"
            raise StateError(describe(str(path.parent), got, "the same job", do))

    def add(self, done: WrittenWeight) -> None:
        """Note what is on the disk now."""
        self.done[done.name] = done
        with open(self.path, "a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(asdict(done)) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def forget(self, name: str) -> None:
        """What was written is not there any more: it is done again."""
        self.done.pop(name, None)

    def remove(self) -> None:
        """The work is done."""
        self.path.unlink(missing_ok=True)


class _StreamJob:
    """One job: the pieces of a source, the files that they go to, and what of it is done."""

    def __init__(self, source: TensorSource, folder: Path, plan: Conversions, method: str, shard_bytes: int) -> None:
        self._source, self._folder, self._plan, self._method = source, folder, plan, method
        self._origins = dict.fromkeys(plan.pieces, NO_CHECKSUM)
        weights = {name: piece.weight for name, piece in plan.pieces.items() if piece.weight is not None}
        layout = {name: [str(entry) for entry in piece.entries] for name, piece in plan.pieces.items()}
        what = json.dumps([layout, shard_bytes, {name: weight.to_json() for name, weight in weights.items()}])
        recipe = hashlib.sha256(what.encode()).hexdigest()
        self._job = {"assay": __version__, "torch": torch.__version__, "method": method, "recipe or source": recipe}
        groups = [piece.entries for piece in plan.pieces.values() if piece.entries]
        self._files = FileSet(folder, groups, weights, plan.tied, shard_bytes, origin=self._origin)

    def run(self, progress: bool | None) -> int:
        """Do what is not done. Returns how many weights were."""
        with ProgressBar("Quantizing", self._source.nbytes, progress, unit="bytes") as bar:
            if self._finished(bar):
                return len(self._files.weights)
            with writing(self._folder / JOURNAL, self._files.nbytes):
                return self._work(bar)

    def result(self, resumed: int, seconds: float) -> StreamResult:
        """What was written."""
        written = self._folder, self._files.files, len(self._files.weights), self._plan.skipped
        sizes = self._source.nbytes, self._files.nbytes
        return StreamResult(*written, *sizes, seconds, resumed, tuple(self._plan.notes))

    def _finished(self, bar: ProgressBar) -> bool:
        """Whether an earlier run wrote all of it.

        Raises:
            ConfigError: there is another model.
            StateError: it was made from another source.
        """
        files = sorted(path for path in self._folder.iterdir() if path.suffix in WEIGHTS)
        there = [path for path in files if not path.name.startswith(".")]
        if (self._folder / JOURNAL).exists() or not there:
            return False
        origins = [_origin_of(file) for file in there]
        if any(origin is None or origin["job"] != self._job for origin in origins):
            got = "another model" if None in origins else "a model that was quantized in another way"
            do = "Name another folder, or delete this one"
            raise ConfigError(describe(str(self._folder), got, "a folder without a model", do))
        for name, checksum in (item for origin in origins if origin for item in origin["tensors"].items()):
            self._check_source(name, checksum, bar)
        return True

    def _check_source(self, name: str, checksum: str, bar: ProgressBar) -> None:
        """Raise where a tensor of the source is not the one that an earlier run read."""
        bar.update(description="Checking", text=name, advance=self._source.tensors[name].nbytes)
        if sha256(self._source.read(name)) != checksum:
            raise self._changed(name)

    def _work(self, bar: ProgressBar) -> int:
        before = self._stamps()
        journal = Journal(self._folder / JOURNAL, self._job)
        self._reserve(journal)
        resumed = self._resume(journal, bar)
        for name, piece in self._plan.pieces.items():
            if name in journal.done:
                continue
            bar.update(description="Quantizing" if piece.weight else "Copying", text=name)
            journal.add(self._make(piece))
            bar.update(advance=piece.stored.nbytes)
        if self._stamps() != before:
            raise self._changed(str(self._source.path))
        self._origins = {name: done.source for name, done in journal.done.items()}
        self._files.finish()
        copy_beside(self._source, self._folder)
        for left in self._folder.glob(".*.part"):  # of runs that were killed while they wrote a small file
            left.unlink()
        journal.remove()
        return resumed

    def _reserve(self, journal: Journal) -> None:
        """Take the room on the disk; if there is too little and nothing was done, nothing stays."""
        try:
            self._files.reopen()
            self._files.reserve()
        except AssayError:
            if not journal.done:
                self._files.discard()
                journal.remove()
            raise

    def _resume(self, journal: Journal, bar: ProgressBar) -> int:
        """Check what an earlier run wrote; what is not there any more is done again. Returns how many weights are."""
        for name, done in list(journal.done.items()):
            self._check_source(name, done.source, bar)
            if not all(self._files.has(each, checksum) for each, checksum in done.tensors.items()):
                journal.forget(name)
        return sum(self._plan.pieces[name].weight is not None for name in journal.done)

    def _make(self, piece: TensorConversion) -> WrittenWeight:
        """Write what one tensor becomes, and wait until it is on the disk."""
        name = piece.stored.name
        tensor = self._source.read(name)
        source = sha256(tensor)
        self._origins[name] = source
        if piece.same_as:
            if source != self._origins.get(piece.same_as, source):
                got, do = f"{name} unlike {piece.same_as}, which the model shares", "Pass the model that they belong to"
                raise ConfigError(describe(str(self._source.path), got, "the same values", do))
            return WrittenWeight(name, source, {})
        parts = {name: tensor}
        if piece.weight is not None:
            weight = tensor.t().contiguous() if piece.transposed else tensor
            try:
                integers = quantize_weight(weight, piece.weight.scheme, self._method, scales=SCALES)
            except InvalidValuesError as error:
                raise InvalidValuesError(f"{name} of {piece.stored.file.name}: {error}") from error
            parts = tensors_of(name, integers)
        sums = {each: self._files.put(each, part) for each, part in parts.items()}
        self._files.sync(list(sums))
        return WrittenWeight(name, source, sums)

    def _origin(self, names: Collection[str]) -> Metadata:
        """What the header of a file says of its source."""
        here = {name for name, piece in self._plan.pieces.items() if any(each.name in names for each in piece.entries)}
        tied = {name for name, piece in self._plan.pieces.items() if piece.same_as in here}
        tensors = {name: self._origins[name] for name in sorted(here | tied)}
        return {ORIGIN: json.dumps({"job": self._job, "tensors": tensors}, sort_keys=True)}

    def _stamps(self) -> list[tuple[int, int]]:
        files = sorted({stored.file for stored in self._source.tensors.values()})
        return [(stat.st_size, stat.st_mtime_ns) for stat in map(os.stat, files)]

    def _changed(self, name: str) -> StateError:
        do = f"Delete {self._folder} and run it again, with files that stay as they are"
        return StateError(describe(str(self._source.path), f"another {name} than before", "the same source", do))


def copy_beside(source: TensorSource, folder: Path) -> None:
    """Copy configuration and tokenizer; the configuration says that the weights are quantized."""
    for path in source.others():
        target = folder / path.name
        if path.name == CONFIG:
            header = source.config | {"quantization_config": {"quant_method": "assay"}}
            write_text(target, json.dumps(header, indent=2) + "\n")
        else:
            write_whole(target, lambda part, path=path: shutil.copyfile(path, part))  # type: ignore[misc]


def _target(source: TensorSource, folder: Path) -> Path:
    """The folder to write.

    Raises:
        ConfigError: it is the source, or no folder.
    """
    local_path("target", folder)
    home = source.folder or source.path.parent
    if folder.exists() and home.exists() and folder.resolve() == home.resolve():
        raise ConfigError(describe("target", str(folder), "another folder than that of the source", "Name another one"))
    if folder.suffix == SUFFIX or folder.is_file():
        raise ConfigError(describe("target", f"{folder}, which is a file", "a folder", "Name a folder"))
    with writing(folder / JOURNAL, 0):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the target, so that two runs do not write into it at the same time."""
    lock = FileLock(folder / LOCK, timeout=0)
    with writing(folder / LOCK, 0):
        try:
            lock.acquire()
        except Timeout as error:
            got, do = "a folder that another run writes into", "Wait for it, or name another one"
            raise StateError(describe(str(folder), got, "one of its own", do)) from error
    try:
        yield
    finally:
        (folder / LOCK).unlink(missing_ok=True)
        lock.release()


def _origin_of(file: Path) -> dict[str, Any] | None:
    """What a file that a finished run wrote says of its source."""
    try:
        with safe_open(file, framework="pt") as handle:
            return json.loads((handle.metadata() or {})[ORIGIN])  # type: ignore[no-any-return]
    except (SafetensorError, OSError, KeyError, ValueError):
        return None
