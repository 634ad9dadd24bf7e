"""What the columns of a table are for, and how their names are written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from assay.data.column_roles import listed
from assay.errors import ConfigError, describe

_RANGE = re.compile(r"(?P<stem>.*?)(?P<first>[0-9]+)\.\.(?P<same>.*?)(?P<last>[0-9]+)")
_FIELD = re.compile(r"(?P<field>[A-Za-z_]+)=(?P<column>[^=]+)")


@dataclass(frozen=True)
class TableColumns:
    """What each column is for.

    Attributes:
        preds: the predictions: one column, or a score for each class.
        target: what they are compared with; none for metrics that need none.
        weights: the weights of the rows; empty for none.
        ids: the ids of the rows; empty where their place identifies them.
        named: by the names that metrics have for them, other columns.
        parts: the columns that slices are made of.
        labels: the names of the classes, in the order of their numbers, where columns hold names.
        where: the columns of the condition on rows.
        shown: by what a report calls them, the columns that it shows of some rows.
        preds_fields: what each column of the predictions has of a raw sample, such as `boxes`; none where one has all.
        target_fields: the same of the targets.
        cluster: the clusters of rows that depend on each other; empty where rows are independent.
    """

    preds: tuple[str, ...]
    target: tuple[str, ...] = ()
    weights: str = ""
    ids: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    preds_fields: tuple[str, ...] = ()
    target_fields: tuple[str, ...] = ()
    cluster: str = ""

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns that metrics are computed from, each once."""
        weights = (self.weights,) if self.weights else ()
        return tuple(dict.fromkeys((*self.preds, *self.target, *weights, *self.named.values())))

    @property
    def in_fields(self) -> frozenset[str]:
        """The columns that are fields of raw samples and nothing else."""
        fields = {*(self.preds if self.preds_fields else ()), *(self.target if self.target_fields else ())}
        return frozenset(fields - {self.weights, *self.named.values()})

    @property
    def needed(self) -> tuple[str, ...]:
        """All columns that are counted, each once."""
        ids = (self.ids,) if self.ids else ()
        return tuple(dict.fromkeys((*self.measured, *ids, *self.coded, *self.where)))

    @property
    def coded(self) -> tuple[str, ...]:
        """The columns whose values are numbered: those of slices and of clusters."""
        return tuple(dict.fromkeys((*self.parts, *((self.cluster,) if self.cluster else ()))))

    def check(self, names: Sequence[str], where: str) -> None:
        """Raise where a table has not all of these columns.

        Raises:
            ConfigError: one is not there, or is there twice, or none has the predictions.
        """
        if not self.preds:
            raise ConfigError(_without_preds(names))
        twice = sorted({name for name in (*self.needed, *self.shown.values()) if list(names).count(name) > 1})
        if twice:
            raise ConfigError(describe(where, f"the column {twice[0]!r} more than once", "names that differ", "Rename"))
        options = {
            "preds": self.preds,
            "target": self.target,
            "weights": (self.weights,),
            "ids": (self.ids,),
            **{f"column {name}": (column,) for name, column in self.named.items()},
            "slices or by": self.parts,
            "cluster": (self.cluster,),
            "where": self.where,
            "show": tuple(self.shown.values()),
        }
        for option, wanted in options.items():
            check_names(f"{where}: {option}", wanted, names)


def check_names(what: str, wanted: Iterable[str], names: Sequence[str]) -> None:
    """Raise where a column that was asked for is not there.

    Raises:
        ConfigError: names it, and the nearest that is there.
    """
    for name in filter(None, wanted):
        if name not in names:
            small = {each.lower(): each for each in names}
            near = difflib.get_close_matches(name.lower(), small, n=1)
            expected = repr(small[near[0]]) if near else f"one of {listed(names)}"
            raise ConfigError(describe(what, f"no column {name!r}", expected, "Correct the name"))


def _without_preds(names: Sequence[str]) -> str:
    """The message where no column of the predictions was named.

    Args:
        names: the columns that the table has.

    Example:
        >>> _without_preds(["preds", "target"])
        "preds: got no column, expected the column of the predictions, of preds, target. Write preds='preds'."
    """
    near = difflib.get_close_matches("preds", names, 1) or [*names[:1], "p"]
    expected = f"the column of the predictions, of {listed(names)}"
    return describe("preds", "no column", expected, f"Write preds={near[0]!r}")


def parse_names(what: str, written: str | Sequence[str] | None) -> tuple[str, ...]:
    """Columns as they are written: a name, several with commas, or a range of numbered ones; quoted as in CSV.

    A list has names as they are, and so has a string without a comma, blanks at its ends included.

    Example:
        >>> parse_names("preds", "p0..p3"), parse_names("preds", "a, b"), parse_names("preds", ["a, b"])
        (('p0', 'p1', 'p2', 'p3'), ('a', 'b'), ('a, b',))
        >>> parse_names("preds", '"a, b",c'), parse_names("preds", "a ")
        (('a, b', 'c'), ('a ',))

    Raises:
        ConfigError: it is no name, or a range that goes nowhere.
    """
    if written is None or written == "":
        return ()
    if isinstance(written, str):
        parts = split_unquoted(written, ",")
        names = [each.strip() for each in parts if each.strip()] if len(parts) > 1 else parts
        return tuple(chain.from_iterable(_range(what, each) for each in names))
    if not isinstance(written, Sequence) or not all(isinstance(each, str) for each in written):
        raise ConfigError(describe(what, repr(written), "the names of columns", f'Write {what}="p0..p9"'))
    return tuple(written)


def parse_fields(
    what: str, written: str | Sequence[str] | Mapping[str, str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns as they are written, and what each is of a raw sample where they are its fields.

    Example:
        >>> parse_fields("preds", "boxes=found,scores=scores"), parse_fields("preds", "a,b")
        ((('found', 'scores'), ('boxes', 'scores')), (('a', 'b'), ()))

    Raises:
        ConfigError: see `parse_names`, or a field twice.
    """
    if isinstance(written, Mapping):
        pairs = [(str(name), str(column)) for name, column in written.items()]
    else:
        parts = split_unquoted(written, ",") if isinstance(written, str) else []
        matches = [_FIELD.fullmatch(part.strip()) for part in parts]
        if not matches or None in matches:
            return parse_names(what, written), ()
        pairs = [(match["field"], unquoted(match["column"])) for match in matches if match is not None]
    fields, columns = tuple(name for name, _ in pairs), tuple(column for _, column in pairs)
    if len(set(fields)) < len(fields):
        do = f"Write {what}=boxes=COLUMN,scores=COLUMN,labels=COLUMN"
        raise ConfigError(describe(what, f"fields {', '.join(fields)}", "each field once", do))
    return columns, fields


def split_unquoted(written: str, sign: str) -> list[str]:
    """What stands between signs that are in no quotes.

    Example:
        >>> split_unquoted('"a,b",c', ","), split_unquoted('5" x,y', ",")
        (['"a,b"', 'c'], ['5" x', 'y'])
    """
    pieces = written.split('"')
    if len(pieces) % 2 == 0:  # a quote that nothing closes is a part of a name
        return written.split(sign)
    outside = [each if k % 2 else each.replace(sign, "\0") for k, each in enumerate(pieces)]
    return '"'.join(outside).split("\0")


def unquoted(name: str) -> str:
    """A name without its quotes; two in a row within them are one.

    Example:
        >>> unquoted('"a,b"'), unquoted('"a ""b"" c"'), unquoted("a")
        ('a,b', 'a "b" c', 'a')
    """
    is_quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return name[1:-1].replace('""', '"') if is_quoted else name


def _range(what: str, written: str) -> Sequence[str]:
    if (name := unquoted(written)) != written:
        return [name]
    match = _RANGE.fullmatch(written)
    if match is None:
        return [written]
    first, last = int(match["first"]), int(match["last"])
    if match["same"] not in ("", match["stem"]) or last < first:
        do = "Write p0..p9 for the columns p0 to p9"
        raise ConfigError(describe(what, repr(written), "a range of columns with one name and rising numbers", do))
    width = len(match["first"]) if match["first"].startswith("0") else 0
    return [f"{match['stem']}{number:0{width}d}" for number in range(first, last + 1)]
