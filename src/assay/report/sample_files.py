"""Samples of large sections in Arrow files beside a report, which names each with its digest."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from assay._atomic import Location, kept_copy, write_whole
from assay._remote import RemotePath
from assay.errors import MissingDependencyError, StateError, describe
from assay.report.packed_array import Array, PackedArray, narrowed
from assay.report.samples import MOST_SAMPLES

if TYPE_CHECKING:
    from assay.report.report import Report
    from assay.report.section import Section

AnyReport = TypeVar("AnyReport", bound="Report")
_ROWS = 1 << 20  # of a record batch


class SampleFile:
    """The columns of one Arrow file.

    Args:
        path: where it is.
        digest: BLAKE2b of its bytes.
    """

    def __init__(self, path: Location, digest: str) -> None:
        self.path, self.digest = path, digest
        self._local: Path | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the copy on this machine, which ends with its process."""
        return {**self.__dict__, "_local": None}

    def column(self, name: str) -> Array:
        """The values of a column: booleans, int64, float64, or objects that are str.

        Raises:
            StateError: the file is missing, was changed, or lacks the column.
        """
        pa = arrow()
        with self._reading(), pa.memory_map(str(self._checked())) as file:
            table = pa.ipc.open_file(file).read_all()
            return _as_array(table.column(name))

    def _checked(self) -> Path:
        """The file on this machine, after its digest was found to be right; checked once."""
        if self._local is None:
            local = self.path
            if isinstance(local, RemotePath):
                local = kept_copy(local, self)
            with local.open("rb") as file:
                digest = hashlib.file_digest(file, _blake).hexdigest()
            if digest != self.digest:
                do = "Copy the file again, or evaluate again"
                raise StateError(describe(str(self.path), f"digest {digest}", f"digest {self.digest}", do))
            self._local = local
        return self._local

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            do = "Copy it beside the report"
            raise StateError(describe(str(self.path), "no such file", "the samples of the report", do)) from error
        except (OSError, ValueError, KeyError) as error:
            got = f"what cannot be read ({type(error).__name__}: {error!s:.100})"
            do = "Copy the file again, or evaluate again"
            raise StateError(describe(str(self.path), got, "the samples of the report", do)) from error


def with_sample_files(report: Report, path: Location) -> Report:
    """A report whose large sections have their samples in files beside it, which are written.

    Args:
        report: the report.
        path: where its JSON is about to be written.

    Raises:
        MissingDependencyError: pyarrow is absent, and there are too many samples for JSON.
        OSError: the system or the store refuses.
    """
    return replace(report, sections=tuple(_stored(section, path) for section in report.sections))


def with_attached_files(report: AnyReport, folder: Location) -> AnyReport:
    """A report that was read, with the files of its samples in the folder that it is in."""

    @functools.cache
    def file(name: str, digest: str) -> SampleFile:
        return SampleFile(folder / name, digest)

    def attached(_: str, packed: PackedArray) -> PackedArray:
        if packed.form != "file":
            return packed
        name, _, column = packed.data.partition("#")
        return packed.attached(file(name, packed.digest), column)

    return replace(report, sections=tuple(_mapped(section, attached) for section in report.sections))


def _stored(section: Section, path: Location) -> Section:
    """A section with its samples in a file, where there are many."""
    samples = section.samples
    if samples is None or (len(samples) <= MOST_SAMPLES and not samples.is_stored):
        return section
    packed: dict[str, PackedArray] = {}
    _mapped(section, lambda name, each: packed.setdefault(name, each))
    packed = {name: each for name, each in packed.items() if each.form != "range"}
    folders = {each.file.path.parent for each in packed.values() if isinstance(each.file, SampleFile)}
    if folders == {path.parent}:
        return section
    content = hashlib.blake2b(repr([(name, each.digest) for name, each in packed.items()]).encode(), digest_size=8)
    target = path.parent / f"{Path(path.name).stem}.{content.hexdigest()}.arrow"
    file = SampleFile(target, _write(target, {name: each.values for name, each in packed.items()}))

    def in_file(name: str, each: PackedArray) -> PackedArray:
        return each if each.form == "range" else PackedArray.in_file(each, file, name, target.name, file.digest)

    return _mapped(section, in_file)


def _write(path: Location, columns: dict[str, Array]) -> str:
    """Write columns, and give the digest of the file."""
    pa, digests = arrow(), []
    arrays = {
        name: pa.array(array, pa.large_string()) if array.dtype.kind == "O" else pa.array(narrowed(array))
        for name, array in columns.items()
    }
    table = pa.table(arrays)

    def fill(part: Path) -> None:
        with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=_ROWS)
        with part.open("rb") as file:
            digests.append(hashlib.file_digest(file, _blake).hexdigest())

    write_whole(path, fill)
    return digests[-1]


def _blake() -> Any:
    return hashlib.blake2b(digest_size=16)


def _mapped(section: Section, change: Callable[[str, PackedArray], PackedArray]) -> Section:
    """A section with other arrays of its samples; each has a name of its own."""
    samples = section.samples
    if samples is None:
        return section
    columns = tuple(replace(each, values=change(f"column {each.name}", each.values)) for each in samples.columns)
    decision, target = (
        None if each is None else change(name, each)
        for name, each in (("decision", samples.decision), ("target", samples.target))
    )
    samples = replace(samples, ids=change("ids", samples.ids), columns=columns, decision=decision, target=target)
    slices = tuple(
        each if each.members is None else replace(each, members=change(f"slice {each.name}", each.members))
        for each in section.slices
    )
    return replace(section, samples=samples, slices=slices)


def _as_array(column: Any) -> Array:
    """A column of Arrow as `PackedArray` gives its values."""
    pa = arrow()
    kind = column.type
    if pa.types.is_large_string(kind):
        return np.asarray(column.to_numpy(), dtype=object)
    wide: Any = np.bool_ if pa.types.is_boolean(kind) else np.float64 if pa.types.is_floating(kind) else np.int64
    array, start = np.empty(len(column), wide), 0
    for chunk in column.chunks:
        array[start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
        start += len(chunk)
    return array


def arrow() -> Any:
    """The package pyarrow.

    Raises:
        MissingDependencyError: it is absent.
    """
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        purpose = f"per-sample values of more than {MOST_SAMPLES:,} samples"
        raise MissingDependencyError("pyarrow", extra="tables", purpose=purpose) from error
    return pyarrow
