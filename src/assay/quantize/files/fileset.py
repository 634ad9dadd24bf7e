"""The files of one quantized model: one, or shards with an index, which describe themselves and belong together."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from torch import Tensor

from assay._atomic import write_text
from assay.errors import StateError, describe
from assay.quantize.files.container import Container, Metadata, TensorEntry, in_shards
from assay.quantize.files.description import KEY, NO_CHECKSUM, FileDescription, WeightDescription, merged
from assay.render.text import first_names

# Not "model.safetensors": Transformers would read that, find none of the weights that it looks for, and fill them with
# random numbers, with no more than a report in its log.
FILE = "quantized.safetensors"
INDEX = "quantized.safetensors.index.json"
SHARD = re.compile(r"quantized-\d{5}-of-\d{5}\.safetensors")
SHARD_BYTES = 5 * 10**9
SUFFIX = ".safetensors"


class FileSet:
    """The files of a model while they are filled. They take their names when all are whole.

    Args:
        path: a folder, or one file that ends in ``.safetensors``.
        groups: what is written; a group stays in one file.
        weights: the quantized ones among them.
        tied: further names of weights and tensors.
        shard_bytes: the most that one file of a folder holds.
        mark: what the names of unfinished files end with.
        origin: names of tensors -> what else the header of their file says; the length of its texts must stay the same.
    """

    def __init__(
        self,
        path: Path,
        groups: Sequence[Sequence[TensorEntry]],
        weights: Mapping[str, WeightDescription],
        tied: Mapping[str, str],
        shard_bytes: int = SHARD_BYTES,
        mark: str = "part",
        origin: Callable[[Collection[str]], Metadata] = lambda names: {},
    ) -> None:
        self.path, self.weights, self.tied = path, weights, tied
        self.sums: dict[str, str] = {}
        self._origin, self._whole = origin, NO_CHECKSUM
        single = path.suffix == SUFFIX
        self.folder = path.parent if single else path
        shards = [[entry for group in groups for entry in group]] if single else in_shards(groups, shard_bytes)
        names = [path.name] if single else names_of(len(shards))
        self._containers = [self._container(*each, mark) for each in zip(names, shards, strict=True)]
        self._home = {entry.name: k for k, shard in enumerate(shards) for entry in shard}

    def _container(self, name: str, entries: Sequence[TensorEntry], mark: str) -> Container:
        def metadata(sums: Mapping[str, str]) -> Metadata:
            return self._described(entries, sums).to_metadata() | self._origin({entry.name for entry in entries})

        return Container(self.folder / name, entries, metadata, self.folder / f".{name}.{mark}")

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files, in order."""
        return tuple(container.path.name for container in self._containers)

    @property
    def nbytes(self) -> int:
        """The bytes of all files."""
        return sum(container.nbytes for container in self._containers)

    def reserve(self) -> None:
        """Take the room for all files."""
        for container in self._containers:
            container.reserve()

    def reopen(self) -> None:
        """Go on with what an earlier run filled, also where a file had its name already."""
        for container in self._containers:
            if not container.part.exists() and container.path.exists():
                os.replace(container.path, container.part)

    def put(self, name: str, tensor: Tensor) -> str:
        """Write one tensor; returns its checksum."""
        self.sums[name] = self._containers[self._home[name]].put(name, tensor)
        return self.sums[name]

    def sync(self, names: Sequence[str]) -> None:
        """Wait until these tensors are on the disk."""
        for k in {self._home[name] for name in names}:
            self._containers[k].sync()

    def has(self, name: str, checksum: str) -> bool:
        """Whether a tensor of this checksum is written already; then it counts as put."""
        is_same = self._containers[self._home[name]].checksum(name) == checksum
        if is_same:
            self.sums[name] = checksum
        return is_same

    def finish(self) -> None:
        """Seal all files, then give them their names, then write the index."""
        self._whole = merged(self._described(c.entries, self.sums) for c in self._containers).whole
        for container in self._containers:
            container.seal(self.sums)
        for container in self._containers:
            container.publish()
        if self.path.suffix != SUFFIX:
            self._index()

    def discard(self) -> None:
        """Remove what is unfinished."""
        for container in self._containers:
            with contextlib.suppress(OSError):
                container.part.unlink()

    def _described(self, entries: Sequence[TensorEntry], sums: Mapping[str, str]) -> FileDescription:
        """What one file says of itself. A weight of several names stands in the file that holds it."""
        names = {entry.name for entry in entries}
        weights = {name: weight for name, weight in self.weights.items() if f"{name}.packed" in names}
        tied = {name: other for name, other in self.tied.items() if other in names or other in weights}
        checksums = {name: sums.get(name, NO_CHECKSUM) for name in sorted(names)}
        return FileDescription(weights, checksums, tied, self._whole)

    def _index(self) -> None:
        path, files = self.folder / INDEX, self.files
        if len(files) == 1:
            path.unlink(missing_ok=True)
        else:
            total = sum(entry.nbytes for container in self._containers for entry in container.entries)
            names = {name: files[k] for name, k in sorted(self._home.items())}
            index = {"metadata": {"total_size": total, KEY: self._whole}, "weight_map": names}
            write_text(path, json.dumps(index, indent=2) + "\n")
        for older in self.folder.iterdir():  # of a model of another number of files, that lay there before
            if older.name not in files and (older.name == FILE or SHARD.fullmatch(older.name)):
                older.unlink()


def names_of(count: int) -> list[str]:
    """The names of so many files, counted as Hugging Face does it.

    Example:
        >>> names_of(1), names_of(2)[1]
        (['quantized.safetensors'], 'quantized-00002-of-00002.safetensors')
    """
    return [FILE] if count == 1 else [f"quantized-{k + 1:05d}-of-{count:05d}{SUFFIX}" for k in range(count)]


def files_of(path: Path) -> list[Path]:
    """The files of a model that was saved.

    Args:
        path: its folder or its file.

    Raises:
        StateError: no file is there, or files of the index are missing.
    """
    if path.is_file():
        return [path]
    if (path / INDEX).is_file():
        return sorted(set(indexed_files(path / INDEX).values()))
    if (path / FILE).is_file():
        return [path / FILE]
    got = f"no {FILE} and no {INDEX}" if path.is_dir() else "nothing"
    raise StateError(describe(str(path), got, "what assay.quantize.save wrote", "Check the path"))


def indexed_files(path: Path) -> dict[str, Path]:
    """The files of an index of shards, by the names of their tensors.

    Raises:
        StateError: it is no index, or files of it are missing.
    """
    do = "Copy all files of the model again"
    try:
        index = json.loads(path.read_text("utf-8"))["weight_map"]
        files = {str(name): path.parent / str(file) for name, file in index.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        got = f"no index ({type(error).__name__}: {error})"
        raise StateError(describe(str(path), got, "a weight_map of tensors and files", do)) from error
    missing = sorted({file.name for file in files.values() if not file.is_file()})
    if missing:
        raise StateError(describe(str(path.parent), f"no {first_names(missing)}", "every file of its index", do))
    return files
