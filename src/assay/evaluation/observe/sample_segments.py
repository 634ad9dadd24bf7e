"""Per-sample values in temporary files while they are counted, so that memory does not grow with the samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from assay._atomic import temporary_folder
from assay.errors import StateError, describe
from assay.evaluation.observe.observers import Array
from assay.report.per_sample.packed_array import CHUNK_ROWS
from assay.report.per_sample.sample_files import digest_of, read_columns, write_columns

SEGMENT_ROWS = CHUNK_ROWS
"""Samples at least that are written to a file at a time."""

Fetch: TypeAlias = Callable[[str, Path], None]
"""Puts the file of a name at a path."""


@dataclass(frozen=True)
class Segment:
    """Some samples, in a file.

    Attributes:
        name: of the file: it has the digest of its bytes.
        rows: how many samples it has.
        dtypes: by the name of each series, its dtype; `"object"` of strings.
    """

    name: str
    rows: int
    dtypes: Mapping[str, str]


class SampleSegments:
    """Series of per-sample values, in files of some 100,000 samples each, in the order in which they were counted.

    Attributes:
        segments: what was written.
    """

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._folder: Path | None = None

    @property
    def rows(self) -> int:
        """How many samples were written."""
        return sum(each.rows for each in self.segments)

    @property
    def names(self) -> list[str]:
        """The series that all samples have."""
        return sorted(set.intersection(*(set(each.dtypes) for each in self.segments))) if self.segments else []

    def write(self, series: Mapping[str, Array]) -> None:
        """Add samples: series of equal lengths."""
        path = self.folder / "segment.part"
        kinds = {name: "str" if each.dtype.kind == "O" else each.dtype.name for name, each in series.items()}
        digest = write_columns(path, kinds, [series])
        segment = Segment(
            f"samples-{digest}.arrow",
            len(next(iter(series.values()))),
            {name: each.dtype.name for name, each in series.items()},
        )
        os.replace(path, self.folder / segment.name)
        self.segments.append(segment)

    @property
    def folder(self) -> Path:
        """Where the files are: a folder that is deleted with this object, or when the process ends."""
        if self._folder is None:
            self._folder = temporary_folder(self)
        return self._folder

    def files(self) -> dict[str, Path]:
        """The files, by name."""
        return {each.name: self.folder / each.name for each in self.segments}

    def fetch(self, fetch: Fetch) -> None:
        """Get the files of segments that were added by name.

        Raises:
            StateError: a file is missing, or was changed.
        """
        for name, path in self.files().items():
            if path.exists():
                continue
            expected, do = "the per-sample values that were written", "Name another folder, or delete this one"
            try:
                fetch(name, path)
            except FileNotFoundError as error:
                raise StateError(describe(name, "no such file", expected, do)) from error
            if digest_of(path) != name.removeprefix("samples-").removesuffix(".arrow"):
                raise StateError(describe(name, "bytes that were changed", expected, do))

    def dtype(self, name: str) -> np.dtype:
        """What the values of a series have in common."""
        return np.result_type(*(np.dtype(each.dtypes[name]) for each in self.segments))

    def chunks(self, names: Collection[str]) -> Iterator[dict[str, Array]]:
        """Series, one segment at a time."""
        for segment in self.segments:
            yield self._read(segment, names)

    def _read(self, segment: Segment, names: Collection[str]) -> dict[str, Array]:
        (found,) = read_columns(self.folder / segment.name, names)
        return {name: _as(found[name], self.dtype(name)) for name in names}

    def order(self, name: str) -> Array | None:
        """The positions of the samples in the order of a series; None where they are in it."""
        if self.dtype(name).kind == "O":
            return np.argsort(self.whole(name), kind="stable")
        values = self.whole(name)
        return None if (values[1:] >= values[:-1]).all() else np.argsort(values, kind="stable")

    def whole(self, name: str) -> Array:
        """One series in memory."""
        values = np.empty(self.rows, self.dtype(name))
        start = 0
        for chunk in self.chunks([name]):
            values[start : start + len(chunk[name])] = chunk[name]
            start += len(chunk[name])
        return values

    def ordered(self, names: Collection[str], order: Array | None) -> Iterator[dict[str, Array]]:
        """Series, `CHUNK_ROWS` samples at a time.

        Args:
            names: which series.
            order: the positions of the samples; None for that in which they were counted.
        """
        ends = np.cumsum([each.rows for each in self.segments])
        dtypes = {name: self.dtype(name) for name in names}
        for start in range(0, self.rows, CHUNK_ROWS):
            stop = min(start + CHUNK_ROWS, self.rows)
            positions = np.arange(start, stop) if order is None else order[start:stop]
            places = np.searchsorted(ends, positions, side="right")
            rows = {name: np.empty(stop - start, dtype) for name, dtype in dtypes.items()}
            for place in np.unique(places).tolist():
                into = places == place
                segment = self.segments[place]
                taken = positions[into] - (ends[place] - segment.rows)
                found = self._read(segment, names)
                for name, values in rows.items():
                    values[into] = found[name][taken]
            yield rows


def _as(array: Array, dtype: np.dtype) -> Array:
    """Values of another dtype; numbers among strings as strings."""
    if dtype.kind == "O" != array.dtype.kind:
        array = array.astype(str)
    return array.astype(dtype, copy=False)
