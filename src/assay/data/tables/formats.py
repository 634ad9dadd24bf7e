"""The formats of tables by the endings of their names; a format of one's own is one more entry of `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath
from typing import Any

from assay.data.tables.arrow import arrow
from assay.data.tables.json_nesting import check_nesting

COMPRESSED = (".gz", ".bz2", ".lz4")
"""The last endings of the names of compressed files of CSV and JSON lines."""
BLOCK_BYTES = 1 << 24  # of CSV and JSON lines; no row may be longer


@dataclass(frozen=True)
class TableFormat:
    """How files of one format are read.

    Attributes:
        dataset: gives the format as data sets of pyarrow take it; its argument are columns that are strings.
        is_typed: whether files say the types of their columns; else these are inferred from the values.
        whole: reads a file and the same columns whole, for types that may be seen only at its end.
        is_csv: whether every value can be read as a string, and a blank one is missing.
        check: raises where pyarrow would not survive a file; its arguments are the file system and the path.
    """

    dataset: Callable[[Sequence[str]], Any]
    is_typed: bool = True
    whole: Callable[[str, Sequence[str]], Any] | None = None
    is_csv: bool = False
    check: Callable[[Any, str], None] | None = None


def _csv(delimiter: str) -> TableFormat:
    def options(texts: Sequence[str]) -> dict[str, Any]:
        csv = arrow().csv
        # A blank cell is missing, "" is the empty string, and "NA" may be what was predicted.
        blank = {"strings_can_be_null": True, "quoted_strings_can_be_null": False, "null_values": [""]}
        convert = csv.ConvertOptions(column_types=dict.fromkeys(texts, arrow().string()), **(blank if texts else {}))
        read = csv.ReadOptions(block_size=BLOCK_BYTES)
        return {
            "parse_options": csv.ParseOptions(delimiter=delimiter),
            "convert_options": convert,
            "read_options": read,
        }

    return TableFormat(
        lambda texts: arrow().dataset.CsvFileFormat(**options(texts)),
        is_typed=False,
        whole=lambda path, texts: arrow().csv.read_csv(path, **options(texts)),
        is_csv=True,
    )


def _json_options() -> Any:
    return arrow().json.ReadOptions(block_size=BLOCK_BYTES)


_PARQUET = TableFormat(lambda texts: arrow().dataset.ParquetFileFormat())
_ARROW = TableFormat(lambda texts: arrow().dataset.IpcFileFormat())
_JSON = TableFormat(
    lambda texts: arrow().dataset.JsonFileFormat(read_options=_json_options()),
    is_typed=False,
    whole=lambda path, texts: arrow().json.read_json(path, read_options=_json_options()),
    check=lambda filesystem, path: check_nesting(filesystem, path, BLOCK_BYTES),
)

FORMATS: dict[str, TableFormat] = {
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".arrow": _ARROW,
    ".ipc": _ARROW,
    ".feather": _ARROW,
    ".csv": _csv(","),
    ".tsv": _csv("\t"),
    ".jsonl": _JSON,
    ".ndjson": _JSON,
}


def suffix_of(path: PurePath | str) -> str:
    """What the name of a file ends in, without the ending of a compressed file.

    Example:
        >>> suffix_of("a/b.CSV.gz"), suffix_of("a.parquet")
        ('.csv', '.parquet')
    """
    inside = PurePosixPath(path)
    return (inside.with_suffix("") if inside.suffix in COMPRESSED else inside).suffix.lower()
