"""Which named column is what: inputs, target, ids, weights, slices and the columns that metrics take."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from assay.data.columns import TARGETS
from assay.data.labels import check_ids, class_note, to_target
from assay.data.options import DataOptions
from assay.errors import ConfigError, describe
from assay.render.text import first_names

_AS_NUMBERS = " as numbers"
"""After the name of a column of strings: the part of a batch that has their numbers."""


@dataclass(frozen=True)
class Roles:
    """What the columns of a file are for.

    Attributes:
        target: the column of the target.
        inputs: what the model gets, in order; empty where that was not said.
        others: ids, weights, what slices are made of, and what is shown.
        columns: the named columns of metrics.
        ids: the column of the ids; empty for none.
    """

    target: str
    inputs: tuple[str, ...]
    others: tuple[str, ...]
    columns: tuple[str, ...] = ()
    ids: str = ""

    @property
    def taken(self) -> set[str]:
        """All columns that are no inputs."""
        return {self.target, *self.others, *self.columns}


def assign_roles(names: Sequence[str], options: DataOptions, where: str) -> Roles:
    """Read from the options what each column is for."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ConfigError(describe(where, f"the column {twice[0]!r} more than once", "names that differ", "Rename one"))
    named = (options.ids, options.weights, options.cluster, *options.others)
    others = tuple(dict.fromkeys(filter(None, named)))
    target = options.target or next((name for name in TARGETS if name in names), options.target)
    if target is None:
        expected = f"one named {', '.join(TARGETS)}"
        raise ConfigError(describe(where, f"columns {listed(names)}", expected, "Name the target's column as target"))
    inputs = (*options.inputs, *features(names, options), *options.text)
    check(("target", [target] if target else []), names, where)
    check(("inputs, features or text", inputs), names, where)
    check(("ids, weights, cluster, slice or show", others), names, where)
    for name, part in options.columns.items():
        check((f"column {name}", [part]), names, where, f"Name one of its columns for {name}")
    return Roles(target, inputs, others, tuple(options.columns.values()), options.ids)


def read_roles(
    read: Callable[[str], Any], roles: Roles, classes: tuple[str, ...], where: str
) -> tuple[dict[str, Any], Tensor | None, tuple[str, ...], list[str]]:
    """The columns that are no inputs, the labels, the names of their classes, and notes for the report.

    Args:
        read: gives a column.
        roles: what each column is for.
        classes: the names of the classes, where they are known.
        where: the file, in messages.
    """
    parts: dict[str, Any] = {}
    by, labels = "the order that was said" if classes else "alphabetical order", None
    if roles.target:
        labels, classes = to_target(read(roles.target), classes, f"{where}: {roles.target}")
        parts[roles.target] = labels
    parts |= {name: read(name) for name in roles.others}
    if roles.ids:
        check_ids(parts[roles.ids], f"{where}: {roles.ids}")
    return parts, labels, classes, [class_note(classes, by)] if classes else []


def number_columns(
    read: Callable[[str], Any], columns: Mapping[str, str], parts: dict[str, Any], where: str
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Add the named columns of metrics to the parts of a batch: strings, such as ids of queries, as numbers.

    Returns:
        The part of each, the column of strings of those that are numbered, and notes for the report.
    """
    numbers, numbered, notes = {}, {}, []
    for name, column in columns.items():
        strings = read(column)
        values, known = to_target(strings, (), f"{where}: {column}")
        numbers[name] = column + _AS_NUMBERS if known else column
        parts[numbers[name]] = values
        if known:
            parts[column] = strings  # for slices and what is shown
            numbered[name] = column
            notes.append(f"{name} numbers the {len(known):,} values of {column} in alphabetical order.")
    return numbers, numbered, notes


def features(names: Sequence[str], options: DataOptions) -> tuple[str, ...]:
    """The columns of `options.features`, in their order; patterns (``p*``) stand for columns in the order of the file.

    Example:
        >>> features(["age", "p1", "p0", "y"], DataOptions(features=("p*", "age")))
        ('p1', 'p0', 'age')
    """
    others = {*((options.target,) if options.target else TARGETS), options.ids, options.weights, options.cluster}
    free = [name for name in names if name not in others]
    features: list[str] = []
    for written in options.features:
        is_pattern = written not in names and any(sign in written for sign in "*?[")
        fits = fnmatch.filter(free, written) if is_pattern else [written]
        if not fits:
            got = f"the pattern {written!r}, which fits no column"
            raise ConfigError(describe("features", got, f"a pattern of {listed(names)}", "Check the pattern"))
        features += [name for name in fits if name not in features]
    return tuple(features)


def check(request: tuple[str, Iterable[str]], names: Sequence[str], where: str, do: str = "Correct the name") -> None:
    """Raise where a column that was asked for is not there."""
    option, wanted = request
    for name in wanted:
        if name not in names:
            small = {each.lower(): each for each in names}
            near = difflib.get_close_matches(name.lower(), small, n=1)
            expected = repr(small[near[0]]) if near else f"one of {listed(names)}"
            raise ConfigError(describe(f"{where}: {option}", f"no column {name!r}", expected, do))


def listed(names: Sequence[str]) -> str:
    """Names for a message."""
    return first_names(names, 12) or "none"
