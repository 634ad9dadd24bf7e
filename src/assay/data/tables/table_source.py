"""Where tables come from: files, folders, patterns, URLs, Arrow streams, queries; each as a manifest of fragments."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Any, TypeAlias

import numpy as np

from assay.data.tables.arrow import arrow, reading
from assay.data.tables.column_types import unified
from assay.data.tables.content_digests import content_digest
from assay.data.tables.formats import FORMATS, TableFormat, suffix_of
from assay.errors import ConfigError, MissingDependencyError, describe

RecordBatches: TypeAlias = Iterator[Any]

BATCH_ROWS = 1 << 17
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_TABLE = "table"
_NOTHING = "a table with rows"


@dataclass(frozen=True)
class Fragment:
    """A part of a table that is counted whole or not at all: a row group of a file, a file, or a stream.

    Attributes:
        key: its name in a manifest.
        file: the file, seen from the folder of the table.
        row_group: its number in the file; None where the file has one only.
        first: the row of the file at which it begins.
        rows: how many rows it has; None where only reading it tells.
        schema: the names and types of its columns.
        scan: the rows of the columns that are named, as record batches.
        excludes: whether the file says, by its statistics, that a condition holds for no row.
        content: the digest of the file, for the columns that are named; empty where it is of no file.
    """

    key: str
    file: str
    row_group: int | None
    first: int
    rows: int | None
    schema: Any
    scan: Callable[[Sequence[str]], RecordBatches]
    excludes: Callable[[Any], bool] = lambda condition: False
    content: Callable[[Sequence[str]], str] = lambda columns: ""


@dataclass(frozen=True)
class TableSource:
    """A table that is about to be read.

    Attributes:
        name: what messages call it.
        schema: the names and types of its columns.
        fragments: its parts, in order.
        is_typed: whether files say the types of their columns.
        folders: columns that the names of folders give, as in `country=de/0.parquet`.
        is_stream: whether it can be read once only.
        is_whole: whether the fragments are all there are; not where a task has a part of the rows.
        paths: what it was opened from, wherever a process is; empty where it is not of files.
        texts: columns of CSV that are strings, also if they look like numbers.
        is_csv: whether every value can be read as a string.
        known_contents: the first digests of the files, by the columns that are measured.
    """

    name: str
    schema: Any
    fragments: tuple[Fragment, ...]
    is_typed: bool = True
    folders: tuple[str, ...] = ()
    is_stream: bool = False
    is_whole: bool = True
    paths: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    is_csv: bool = False
    known_contents: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def manifest(self) -> tuple[str, ...] | None:
        """The keys of all fragments; None where there are others."""
        return tuple(each.key for each in self.fragments) if self.is_whole else None

    def contents(self, columns: Sequence[str], files: Collection[str] | None = None) -> dict[str, str]:
        """The digests of files, by which they are told from files of the same names.

        Args:
            columns: those that are measured.
            files: which of them; by default all. There are none where fragments were named by the caller.

        Raises:
            StateError: a file cannot be read.
        """
        by_file = {each.file: each for each in self.fragments if files is None or each.file in files}
        found = {file: each.content(columns) for file, each in by_file.items()} if self.is_whole else {}
        return {file: digest for file, digest in found.items() if digest}

    def first_contents(self, columns: Sequence[str]) -> dict[str, str]:
        """The digests of all files as they were when this was first called; see `contents`."""
        if tuple(columns) not in self.known_contents:
            self.known_contents[tuple(columns)] = self.contents(columns)
        return self.known_contents[tuple(columns)]

    @property
    def is_one_file(self) -> bool:
        """Whether the table is one file, so that the place of a row identifies it."""
        return self.is_whole and len({each.file for each in self.fragments}) == 1

    def named(self, key: str) -> TableSource:
        """The same rows as a fragment of a larger table.

        Raises:
            ConfigError: they are several fragments.
        """
        if len(self.fragments) != 1:
            do = "Pass a list of some of fragments_of(source)"
            raise ConfigError(describe("fragments", repr(key), f"names of {len(self.fragments)} fragments", do))
        fragment = replace(self.fragments[0], key=key, file=key)
        return replace(self, fragments=(fragment,), is_whole=False, known_contents={})

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known before they are read."""
        counts = [each.rows for each in self.fragments]
        return None if None in counts else sum(count for count in counts if count is not None)


def open_table(source: Any, *, texts: Sequence[str] = (), sql: str = "", name: str = _TABLE) -> TableSource:
    """Understand what holds a table.

    Args:
        source: a path, a pattern (`*`), a folder, a URL, several of these; or what gives an Arrow stream: a table of
            pyarrow, pandas or Polars, a reader, a relation of DuckDB; or arrays, tensors and lists by name.
        texts: columns of CSV that are strings, also if they look like numbers, such as "007".
        sql: a query of DuckDB, which names its files itself; then there is no source.
        name: what messages call an Arrow stream.

    Raises:
        ConfigError: it is nothing of that, or there is no such file.
        StateError: a file cannot be read.
        MissingDependencyError: a package that is needed is absent.
    """
    if sql:
        if source is not None:
            do = "Name the files in the query: select * from 'predictions.parquet'"
            raise ConfigError(describe("sql", "a query and a table", "one of the two", do))
        return _of_query(sql)
    if isinstance(source, str | os.PathLike):
        return _of_files([os.fspath(source)], texts)
    if isinstance(source, list | tuple) and source and all(isinstance(each, str | os.PathLike) for each in source):
        return _of_files([os.fspath(each) for each in source], texts)
    return _of_stream(source, name)


def _as_arrow(values: Any) -> Any:
    """A column as Arrow has it: an array of two dimensions is a column of lists."""
    if isinstance(values, list | tuple):
        return list(values)
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    return array if array.ndim == 1 else arrow().array(list(array))


def _of_columns(columns: Mapping[str, Any]) -> Any:
    """A table of columns by name."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name!r} of {length:,} rows" for name, length in lengths.items())
        raise ConfigError(describe("table", got, "columns of one length", "Pass one value of each column for a row"))
    with reading(_TABLE):
        return arrow().table(dict(columns))


def open_whole(path: str, texts: Sequence[str] = ()) -> TableSource:
    """A file on this machine; one whose values tell the types of its columns is read to its end.

    Args:
        path: the file.
        texts: columns of CSV that are strings, also if they look like numbers.

    Raises:
        StateError: it cannot be read.
    """
    file_format = FORMATS[suffix_of(path)]
    if file_format.whole is None:
        return open_table(path, texts=texts)
    if file_format.check is not None:
        file_format.check(arrow().fs.LocalFileSystem(), path)
    table = file_format.whole(path, texts)
    if file_format.is_csv:
        for place, name in enumerate(table.column_names):
            if name not in texts:
                table = table.set_column(place, name, _blank_as_missing(table.column(place)))
    return open_table(table, name=path)


def _of_stream(source: Any, name: str = _TABLE) -> TableSource:
    """A table in memory, or a stream that can be read once."""
    pa = arrow()
    if isinstance(source, Mapping):
        source = _of_columns({str(column): _as_arrow(values) for column, values in source.items()})
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, Iterator) or (isinstance(source, list) and source):
        source = _reader_of(iter(source))
    read = getattr(source, "to_arrow_reader", None) or getattr(source, "fetch_arrow_reader", None)  # before DuckDB 1.4
    if read is not None:  # a relation, which computes while it is read
        source = read(BATCH_ROWS)
    is_reader = isinstance(source, pa.RecordBatchReader)
    if not is_reader and not hasattr(source, "__arrow_c_stream__"):
        do = "Pass a path, arrays by name, or a table of pyarrow, pandas 2.2 or Polars"
        do = "Pass frame.collect()" if hasattr(source, "collect") else do
        raise ConfigError(describe("table", type(source).__name__, "a path, columns, or an Arrow stream", do))
    if is_reader or not hasattr(source, "__len__"):
        reader = source if is_reader else pa.RecordBatchReader.from_stream(source)
        fragment = _of_reader(reader)
        return TableSource(_TABLE, fragment.schema, (fragment,), is_stream=True)
    with reading(name):
        table = pa.table(source)
        table = table.cast(_without_views(table.schema))

    def scan(columns: Sequence[str]) -> RecordBatches:
        return iter(table.select(list(columns)).to_batches(max_chunksize=BATCH_ROWS))

    return TableSource(_TABLE, table.schema, (Fragment(_TABLE, _TABLE, None, 0, len(table), table.schema, scan),))


def _reader_of(batches: RecordBatches) -> Any:
    """Record batches as one stream."""
    pa = arrow()
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch):
        got = "no record batch" if first is None else f"batches of {type(first).__name__}"
        raise ConfigError(describe("table", got, "record batches of pyarrow", "Pass an Arrow table"))
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def _of_reader(reader: Any) -> Fragment:
    """A stream; its first batch may be looked at before all of it is read."""
    schema = _without_views(reader.schema)
    with reading(_TABLE):
        first = list(islice(reader, 1))

    def scan(columns: Sequence[str]) -> RecordBatches:
        with reading(_TABLE):
            for batch in chain(first, reader):
                yield batch.cast(schema).select(list(columns))

    return Fragment(_TABLE, _TABLE, None, 0, None, schema, scan)


def _without_views(schema: Any) -> Any:
    """The same columns, with strings as most functions of pyarrow take them; those of Polars are views."""
    pa = arrow()
    for place, each in enumerate(schema):
        kind = each.type
        if pa.types.is_string_view(kind):
            schema = schema.set(place, each.with_type(pa.large_string()))
        elif pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
            schema = schema.set(place, each.with_type(pa.dictionary(kind.index_type, pa.large_string())))
    return schema


def _of_query(sql: str) -> TableSource:
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError("duckdb", extra="sql", purpose="queries") from error
    with reading("sql", "a query of DuckDB", "Check the query and the files that it names"):
        relation: Any = duckdb.sql(sql)
        if relation is None:
            raise ConfigError(describe("sql", "a statement without rows", "a query", "Write select ... from ..."))
        return _of_stream(relation)


def _of_files(paths: Sequence[str], texts: Sequence[str]) -> TableSource:
    pa = arrow()
    filesystem, root, files = _found(paths)
    name = paths[0] if len(paths) == 1 else f"{len(paths)} paths"
    formats = {suffix: FORMATS.get(suffix) for suffix in map(suffix_of, files)}
    file_format = next(iter(formats.values()))
    if file_format is None or len(set(formats.values())) > 1:
        got = f"files ending in {', '.join(sorted(suffix or 'nothing' for suffix in formats))}"
        expected = f"files of one format: {', '.join(FORMATS)}"
        raise ConfigError(describe(name, got, expected, "Name the files, or a pattern such as folder/*.parquet"))
    if not file_format.is_typed and len(files) > 1:  # parts without rows, as other programs write them
        files = [each.path for each in filesystem.get_file_info(files) if each.size != 0] or files[:1]
    with reading(files[0]):
        base = {"partition_base_dir": root} if root else {}
        options = pa.dataset.FileSystemFactoryOptions(**base)
        options.partitioning_factory = pa.dataset.HivePartitioning.discover(infer_dictionary=True)
        if file_format.check is not None:
            for each in files:
                file_format.check(filesystem, each)
        factory = pa.dataset.FileSystemDatasetFactory(filesystem, files, file_format.dataset(texts), options)
        dataset = factory.finish()
        if len(files) > 1:
            each_schema = [fragment.physical_schema for fragment in dataset.get_fragments()]
            dataset = factory.finish(unified(dataset.schema, each_schema, is_typed=file_format.is_typed))
    schema = _without_views(dataset.schema)
    fragments = [
        each
        for fragment in dataset.get_fragments()
        for each in _fragments_of(fragment, schema, root, file_format, texts)
    ]
    in_files = fragments[0].schema.names if fragments else schema.names
    folders = tuple(name for name in schema.names if name not in in_files)
    whole = tuple(path if _URL.match(path) else os.path.abspath(path) for path in paths)
    return TableSource(
        name,
        schema,
        tuple(fragments),
        file_format.is_typed,
        folders,
        paths=whole,
        texts=tuple(texts),
        is_csv=file_format.is_csv,
    )


def _found(paths: Sequence[str]) -> tuple[Any, str, list[str]]:
    """The file system, the folder that all files are in where there are several, and the files."""
    filesystem, files = arrow().fs.LocalFileSystem(), []
    for path in paths:
        if _URL.match(path):
            filesystem, inside = _remote(path)
        else:
            inside = os.path.abspath(path)
        is_pattern = any(sign in inside for sign in "*?[") and not os.path.exists(inside)
        base = _fixed_part(inside) if is_pattern else inside
        found = [each for each in _listed(filesystem, inside, is_pattern) if _is_data(each, base)]
        if not found:
            expected = "a file, a folder or a pattern with files in it"
            raise ConfigError(describe(path, "no file", expected, "Check the path"))
        files += sorted(found)
    files = list(dict.fromkeys(files))
    folder = inside if len(paths) == 1 and files != [inside] and not is_pattern else ""
    return filesystem, folder or (os.path.commonpath(files) if len(files) > 1 else ""), files


def _listed(filesystem: Any, path: str, is_pattern: bool) -> list[str]:
    fs = arrow().fs
    with reading(path, "a file or a folder", "Check the path and the rights"):
        if is_pattern:
            handler = getattr(filesystem, "handler", None)
            listed = glob.glob(path, recursive=True) if handler is None else handler.fs.glob(path)
            return [str(each) for each in listed]
        about = filesystem.get_file_info(path)
        if about.is_file:
            return [path]
        inside = filesystem.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        return [each.path for each in inside if each.is_file]


def _remote(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it: fsspec's where it is installed, else pyarrow's own."""
    fs = arrow().fs
    try:
        import fsspec
    except ImportError:
        with reading(url, "a URL that pyarrow can open", 'Run: pip install "assay[remote]", which brings fsspec'):
            found: tuple[Any, str] = fs.FileSystem.from_uri(url)
            return found
    with reading(url, "a URL that fsspec can open", "Check it, and install the package that the message names"):
        filesystem, path = fsspec.core.url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), path


def _is_data(path: str, base: str) -> bool:
    """Whether a file is one of data, as `_SUCCESS`, `.part` files and those in `_temporary/` are not.

    Args:
        path: the file.
        base: what was named: the file, a folder, or a pattern up to its first folder with a wildcard.
    """
    inside = PurePosixPath(path)
    parts = inside.relative_to(base).parts if inside.is_relative_to(base) else ()
    hidden = (each.startswith(".") or (each.startswith("_") and "=" not in each) for each in parts[:-1])
    return not (inside.name.startswith(("_", ".")) or any(hidden))


def _fixed_part(pattern: str) -> str:
    """The folders of a pattern before the first one with a wildcard."""
    return str(
        PurePosixPath(*itertools.takewhile(lambda each: not set(each) & set("*?["), PurePosixPath(pattern).parts))
    )


def _fragments_of(
    fragment: Any, schema: Any, root: str, file_format: TableFormat, texts: Sequence[str]
) -> list[Fragment]:
    """The row groups of a file of Parquet, or a file."""
    file = os.path.relpath(fragment.path, root) if root else PurePosixPath(fragment.path).name
    with reading(fragment.path):
        physical = fragment.physical_schema
        if not hasattr(fragment, "split_by_row_group"):
            rows = fragment.count_rows() if file_format.is_typed else None
            scan = _with_missing(_scan(fragment, schema), texts) if file_format.is_csv else _scan(fragment, schema)
            return [Fragment(file, file, None, 0, rows, physical, scan, content=_content(fragment))]
        groups = fragment.split_by_row_group()
    fragments, first, content = [], 0, _content(fragment, fragment.metadata)
    for number, group in enumerate(groups):
        rows = group.row_groups[0].num_rows
        key = f"{file}#{number}" if len(groups) > 1 else file
        of_file = number if len(groups) > 1 else None
        excludes = _excludes(group, schema)
        scan = _scan(group, schema)
        fragments.append(Fragment(key, file, of_file, first, rows, physical, scan, excludes, content))
        first += rows
    return fragments


def _content(fragment: Any, metadata: Any = None) -> Callable[[Sequence[str]], str]:
    def content(columns: Sequence[str]) -> str:
        with reading(fragment.path):
            return content_digest(fragment, columns, metadata)

    return content


def _excludes(group: Any, schema: Any) -> Callable[[Any], bool]:
    def excludes(condition: Any) -> bool:
        return not group.subset(filter=condition, schema=schema).row_groups

    return excludes


def _scan(fragment: Any, schema: Any) -> Callable[[Sequence[str]], RecordBatches]:
    def scan(columns: Sequence[str]) -> RecordBatches:
        options = {"columns": list(columns), "batch_size": BATCH_ROWS, "batch_readahead": 4}
        with reading(fragment.path):
            yield from fragment.to_batches(schema=schema, **options)

    return scan


def _with_missing(scan: Callable[[Sequence[str]], RecordBatches], texts: Sequence[str]) -> Any:
    """The same rows of CSV, in which blank cells of strings are missing, as those of numbers are.

    Args:
        scan: the rows.
        texts: columns that know already which of their cells are missing, and which are empty strings.
    """

    def missing(columns: Sequence[str]) -> RecordBatches:
        for batch in scan(columns):
            for place, name in enumerate(batch.schema.names):
                if name not in texts:
                    batch = batch.set_column(place, name, _blank_as_missing(batch.column(place)))
            yield batch

    return missing


def _blank_as_missing(array: Any) -> Any:
    """A column in which empty strings are missing."""
    pa = arrow()
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return array
    return pa.compute.if_else(pa.compute.equal(array, ""), pa.scalar(None, array.type), array)
