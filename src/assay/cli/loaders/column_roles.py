"""Which named column is what: inputs, target, ids, weights, slices and the columns that metrics take."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from assay.cli.loaders.batch_parts import slice_columns
from assay.cli.loaders.labels import check_ids, class_note, to_target
from assay.cli.options import EvaluateCommand
from assay.errors import ConfigError, describe
from assay.evaluation.data.batch import TARGETS

AS_NUMBERS = " as numbers"
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


def assign_roles(names: Sequence[str], options: EvaluateCommand, columns: Mapping[str, Any], where: str) -> Roles:
    """Read from the options what each column is for; `columns` are those of the metrics, by name."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ConfigError(describe(where, f"the column {twice[0]!r} more than once", "names that differ", "Rename one"))
    sliced = [name for each in options.slice for name in slice_columns(each)]
    others = tuple(
        dict.fromkeys(
            [
                *(name for each in (options.ids, options.weights, options.cluster) for name in _columns(each)),
                *sliced,
                *options.show,
            ]
        )
    )
    target = (*_columns(options.target), *(name for name in TARGETS if name in names))
    if not target and not options.target:
        do = "Say which is the target with --target"
        raise ConfigError(describe(where, f"columns {listed(names)}", f"one named {', '.join(TARGETS)}", do))
    inputs = (*(each for each in options.inputs if ":" not in each), *features(names, options), *options.text)
    check(("--target", target[:1]), names, where)
    check(("--inputs, --features or --text", inputs), names, where)
    check(("--ids, --weights, --cluster, --slice or --show", others), names, where)
    for name, part in columns.items():
        check((f"--column {name}", [part]), names, where, f"Write --column {name}=COLUMN with one of its columns")
    ids = next(iter(_columns(options.ids)), "")
    return Roles(target[0] if target else "", inputs, others, tuple(columns.values()), ids)


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
) -> tuple[dict[str, str], list[str]]:
    """Add the named columns of metrics to the parts of a batch: strings, such as ids of queries, as numbers.

    Returns:
        The part of each, and notes for the report.
    """
    numbers, notes = {}, []
    for name, column in columns.items():
        strings = read(column)
        values, known = to_target(strings, (), f"{where}: {column}")
        numbers[name] = column + AS_NUMBERS if known else column
        parts[numbers[name]] = values
        if known:
            parts[column] = strings  # for slices and what is shown
            notes.append(f"{name} numbers the {len(known):,} values of {column} in alphabetical order.")
    return numbers, notes


def features(names: Sequence[str], options: EvaluateCommand) -> tuple[str, ...]:
    """The columns of ``--features``, in their order; patterns (``p*``) stand for columns in the order of the file.

    Example:
        >>> features(["age", "p1", "p0", "y"], EvaluateCommand(features=("p*", "age")))
        ('p1', 'p0', 'age')
    """
    others = {*(_columns(options.target) or TARGETS), *_columns(options.ids), *_columns(options.weights)}
    free = [name for name in names if name not in others]
    features: list[str] = []
    for written in options.features:
        is_pattern = written not in names and any(sign in written for sign in "*?[")
        fits = fnmatch.filter(free, written) if is_pattern else [written]
        if not fits:
            got = f"the pattern {written!r}, which fits no column"
            raise ConfigError(describe("--features", got, f"a pattern of {listed(names)}", "Check the pattern"))
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
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "") if names else "none"


def _columns(written: str) -> list[str]:
    return [] if not written or ":" in written else [each.strip() for each in written.split(",")]
