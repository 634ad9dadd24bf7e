"""What reading an exported program would run: files are read as data, unless they are trusted.

``torch.export.load`` was not made for files of strangers. It unpickles weights that are stored so, and falls back to
unrestricted unpickling (``torch/export/pt2_archive/_package.py``, ``torch/_export/serde/serialize.py``); it looks up
any function below ``torch`` by name; expressions and guards are evaluated as Python (``sympy.sympify``;
``torch/export/_unlift.py``), and names become Python source (``torch/fx/graph.py``). Each of these is let through only
in the form in which `torch.export.save` writes it. It is a check, and no sandbox.
"""

from __future__ import annotations

import ast
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_COMPILED = "data/aotinductor/"
_OPAQUE = "opaque_obj_"  # OPAQUE_OBJ_FILENAME_PREFIX of torch/export/pt2_archive/constants.py
_OPERATOR = re.compile(r"torch\.ops\.(?!load_library|loaded_libraries)\w+\.\w+(\.\w+)?")
_NUMBER = re.compile(r"torch\.sym_\w+|math\.\w+")
_ARITHMETIC = re.compile(
    r"_operator\.(add|sub|mul|truediv|floordiv|mod|pow|neg|pos|abs|eq|ne|lt|le|gt|ge|and_|or_|not_|xor|invert|getitem"
    r"|lshift|rshift)"
)
_FUNCTIONS = re.compile(
    r"FloorDiv|ModularIndexing|Where|PythonMod|Mod|CleanDiv|CeilToInt|FloorToInt|CeilDiv|LShift|RShift|PowByNatural"
    r"|FloatPow|FloatTrueDiv|IntTrueDiv|IsNonOverlappingAndDenseIndicator|TruncToFloat|TruncToInt|RoundToInt"
    r"|RoundDecimal|ToFloat|Identity|Max|Min|Abs|And|Or|Not|Eq|Ne|Lt|Le|Gt|Ge|Piecewise|ceiling|floor|sqrt"
    r"|Symbol|Integer|Float|Rational|Add|Mul|Pow|(Une|E)quality|(Strict)?(Less|Greater)Than"
)
_TEXT = re.compile(r"\w*|[\d.e+-]*")  # sympy evaluates what it is given as text
_METHODS = frozenset(("size", "stride", "dim", "storage_offset", "item", "numel"))
_PLAIN = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Tuple, ast.Load, ast.keyword)
_SIGNS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
_NAMES = ("name", "arg_name", "parameter_name", "buffer_name", "tensor_constant_name", "fqn")


def why_unsafe(path: Path) -> str:
    """What in the archive of an exported program is not data, as a part of a sentence; empty where nothing is.

    Args:
        path: a zip file that `torch.export.save` wrote, or that looks like one.

    Returns:
        What was found first, or nothing.
    """
    with zipfile.ZipFile(path) as archive:
        for record in archive.namelist():
            if _COMPILED in record:
                return "compiled code"
            if _OPAQUE in record:
                return f"the pickled object {record}"
            if not record.endswith(".json"):
                continue
            for key, value in _entries(json.loads(archive.read(record))):
                if what := _judged(key, value):
                    return f"{what} in {record}"
    return ""


def _entries(tree: Any) -> Iterator[tuple[str, str]]:
    """All texts of a JSON tree, by the names under which they stand, without those that only say where code was."""
    for key, value in tree.items() if isinstance(tree, dict) else [("", each) for each in tree]:
        if key == "metadata" and _says_where(value):
            continue
        if key == "range_constraints" and isinstance(value, dict):
            yield from (("expr_str", symbol) for symbol in value)
        if isinstance(value, str):
            yield key, value
        elif key in _LISTS and isinstance(value, list):
            yield from ((_LISTS[key], str(each)) for each in value)
        elif isinstance(value, dict | list):
            yield from _entries(value)


_LISTS = {"guards_code": "guards_code", "forward_arg_names": "name"}


def _says_where(metadata: Any) -> bool:
    is_flat = isinstance(metadata, dict) and all(isinstance(each, str) for each in metadata.values())
    return is_flat and "expr_str" not in metadata


def _judged(key: str, text: str) -> str:
    if key == "target" and not (_OPERATOR.fullmatch(text) or _NUMBER.fullmatch(text) or _ARITHMETIC.fullmatch(text)):
        return f"a call of {text!r:.80}, which is no operator,"
    if key == "expr_str" and not _is_plain(text, guard=False):
        return f"the expression {text!r:.80}"
    if key == "guards_code" and not _is_plain(text, guard=True):
        return f"the guard {text!r:.80}"
    if key in _NAMES and not all(part.isidentifier() or part.isdigit() or not part for part in text.split(".")):
        return f"the name {text!r:.80}"
    if key == "path_name" and text.startswith(_OPAQUE):
        return f"the pickled object {text!r:.80}"
    if key in ("in_spec", "out_spec") and ("defaultdict" in text or "__enum__" in text):
        return "a module to be imported"
    return ""


def _is_plain(text: str, guard: bool) -> bool:
    """Whether an expression only computes with sizes."""
    try:
        return all(_is_plain_node(node, guard) for node in ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_plain_node(node: ast.AST, guard: bool) -> bool:
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, bytes) and bool(_TEXT.fullmatch(str(node.value)))
    if isinstance(node, ast.Name):
        return not node.id.startswith("__")
    if isinstance(node, ast.Call):
        called = node.func
        is_method = guard and isinstance(called, ast.Attribute) and called.attr in _METHODS
        return is_method or (isinstance(called, ast.Name) and bool(_FUNCTIONS.fullmatch(called.id)))
    if guard and isinstance(node, ast.Attribute):
        return node.attr in _METHODS or node.attr in ("shape", "ndim")
    if guard and isinstance(node, ast.Subscript):
        return True
    return isinstance(node, (*_PLAIN, *_SIGNS))
