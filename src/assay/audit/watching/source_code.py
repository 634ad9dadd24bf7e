"""The source behind a finding: whose line it is, what stands there, and the expression that did it."""

from __future__ import annotations

import ast
import linecache
import os
import re
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from assay.pretend.events import Frame

ASSAY = str(Path(__file__).parents[2])
STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
SITES = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})
WAITING_CALLS = ("item", "tolist", "cpu", "numpy", "float", "int", "bool", "tensor", "as_tensor", "to", "cuda", "any")
BINARY = {"add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "div": ast.Div, "matmul": ast.MatMult, "pow": ast.Pow}
COMPARED = {"eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "gt": ast.Gt, "le": ast.LtE, "ge": ast.GtE}
LONGEST = 90  # characters of an expression in a finding


def where(stack: Iterable[Frame], roots: tuple[str, ...] = ()) -> Frame | None:
    """The line to report: the innermost one below ``roots``, else that of the user's own code, else a library's.

    Example:
        >>> stack = [Frame("/site/helpers/x.py", 1, "f"), Frame("/site/lib/metric.py", 7, "update")]
        >>> str(where(stack, ("/site/lib/",))), str(where(stack))
        ('/site/lib/metric.py:7', '/site/helpers/x.py:1')
    """
    frames = [frame for frame in stack if not _machinery(frame.file)]
    inside = [frame for frame in frames if frame.file.startswith(roots)] if roots else []
    others = [frame for frame in frames if not frame.file.startswith(ASSAY)]
    own = inside or [frame for frame in others if not is_library(frame.file)] or others
    return own[0] if own else None


def library_line(stack: Iterable[Frame], line: Frame) -> Frame | None:
    """The line of a library below which a line of the user's own code did something; none if that line did it itself.

    Example:
        >>> own, library = Frame("/me/train.py", 2, "main"), Frame(SITES[0] + "lib.py", 7, "f")
        >>> library_line([library, own], own) == library
        True
    """
    first = next((frame for frame in stack if not _machinery(frame.file)), None)
    return first if first is not None and first.file != line.file and is_library(first.file) else None


def is_library(file: str) -> bool:
    """Whether a file is installed, and not of the user's own tree."""
    return file.startswith(SITES)


def _machinery(file: str) -> bool:
    if file.startswith(("<", str(Path(ASSAY) / "audit"))):
        return True
    return file.startswith(STANDARD) and not file.startswith(SITES)


def line_of(frame: Frame) -> str:
    """The line of source as it stands, without its indentation; empty where the file cannot be read."""
    return linecache.getline(frame.file, frame.line).strip()


@cache
def tree_of(file: str) -> ast.Module | None:
    """A file's syntax tree, or ``None`` where it cannot be read or parsed."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


def statement(frame: Frame) -> ast.stmt | None:
    """The innermost statement that covers the line; none where several stand on it, side by side."""
    tree = tree_of(frame.file)
    inner: ast.stmt | None = None
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.stmt) and node.lineno <= frame.line <= (node.end_lineno or node.lineno):
            if inner is not None and node.lineno == inner.end_lineno and node.col_offset >= (inner.end_col_offset or 0):
                return None
            inner = node  # ast.walk goes from the outside in
    return inner


def head(node: ast.stmt) -> list[ast.AST]:
    """What a statement itself evaluates: of ``if``, ``for`` and ``with`` not the lines of their bodies."""
    if isinstance(node, ast.If | ast.While):
        return [node.test]
    if isinstance(node, ast.For):
        return [node.iter]
    if isinstance(node, ast.With):
        return [item.context_expr for item in node.items]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Try):
        return []
    return [node]


def expression(frame: Frame, operator: str, *, waits: bool = False) -> str:
    """The expression of a line that called an operator, or that ``waits`` for the device; empty where nothing fits."""
    node = statement(frame)
    if node is None:
        return ""
    inner = [each for part in head(node) for each in ast.walk(part) if isinstance(each, ast.expr)]
    for fits in _tests(operator, waits):
        for each in inner:
            if fits(each):
                return shorten(_text(each, frame.file))
    if isinstance(node, ast.If | ast.While | ast.Assert):
        return shorten(_text(node.test, frame.file))
    if isinstance(node, ast.For) and not operator:  # an error from what it takes its values of
        return shorten(_text(node.iter, frame.file))
    value = getattr(node, "value", None)
    whole = value if isinstance(value, ast.expr) else node
    return shorten(_text(whole, frame.file)) if head(node) == [node] else ""


def _tests(operator: str, waits: bool) -> Iterator[Callable[[ast.expr], bool]]:
    """What to look for in turn: the operator by its name, its symbol, a call that waits, a mask in brackets."""
    base = operator.partition("::")[2].partition(".")[0].strip("_").rstrip("0123456789") or operator
    last = base.rpartition("_")[2]
    if base and base not in ("to_copy", "local_scalar_dense", "copy", "index", "index_put"):
        yield lambda node: _called(node) in (base, base.rstrip("_"))
        yield lambda node: _called(node) == last
    if base in BINARY:
        yield lambda node: isinstance(node, ast.BinOp) and isinstance(node.op, BINARY[base])
    if base in COMPARED:
        yield lambda node: isinstance(node, ast.Compare) and isinstance(node.ops[0], COMPARED[base])
    if base in ("index", "index_put"):
        yield lambda node: isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice | ast.Constant)
    if waits or base in ("to_copy", "copy"):
        yield lambda node: _called(node) in WAITING_CALLS
    if base == "local_scalar_dense":
        yield lambda node: isinstance(node, ast.IfExp | ast.BoolOp)


def _called(node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _text(node: ast.AST, file: str) -> str:
    lines = "".join(linecache.getlines(file))
    return ast.get_source_segment(lines, node) or ast.unparse(node)


def naming(frame: Frame, device: str) -> list[Frame]:
    """The line of the same file that gives a name of this line a device by its kind; none if the line names it itself.

    ``x.to(device)`` leads to ``device = torch.device("cuda")``; where no name does, the first line that names the
    device is given (an option's default, a constant).
    """
    assignments, lines = _naming_statements(frame, device)
    return [Frame(frame.file, each.lineno, frame.function) for each in (assignments or lines)[:1]]


def named_by(frame: Frame, device: str) -> Frame | None:
    """The assignment in the same file that gives a name of this line a device by its kind, if there is one."""
    assignments, _ = _naming_statements(frame, device)
    return Frame(frame.file, assignments[0].lineno, "") if assignments else None


def _naming_statements(frame: Frame, device: str) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements of a file that name a device: those that assign to a name of this line, and all."""
    node, tree = statement(frame), tree_of(frame.file)
    if node is None or tree is None or any(names_device(part, device) for part in head(node)):
        return [], []
    names = {each.rpartition(".")[2] for part in head(node) for each in names_in(part)}
    statements = [each for each in ast.walk(tree) if isinstance(each, ast.stmt)]
    lines = [each for each in statements if any(names_device(part, device) for part in head(each))]
    return [each for each in lines if names.intersection(_targets(each))], lines


def names_index(frame: FrameType, kind: str) -> bool:
    """Whether the line that a frame is at says to which of several devices a tensor goes.

    It does by an index (``"cuda:0"``, ``torch.device("cuda", 0)``, ``.to(0)``, or a name with such a value) or by
    another tensor (``x.to(y)``, ``x.to(y.device)``). ``x.cuda()`` and ``x.to("cuda")`` do not: they mean the default.
    """
    node = statement(Frame(frame.f_code.co_filename, frame.f_lineno, ""))
    calls = [each for part in head(node) for each in ast.walk(part) if isinstance(each, ast.Call)] if node else []
    return any(_says_index(call, frame, kind) for call in calls)


def _says_index(call: ast.Call, frame: FrameType, kind: str) -> bool:
    moves = _called(call) in ("to", kind, "to_device", "device", "gather", "scatter")
    for place, argument in enumerate([*call.args, *(each.value for each in call.keywords)]):
        if isinstance(argument, ast.Attribute) and argument.attr == "device" and moves:
            return True
        value = argument.value if isinstance(argument, ast.Constant) else _value_of(argument, frame)
        if re.fullmatch(rf"{kind}:\d+", str(value)):
            return True
        if moves and (type(value).__name__ in ("Tensor", "Parameter") or (_is_index(value) and place < 2)):
            return True
    return False


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _value_of(node: ast.expr, frame: FrameType) -> Any:
    names = names_in(node)
    return look_up(names[0], frame) if isinstance(node, ast.Name | ast.Attribute) and names else None


def look_up(name: str, frame: FrameType) -> Any:
    """The value of a dotted name in a frame, without running a property."""
    first, *rest = name.split(".")
    value = frame.f_locals.get(first, frame.f_globals.get(first))
    for part in rest:
        try:
            attributes = vars(value)
        except TypeError:
            return None
        value = attributes.get(part, {**attributes.get("_buffers", {}), **attributes.get("_parameters", {})}.get(part))
    return value


def _targets(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {ast.unparse(target).rpartition(".")[2] for target in targets if target is not None}


def names_device(node: ast.AST, device: str) -> ast.expr | None:
    """The innermost call or name in a piece of code that says a kind of device: ``x.cuda()``, ``"cuda:0"``.

    Example:
        >>> ast.unparse(names_device(ast.parse("x = f(y.to('cuda:0'))"), "cuda"))
        "y.to('cuda:0')"
    """
    innermost: ast.expr | None = None
    for each in ast.walk(node):  # from the outside in
        if isinstance(each, ast.Call):
            own = [each.func, *each.args, *(keyword.value for keyword in each.keywords)]
            if _called(each) == device or any(_says(part, device) for part in own):
                innermost = each
        elif innermost is None and isinstance(each, ast.expr) and _says(each, device):
            innermost = each
    return innermost


def _says(node: ast.AST, device: str) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.partition(":")[0] == device
    return isinstance(node, ast.Attribute) and ast.unparse(node).startswith(f"torch.{device}.")


def chosen_by(frame: Frame, device: str) -> Frame | None:
    """The line of the ``if`` that asks for this kind of device and so decides whether a line runs, if there is one."""
    tree = tree_of(frame.file)
    asks = (f".is_{device}", f"{device}.is_available(", f"== '{device}'")
    question: Frame | None = None
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, ast.If | ast.IfExp) or not _decides(node, frame.line, tree):
            continue
        if any(ask in ast.unparse(node.test) for ask in asks):
            question = Frame(frame.file, node.test.lineno, frame.function)
    return question


def _decides(node: ast.If | ast.IfExp, line: int, tree: ast.AST | None) -> bool:
    """Whether a line stands in an ``if``, or behind one, in the same function, whose body leaves it."""
    if node.lineno <= line <= (node.end_lineno or 0):
        return True
    leaves = isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return | ast.Raise)
    blocks = (each.body for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)) if leaves and tree else ()
    return any(node in block and node.lineno < line <= (block[-1].end_lineno or 0) for block in blocks)


def device_expression(frame: Frame, device: str) -> str:
    """The expression of a line that names a kind of device; ``""`` where none does."""
    node = statement(frame)
    named = next((named for part in head(node) if (named := names_device(part, device))), None) if node else None
    return shorten(_text(named, frame.file)) if named is not None else ""


def shorten(text: str) -> str:
    """One line of at most :data:`LONGEST` characters.

    Example:
        >>> shorten("a +\\n    b")
        'a + b'
    """
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def names_in(node: ast.AST) -> list[str]:
    """The plain names and dotted names that a piece of code reads: ``preds``, ``self.total``; each once.

    Example:
        >>> names_in(ast.parse("self.total + f(preds)[0]"))
        ['self.total', 'preds']
    """
    unique: dict[str, None] = {}
    inside = {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}  # of x.sum(), x is what is read
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)]
    for each in sorted(names, key=lambda name: (name.lineno, name.col_offset, -(name.end_col_offset or 0))):
        if id(each) not in inside and _dotted(each):
            unique[ast.unparse(each)] = None
            inside |= {id(part) for part in ast.walk(each)}
    return list(unique)


def _dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _dotted(node.value))


def state_line(classes: Iterable[type], name: str) -> Frame | None:
    """The line on which a class or a base of it makes a state: ``add_state("name", …)`` or ``self.name = …``."""
    classes = tuple(classes)
    for makes in (_registers, _assigns):
        for cls in classes:
            node = class_node(cls)
            for each in ast.walk(node) if node else ():
                if makes(each, name):
                    return Frame(file_of(cls), each.lineno, cls.__qualname__)  # type: ignore[attr-defined]
    return None


def _registers(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or not _called(node).endswith(("add_state", "register_buffer")) or not node.args:
        return False
    return isinstance(node.args[0], ast.Constant) and node.args[0].value == name


def _assigns(node: ast.AST, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(ast.unparse(target) == f"self.{name}" for target in targets)


def method_line(classes: Iterable[type], *names: str) -> Frame | None:
    """The line on which the first class that defines one of these methods does so, else the class's own line."""
    classes = tuple(classes)
    for name in names:
        for cls in classes:
            node = class_node(cls)
            for each in node.body if node else ():
                if isinstance(each, ast.FunctionDef) and each.name == name:
                    return Frame(file_of(cls), each.lineno, f"{cls.__qualname__}.{name}")
    for cls in classes:
        node = class_node(cls)
        if node:
            return Frame(file_of(cls), node.lineno, cls.__qualname__)
    return None


def file_of(thing: type) -> str:
    """The file that defines a class, or ``""``."""
    import sys

    module = sys.modules.get(thing.__module__)
    return getattr(module, "__file__", "") or ""


def class_node(cls: type) -> ast.ClassDef | None:
    """The definition of a class in its file."""
    file = file_of(cls)
    tree = tree_of(file) if file and "torch/nn" not in file.replace("\\", "/") else None
    wanted = cls.__name__
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ClassDef) and node.name == wanted:
            return node
    return None
