"""A part of a batch, in the syntax of the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from assay.cli.loaders.python_objects import import_object
from assay.data.columns import Columns
from assay.errors import ConfigError, describe
from assay.evaluation.observe.column_bins import ColumnBins
from assay.metrics.base import Metric
from assay.scoring.columns import split_unquoted, unquoted
from assay.scoring.slice_ranges import parse_ranges


def parse_part(text: str) -> Any:
    """A position, a name, or a function that is named; None for nothing.

    Example:
        >>> parse_part("1"), parse_part("labels"), parse_part("")
        (1, 'labels', None)
    """
    if ":" in text:
        return import_object(text, "a part of the batch")
    return int(text) if text.lstrip("-").isdigit() else text or None


def parse_parts(texts: Sequence[str]) -> Any:
    """One part, a list of several, or None for none.

    Example:
        >>> parse_parts(["ids", "mask"]), parse_parts(["x"]), parse_parts([])
        (['ids', 'mask'], 'x', None)
    """
    parts = [parse_part(each) for each in texts]
    return parts if len(parts) > 1 else next(iter(parts), None)


def parse_columns(written: Sequence[str], metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """By name, the part of a batch that is a named column of the metrics: the part of that name by default.

    Args:
        written: ``indexes=query_id`` or ``groups=module:function``.
        metrics: what takes the columns.

    Example:
        >>> from assay.metrics import RetrievalMAP
        >>> parse_columns(["indexes=query_id"], {"map": RetrievalMAP()}), parse_columns([], {"map": RetrievalMAP()})
        ({'indexes': 'query_id'}, {'indexes': 'indexes'})
    """
    columns: dict[str, Any] = {name: name for metric in metrics.values() for name in _columns(metric)}
    for each in written:
        name, equals, part = each.partition("=")
        if name not in columns or not part:
            expected = f"one of {', '.join(columns)}" if columns else "nothing, as no metric takes a named column"
            got = repr(name) if equals else f"{each!r} without ="
            raise ConfigError(
                describe("--column", got, expected, "Write --column NAME=PART with a name from that list")
            )
        columns[name] = parse_part(part)
    return columns


def _columns(metric: Metric) -> list[str]:
    return sorted(metric.batch_tally(False).columns - {encoder.column for encoder in metric.encoders})


def parse_slices(written: tuple[str, ...], data: Any = None) -> Any:
    """What to slice by: columns, several of them crossed, a column of numbers in ranges, or functions by name.

    Args:
        written: ``region``, ``sex,age`` for both, ``sex*age`` for both crossed, ``age:bins=5``,
            ``age:edges=18,40,65``, or ``decade=module:function``. A name in double quotes may have such signs in it.
        data: what `assay.evaluate` gets; the edges of bins come from all of its samples. None: a table, which
            understands ranges itself.

    Example:
        >>> parse_slices(("region,sex", "sex*age"))
        {'region': 'region', 'sex': 'sex', 'sex x age': ('sex', 'age')}
        >>> parse_slices(('"a,b"*sex,"a:b"',))
        {'a,b x sex': ('a,b', 'sex'), 'a:b': 'a:b'}
    """
    return dict(_slice(each, data) for text in written for each in _split(text)) or None


def slice_columns(written: str) -> tuple[str, ...]:
    """The columns that slices are made of; none for a function.

    Example:
        >>> slice_columns("both=sex*age"), slice_columns("sex,age:bins=5"), slice_columns("module:function")
        (('sex', 'age'), ('sex', 'age'), ())
        >>> slice_columns("age:edges=18,65,sex")
        ('age', 'sex')
    """
    return tuple(name for each in _split(written) for name in _crossed(each))


def _split(written: str) -> list[str]:
    """Slices between commas, where numbers after ``edges=`` are one list."""
    slices: list[str] = []
    for each in map(str.strip, split_unquoted(written, ",")):
        if slices and ":edges=" in slices[-1] and _NUMBER.fullmatch(each):
            slices[-1] += f",{each}"
        else:
            slices.append(each)
    return slices


def _crossed(written: str) -> tuple[str, ...]:
    """The columns of one slice."""
    if quoted := _quoted(written):
        return tuple(column for column, _ in quoted)
    if bins := _bins_in(written):
        return tuple(each.strip().partition(":")[0] for each in bins["column"].split("*"))
    named = written.rpartition("=")[2]
    return () if ":" in named else tuple(each.strip() for each in named.split("*"))


_QUOTED = re.compile(r'(?P<name>"(?:[^"]|"")*"|[^":=]+)(?P<cut>:(?:bins|edges)=.*)?', re.DOTALL)
_NUMBER = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_BINS = re.compile(r"(?:(?P<label>[^=:,]+)=)?(?P<column>[^=:,]+):(?:bins=(?P<count>[0-9]+)|edges=.*)")


def _bins_in(written: str) -> re.Match[str] | None:
    """The parts of ``age:bins=5`` or ``age:edges=18,65``; None for other slices."""
    match = _BINS.fullmatch(written)
    column, bins, count = written.rpartition(":bins=")
    if bins and not match:
        do = f"Write --slice {column}:bins=5"
        raise ConfigError(describe(f"--slice {written}", f"{count!r} bins", "an integer of 2 or more", do))
    return match


def _quoted(written: str) -> list[tuple[str, str]]:
    """The columns of one slice and how each is cut, where names are in quotes; none elsewhere."""
    matches = [_QUOTED.fullmatch(each.strip()) for each in split_unquoted(written, "*")]
    if written.count('"') < 2 or None in matches:
        return []
    return [(unquoted(match["name"]), match["cut"] or "") for match in matches if match is not None]


def _slice(written: str, data: Any) -> tuple[str, Any]:
    if quoted := _quoted(written):
        if data is not None and any(cut for _, cut in quoted):
            got, do = "a column in quotes that is cut", "Rename the column, or add one of ranges"
            raise ConfigError(describe(f"--slice {written}", got, "one that is not, but of a table", do))
        selectors = tuple(column + cut for column, cut in quoted)
        return " x ".join(column for column, _ in quoted), selectors if len(selectors) > 1 else selectors[0]
    if data is None and (crossed := _ranges_in(written)):
        return " x ".join(each.partition(":")[0] for each in crossed), crossed if len(crossed) > 1 else crossed[0]
    if bins := _bins_in(written):
        column = bins["column"]
        if bins["count"]:
            return bins["label"] or column, _bins(column, int(bins["count"]), data)
        ranges = parse_ranges(written.removeprefix(f"{bins['label']}="))
        assert ranges is not None, "it has edges"
        return bins["label"] or column, ranges.bins()
    label, _, named = written.rpartition("=")
    if ":" in named:
        return label or named.rpartition(":")[2], parse_part(named)
    names = _crossed(written)
    return label or " x ".join(names), names if len(names) > 1 else parse_part(names[0])


def _ranges_in(written: str) -> tuple[str, ...]:
    """The columns of a slice of a table, if one of them is cut into ranges."""
    crossed = tuple(each.strip() for each in written.split("*"))
    return crossed if any(map(parse_ranges, crossed)) else ()


def _bins(column: str, count: int, data: Any) -> ColumnBins:
    parts = data.dataset.parts if isinstance(getattr(data, "dataset", None), Columns) else {}
    if column not in parts:
        do = "Slice a column of a table or an array, or name a function, as in --slice age=module:function"
        raise ConfigError(describe("--slice", f"bins of {column!r}", f"one of {', '.join(parts) or 'no columns'}", do))
    return ColumnBins.of(column, parts[column], count)
