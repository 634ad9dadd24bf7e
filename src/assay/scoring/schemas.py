"""Whether the columns of a file are those of its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.data.tables.arrow import arrow
from assay.data.tables.column_types import wider
from assay.data.tables.table_source import TableSource
from assay.scoring.rows import is_text
from assay.scoring.slice_columns import is_list


def schema_difference(schema: Any, table: TableSource, needed: Sequence[str]) -> str:
    """How the columns of a file differ from those of the table; empty where they do not."""
    for name in needed:
        if name in table.folders:
            continue
        if name not in schema.names:
            return f"another schema: no column {name}"
        kind, expected = schema.field(name).type, table.schema.field(name).type
        if not (_fits(kind, expected) if table.is_typed else _fits_guessed(kind, expected, table)):
            return f"another schema: {name} is {kind} instead of {expected}"
    return ""


def _fits_guessed(kind: Any, expected: Any, table: TableSource) -> bool:
    """The same of types that are guessed from the text of files."""
    return arrow().types.is_null(kind) or (table.is_csv and is_text(expected)) or wider(expected, kind) == expected


def _fits(kind: Any, expected: Any) -> bool:
    """Whether values of a type keep their meaning as those of another one."""
    types = arrow().types
    if types.is_null(kind):
        return True
    if types.is_dictionary(kind) or types.is_dictionary(expected):
        kind, expected = (each.value_type if types.is_dictionary(each) else each for each in (kind, expected))
    if is_list(kind) and is_list(expected):
        return _fits(kind.value_type, expected.value_type)
    if types.is_floating(kind) and types.is_floating(expected):
        return bool(kind.bit_width <= expected.bit_width)
    both = ((types.is_integer(each), is_text(each)) for each in (kind, expected))
    return bool(kind == expected or any(map(all, zip(*both, strict=True))))
