"""One call of another library: which metric of assay it asks for, with which arguments, and what is in doubt."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.migrate.source_text import SourceText
from assay.migrate.table import Counterpart, LibraryTable

_BATCH = {"preds": "preds", "input": "preds", "p": "preds", "target": "target", "targets": "target", "q": "target"}


@dataclass
class MetricCall:
    """What a call asks for."""

    entry: Counterpart  # the entry that counts, after `task=` has chosen
    names: list[str] = field(default_factory=list)  # of each argument in its order, the parameter
    fields: dict[str, str] = field(default_factory=dict)  # the arguments of assay's metric, as source
    # which arguments, by position in the call, become which of these
    kept: dict[int, str] = field(default_factory=dict)
    # which arguments, by position in the call, are the batch of a function, and what assay calls them
    batch: dict[int, str] = field(default_factory=dict)
    transform: str = ""  # the source of an output transform
    doubts: list[str] = field(default_factory=list)  # why the call cannot be changed for the reader
    loses: bool = False  # whether it has arguments that assay's metric does not have; without them it is another metric
    checks: list[str] = field(default_factory=list)  # what a reader should look at after it was changed

    @property
    def written(self) -> str:
        """The metric of assay as source."""
        return f"{self.entry.assay}({', '.join(f'{name}={value}' for name, value in self.fields.items())})"


def metric_call(
    source: SourceText, call: ast.Call, entry: Counterpart, library: LibraryTable, known: Mapping[str, int]
) -> MetricCall:
    """Read a call; `known` is what the caller says of the data: `num_classes`, `num_labels`, `num_outputs`."""
    request = MetricCall(entry)
    nodes = [*call.args, *(each.value for each in call.keywords)]
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        _lose(request, "its arguments are not written out")
        return request
    order = [each.name for each in entry.takes if each.positional]
    if len(call.args) > len(order):
        _lose(request, f"it has {len(call.args)} arguments by position, and {len(order)} are known")
        return request
    request.names = [*order[: len(call.args)], *(str(each.arg) for each in call.keywords)]
    if entry.tasks:
        _choose_task(request, nodes, library)
    arguments = dict(zip(request.names, map(ast.unparse, nodes), strict=True))
    values = {**request.entry.defaults(), **entry.defaults(), **arguments}
    for index, (name, node) in enumerate(zip(request.names, nodes, strict=True)):
        _take(request, entry, index, name, node, source)
    _complete(request, entry, known)
    if request.entry.unsure:
        request.doubts.append(request.entry.unsure)
    if library.name == "torchmetrics" and entry.updates == 1 and _names_numbers(source):
        request.doubts.append("updates of this file give numbers by name: metric.update(numbers, weights=weights)")
    _refuse_ignored_class(request)
    request.checks = [each.text for each in request.entry.checks if each.applies(values)]
    return request


def _names_numbers(source: SourceText) -> bool:
    """Whether a call of the file has an argument by the name that aggregates have for their numbers, or weights."""
    calls = (node for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    return any(each.arg in ("value", "weight") for call in calls for each in call.keywords)


def _choose_task(request: MetricCall, nodes: list[ast.expr], library: LibraryTable) -> None:
    """Follow `task=` to the name that it stands for."""
    task = dict(zip(request.names, nodes, strict=True)).get("task")
    value = task.value if isinstance(task, ast.Constant) else None
    entries = [each for each in request.entry.tasks if isinstance(value, str) and each.lower().startswith(value)]
    if not entries or value not in ("binary", "multiclass", "multilabel"):
        _lose(request, "task is not written out")
        return
    request.entry = library.entries[entries[0]]


def _take(request: MetricCall, called: Counterpart, index: int, name: str, node: ast.expr, source: SourceText) -> None:
    """Follow the rule of one argument."""
    unread = called.tasks and _has(called, name) and not _has(request.entry, name)  # as num_classes of binary data
    if unread or (called.tasks and name == "task"):
        return
    rule, value = request.entry.rules.get(name, ""), source.of(node)
    kind, _, rest = rule.partition(" ")
    if kind == "data":
        request.batch[index] = _BATCH[name]
    elif kind == "transform":
        request.transform = value
    elif not rule:
        _lose(request, f"{name} is no argument that is known")
    elif kind in ("only", "among") and not any(_is(node, each) for each in rest.split(", ")):
        _lose(request, f"{name}={value} has no counterpart, and without it the value is another")
    elif kind in ("same", "among") or kind.startswith("="):
        into = kind[1:] if kind.startswith("=") else name
        other = request.entry.values.get(name, {}).get(_plain(node))
        request.fields[into] = value if other is None else _quoted(other)
        request.kept[index] = into


def _refuse_ignored_class(request: MetricCall) -> None:
    """Note that the class which is ignored has no value of its own, where each class has one."""
    ignored, classes = (request.fields.get(name, "") for name in ("ignore_index", "num_classes"))
    if request.fields.get("average") != "None" or not classes or not ignored.isdecimal():
        return
    if int(ignored) < int(classes) if classes.isdecimal() else ignored == "0":
        text = "is a class, whose value is NaN in assay, so that sums over classes are, and a number here"
        _lose(request, f"ignore_index={ignored} {text}")


def _lose(request: MetricCall, reason: str) -> None:
    """Note that an argument has no place in assay's metric."""
    request.loses = True
    request.doubts.append(reason)


def _has(entry: Counterpart, name: str) -> bool:
    return any(each.name == name for each in entry.takes)


def _complete(request: MetricCall, called: Counterpart, known: Mapping[str, int]) -> None:
    """Write what is not given but differs by default, and what has to be known."""
    takes = {each.name for each in request.entry.takes}
    for name, value in called.writes.items():
        if name not in request.fields and (not called.tasks or name in takes):
            request.fields[name] = _quoted(value)
    if request.entry.by_shape and known.get("num_outputs", 1) != 1:
        request.fields["num_outputs"] = str(known["num_outputs"])
    needs = request.entry.needs
    if not needs or request.fields.get(needs, "None") != "None":
        return
    option = "--" + needs.replace("_", "-")
    if needs not in known:
        request.fields[needs] = "..."
        request.doubts.append(
            f"{needs} is not written here, and assay does not guess it; say {option} if all have the same"
        )
    elif needs == "num_outputs":
        if known[needs] != 1:
            request.doubts.append("it sums over outputs, and assay takes their mean")
    else:
        request.fields = {needs: str(known[needs]), **{n: v for n, v in request.fields.items() if n != needs}}


def _quoted(value: str) -> str:
    """A literal as most files write it."""
    return '"' + value[1:-1] + '"' if value.startswith("'") else value


def _plain(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _is(node: ast.expr, literal: str) -> bool:
    """Whether a node is a literal of this value."""
    wanted = ast.literal_eval(literal)
    return isinstance(node, ast.Constant) and (node.value is wanted or (node.value == wanted and wanted is not None))
