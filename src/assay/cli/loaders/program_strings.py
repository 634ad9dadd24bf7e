"""What the strings of an exported program may be: names, operators, and arithmetic on sizes.

torch makes code of many of them. It looks up targets below ``torch``, evaluates expressions (``sympy.sympify``), builds
the source of guards (``torch/export/_unlift.py``) and of the module (``torch/fx/graph.py``) from names, and imports
modules that tree specifications name (``torch/utils/_pytree.py``). So each string has one of the forms below, which are
those that ``torch.export.save`` writes, and expressions are written anew from what was parsed.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import torch
from torch.utils import _pytree

from assay.errors import StateError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OPTIONAL_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)?")
DOTTED = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
ATTRIBUTE = re.compile(r"[\w. /:@+-]*", re.ASCII)  # of a module, whose children may have any name; torch quotes it
PLAIN = re.compile(r"[\w ,.:;/>+*()\[\]=-]*", re.ASCII)  # a string as input, which torch puts between quotes
PRINTED = re.compile(r"[ -~]*")  # an argument of an operator, which torch writes into code by its repr
PAYLOAD = re.compile(r"(weight|tensor)_\d{1,9}")
SYMBOLS = re.compile(r"(?!(u|zuf)\d{5})[\w*+/() ,.-]{1,200}", re.ASCII)  # torch counts up to the number after u

_OPERATOR = re.compile(r"torch\.ops\.(aten|prims|quantized_decomposed|torchvision)\.([A-Za-z_]\w*)\.(\w+)", re.ASCII)
_HIGHER_ORDER = re.compile(
    r"torch\.ops\.higher_order\.(cond|while_loop|map_impl|scan|associative_scan|out_dtype|flex_attention|invoke_subgraph"
    r"|wrap_with_set_grad_enabled|wrap_with_autocast)"
)
_ON_SIZES = re.compile(
    r"_operator\.(eq|ne|le|ge|lt|gt|neg|pos|mul|add|sub|floordiv|mod|pow|truediv|and_|or_|lshift|rshift|getitem)"
    r"|torch\.sym_(not|int|float|ite|max|min|sqrt)|math\.trunc"
)
_STRINGS = re.compile(  # what operators take strings for; a filename (aten::from_file) is not among them
    r"UPLO|approximate|assert_msg|driver|equation|indexing|interpolation|mode|norm|ord|p|pad_mode|padding|padding_side"
    r"|reduce|rounding_mode|side"
)
_FUNCTIONS = re.compile(
    r"FloorDiv|ModularIndexing|Where|PythonMod|Mod|CleanDiv|CeilToInt|FloorToInt|CeilDiv|LShift|RShift|PowByNatural"
    r"|FloatPow|FloatTrueDiv|IntTrueDiv|IsNonOverlappingAndDenseIndicator|TruncToFloat|TruncToInt|RoundToInt"
    r"|RoundDecimal|ToFloat|Identity|Max|Min|Abs|And|Or|Not|Eq|Ne|Lt|Le|Gt|Ge|Piecewise|ExprCondPair|ceiling|floor|sqrt"
    r"|Symbol|Integer|Float|Rational|Add|Mul|Pow|(Une|E)quality|(Strict)?(Less|Greater)Than"
)
_POWERS = ("Pow", "PowByNatural", "FloatPow", "LShift")
_CONSTANTS = ("true", "false", "oo", "int_oo", "nan")
_METHODS = frozenset(("size", "stride", "dim", "storage_offset", "item", "numel"))
_IN_GUARDS = frozenset(("max", "min", "abs", "int", "float", "round", "cast_symbool_to_symint_guardless"))
_ARITHMETIC = (
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
_LONGEST = 20_000
_TREES = frozenset(("builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict", "collections.deque"))


class UnsafeError(StateError):
    """Something in a file that is not plain data; the message is a part of a sentence."""


def target(text: str) -> str:
    """An operator that computes with tensors, or arithmetic on sizes.

    Raises:
        UnsafeError: it is neither, or an operator that takes other strings than options, such as the name of a file.
    """
    if _HIGHER_ORDER.fullmatch(text) or _ON_SIZES.fullmatch(text):
        return text
    match = _OPERATOR.fullmatch(text)
    operator: Any = torch.ops
    for part in match.groups() if match else ():
        operator = getattr(operator, part, None)
    if not isinstance(operator, torch._ops.OpOverload):
        raise UnsafeError(f"a call of {text!r:.80}, which is no operator of torch")
    for argument in operator._schema.arguments:
        if "str" in str(argument.type) and not _STRINGS.fullmatch(argument.name):
            raise UnsafeError(f"a call of {text!r:.80}, which takes a {argument.name}")
    return text


def expression(text: str) -> str:
    """Arithmetic on sizes as sympy's `srepr` writes it: calls of known functions on numbers and symbols.

    Raises:
        UnsafeError: it is anything else.
    """
    tree = _parsed(text, "expression")
    if not _is_term(tree):
        raise UnsafeError(f"the expression {text!r:.80}")
    return ast.unparse(tree)


def guard(text: str) -> str:
    """A condition on sizes of inputs, such as ``L['x'].size()[0] <= 8``.

    Raises:
        UnsafeError: it is anything else.
    """
    tree = _parsed(text, "guard")
    if not _is_condition(tree):
        raise UnsafeError(f"the guard {text!r:.80}")
    return ast.unparse(tree)


def inputs_spec(text: str) -> str:
    """How arguments are nested: a tuple of positions, and a dictionary of names that become those of a function.

    Raises:
        UnsafeError: something in it would be imported or become code.
    """
    tree = _spec(text)
    nested = tree.get("children_spec", ())
    context = nested[1].get("context") if len(nested) == 2 else None
    names = json.loads(context) if isinstance(context, str) else None
    if not isinstance(names, list) or not all(isinstance(name, str) and NAME.fullmatch(name) for name in names):
        raise UnsafeError(f"the specification of inputs {text!r:.80}")
    return json.dumps([1, tree])


def outputs_spec(text: str) -> str:
    """How outputs are nested.

    Raises:
        UnsafeError: something in it would be imported.
    """
    return json.dumps([1, _spec(text)])


def _parsed(text: str, what: str) -> ast.expr:
    try:
        if len(text) > _LONGEST:
            raise ValueError("too long")
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnsafeError(f"the {what} {text!r:.80}") from error


def _is_term(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub | ast.UAdd) and _is_number(node.operand)
    if isinstance(node, ast.Tuple):
        return all(_is_term(each) for each in node.elts)
    if not isinstance(node, ast.Call):
        return _is_number(node) or (isinstance(node, ast.Name) and node.id in _CONSTANTS)
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    if not _FUNCTIONS.fullmatch(called) or not all(isinstance(each.value, ast.Constant) for each in node.keywords):
        return False
    if called in ("Symbol", "Float"):  # the only ones that are given strings
        return len(node.args) == 1 and (
            _is_string(node.args[0], r"\w{1,80}|-?[\d.e+-]{1,80}") or _is_term(node.args[0])
        )
    if called in _POWERS and not (len(node.args) == 2 and _is_small(node.args[1])):
        return False
    return all(_is_term(each) for each in node.args)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float) and abs(node.value) < 2**64


def _is_small(node: ast.AST) -> bool:
    """Whether an exponent is a number that a power can be computed for."""
    numbers = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return _is_term(node) and all(isinstance(each, int | float) and abs(each) <= 64 for each in numbers)


def _is_string(node: ast.AST, form: str) -> bool:
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_string and bool(re.fullmatch(form, node.value, re.ASCII))  # type: ignore[attr-defined]


def _is_condition(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.LShift):
        return _is_condition(node.left) and _is_number(node.right) and _is_small(node.right)
    if isinstance(node, _ARITHMETIC):
        return all(_is_condition(each) for each in ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        return not node.keywords and _is_called(node.func) and all(_is_condition(each) for each in node.args)
    return _is_number(node) or _is_source(node)


def _is_called(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "math":
        return node.attr in ("ceil", "floor", "sqrt", "trunc")
    if isinstance(node, ast.Attribute):
        return node.attr in _METHODS and _is_source(node.value)
    return isinstance(node, ast.Name) and (node.id in _IN_GUARDS or bool(_FUNCTIONS.fullmatch(node.id)))


def _is_source(node: ast.AST) -> bool:
    """``L`` with subscripts, or the shape of such."""
    if isinstance(node, ast.Subscript):
        index = node.slice
        is_known = _is_number(index) or _is_string(index, ATTRIBUTE.pattern)
        return is_known and (_is_source(node.value) or (isinstance(node.value, ast.Call) and _is_condition(node.value)))
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "ndim") and _is_source(node.value)
    return isinstance(node, ast.Name) and node.id == "L"


def _spec(text: str) -> dict[str, Any]:
    try:
        protocol, tree = json.loads(text)
        if protocol != 1:
            raise ValueError(protocol)
        return _spec_node(tree)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnsafeError(f"the specification {text!r:.80}") from error


def _spec_node(node: dict[str, Any]) -> dict[str, Any]:
    kind, context = node["type"], node["context"]
    if kind is None and context is None and node["children_spec"] == []:
        return {"type": None, "context": None, "children_spec": []}
    if kind == "collections.namedtuple" and isinstance(context, str) and DOTTED.fullmatch(context):
        pass  # torch looks it up among the types that are registered
    elif _is_tree(kind):
        context = json.dumps(_context(json.loads(context)))
    else:
        raise UnsafeError(f"the type {kind!r:.80}, which is not registered or would import a module,")
    return {"type": kind, "context": context, "children_spec": [_spec_node(each) for each in node["children_spec"]]}


def _is_tree(kind: Any) -> bool:
    """Whether a container is known, and reads its context as nothing but JSON."""
    if not isinstance(kind, str) or kind in _TREES:
        return isinstance(kind, str)
    kind_of_tree = _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(kind)
    return kind_of_tree is not None and _pytree.SUPPORTED_SERIALIZED_TYPES[kind_of_tree].from_dumpable_context is None


def _context(value: Any) -> Any:
    """Keys of a container; no mapping, as torch imports the module that one with ``__enum__`` names."""
    if isinstance(value, list):
        return [_context(each) for each in value]
    if isinstance(value, dict) or (isinstance(value, str) and not ATTRIBUTE.fullmatch(value)):
        raise UnsafeError(f"the key {value!r:.80}")
    return value
