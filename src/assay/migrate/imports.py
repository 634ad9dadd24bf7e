"""The imports of a file: which of the libraries' are no longer needed, and those of assay in their place."""

from __future__ import annotations

import ast
import re

from assay.migrate.names import Import, Names
from assay.migrate.source_text import Edit, SourceText

_WIDTH = 88
_HOMES = {"Meter": "assay"}
_AROUND = "assay.integrations"
_METRICS = "assay.metrics"


class Imports:
    """What is imported after the change; ``taken`` are the names of the libraries that stay."""

    def __init__(self, source: SourceText, names: Names, taken: frozenset[str] = frozenset()) -> None:
        self.source, self.names, self.taken = source, names, taken
        self._new: dict[str, dict[str, str]] = {}

    def metric(self, name: str) -> str:
        """The name under which a metric of assay is written."""
        return self._name_in(_METRICS, name)

    def around(self, name: str) -> str:
        """The name under which `Meter` or an adapter is written."""
        return self._name_in(_HOMES.get(name, _AROUND), name)

    def _name_in(self, home: str, name: str) -> str:
        if self.names.own.get(name) in (f"{home}.{name}", f"assay.{name}") and not self.names.bound[name]:
            return name
        free = name not in self.taken and not self.names.bound[name] and name not in self.names.own
        written = name if free else f"Assay{name}" if name[0].isupper() else f"assay_{name}"
        self._new.setdefault(home, {})[name] = written
        return written

    def staying(self, gone: set[ast.AST]) -> frozenset[str]:
        """The names of the libraries that are still used after calls of these are gone."""
        roots = {root for each in gone if (root := _root(each)) is not None}
        uses = [node for node in ast.walk(self.source.tree) if isinstance(node, ast.Name)]
        used = {node.id for node in uses}
        remaining = {node.id for node in uses if node not in roots}
        fixed = {name for node, _, name in self.names.imports if not self._alone(node)}
        shown = {each for each in self.names.imported if _is_shown(self.source.tree, each)}
        return frozenset(name for name in self.names.imported if name not in used or name in remaining | fixed | shown)

    def edits(self, gone: set[ast.AST]) -> list[Edit]:
        """Take away imports that are no longer used, and write those of assay."""
        if not self._new:
            return []
        staying = self.staying(gone)
        lost: dict[Import, set[int]] = {}
        for node, index, name in self.names.imports:
            if name not in staying and self._alone(node):
                lost.setdefault(node, set()).add(index)
        ordered = sorted(lost, key=lambda node: node.lineno)
        newline = "\r\n" if "\r\n" in self.source.text else "\n"
        text = newline.join(self._lines(newline))
        if not ordered:
            at = self._front()
            return [Edit(at, at, text + newline)]
        edits = [edit for node in ordered[1:] for edit in self._taken_away(node, lost[node])]
        first, (start, end) = ordered[0], self.source.span(ordered[0])
        if len(lost[first]) == len(first.names):
            return [Edit(start, end, text), *edits]
        return [Edit(start, start, text + newline), *self._taken_away(first, lost[first]), *edits]

    def _alone(self, node: Import) -> bool:
        """Whether an import is a statement of the module with a line of its own."""
        if not isinstance(self.source.parent[node], ast.Module):
            return False
        start, end = self.source.span(node)
        line = self.source.text.rfind("\n", 0, start) + 1
        return start == line and re.match(r"[ \t]*(#|\r?\n|\Z)", self.source.text[end:]) is not None

    def _taken_away(self, node: Import, lost: set[int]) -> list[Edit]:
        if len(lost) < len(node.names):
            return self.source.without(self.source.names_of(node), lost)
        start, end = self.source.span(node)
        rest = re.compile(r"[ \t]*(\r?\n|\Z)").match(self.source.text, end)
        return [Edit(start, rest.end() if rest else end, "")]

    def _front(self) -> int:
        """Where the first statement begins that may have an import before it."""
        for index, node in enumerate(self.source.tree.body):
            text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and index == 0
            if not text and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                decorators = getattr(node, "decorator_list", [])
                at = self.source.span(decorators[0] if decorators else node)[0]
                return self.source.text.rfind("\n", 0, at) + 1
        return len(self.source.text)

    def _lines(self, newline: str) -> list[str]:
        lines = []
        for home, names in sorted(self._new.items()):
            parts = [name if name == written else f"{name} as {written}" for name, written in sorted(names.items())]
            line = f"from {home} import {', '.join(parts)}"
            if len(line) > _WIDTH:
                line = f"from {home} import ({newline}" + "".join(f"    {part},{newline}" for part in parts) + ")"
            lines.append(line)
        return lines


def _root(node: ast.AST) -> ast.Name | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _is_shown(tree: ast.Module, name: str) -> bool:
    """Whether a module names it in a list of strings, as in `__all__`."""
    sequences = [node for node in ast.walk(tree) if isinstance(node, ast.List | ast.Tuple | ast.Set)]
    return any(isinstance(each, ast.Constant) and each.value == name for node in sequences for each in node.elts)
