"""The tables: what each public name of another library becomes, read from the TOML beside this file."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

LIBRARIES = ("torchmetrics", "ignite", "torcheval")
TASKS = {"Binary": "", "Multiclass": "num_classes", "Multilabel": "num_labels"}
"""What names of one task begin with, and the argument that says the same."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a signature; `default` is its source, or None."""

    name: str
    default: str | None
    positional: bool


@dataclass(frozen=True)
class ValueCheck:
    """What a reader should look at, where an argument has (`when`) or has not (`unless`) one of some values."""

    text: str
    when: Mapping[str, list[str]] = field(default_factory=dict)
    unless: Mapping[str, list[str]] = field(default_factory=dict)

    def applies(self, values: Mapping[str, str]) -> bool:
        """Whether it concerns a call whose arguments, given or by default, are these."""
        if any(values.get(name) in wanted for name, wanted in self.unless.items()):
            return False
        return all(values.get(name) in wanted for name, wanted in self.when.items())


@dataclass(frozen=True)
class Counterpart:
    """What becomes of one name."""

    name: str
    signature: str  # its parameters, as source
    assay: str  # the name of assay's metric
    rules: Mapping[str, str]  # what becomes of each argument, as the head of the TOML says
    values: Mapping[str, Mapping[str, str]]  # for an argument, what is written in the place of a value
    writes: Mapping[str, str]  # what is written where it is not given, because the defaults differ
    needs: str  # what has to be known: an argument, without which assay would measure something else
    unsure: str  # why it cannot be changed for the reader; empty where it can
    checks: tuple[ValueCheck, ...]
    tasks: tuple[str, ...]  # the names that `task=` chooses from
    updates: int  # how many tensors an update takes
    by_shape: bool  # whether it takes the number of outputs from the shape of the data

    @cached_property
    def takes(self) -> tuple[Parameter, ...]:
        """Its parameters."""
        return parameters(self.signature)

    @property
    def function(self) -> bool:
        """Whether it is a function of one batch and no class."""
        return any(self.rules.get(each.name) == "data" for each in self.takes)

    def defaults(self) -> dict[str, str]:
        """The source of each default."""
        return {each.name: each.default for each in self.takes if each.default is not None}


@dataclass(frozen=True)
class LibraryTable:
    """One library: its names that have a counterpart, and those that have none."""

    name: str
    title: str
    version: str
    entries: Mapping[str, Counterpart]
    without: Mapping[str, str]

    def knows(self, name: str) -> bool:
        """Whether the table says something about a name."""
        return name in self.entries or name in self.without


@cache
def library(name: str) -> LibraryTable:
    """The table of one of `LIBRARIES`."""
    raw = tomllib.loads((files(__package__) / f"{name}.toml").read_text("utf-8"))
    without = {each: instead for instead, names in raw["without"].items() for each in names}
    facts = {each: group for group in raw["metrics"] for each in group["takes"]}
    classes = {each.lower(): each for each in facts if each[0].isupper()}
    entries = {each: _entry(each, facts, classes, raw) for each in facts}
    return LibraryTable(raw["library"], raw["title"], raw["version"], entries, without)


def _entry(name: str, facts: Mapping[str, Any], classes: Mapping[str, str], raw: Mapping[str, Any]) -> Counterpart:
    about = facts[name]
    same = classes.get(name.replace("_", ""), name)  # the class of a function
    task = next((each for each in TASKS if same.startswith(each)), "")
    of_tasks = [f"{each}{name}" if name[0].isupper() else f"{each.lower()}_{name}" for each in TASKS]
    return Counterpart(
        name,
        about["takes"][name],
        about.get("assay", same.removeprefix(task)),
        {**raw["arguments"], **about.get("arguments", {})},
        {**raw.get("values", {}), **about.get("values", {})},
        about.get("writes", {}),
        about.get("needs", TASKS.get(task, "")),
        raw["reasons"][about["unsure"]] if "unsure" in about else "",
        tuple(ValueCheck(**raw["checks"][each]) for each in about.get("checks", ())),
        tuple(each for each in of_tasks if each in facts),
        about.get("updates", 2),
        about.get("by_shape", False),
    )


def parameters(takes: str) -> tuple[Parameter, ...]:
    """The parameters of a signature that is written as source; `**kwargs` is none of them."""
    function = ast.parse(f"def f({takes}): ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    of = function.args
    missing = len(of.args) - len(of.defaults)
    defaults = [None] * missing + [ast.unparse(each) for each in of.defaults]
    result = [Parameter(each.arg, default, True) for each, default in zip(of.args, defaults, strict=True)]
    for each, value in zip(of.kwonlyargs, of.kw_defaults, strict=True):
        result.append(Parameter(each.arg, None if value is None else ast.unparse(value), False))
    return tuple(result)
