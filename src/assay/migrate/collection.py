"""A `MetricCollection` in a file: its metrics and their names, and how it becomes a meter or a mapping."""

from __future__ import annotations

import ast
import keyword
from dataclasses import dataclass, field

from assay.migrate.names import Names
from assay.migrate.source_text import Edit, SourceText

_OF_METER = ("weighted", "strict", "stage_bytes")


@dataclass
class Member:
    """One metric of a collection; without a name it is called after its class."""

    call: ast.Call  # what makes it
    name: str = ""  # its name
    key: tuple[int, int] | None = None  # where its name is written, with the colon; None where it is not


@dataclass
class Collection:
    """A `MetricCollection`."""

    source: SourceText
    call: ast.Call  # what makes it
    members: list[Member]  # its metrics
    brackets: tuple[int, int] | None  # where they open and close, one character each; None where they are arguments
    plain: bool  # whether a `Meter` can be made of it, which has no prefix
    tidied: list[Edit] = field(default_factory=list)  # what is taken away in any case

    @property
    def named(self) -> bool:
        """Whether all names can be keywords of a `Meter`."""
        names = [each.name for each in self.members]
        free = all(each.isidentifier() and not keyword.iskeyword(each) and each not in _OF_METER for each in names)
        return free and len(set(names)) == len(names)

    def as_keywords(self) -> list[Edit]:
        """Make its metrics the keyword arguments of a meter."""
        edits = [*self.tidied]
        for each in self.members:
            start, end = each.key or (self.source.span(each.call)[0],) * 2
            edits.append(Edit(start, end, f"{each.name}="))
        if self.brackets is not None:
            edits += [Edit(at, at + 1, "") for at in self.brackets]
            edits += self._commas()
        return edits

    def _commas(self) -> list[Edit]:
        """Of two commas in a row, one before and one behind the bracket, the second is taken away."""
        parts = self.source.arguments(self.call)[2]
        return [Edit(each.comma, each.comma + 1, "") for each in parts if each.comma is not None]

    def as_mapping(self) -> list[Edit]:
        """Make its metrics a dictionary."""
        edits = [*self.tidied]
        for each in self.members:
            if each.key is None:
                start = self.source.span(each.call)[0]
                edits.append(Edit(start, start, f'"{each.name}": '))
        if self.brackets is not None:
            edits += [Edit(at, at + 1, text) for at, text in zip(self.brackets, "{}", strict=True)]
        else:
            first, last = self.source.span(self.members[0].call)[0], self.source.span(self.members[-1].call)[1]
            edits = [Edit(first, first, "{"), *edits, Edit(last, last, "}")]
        return edits


IN_VARIABLE = "its metrics are written out in a variable, and count in it"
"""Why a collection stays as it is, with nothing to do: the metrics in the variable are changed by themselves."""
OWN_METRICS = "it has metrics of your own, which count as before"
"""Why a collection stays as it is, with nothing to do."""


def collection_of(source: SourceText, call: ast.Call, names: Names) -> Collection | str:
    """Read a call of `MetricCollection`; or say what is not written out in it."""
    options = {str(each.arg): each for each in call.keywords}
    if set(options) - {"metrics", "prefix", "postfix", "compute_groups"} or not (call.args or "metrics" in options):
        return "its arguments are not known"
    arguments = [*call.args, *([options["metrics"].value] if "metrics" in options else [])]
    members, brackets = _members(source, arguments)
    staying = [each.call.func for each in members if _stays(each.call.func, names)]
    if staying:
        of_reader = all(names.mention(each) is None for each in staying)
        return OWN_METRICS if of_reader else "it has metrics that stay as they are"
    if not members:
        return IN_VARIABLE if _written_before(source, arguments, names) else "its metrics are not written out"
    plain = not {"prefix", "postfix"} & set(options)
    return Collection(source, call, members, brackets, plain, _tidied(source, call, options))


def _tidied(source: SourceText, call: ast.Call, options: dict[str, ast.keyword]) -> list[Edit]:
    """Take away `compute_groups=` and the name of `metrics=`."""
    parts = source.arguments(call)[2]
    starts = [each.start for each in parts]
    dropped = {starts.index(source.span(each)[0]) for name, each in options.items() if name == "compute_groups"}
    edits = source.without(parts, dropped)
    if "metrics" in options:
        edits.append(Edit(source.span(options["metrics"])[0], source.span(options["metrics"].value)[0], ""))
    return edits


def _members(source: SourceText, arguments: list[ast.expr]) -> tuple[list[Member], tuple[int, int] | None]:
    """The metrics that are written out; none where one is not."""
    first = arguments[0]
    if isinstance(first, ast.Dict) and len(arguments) == 1:
        members = []
        for key, value in zip(first.keys, first.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(value, ast.Call)):
                return [], None
            members.append(Member(value, key.value, (source.span(key)[0], source.span(value)[0])))
        return members, _ends(source, first)
    inner = first.elts if isinstance(first, ast.List | ast.Tuple) and len(arguments) == 1 else arguments
    if not all(isinstance(each, ast.Call) for each in inner):
        return [], None
    members = [Member(each) for each in inner if isinstance(each, ast.Call)]
    bracketed = isinstance(first, ast.List) or (isinstance(first, ast.Tuple) and source.of(first).startswith("("))
    return members, _ends(source, first) if bracketed else None


def _written_before(source: SourceText, arguments: list[ast.expr], names: Names) -> bool:
    """Whether the metrics are those of a list or dictionary that a variable has got in one place of the file."""
    if len(arguments) != 1 or not isinstance(arguments[0], ast.Name):
        return False
    name, given = arguments[0].id, []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            given += [node.value for each in targets if isinstance(each, ast.Name) and each.id == name]
    if len(given) != 1 or not isinstance(given[0], ast.List | ast.Tuple | ast.Dict):
        return False
    values = given[0].values if isinstance(given[0], ast.Dict) else given[0].elts
    calls = [each for each in values if isinstance(each, ast.Call)]
    return 0 < len(calls) == len(values) and not any(_stays(each.func, names) for each in calls)


def _ends(source: SourceText, node: ast.expr) -> tuple[int, int]:
    start, end = source.span(node)
    return start, end - 1


def _stays(function: ast.expr, names: Names) -> bool:
    """Whether nothing of assay stands for what is called."""
    mention = names.mention(function)
    return mention is None or names.doubtful(function) or mention[1] not in mention[0].entries
