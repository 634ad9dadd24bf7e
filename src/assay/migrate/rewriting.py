"""One file from other libraries to assay: which calls are changed and how, and what is left to the reader."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from assay.migrate.calls import MetricCall, metric_call
from assay.migrate.collection import IN_VARIABLE, OWN_METRICS, collection_of
from assay.migrate.drop_in_imports import MODULES, drop_in_imports
from assay.migrate.imports import Imports
from assay.migrate.names import Variable, names_of, variable_of
from assay.migrate.source_text import Edit, SourceText, changed
from assay.migrate.table import Counterpart, LibraryTable, library
from assay.migrate.uses import is_only_read

UPDATE_NAMES = {"torchmetrics": frozenset({"preds", "target"}), "torcheval": frozenset[str]()}

_ON_CPU = "its value is float64 on the CPU: where code computes with it, write .to(device, torch.float32) behind it"

_OF_IGNITE = (*("DiceCoefficient", "Fbeta", "IoU", "JaccardIndex", "cmAccuracy", "cmPrecision", "cmRecall", "mIoU"),)
"""Names of Ignite that take metrics of its own classes only."""


@dataclass(frozen=True)
class Note:
    """What a reader has to do, or to look at.

    Attributes:
        line: where, from 1.
        kind: "todo" where nothing was changed, "check" where something was; "kept" where nothing has to be;
            "import" where another import does it.
        reason: why.
        write: what to write; empty where there is nothing to.
    """

    line: int
    kind: str
    reason: str
    write: str = ""


@dataclass(frozen=True)
class RewriteResult:
    """A file before and after, and what is left to the reader."""

    before: str
    after: str
    notes: tuple[Note, ...]


@dataclass
class _Rewrite:
    source: SourceText
    known: Mapping[str, int]
    imports: Imports
    edits: list[Edit] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    done: set[ast.AST] = field(default_factory=set)
    gone: set[ast.AST] = field(default_factory=set)
    moved: list[tuple[int, int]] = field(default_factory=list)

    def note(self, node: ast.AST, kind: str, reason: str, write: str = "") -> None:
        self.notes.append(Note(node.lineno, kind, reason, write))  # type: ignore[attr-defined]

    def changed_call(self, node: ast.expr, request: MetricCall, title: str) -> None:
        """Note that a call was changed."""
        self.done.add(node)
        self.gone.add(node)
        for text in request.checks:
            self.note(node, "check", f"{title} {request.entry.name}: {text}")


def rewrite(text: str, known: Mapping[str, int] | None = None) -> RewriteResult:
    """Change what is sure, and note the rest.

    Args:
        text: a Python file.
        known: what holds for all metrics of it: `num_classes`, `num_labels`, `num_outputs`.

    Returns:
        The file before and after.

    Raises:
        SyntaxError: it is no Python.
    """
    source = SourceText(text)
    names = names_of(source)
    first = _pass_over(source, Imports(source, names), known or {})
    staying = first.imports.staying(first.gone)
    work = _pass_over(source, Imports(source, names, staying), known or {})  # now it is known which names are free
    after = changed(text, [*work.edits, *work.imports.edits(work.gone)]) if work.edits else text
    try:
        ast.parse(after)
    except SyntaxError as error:
        reason = "the changed file would not be Python, so nothing is changed: please report it"
        return RewriteResult(text, text, (Note(error.lineno or 1, "todo", reason),))
    notes = [*_merged(work.notes), *_import_notes(work, after)]
    return RewriteResult(text, after, tuple(sorted(notes, key=lambda each: each.line)))


def _import_notes(work: _Rewrite, after: str) -> Iterator[Note]:
    """The imports with which a file works unchanged, if anything that `assay.compat` has is left."""
    lines: dict[str, int] = {}
    for node in ast.walk(work.source.tree):
        if isinstance(node, ast.ImportFrom):
            lines.setdefault(f"from {node.module}", node.lineno)
        elif isinstance(node, ast.Import):
            lines |= {f"import {ast.unparse(each)}": node.lineno for each in node.names}
    for name in MODULES:
        title = library(name).title
        if any(each.kind == "todo" and each.reason.startswith((f"{title} ", f"from {name}")) for each in work.notes):
            for path, statement in drop_in_imports(after, name):
                reason = f"{title}: with this import, what is left works unchanged, on assay's counts"
                yield Note(lines.get(path, 1), "import", reason, statement)


def _pass_over(source: SourceText, imports: Imports, known: Mapping[str, int]) -> _Rewrite:
    """Go through a file once."""
    work = _Rewrite(source, known, imports)
    for star in imports.names.stars:
        work.note(star, "todo", f"from {star.module} import *: which names it brings is not written here")
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, ast.expr)]
    for node in nodes:
        if isinstance(node, ast.Call) and not imports.names.doubtful(node.func):
            _call(work, node)
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and node not in work.done:
            _leftover(work, node)
    return work


def _merged(notes: list[Note]) -> list[Note]:
    """Notes in the order of lines; those that say the same become one."""
    lines: dict[Note, list[int]] = {}
    for note in sorted(notes, key=lambda each: (each.line, each.kind, each.reason)):
        lines.setdefault(replace(note, line=0), []).append(note.line)
    merged = []
    for note, at in lines.items():
        further = list(dict.fromkeys(at))[1:]
        also = f" (also line {', '.join(map(str, further))})" if further else ""
        merged.append(replace(note, line=at[0], reason=note.reason + also))
    return sorted(merged, key=lambda each: each.line)


def _leftover(work: _Rewrite, node: ast.Name | ast.Attribute) -> None:
    """Note a name of a library that stays."""
    if not isinstance(node.ctx, ast.Load):
        return
    mention = work.imports.names.mention(node)
    if mention is None:
        return
    of, name = mention
    if work.imports.names.doubtful(node):
        work.note(node, "todo", f"{of.title} {name}: the name stands for something else in this file, too")
    elif name in of.without:
        instead = of.without[name]
        kind = "kept" if instead.startswith("keep it") else "todo"
        work.note(node, kind, f"{of.title} {name} has no counterpart", instead)
    elif _is_base(work.source, node):
        do = "keep it: it counts as before; or write one of assay as a frozen dataclass"
        work.note(node, "kept", f"{of.title} {name}: a class of yours derives from it", do)
    else:
        reason = f"{of.title} {name} is used in another way than by calling it"
        work.note(node, "todo", reason, f"assay.metrics.{of.entries[name].assay}")


def _is_base(source: SourceText, node: ast.AST) -> bool:
    """Whether a class derives from what a node names."""
    parent = source.parent.get(node)
    return isinstance(parent, ast.ClassDef) and node in parent.bases


def _call(work: _Rewrite, call: ast.Call) -> None:
    """Change a call, or say why not."""
    mention = work.imports.names.mention(call.func)
    if mention is None or call.func in work.done:
        return
    of, name = mention
    if name == "MetricCollection":
        _collection(work, call, of)
        return
    entry = of.entries.get(name)
    if entry is None:
        return
    request = metric_call(work.source, call, entry, of, work.known)
    start, end = work.source.span(call)
    if work.source.in_string(call):
        request.doubts.append("it is inside of an f-string")
    if any(a <= start and end <= b for a, b in work.moved):
        request.doubts.append("it is inside of an argument that was moved")
    outer = "" if request.entry.function or of.name == "torcheval" else _inside(work, call, of)
    if outer:
        request.doubts.append(f"it is an argument of {outer}, which stays")
    place = None if request.doubts else _place(work, call, request, of)
    if place is None:
        reason = "; ".join(request.doubts) or "its variable is used in other ways than update, compute and reset"
        work.note(call, "todo", f"{of.title} {name}: {reason}", _would_be(request, of))
        work.done.add(call.func)
        return
    _change(work, call, request, place)
    work.changed_call(call.func, request, of.title)


def _inside(work: _Rewrite, call: ast.Call, of: LibraryTable) -> str:
    """What stays of a library and has a call, or the variable that it is assigned to, as its argument; if any."""
    assigned = work.source.parent[call]
    targets = assigned.targets if isinstance(assigned, ast.Assign) and assigned.value is call else []
    wanted = {ast.dump(each).replace("Store()", "Load()") for each in targets}
    for node in ast.walk(work.source.tree):
        outer = work.imports.names.mention(node.func) if isinstance(node, ast.Call) and node is not call else None
        if outer is None or outer[0] is not of or outer[1] in of.entries:
            continue
        if of.name == "ignite" and outer[1] not in _OF_IGNITE:
            continue
        calls = [each for each in ast.walk(node) if each is call or (wanted and ast.dump(each) in wanted)]
        if calls:
            return outer[1]
    return ""


def _would_be(request: MetricCall, of: LibraryTable) -> str:
    """What a reader may write; nothing where arguments would be lost."""
    if request.loses:
        return ""
    if of.name == "ignite":
        return f"as_ignite({request.written}{f', {request.transform}' if request.transform else ''})"
    if request.entry.function:
        return f"{request.written}(preds, target)"
    return f"as_torchmetric({request.written})" if of.name == "torchmetrics" else f"Meter({request.written})"


@dataclass(frozen=True)
class _Place:
    """What is written around a metric of assay, and what becomes of `compute`."""

    around: str = ""
    variable: Variable | None = None
    computed: str = ""
    value: str = ""


def _place(work: _Rewrite, call: ast.Call, request: MetricCall, of: LibraryTable) -> _Place | None:
    """What is around a call after it was changed; None where nothing can be."""
    if of.name == "ignite":
        return _Place("as_ignite")
    theirs = of.name == "torchmetrics"
    if request.entry.function:
        if set(request.batch.values()) not in ({"preds", "target"}, {"preds"}):
            return None
        return _Place("" if _any_number_does(work, request, [call], theirs) else "as_torchmetric")
    variable = variable_of(work.source, call, request.entry.updates, UPDATE_NAMES[of.name])
    if variable is not None and _any_number_does(work, request, variable.computes, theirs):
        return _Place("Meter", variable, f"{'.sync()' if theirs else ''}.compute()", request.entry.assay)
    return _Place("as_torchmetric") if theirs else None


def _any_number_does(work: _Rewrite, request: MetricCall, values: Iterable[ast.expr], has_adapter: bool) -> bool:
    """Whether code does with values of float64 on the CPU; without an adapter it has to, and a reader looks at it."""
    does = all(is_only_read(work.source, each) for each in values)
    if not does and not has_adapter:
        request.checks.append(_ON_CPU)
    return does or not has_adapter


def _change(work: _Rewrite, call: ast.Call, request: MetricCall, place: _Place) -> None:
    """Change one call, in its place, argument by argument."""
    start, end = work.source.span(call)
    name = work.imports.metric(request.entry.assay)
    if place.around:
        around = work.imports.around(place.around)
        work.edits.append(Edit(start, start, f"{around}("))
        behind = f", {request.transform}" if request.transform else ""
        if not request.entry.function:
            work.edits.append(Edit(end, end, f"{behind})"))
    work.edits.append(Edit(*work.source.span(call.func), name))
    if request.entry.function:
        fields = ", ".join(f"{each}={value}" for each, value in request.fields.items())
        opened = work.source.span(call.func)[1]
        work.edits.append(Edit(opened, opened, f"({fields}){')' if place.around else ''}"))
    _arguments(work, call, request)
    if place.variable:
        _read_from(work, place.variable, place.computed, place.value)


def _arguments(work: _Rewrite, call: ast.Call, request: MetricCall) -> None:
    """Rename, drop and add arguments."""
    source = work.source
    opened, _, parts = source.arguments(call)
    stays = request.batch if request.entry.function else request.kept
    values = [*call.args, *(each.value for each in call.keywords)]
    order = sorted(range(len(values)), key=lambda index: source.span(values[index])[0])
    dropped = set()
    for at, index in enumerate(order):
        keyword = None if index < len(call.args) else call.keywords[index - len(call.args)]
        value, part = values[index], parts[at]
        if index not in stays:
            dropped.add(at)
            work.moved.append((part.start, part.end))
            continue
        into = stays[index]
        if keyword is None and not request.entry.function:
            work.edits.append(Edit(part.start, part.start, f"{into}="))
        elif keyword is not None and keyword.arg != into:
            work.edits.append(Edit(part.start, part.start + len(str(keyword.arg)), into))
        if not request.entry.function and request.fields[into] != source.of(value):
            work.edits.append(Edit(*source.span(value), request.fields[into]))
    work.edits += source.without(parts, dropped)
    if not request.entry.function:
        _add(work, opened, [parts[at].end for at in range(len(parts)) if at not in dropped], request)


def _add(work: _Rewrite, opened: int, ends: list[int], request: MetricCall) -> None:
    """Write the arguments that were not given."""
    present = set(request.kept.values())
    extra = ", ".join(f"{name}={value}" for name, value in request.fields.items() if name not in present)
    if extra:
        at = ends[-1] if ends else opened
        work.edits.append(Edit(at, at, f", {extra}" if ends else extra))


def _collection(work: _Rewrite, call: ast.Call, of: LibraryTable) -> None:
    """Change a MetricCollection, with all its metrics or none of them."""
    collection = collection_of(work.source, call, work.imports.names)
    if isinstance(collection, str):
        kind = "kept" if collection in (OWN_METRICS, IN_VARIABLE) else "todo"
        work.note(call, kind, f"{of.title} MetricCollection: {collection}", "as_torchmetrics({name: metric, ...})")
        work.done |= {node.func for node in ast.walk(call) if isinstance(node, ast.Call)}
        return
    calls = [each.call for each in collection.members]
    requests = [metric_call(work.source, each, _entry(work, each), of, work.known) for each in calls]
    pairs = list(zip(collection.members, requests, strict=True))
    for each, request in pairs:
        each.name = each.name or request.entry.name
    doubts = [f"{request.entry.name}: {'; '.join(request.doubts)}" for request in requests if request.doubts]
    if doubts:
        text = ", ".join(f'"{each.name}": {request.written}' for each, request in pairs)
        advice = "" if any(request.loses for request in requests) else f"as_torchmetrics({{{text}}})"
        work.note(call, "todo", f"{of.title} MetricCollection: {', '.join(doubts)}", advice)
        work.done |= {call.func, *(each.func for each in calls)}
        return
    variable = variable_of(work.source, call, 2, UPDATE_NAMES["torchmetrics"])
    read = variable is not None and all(is_only_read(work.source, each) for each in variable.computes)
    plain = variable if read and collection.plain and collection.named else None
    around = work.imports.around("Meter" if plain else "as_torchmetrics")
    work.edits.append(Edit(*work.source.span(call.func), around))
    work.edits += collection.as_keywords() if plain else collection.as_mapping()
    for each, request in pairs:
        _change(work, each.call, request, _Place())
        work.changed_call(each.call.func, request, of.title)
    work.done.add(call.func)
    work.gone.add(call.func)
    if plain:
        _read_from(work, plain, ".sync().compute()")


def _read_from(work: _Rewrite, variable: Variable, computed: str, value: str = "") -> None:
    """Change how a variable is read: all values of a meter, or the one of a name."""
    for compute in variable.computes:
        assert isinstance(compute.func, ast.Attribute)
        start, end = work.source.span(compute.func.value)[1], work.source.span(compute)[1]
        quote = work.source.quote(compute)
        work.edits.append(Edit(start, end, f"{computed}[{quote}{value}{quote}]" if value else computed))


def _entry(work: _Rewrite, call: ast.Call) -> Counterpart:
    mention = work.imports.names.mention(call.func)
    assert mention is not None
    return mention[0].entries[mention[1]]
