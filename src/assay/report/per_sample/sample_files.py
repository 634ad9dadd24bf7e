"""Samples of large sections in Arrow files beside a report, which names each with its digest."""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from assay._atomic import Location, files_in, kept_copy, link_or_copy, temporary_folder, write_whole
from assay._remote import RemotePath
from assay.errors import MissingDependencyError, StateError, describe
from assay.report.per_sample.packed_array import CHUNK_ROWS, Array, PackedArray
from assay.report.per_sample.samples import MOST_SAMPLES

if TYPE_CHECKING:
    from assay.report.report import Report
    from assay.report.section import Section

AnyReport = TypeVar("AnyReport", bound="Report")


class SampleFile:
    """The columns of one Arrow file.

    Args:
        path: where it is.
        digest: BLAKE2b of its bytes.

    Attributes:
        is_temporary: it is deleted with this object.
    """

    def __init__(self, path: Location, digest: str) -> None:
        self.path, self.digest = path, digest
        self.is_temporary = False
        self._local: Path | None = None

    @classmethod
    def temporary(cls, fill: Callable[[Path], str]) -> SampleFile:
        """A file that is deleted with the object that this returns, or when the process ends.

        Args:
            fill: writes the file, and returns its digest.
        """
        file = cls(Path(), "")
        file.path = temporary_folder(file) / "samples.arrow"
        file.digest = fill(file.path)
        file._local, file.is_temporary = file.path, True
        return file

    def __deepcopy__(self, memo: dict[int, Any]) -> SampleFile:
        """The same file: a temporary one has one owner."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without the copy on this machine, which ends with its process."""
        return {**self.__dict__, "_local": None}

    def chunks(self, name: str) -> Iterator[Array]:
        """The values of a column, one record batch at a time: booleans, int64, float64, or objects that are str.

        Raises:
            StateError: the file is missing, was changed, or lacks the column.
        """
        with self._reading():
            for batch in read_columns(self._checked(), [name]):
                for start in range(0, len(batch[name]), CHUNK_ROWS):  # older files have longer batches
                    yield widened(batch[name][start : start + CHUNK_ROWS])

    def packed(self, name: str, count: int, kind: str) -> PackedArray:
        """A column as an array of a report.

        Args:
            name: of the column.
            count: how many values it has.
            kind: the dtype that they have in the file, or `"str"`.
        """
        return PackedArray.in_file(count, kind, self, name, self.path.name, self.digest)

    def _checked(self) -> Path:
        """The file on this machine, after its digest was found to be right; checked once."""
        if self._local is None:
            local = self.path
            if isinstance(local, RemotePath):
                local = kept_copy(local, self)
            if (digest := digest_of(local)) != self.digest:
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


def named_files(path: Location) -> set[str]:
    """The names of the files with samples that the report at a path has; none where there is no report."""
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return set()
    return set(re.findall(rf'"({re.escape(Path(path.name).stem)}\.[0-9a-f]{{16}}\.arrow)#', text))


def remove_files(names: Set[str], path: Location) -> None:
    """Remove files with samples that the report at a path had before, unless another report beside it names them."""
    others = [other for other in files_in(path.parent, "*.json") if other.name != path.name] if names else []
    texts = [other.read_bytes() for other in others]
    for name in sorted(names):
        if not any(name.encode() in text for text in texts):
            with suppress(OSError):  # the new report is whole: what is left over takes room, and does no harm
                (path.parent / name).unlink()


def without_temporary_files(report: AnyReport) -> AnyReport:
    """A report that holds the values itself that are in a temporary file."""

    def inside(_: str, packed: PackedArray) -> PackedArray:
        is_temporary = isinstance(packed.file, SampleFile) and packed.file.is_temporary
        return PackedArray.of(packed.values) if is_temporary else packed

    return replace(report, sections=tuple(_mapped(section, inside) for section in report.sections))


def with_linked_files(report: AnyReport) -> AnyReport:
    """A report of another process, which keeps its temporary files after that ends, where they are on this machine."""

    @functools.cache
    def linked(file: SampleFile) -> SampleFile:
        path = file.path
        if isinstance(path, RemotePath) or not path.exists():
            return file
        copy = SampleFile(path, file.digest)
        copy.path = temporary_folder(copy) / path.name
        link_or_copy(path, copy.path)
        copy.is_temporary = True
        return copy

    def attached(_: str, packed: PackedArray) -> PackedArray:
        if not isinstance(packed.file, SampleFile):
            return packed
        return packed.attached(linked(packed.file), packed.data.partition("#")[2])

    return replace(report, sections=tuple(_mapped(section, attached) for section in report.sections))


def _stored(section: Section, path: Location) -> Section:
    """A section with its samples in a file, where there are many."""
    samples = section.samples
    if samples is None or (len(samples) <= MOST_SAMPLES and not samples.is_stored):
        return section
    packed: dict[str, PackedArray] = {}
    _mapped(section, lambda name, each: packed.setdefault(name, each))
    packed = {name: each for name, each in packed.items() if each.form != "range"}
    files = [each.file for each in packed.values()]
    if all(isinstance(file, SampleFile) and file.path.parent == path.parent for file in files):
        return section
    file = _written(path, packed)
    columns = {name: file.packed(name, len(each), each.kind) for name, each in packed.items()}
    return _mapped(section, lambda name, each: columns.get(name, each))


def _written(path: Location, packed: Mapping[str, PackedArray]) -> SampleFile:
    """Write arrays to a file beside a report, which is named by its content."""
    with tempfile.TemporaryDirectory(prefix=".assay-", dir=_temporary_home(path)) as folder:
        part = Path(folder, "samples.arrow")
        chunks = {name: each.chunks() for name, each in packed.items()}
        rows = (dict(zip(chunks, each, strict=True)) for each in zip(*chunks.values(), strict=True))
        digest = write_columns(part, {name: each.kind for name, each in packed.items()}, rows)
        target = path.parent / f"{Path(path.name).stem}.{digest[:16]}.arrow"
        write_whole(target, lambda into: shutil.move(part, into))
    return SampleFile(target, digest)


def _temporary_home(path: Location) -> Path | None:
    """Where large files are written before they take their name: beside the report, where that is on this machine."""
    if isinstance(path, RemotePath):
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.parent


def write_columns(path: Path, kinds: Mapping[str, str], rows: Iterable[Mapping[str, Array]]) -> str:
    """Write columns to an Arrow file.

    Args:
        path: the file.
        kinds: the columns, with the dtype that each has in the file; `"str"` for strings.
        rows: some rows of all columns at a time; each is a record batch.

    Returns:
        BLAKE2b of the bytes of the file.

    Raises:
        MissingDependencyError: pyarrow is absent.
    """
    pa = arrow()
    types = {name: pa.large_string() if kind == "str" else pa.from_numpy_dtype(kind) for name, kind in kinds.items()}
    schema = pa.schema(list(types.items()))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for chunk in rows:
            arrays = [
                pa.array(chunk[name] if kind == "str" else chunk[name].astype(kind, copy=False), types[name])
                for name, kind in kinds.items()
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return digest_of(path)


def read_columns(path: Path, names: Collection[str] | None = None) -> Iterator[dict[str, Array]]:
    """The columns of an Arrow file, one record batch at a time, with the dtypes of the file.

    Args:
        path: the file.
        names: which columns; all by default.
    """
    pa = arrow()
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        chosen = reader.schema.names if names is None else names
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            yield {name: _as_numpy(batch.column(name)) for name in chosen}


def digest_of(path: Path) -> str:
    """BLAKE2b of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, _blake).hexdigest()


def _blake() -> Any:
    return hashlib.blake2b(digest_size=16)


def _mapped(section: Section, change: Callable[[str, PackedArray], PackedArray]) -> Section:
    """A section with other arrays of its samples; each has a name of its own."""
    samples = section.samples
    if samples is None:
        return section
    columns = tuple(replace(each, values=change(f"column {each.name}", each.values)) for each in samples.columns)
    others = {"decision": samples.decision, "target": samples.target, "clusters": samples.clusters}
    changed: dict[str, Any] = {name: None if each is None else change(name, each) for name, each in others.items()}
    samples = replace(samples, ids=change("ids", samples.ids), columns=columns, **changed)
    slices = tuple(
        each if each.members is None else replace(each, members=change(f"slice {each.name}", each.members))
        for each in section.slices
    )
    return replace(section, samples=samples, slices=slices)


def _as_numpy(column: Any) -> Array:
    """A copy of some values of Arrow."""
    strings = arrow().types.is_large_string(column.type)
    values = column.to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=object) if strings else np.array(values)


def widened(array: Array) -> Array:
    """Values with the dtype that `PackedArray` gives them."""
    wide = {"f": np.float64, "i": np.int64, "u": np.int64}.get(array.dtype.kind)
    return array if wide is None else array.astype(wide, copy=False)


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
