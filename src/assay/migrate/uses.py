"""What becomes of a value in a file: whether it is only read, so that any number does, or computed with."""

from __future__ import annotations

import ast

from assay.migrate.names import Function, is_public
from assay.migrate.source_text import SourceText

_READERS = ("bool", "float", "format", "int", "print", "repr", "round", "str")
_LOGGERS = (
    *("add_scalar", "debug", "error", "format", "info", "log", "log_dict", "log_metric", "log_metrics", "set_postfix"),
    *("warning", "write"),
)
_READING_METHODS = ("cpu", "item", "numpy", "tolist")
_SAME_VALUE = ("clone", "detach", "double", "float", "max", "mean", "min", "squeeze", "sum")


def is_only_read(source: SourceText, value: ast.expr, seen: frozenset[tuple[ast.AST, str]] = frozenset()) -> bool:
    """Whether a value is only printed, logged, compared or made a number of Python.

    Then it may be of float64 on the CPU. Where code computes with it, stacks it or returns it, its dtype and its device
    may have to be those of the batch.
    """

    def is_read(node: ast.expr) -> bool:
        return is_only_read(source, node, seen)

    parent = source.parent[value]
    match parent:
        case ast.Expr() | ast.FormattedValue() | ast.Compare() | ast.Assert() | ast.If() | ast.While():
            return True
        case ast.keyword():
            call = source.parent[parent]
            return isinstance(call, ast.Call) and _reads(call)
        case ast.Call() if value is not parent.func:
            return _reads(parent)
        case ast.Attribute(attr=attr):
            call = source.parent[parent]
            if not (isinstance(call, ast.Call) and call.func is parent):
                return False
            if attr in ("items", "values"):
                return _are_items_read(source, call, attr, seen)
            return attr in _READING_METHODS or (attr in _SAME_VALUE and is_read(call))
        case ast.Dict() | ast.List() | ast.Tuple() | ast.Set() | ast.IfExp() | ast.DictComp() | ast.ListComp():
            return is_read(parent)
        case ast.Subscript() if value is parent.value:
            return is_read(parent)
        case ast.BinOp(left=ast.Constant(value=str())):
            return True  # "%.3f" % value
        case ast.BinOp(left=left, right=right):
            other = right if value is left else left
            return isinstance(other, ast.Constant) and is_read(parent)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return _is_name_read(source, parent, name, seen)
    return False


def _reads(call: ast.Call) -> bool:
    """Whether a call reads its arguments: those that print and log, but for those that add up over processes."""
    match call.func:
        case ast.Name(id=name):
            return name in _READERS
        case ast.Attribute(attr=attr):
            options = {each.arg: each.value for each in call.keywords}
            synchronized = options.get("sync_dist")
            alone = synchronized is None or (isinstance(synchronized, ast.Constant) and not synchronized.value)
            return attr in _LOGGERS and alone and None not in options
    return False


def _is_name_read(source: SourceText, node: ast.AST, name: str, seen: frozenset[tuple[ast.AST, str]]) -> bool:
    """Whether all uses of a name around a node only read it."""
    scope = node
    while not isinstance(scope, Function | ast.Module | ast.ClassDef):
        scope = source.parent[scope]
    if (scope, name) in seen:
        return True
    if isinstance(scope, ast.ClassDef) or is_public(scope, name):
        return False
    inside = list(ast.walk(scope))
    if any(isinstance(each, ast.Global | ast.Nonlocal) and name in each.names for each in inside):
        return False
    uses = [
        each for each in inside if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
    return all(is_only_read(source, each, seen | {(scope, name)}) for each in uses)


def _are_items_read(source: SourceText, call: ast.Call, attr: str, seen: frozenset[tuple[ast.AST, str]]) -> bool:
    """Whether a loop over the values of a dictionary only reads them."""
    match attr, source.parent[call]:
        case "values", (ast.For(target=ast.Name(id=name)) | ast.comprehension(target=ast.Name(id=name))) as loop:
            return _is_name_read(source, loop, name, seen)
        case "items", (
            ast.For(target=ast.Tuple(elts=[_, ast.Name(id=name)]))
            | ast.comprehension(target=ast.Tuple(elts=[_, ast.Name(id=name)]))
        ) as loop:
            return _is_name_read(source, loop, name, seen)
    return False
