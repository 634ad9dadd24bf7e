"""What names of a file stand for: those that it imports from the libraries, and where else they are bound."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field

from assay.migrate.source_text import SourceText
from assay.migrate.table import LIBRARIES, LibraryTable, library

Import = ast.Import | ast.ImportFrom
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Names:
    """The names of a file."""

    imported: dict[str, str] = field(default_factory=dict)  # what a name stands for, as a dotted path
    # the statements, with the position of the name in each
    imports: list[tuple[Import, int, str]] = field(default_factory=list)
    bound: Counter[str] = field(default_factory=Counter)  # how often each name is bound, other than by such an import
    stars: list[ast.ImportFrom] = field(default_factory=list)  # imports of everything
    own: dict[str, str] = field(default_factory=dict)  # names that are imported from assay

    def path(self, node: ast.expr) -> str:
        """The dotted path that an expression stands for; empty where it is not of the libraries."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, "")
        if isinstance(node, ast.Attribute):
            before = self.path(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""

    def mention(self, node: ast.expr) -> tuple[LibraryTable, str] | None:
        """The library and the name in it that an expression stands for, where its table has it."""
        root, _, rest = self.path(node).partition(".")
        name = rest.rpartition(".")[2]
        return (library(root), name) if name and library(root).knows(name) else None

    def doubtful(self, node: ast.expr) -> bool:
        """Whether the name at the root of an expression is bound to something else, too."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and self.bound[node.id] > 0


def names_of(source: SourceText) -> Names:
    """Read the imports and bindings of a file."""
    names = Names()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for index, each in enumerate(node.names):
                inside = each.name.partition(".")[0]
                _bind(names, node, index, each.asname or inside, each.name if each.asname else inside)
        elif isinstance(node, ast.ImportFrom):
            for index, each in enumerate(node.names):
                path = "" if node.level else f"{node.module}.{each.name}"
                if each.name == "*" and path.partition(".")[0] in LIBRARIES:
                    names.stars.append(node)
                _bind(names, node, index, each.asname or each.name, path)
        else:
            names.bound.update(_binds(node))
    return names


def _bind(names: Names, node: Import, index: int, name: str, path: str) -> None:
    if path.startswith("assay.") and name not in names.imported:
        names.own[name] = path
        return
    if path.partition(".")[0] not in LIBRARIES or names.imported.get(name, path) != path:
        names.bound[name] += 1
        return
    names.imported[name] = path
    names.imports.append((node, index, name))


def _binds(node: ast.AST) -> list[str]:
    """The names that a node binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return []


@dataclass(frozen=True)
class Variable:
    """A variable that holds one metric, and is only updated, computed and reset."""

    name: str
    computes: tuple[ast.Call, ...]  # the calls of `compute`


def variable_of(source: SourceText, call: ast.Call, updates: int, keywords: frozenset[str]) -> Variable | None:
    """The variable that a call is assigned to, if all its uses are plain.

    An update takes so many tensors, by position or by these keywords.
    """
    assigned = source.parent[call]
    if not (isinstance(assigned, ast.Assign) and assigned.value is call and len(assigned.targets) == 1):
        return None
    target = assigned.targets[0]
    scope: ast.AST = assigned
    while not isinstance(scope, Function | ast.Module | ast.ClassDef):
        scope = source.parent[scope]
    if not isinstance(target, ast.Name) or isinstance(scope, ast.ClassDef):
        return None
    inside = list(ast.walk(scope))
    if sum(_binds(node).count(target.id) for node in inside) != 1 or is_public(scope, target.id):
        return None
    uses = [node for node in inside if isinstance(node, ast.Name) and node.id == target.id and node is not target]
    kinds = [_use(source, each, updates, keywords) for each in uses]
    if None in kinds or "update" not in [kind for kind, _ in filter(None, kinds)]:
        return None
    computes = tuple(use for kind, use in filter(None, kinds) if kind == "compute")
    if len({source.span(each) for each in computes}) < len(computes):  # f-strings, see Source.exact
        return None
    return Variable(target.id, computes)


def is_public(scope: ast.AST, name: str) -> bool:
    """Whether a module says that a name is for others."""
    return isinstance(scope, ast.Module) and any(
        isinstance(node, ast.Assign)
        and any(isinstance(each, ast.Name) and each.id == "__all__" for each in node.targets)
        and f"'{name}'" in ast.unparse(node.value)
        for node in scope.body
    )


def _use(source: SourceText, name: ast.Name, updates: int, keywords: frozenset[str]) -> tuple[str, ast.Call] | None:
    """What is done with a variable in one place; None where it is something else than these three."""
    attribute = source.parent[name]
    call = source.parent.get(attribute)
    if not (isinstance(attribute, ast.Attribute) and isinstance(call, ast.Call) and call.func is attribute):
        return None
    count = len(call.args) + len(call.keywords)
    if attribute.attr == "compute" and not count:
        return ("compute", call) if source.exact(call) else None
    if not isinstance(source.parent[call], ast.Expr):
        return None
    if attribute.attr == "reset" and not count:
        return "reset", call
    plain = not any(isinstance(each, ast.Starred) for each in call.args)
    named = all(each.arg in keywords for each in call.keywords)
    return ("update", call) if attribute.attr == "update" and count == updates and plain and named else None
