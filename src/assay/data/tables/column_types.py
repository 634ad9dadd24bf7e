"""The types that the columns of a table have, where its files say different ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.data.tables.arrow import arrow


def unified(schema: Any, schemas: Sequence[Any], *, is_typed: bool) -> Any:
    """The columns of the first file, with types that hold the values of all files.

    A column without values has the type of the other files. Integers and floats have the widest of their types. Where
    types are guessed from the text of a file, a column that has integers in one file and floats in another has floats.
    Other types stay those of the first file that has values.

    Args:
        schema: the columns of the first file, and those that the names of folders give.
        schemas: the columns of each file.
        is_typed: whether files say the types of their columns, as CSV and JSON lines do not.

    Example:
        >>> import pyarrow as pa
        >>> first = pa.schema({"p": pa.null(), "y": pa.int32()})
        >>> second = pa.schema({"p": pa.float32(), "y": pa.int64()})
        >>> unified(first, [first, second], is_typed=True).types
        [DataType(float), DataType(int64)]
    """
    for place, each in enumerate(schema):
        kind = each.type
        for other in schemas:
            if not other.get_all_field_indices(each.name):
                continue
            theirs = other.field(each.name).type
            if theirs != kind and (not is_typed or _may_widen(kind, theirs)):
                kind = wider(kind, theirs) or kind
        schema = schema.set(place, each.with_type(kind))
    return schema


def wider(kind: Any, other: Any) -> Any:
    """The type that holds the values of both, or None."""
    pa = arrow()
    try:
        schemas = [pa.schema({"column": each}) for each in (kind, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field("column").type
    except pa.ArrowTypeError:
        return None


def _may_widen(kind: Any, other: Any) -> bool:
    """Whether a column of a typed file may have the wider of two types, as both are of one kind."""
    types = arrow().types
    if types.is_null(kind):
        return True
    if types.is_list(kind) and types.is_list(other):
        return _may_widen(kind.value_type, other.value_type)
    signed, unsigned, floats = types.is_signed_integer, types.is_unsigned_integer, types.is_floating
    return any(check(kind) and check(other) for check in (signed, unsigned, floats))
