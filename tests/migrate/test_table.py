"""The tables against the libraries: every public name is there, with its signature, and defaults come out the same."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import importlib.util
import inspect
from collections.abc import Iterable
from pathlib import Path

import pytest

import assay.metrics
from assay.migrate import LIBRARIES, library
from assay.migrate.table import parameters

ENTRIES = [(name, entry) for name in LIBRARIES for entry in library(name).entries.values()]


PACKAGES = {"torchmetrics": "torchmetrics", "ignite": "ignite.metrics", "torcheval": "torcheval.metrics"}


def sources(package: str) -> dict[Path, ast.Module]:
    """The source of a package by file. It is not imported: imports leave out what other packages are missing for."""
    top, *below = package.split(".")
    folder = Path(importlib.util.find_spec(top).origin).parent.joinpath(*below)
    files = sorted(folder.rglob("*.py"))
    return {file.relative_to(folder): ast.parse(file.read_text("utf-8")) for file in files}


def listed(tree: ast.Module) -> set[str]:
    """The strings of its `__all__`, also of what is added to it under a condition."""
    assignments = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AugAssign)]
    lists = [
        node.value
        for node in assignments
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == "__all__"
    ]
    constants = [node.value for each in lists for node in ast.walk(each) if isinstance(node, ast.Constant)]
    return {name for name in constants if isinstance(name, str) and not name.startswith("__")}


def metric_classes(trees: Iterable[ast.Module]) -> set[str]:
    """The public classes that derive from `Metric`, directly or not."""
    definitions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = {
        (node.name, ast.unparse(base).partition("[")[0].rpartition(".")[2])
        for node in definitions
        for base in node.bases
    }
    metrics = {"Metric"}
    while more := {name for name, base in bases if base in metrics} - metrics:
        metrics |= more
    return {name for name in metrics if not name.startswith("_")}


@functools.cache
def public(name: str) -> set[str]:
    """The names that a library shows, as its source has them."""
    trees = sources(PACKAGES[name])
    modules = {part for file in trees for part in (*file.parts, file.stem)}
    names = {each for file, tree in trees.items() if file.parts[0] != "utilities" for each in listed(tree)}
    helpers = trees.get(Path("toolkit.py"), ast.Module([], []))
    functions = {node.name for node in helpers.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"}
    return (names - modules) | metric_classes(trees.values()) | functions


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_public_name_is_in_the_table(name):
    table = library(name)
    names = public(name)
    assert {each for each in names if not table.knows(each)} == set()
    assert len(names) > 80


def test_names_that_need_another_package_are_read_from_the_source():
    assert {"ARNIQA", "RetrievalMetric", "WrapperMetric", "CompositionalMetric"} <= public("torchmetrics")


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_version_that_was_read_is_the_one_installed(name):
    package = "pytorch-ignite" if name == "ignite" else name
    assert importlib.import_module("importlib.metadata").version(package) == library(name).version


@pytest.mark.parametrize("name", LIBRARIES)
def test_no_name_is_told_twice(name):
    assert not set(library(name).entries) & set(library(name).without)


def theirs(library_name: str, name: str):
    modules = {
        "torchmetrics": (
            *("aggregation", "classification", "clustering", "nominal", "regression", "retrieval", "text"),
            *("segmentation", "image", "audio", "detection", "shape", "multimodal"),
        ),
        "ignite": (
            *("metrics", "metrics.regression", "metrics.confusion_matrix", "metrics.nlp", "metrics.rec_sys"),
            *("metrics.clustering.silhouette_score", "metrics.clustering.calinski_harabasz_score"),
            *("metrics.clustering.davies_bouldin_score", "metrics.fairness.base"),
            *("metrics.fairness.accuracy_difference", "metrics.fairness.demographic_parity"),
            "metrics.vision.object_detection_average_precision_recall",
        ),
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


every_entry = pytest.mark.parametrize(
    "entries", [[each for each in ENTRIES if each[0] == name] for name in LIBRARIES], ids=LIBRARIES
)


@every_entry
def test_signatures_are_those_of_the_library(entries):
    for name, entry in entries:
        real = signature(theirs(name, entry.name))
        assert [each.name for each in entry.takes] == [each for each, _ in real], entry.name
        for parameter, (_, default) in zip(entry.takes, real, strict=True):
            if parameter.default is None:
                assert default is inspect.Parameter.empty, entry.name
            elif parameter.default != "...":
                assert ast.literal_eval(parameter.default) == default, entry.name


def fields(metric: str) -> dict[str, object]:
    return {each.name: each.default for each in dataclasses.fields(getattr(assay.metrics, metric)) if each.init}


@every_entry
def test_arguments_come_to_fields_and_defaults_are_the_same(entries):
    for _, entry in entries:
        assert set(entry.writes) <= set(fields(entry.assay)), entry.name
        for each in entry.takes:
            if not entry.unsure and not (entry.tasks and each.name == "task"):
                _check_argument(entry, each)


def _check_argument(entry, argument):
    rule, ours = entry.rules.get(argument.name, ""), fields(entry.assay)
    kind = rule.partition(" ")[0]
    assert rule, f"{argument.name} of {entry.name} has no rule"
    if kind in ("only", "among"):
        [ast.literal_eval(value) for value in rule.partition(" ")[2].split(", ")]
    if not (kind in ("same", "among") or kind.startswith("=")) or entry.tasks:
        return
    into = kind[1:] if kind.startswith("=") else argument.name
    assert into in ours, f"{argument.name} of {entry.name} is no field of {entry.assay}"
    if argument.default is not None and argument.name != entry.needs:
        written = entry.writes.get(into)
        read = ast.literal_eval(written) if written is not None else ours[into]
        given = str(ast.literal_eval(argument.default))
        value = entry.values.get(argument.name, {}).get(given, argument.default)
        assert read == ast.literal_eval(value), f"the default of {argument.name} of {entry.name} would change"


@every_entry
def test_tasks_lead_to_entries(entries):
    for name, entry in entries:
        for each in entry.tasks:
            assert library(name).entries[each].assay == entry.assay, entry.name


def test_a_signature_is_read_as_python_reads_it():
    found = parameters("a, b=1, *, c='x', d, **more")
    assert [(each.name, each.default, each.positional) for each in found] == [
        ("a", None, True),
        ("b", "1", True),
        ("c", "'x'", False),
        ("d", None, False),
    ]
