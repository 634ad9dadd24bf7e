"""The rules of the house that a machine can hold: names, imports, arrows, and who may ask for the device."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import assay

SRC = Path(assay.__file__).parent
MODULES = sorted(SRC.rglob("*.py"))
OPTIONAL = (
    "rich",
    "typer",
    "matplotlib",
    "jinja2",
    "scipy",
    "sklearn",
    "pandas",
    "torchmetrics",
    "ignite",
    "torcheval",
    "torchao",
    "transformers",
    "tokenizers",
    "accelerate",
    "lightning",
    "pyarrow",
    "PIL",
)

# From the roof down. A package imports from those below it, and from itself.
STOREYS = (
    ("__main__",),
    ("cli",),
    ("integrations", "migrate", "quantize"),
    ("language",),
    ("evaluation",),
    ("audit", "report", "wrappers"),
    ("meter",),
    ("metrics",),
    ("tally", "decide"),
    ("native",),
    ("pretend",),
    ("devices",),
    ("stats",),
    ("errors", "_atomic", "_cache", "_lazy", "_sealed"),
)
NEIGHBOURS = {("tally", "decide")}  # the exception on one storey: tallies may take decisions
# Inside a function only: a metric that is called makes a meter of its own; a folder may hold a quantized model.
LATE = {("metrics", "meter"), ("language", "quantize")}
FRONT_DOOR = "__init__"


def storey(room: str) -> int:
    known = {name: index for index, rooms in enumerate(STOREYS) for name in rooms}
    assert room in known, f"{room} is no room: inside src, import a name from its room and not from the front door"
    return known[room]


def room_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return parts[0]


def rooms_imported(tree: ast.AST) -> set[str]:
    """The packages of assay that a module imports anywhere below a node, type checking included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"assay.{name.name}" for name in node.names} if node.module == "assay" else {str(node.module)}
    return {name.split(".")[1] for name in found if name.startswith("assay.")} - {"__version__"}


def imported_late(tree: ast.AST) -> set[str]:
    """The packages of assay that are imported inside functions, and nowhere else."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    late = set().union(*(rooms_imported(function) for function in functions))
    for function in functions:
        function.body = [ast.Pass()]
    return late - rooms_imported(tree)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_front_door_is_short_sorted_and_exact():
    assert assay.__all__ == sorted(assay.__all__)
    assert len(assay.__all__) <= 20
    for name in assay.__all__:
        assert getattr(assay, name) is not None
    assert set(assay.__all__) <= set(dir(assay))


def test_public_names_are_the_listed_names():
    code = (
        "import types, assay; "
        "[getattr(assay, name) for name in assay.__all__]; "
        "print(sorted(n for n, v in vars(assay).items() if not n.startswith('_') "
        "and not isinstance(v, types.ModuleType) and n not in ('annotations', 'TYPE_CHECKING', 'attach')))"
    )
    assert ast.literal_eval(run(code)) == assay.__all__


def test_importing_assay_brings_nothing_optional():
    code = f"import sys; from assay import *; print([name for name in {OPTIONAL} if name in sys.modules])"
    assert run(code) == "[]"


@pytest.mark.parametrize(
    "argument",
    [
        "--help",
        "--version",
        "devices --help",
        "demo --help",
        "evaluate --help",
        "compare --help",
        "gate --help",
        "migrate --help",
        "import --help",
        "generate --help",
        "quantize --help",
    ],
)
def test_help_imports_no_torch(argument):
    code = (
        "import sys; sys.argv = ['assay', *'" + argument + "'.split()]\n"
        "from assay.cli import main\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        "print('\\n', 'torch' in sys.modules)"
    )
    assert run(code).split()[-1] == "False"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_arrows_run_downwards(path):
    room = room_of(path)
    if room == FRONT_DOOR:
        return
    tree = ast.parse(path.read_text("utf-8"))
    others = rooms_imported(tree) - {room}
    late = imported_late(tree)
    for other in others:
        allowed = (room, other) in NEIGHBOURS or ((room, other) in LATE and other in late)
        assert allowed or storey(other) > storey(room), f"{room} must not import {other}"


def test_the_scan_tells_a_late_import_from_one_at_the_top():
    tree = ast.parse("from assay.a import x\ndef f():\n  from assay.a import y\n  from assay import b")
    assert rooms_imported(tree) == {"a", "b"}
    assert imported_late(tree) == {"b"}


def asks_for_a_device(node: ast.AST) -> bool:
    """``x.type == …`` and ``x.type in …``, ``.is_cuda`` and its like, ``.cuda()``."""
    if isinstance(node, ast.Compare):
        return any(isinstance(side, ast.Attribute) and side.attr == "type" for side in [node.left, *node.comparators])
    if isinstance(node, ast.Attribute):
        return node.attr in ("is_cuda", "is_mps", "is_xpu", "is_cpu")
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("cuda", "mps")


@pytest.mark.parametrize(
    "source", ["x.device.type == 'mps'", "'cuda' != d.type", "d.type in ('a',)", "x.is_cuda", "x.cuda()"]
)
def test_the_scan_finds_what_it_looks_for(source):
    assert any(asks_for_a_device(node) for node in ast.walk(ast.parse(source)))


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if room_of(path) not in ("devices", "pretend")],
    ids=lambda path: str(path.relative_to(SRC)),
)
def test_only_devices_asks_which_device_it_is(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        assert not asks_for_a_device(node), f"{path.relative_to(SRC)}:{getattr(node, 'lineno', '?')}"


def extras(tree: ast.AST) -> set[str]:
    """The extras that errors tell users to install."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = [each.value for call in calls for each in call.keywords if each.arg == "extra"]
    return {str(value.value) for value in given if isinstance(value, ast.Constant)}


def test_errors_name_extras_that_there_are():
    declared = tomllib.loads((SRC.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {extra: path.name for path in MODULES for extra in extras(ast.parse(path.read_text("utf-8")))}
    assert "hf" in named
    assert {extra: path for extra, path in named.items() if extra not in declared} == {}
    from assay.integrations import hosts

    assert set(hosts.PACKAGES) <= set(declared)


def test_every_package_has_types():
    assert (SRC / "py.typed").exists()


def test_no_file_is_longer_than_a_few_hundred_lines():
    assert {str(path): lines for path in MODULES if (lines := path.read_text("utf-8").count("\n")) > 600} == {}
