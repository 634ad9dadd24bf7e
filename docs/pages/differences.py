"""Where assay returns another number than other libraries, read from `differences.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class ComparedExample:
    """The same data in a metric of another library and in one of assay.

    Attributes:
        library: one of `LIBRARIES`.
        names: the names of that library whose values differ like this.
        data: source that binds `preds` and `target`; empty for no data.
        theirs: their metric, as source.
        gives: its value, or the name of its error.
        ours: assay's metric, as source.
        reads: its value, or the name of its error.
    """

    library: str
    names: tuple[str, ...]
    theirs: str
    gives: str
    ours: str
    reads: str
    data: str = ""


@dataclass(frozen=True)
class DeliberateDifference:
    """A deliberate difference: what others return, what assay returns, and why."""

    case: str
    theirs: str = ""
    reference: str = ""
    assay: str = ""
    why: str = ""
    examples: tuple[ComparedExample, ...] = ()


@dataclass(frozen=True)
class DifferenceTopic:
    """The differences of one family; `theirs` and `reference` name the libraries that it is compared with."""

    title: str
    theirs: str
    differences: tuple[DeliberateDifference, ...]
    reference: str = ""
    tests: str = ""
    after: str = ""


@dataclass(frozen=True)
class WrongNumber:
    """A number that another library gets wrong: `script` in examples/wrong_numbers prints `prints`."""

    title: str
    text: str
    script: str
    prints: str
    after: str = ""


@cache
def topics() -> tuple[DifferenceTopic, ...]:
    """The deliberate differences of each family."""
    return tuple(
        DifferenceTopic(**{**_without(each, "difference"), "differences": tuple(map(_difference, each["difference"]))})
        for each in _table()["topic"]
    )


@cache
def wrong_numbers() -> Mapping[str, tuple[WrongNumber, ...]]:
    """The wrong numbers, by the titles of the parts of their page."""
    return {part["title"]: tuple(WrongNumber(**each) for each in part["number"]) for part in _table()["part"]}


def examples(library: str) -> list[ComparedExample]:
    """The examples of one of `LIBRARIES`."""
    differences = (difference for topic in topics() for difference in topic.differences)
    return [each for difference in differences for each in difference.examples if each.library == library]


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("differences.toml").read_text("utf-8"))


def _difference(raw: Mapping[str, Any]) -> DeliberateDifference:
    found = (ComparedExample(**{**each, "names": tuple(each["names"])}) for each in raw.get("example", ()))
    return DeliberateDifference(**_without(raw, "example"), examples=tuple(found))


def _without(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key != name}
