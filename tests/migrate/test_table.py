"""The tables against the libraries: every public name is there, with its signature, and defaults come out the same."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect

import pytest

import assay.metrics
from assay.migrate import LIBRARIES, library
from assay.migrate.table import parameters

ENTRIES = [(name, entry) for name in LIBRARIES for entry in library(name).entries.values()]
IDS = [f"{name}-{entry.name}" for name, entry in ENTRIES]
TORCHMETRICS = "audio classification clustering detection image multimodal nominal regression retrieval segmentation"
FUNCTIONAL = f"{TORCHMETRICS} pairwise shape text video"
IGNITE = "regression nlp gan rec_sys clustering vision fairness"


def listed(module: str) -> set[str]:
    return set(importlib.import_module(module).__all__)


def classes(module: str, base: type) -> set[str]:
    return {
        name
        for name, thing in vars(importlib.import_module(module)).items()
        if isinstance(thing, type) and issubclass(thing, base) and not name.startswith("_")
    }


def public(name: str) -> set[str]:
    """The names that a library shows."""
    if name == "torchmetrics":
        base = importlib.import_module("torchmetrics").Metric
        found = listed("torchmetrics") | listed("torchmetrics.functional") | classes("torchmetrics.aggregation", base)
        for each in f"{TORCHMETRICS} shape text video wrappers".split():
            found |= listed(f"torchmetrics.{each}")
        for each in FUNCTIONAL.split():
            found |= listed(f"torchmetrics.functional.{each}")
        return found
    if name == "ignite":
        base = importlib.import_module("ignite.metrics").Metric
        found = listed("ignite.metrics")
        return found.union(*(classes(f"ignite.metrics.{each}", base) for each in IGNITE.split()))
    toolkit = importlib.import_module("torcheval.metrics.toolkit")
    own = {n for n, v in vars(toolkit).items() if inspect.isfunction(v) and v.__module__ == toolkit.__name__}
    return listed("torcheval.metrics") | listed("torcheval.metrics.functional") | {n for n in own if n[0] != "_"}


def is_module(library_name: str, name: str) -> bool:
    parent = {"ignite": "ignite.metrics", "torchmetrics": "torchmetrics", "torcheval": "torcheval.metrics"}
    return inspect.ismodule(getattr(importlib.import_module(parent[library_name]), name, None))


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_public_name_is_in_the_table(name):
    table = library(name)
    missing = {each for each in public(name) if not table.knows(each) and not is_module(name, each)}
    assert missing == set()
    assert len(public(name)) > 80


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_version_that_was_read_is_the_one_installed(name):
    package = "pytorch-ignite" if name == "ignite" else name
    assert importlib.import_module("importlib.metadata").version(package) == library(name).version


@pytest.mark.parametrize("name", LIBRARIES)
def test_no_name_is_told_twice(name):
    assert not set(library(name).entries) & set(library(name).without)


def theirs(library_name: str, name: str):
    modules = {
        "torchmetrics": ("aggregation", "classification", "regression", "text", "segmentation"),
        "ignite": ("metrics", "metrics.regression"),
        "torcheval": ("metrics", "metrics.functional"),
    }[library_name]
    tried = [f"{library_name}.{each}" for each in modules]
    tried += [f"torchmetrics.functional.{each}" for each in modules] if library_name == "torchmetrics" else []
    for module in tried:
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ModuleNotFoundError:
            continue
        if found is not None and not inspect.ismodule(found):
            return found
    raise AssertionError(name)


def signature(thing) -> list[tuple[str, object]]:
    made = vars(thing).get("__new__") if isinstance(thing, type) and "__new__" in vars(thing) else thing
    made = made.__init__ if isinstance(made, type) else made
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = [each for each in inspect.signature(made).parameters.values() if each.kind not in kinds]
    return [(each.name, each.default) for each in found if each.name not in ("self", "cls")]


@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=IDS)
def test_signatures_are_those_of_the_library(name, entry):
    real = signature(theirs(name, entry.name))
    assert [each.name for each in entry.takes] == [each for each, _ in real]
    for parameter, (_, default) in zip(entry.takes, real, strict=True):
        if parameter.default is None:
            assert default is inspect.Parameter.empty
        elif parameter.default != "...":
            assert ast.literal_eval(parameter.default) == default


def fields(metric: str) -> dict[str, object]:
    return {each.name: each.default for each in dataclasses.fields(getattr(assay.metrics, metric)) if each.init}


@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=IDS)
def test_arguments_come_to_fields_and_defaults_are_the_same(name, entry):
    ours = fields(entry.assay)
    assert set(entry.writes) <= set(ours)
    for each in entry.takes:
        rule = entry.rules.get(each.name, "")
        kind = rule.partition(" ")[0]
        if entry.unsure or (entry.tasks and each.name == "task"):
            continue
        assert rule, f"{each.name} has no rule"
        if kind in ("only", "among"):
            [ast.literal_eval(value) for value in rule.partition(" ")[2].split(", ")]
        if not (kind in ("same", "among") or kind.startswith("=")) or entry.tasks:
            continue
        into = kind[1:] if kind.startswith("=") else each.name
        assert into in ours, f"{each.name} is no field of {entry.assay}"
        if each.default is not None and each.name != entry.needs:
            written = entry.writes.get(into)
            read = ast.literal_eval(written) if written is not None else ours[into]
            value = entry.values.get(each.name, {}).get(str(ast.literal_eval(each.default)), each.default)
            assert read == ast.literal_eval(value), f"the default of {each.name} would change"


@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=IDS)
def test_tasks_lead_to_entries(name, entry):
    for each in entry.tasks:
        assert library(name).entries[each].assay == entry.assay


def test_a_signature_is_read_as_python_reads_it():
    found = parameters("a, b=1, *, c='x', d, **more")
    assert [(each.name, each.default, each.positional) for each in found] == [
        ("a", None, True),
        ("b", "1", True),
        ("c", "'x'", False),
        ("d", None, False),
    ]
