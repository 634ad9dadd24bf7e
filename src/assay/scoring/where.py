"""Conditions on rows, written as in Python: ``country == "de" and age >= 18``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.data.tables.arrow import arrow, reading
from assay.data.tables.table_source import Fragment
from assay.errors import ConfigError, describe

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FITS = "a condition on the columns as they are", "Compare strings with strings"
_EXAMPLE = "Write country == 'de' and age >= 18, name in ('a', 'b'), x is not None, or not (...)"


@dataclass(frozen=True)
class Where:
    """A condition.

    Attributes:
        text: how it was written.
        names: the columns that it reads.
    """

    text: str
    names: tuple[str, ...]

    def expression(self) -> Any:
        """The condition as an expression of pyarrow."""
        return _expression(ast.parse(self.text, mode="eval").body)

    def excludes(self, fragment: Fragment) -> bool:
        """Whether it is known, without reading rows, that it holds for none of a fragment.

        Statistics of floats leave out NaN, for which `x != 1` holds: they say nothing here.
        """
        types, schema = arrow().types, fragment.schema
        checks = types.is_integer, types.is_boolean, types.is_string, types.is_large_string
        kinds = [schema.field(name).type for name in self.names if name in schema.names]
        if len(kinds) < len(self.names) or not all(any(check(kind) for check in checks) for kind in kinds):
            return False
        with reading("where", *_FITS):
            return fragment.excludes(self.expression())

    def keep(self, batch: Any) -> Any:
        """For each row of a record batch whether it holds; where a value is missing, it does not."""
        pa = arrow()
        with reading("where", *_FITS):
            table = pa.Table.from_batches([batch.select(list(self.names))])
            held = pa.dataset.dataset(table).to_table(columns={"held": self.expression()}).column("held")
            return held.combine_chunks().fill_null(False)


def parse_where(text: str) -> Where:
    """Understand a condition: comparisons of columns with values, `in`, `is None`, `and`, `or`, `not`.

    Example:
        >>> parse_where("country == 'de' and not age < 18").names
        ('country', 'age')

    Raises:
        ConfigError: it is something else.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(describe("where", repr(text), "a condition", _EXAMPLE)) from error
    _check(tree, text)
    names = [each.id for each in ast.walk(tree) if isinstance(each, ast.Name)]
    return Where(text, tuple(dict.fromkeys(names)))


def _check(node: ast.expr, text: str) -> None:
    """Raise where a condition holds what `_expression` does not know."""
    match node:
        case ast.BoolOp(values=parts):
            for part in parts:
                _check(part, text)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            _check(part, text)
        case ast.Compare(left=ast.Name(), ops=[op], comparators=[value]):
            try:
                known = ast.literal_eval(value)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                known = ...
            several = known if isinstance(known, tuple | list | set) else ()
            is_list = bool(several) and all(type(each) in (int, float, str) for each in several)
            fits = {ast.In: is_list, ast.NotIn: is_list, ast.Is: known is None, ast.IsNot: known is None}
            if not fits.get(type(op), type(known) in (int, float, str, bool)):
                raise ConfigError(describe("where", ast.unparse(node), "a column and a value", _EXAMPLE))
        case ast.Name():
            pass  # a column of yes and no
        case _:
            raise ConfigError(describe("where", ast.unparse(node), "comparisons of columns with values", _EXAMPLE))


def _expression(node: Any) -> Any:
    match node:
        case ast.BoolOp():
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            joined = _expression(node.values[0])
            for part in node.values[1:]:
                joined = join(joined, _expression(part))
            return joined
        case ast.UnaryOp():
            return ~_expression(node.operand)
        case ast.Compare(left=left, ops=[op], comparators=[value]):
            column, known = _expression(left), ast.literal_eval(value)
            if isinstance(op, ast.Is | ast.IsNot):
                return column.is_null() if isinstance(op, ast.Is) else column.is_valid()
            if isinstance(op, ast.In | ast.NotIn):
                held = arrow().compute.if_else(column.is_valid(), column.isin(list(known)), None)
                return held if isinstance(op, ast.In) else ~held
            return _COMPARE[type(op)](column, known)
        case _:
            return arrow().compute.field(node.id)
