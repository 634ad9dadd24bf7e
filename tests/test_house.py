"""Rules that a program can check: names, imports between packages, and which packages ask for the device."""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import assay
from assay.cli.options import COMMANDS
from assay.devices.kinds import ACCELERATORS

SRC = Path(assay.__file__).parent
ROOT = Path(__file__).parents[1]
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
    "fsspec",
    "duckdb",
    "PIL",
)

# From top to bottom: a package imports from those below it, and from itself.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("huggingface",),
    ("compat",),
    ("integrations", "migrate", "quantize", "selftest", "stability", "verify"),
    ("language", "scoring"),
    ("evaluation",),
    ("audit", "conformance", "data", "report", "wrappers"),
    ("meter",),
    ("metrics",),
    ("encode",),
    ("tally", "decide"),
    ("native", "triton_kernels"),
    ("pretend",),
    ("devices",),
    ("render",),
    ("stats", "_records"),
    ("errors", "progress", "_atomic", "_remote", "_cache", "_foreign_files", "_lazy"),
)
NEIGHBOURS = {
    ("tally", "decide"),
    ("_atomic", "errors"),
    ("_foreign_files", "errors"),
    ("_remote", "errors"),
    ("_atomic", "_remote"),
}  # the exceptions on one layer: tallies may take decisions
DOCUMENTED = {
    ("assay.metrics.base", "assay.meter.batch_values"),
    ("assay.metrics.operators", "assay.metrics.arithmetic"),
}
"""The two imports upwards, inside functions (docs/architecture.md): calling a metric takes a `Meter`, and adding two
metrics makes an `Arithmetic`, which is a metric."""
PUBLIC_API = "__init__"


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Every module, parsed when a test first asks: processes that run none of these tests do without."""
    with nothing_collected():
        return {path: ast.parse(path.read_text("utf-8")) for path in MODULES}


@functools.cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """Every node of every module."""
    with nothing_collected():
        return [(path, node) for path, tree in trees().items() for node in ast.walk(tree)]


@contextmanager
def nothing_collected() -> Iterator[None]:
    """The garbage collector does not look at what is made here, a million objects, now or later."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """What was parsed is let go at the end: DuckDB tells of objects that are still there then."""
    yield
    for found in (trees, nodes, classes_by_name, imports, import_graph):
        found.cache_clear()
    gc.unfreeze()


@functools.cache
def imports() -> dict[Path, Imports]:
    """What every module imports."""
    return {path: Imports(tree) for path, tree in trees().items()}


@functools.cache
def classes_by_name() -> dict[str, ast.ClassDef]:
    return {node.name: node for _, node in nodes() if isinstance(node, ast.ClassDef)}


def layer(package: str) -> int:
    known = {name: index for index, packages in enumerate(LAYERS) for name in packages}
    assert package in known, f"{package} is in no layer: inside src, import from packages and not from assay itself"
    return known[package]


def package_of(path: Path) -> str:
    return path.relative_to(SRC).with_suffix("").parts[0]


def dotted(path: Path) -> str:
    parts = ("assay", *path.relative_to(SRC).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")  # of a statement, in which others stand


class Imports(ast.NodeVisitor):
    """What a module imports when it runs, at the top or inside a function: (module, name), and lines of the former."""

    def __init__(self, tree: ast.AST) -> None:
        self.names: set[tuple[str, str]] = set()
        self.late: set[tuple[str, str]] = set()
        self.typing: set[tuple[str, str]] = set()
        self._into = self.names
        self.visit(tree)

    def generic_visit(self, node: ast.AST) -> None:
        """Statements alone: no import stands in an expression."""
        for blocks in map(node.__dict__.get, BLOCKS):
            for each in blocks or ():
                self.visit(each)

    def visit_Import(self, node: ast.Import) -> None:
        self._into |= {(name.name, "") for name in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        assert node.level == 0, "imports are absolute"
        self._into |= {(str(node.module), name.name) for name in node.names}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        before, self._into = self._into, self.late
        self.generic_visit(node)
        self._into = before

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            return self.generic_visit(node)
        before, self._into = self._into, self.typing
        for each in node.body:
            self.visit(each)
        self._into = before
        for each in node.orelse:
            self.visit(each)


@functools.cache
def import_graph() -> dict[str, set[str]]:
    """Module -> the modules of assay that it imports, also inside functions; names are traced to where they stand."""
    modules = {dotted(path): found for path, found in imports().items()}
    # A package may take names from its modules when they are first used (_lazy.py): these it names for type checkers.
    homes = {
        (package, name): module
        for package, found in modules.items()
        for module, name in found.names | found.typing
        if module.startswith(f"{package}.")
    }

    def target(module: str, name: str) -> str:
        inner = f"{module}.{name}"
        return inner if inner in modules else homes.get((module, name), module)

    return {
        module: {target(*each) for each in found.names | found.late if target(*each) in modules} - {module}
        for module, found in modules.items()
    }


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of nodes that reach each other (Warshall)."""
    reach = {node: set(others) for node, others in graph.items()}
    for middle in graph:
        for node in graph:
            if middle in reach[node]:
                reach[node] |= reach[middle]
    members = {node: frozenset(other for other in reach[node] if node in reach.get(other, ())) for node in graph}
    return [set(each) for each in set(members.values()) if each]


def grouped(graph: dict[str, set[str]], package: str = "assay") -> dict[str, set[str]]:
    """The same graph between what lies directly below a package: folders and modules."""
    depth = package.count(".") + 2
    short = {module: ".".join(module.split(".")[:depth]) for module in graph if module.startswith(f"{package}.")}
    parts: dict[str, set[str]] = {name: set() for name in short.values()}
    for module, name in short.items():
        parts[name] |= {short[other] for other in graph[module] & short.keys()} - {name}
    return parts


def downwards() -> dict[str, set[str]]:
    """The import graph without the two documented imports upwards."""
    graph = import_graph().items()
    return {module: {each for each in others if (module, each) not in DOCUMENTED} for module, others in graph}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_public_api_is_short_sorted_and_exact():
    assert assay.__all__ == sorted(assay.__all__)
    assert len(assay.__all__) <= 42
    for name in assay.__all__:
        assert getattr(assay, name) is not None
    assert set(assay.__all__) <= set(dir(assay))


def test_importing_all_of_assay_brings_the_listed_names_and_nothing_optional():
    code = (
        "import sys, types; from assay import *; import assay; "
        "print(sorted(n for n, v in vars(assay).items() if not n.startswith('_') "
        "and not isinstance(v, types.ModuleType) and n not in ('annotations', 'TYPE_CHECKING', 'attach'))); "
        f"print([name for name in {OPTIONAL} if name in sys.modules])"
    )
    names, optional = map(ast.literal_eval, run(code).splitlines())
    assert (names, optional) == (assay.__all__, [])


def test_help_imports_no_torch():
    """In one process, as a command that imports torch leaves it imported."""
    arguments = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
    code = (
        "import sys\n"
        "from assay.cli import main\n"
        f"for argument in {arguments}:\n"
        "    sys.argv = ['assay', *argument]\n"
        "    try: main()\n"
        "    except SystemExit as ended: assert not ended.code, (argument, ended.code)\n"
        "    assert 'torch' not in sys.modules, argument\n"
        "print('all')"
    )
    assert run(code).split()[-1] == "all"


def is_allowed(path: Path, module: str, name: str, late: bool) -> bool:
    """Whether a module may import another one: from a package below its own, or as documented."""
    package = package_of(path)
    full = f"{module}.{name}" if module == "assay" else module
    other = full.split(".")[1] if full.startswith("assay.") else package
    if other in (package, "__version__") or (package, other) in NEIGHBOURS:
        return True
    return layer(other) > layer(package) or (late and (dotted(path), module) in DOCUMENTED)


def test_packages_import_downwards():
    wrong = []
    for path, found in imports().items():
        if package_of(path) != PUBLIC_API:
            every = found.names | found.typing | found.late
            late = every - found.names
            wrong += [f"{path.relative_to(SRC)}: {each}" for each in every if not is_allowed(path, *each, each in late)]
    assert wrong == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_pages_show_the_layers(page):
    """Without `__main__` and modules with an underscore; the lowest layer is called by its first name."""
    shown = [", ".join(name for name in each if not name.startswith("_")) for each in LAYERS[:-1]]
    text = " → ".join([*filter(None, shown), LAYERS[-1][0]])
    assert text in (SRC.parents[1] / page).read_text("utf-8")


def test_no_import_closes_a_circle():
    """Neither at the top of a module nor inside a function, between modules or packages, but for the documented two."""
    assert circles(downwards()) == []
    assert circles(grouped(downwards())) == []
    for module, other in DOCUMENTED:
        again = downwards() | {module: downwards()[module] | {other}}
        assert other in import_graph()[module], f"{module} no longer imports {other}: remove the entry"
        assert circles(again) or circles(grouped(again)), f"{module} -> {other} closes no circle: remove the entry"


def test_no_import_closes_a_circle_inside_a_package():
    """Between the folders and modules of every package, as between the packages."""
    packages = {dotted(path.parent / "__init__.py") for path in MODULES} - {"assay"}
    found = {package: circles(grouped(downwards(), package)) for package in packages}
    assert {package: circle for package, circle in found.items() if circle} == {}


def test_the_scan_tells_a_late_import_from_one_at_the_top_and_one_for_types():
    found = Imports(
        ast.parse("from assay.a import x\nif TYPE_CHECKING:\n  import assay.c\ndef f():\n  from assay import b")
    )
    assert found.names == {("assay.a", "x")}
    assert found.late == {("assay", "b")}
    assert found.typing == {("assay.c", "")}


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == [{"b", "c"}]
    assert grouped({"assay.a.x": {"assay.a.y", "assay.b.z"}, "assay.a.y": set(), "assay.b.z": set()}) == {
        "assay.a": {"assay.b"},
        "assay.b": set(),
    }
    inside = {
        "assay.a.x.one": {"assay.a.y"},
        "assay.a.x.two": set(),
        "assay.a.y": {"assay.a.x.two", "assay.b"},
        "assay.b": set(),
    }
    assert circles(grouped(inside)) == circles(inside) == []
    assert circles(grouped(inside, "assay.a")) == [{"assay.a.x", "assay.a.y"}]


def is_torch(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "torch"


def asks_for_a_device(node: ast.AST) -> bool:
    """``x.type == …`` and ``x.type in …``, ``.is_cuda`` and its like, ``.cuda()``, ``torch.cuda.…``."""
    if isinstance(node, ast.Compare):
        return any(isinstance(side, ast.Attribute) and side.attr == "type" for side in [node.left, *node.comparators])
    if isinstance(node, ast.Attribute):
        of = node.value
        is_of_device = isinstance(of, ast.Attribute) and of.attr in ACCELERATORS and is_torch(of.value)
        return is_of_device or node.attr in ("is_cuda", "is_mps", "is_xpu", "is_cpu")
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("cuda", "mps")


@pytest.mark.parametrize(
    "source",
    [
        "x.device.type == 'mps'",
        "'cuda' != d.type",
        "d.type in ('a',)",
        "x.is_cuda",
        "x.cuda()",
        "torch.cuda.device_of(x)",
    ],
)
def test_the_scan_finds_what_it_looks_for(source):
    assert any(asks_for_a_device(node) for node in ast.walk(ast.parse(source)))


def nodes_where(wanted: Callable[[ast.AST], bool], *left_out: str) -> list[str]:
    """The places in src, outside of some packages, at which something stands."""
    return [
        f"{path.relative_to(SRC)}:{node.lineno}"
        for path, node in nodes()
        if wanted(node) and package_of(path) not in left_out
    ]


def test_only_devices_asks_which_device_it_is():
    assert nodes_where(asks_for_a_device, "devices", "pretend") == []


def extras(node: ast.AST) -> set[str]:
    """The extras that an error tells users to install."""
    given = [each.value for each in node.keywords if each.arg == "extra"] if isinstance(node, ast.Call) else []
    return {str(value.value) for value in given if isinstance(value, ast.Constant)}


def test_errors_name_extras_that_there_are():
    declared = tomllib.loads((SRC.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = {extra: path.name for path, node in nodes() for extra in extras(node)}
    assert "hf" in named
    assert {extra: path for extra, path in named.items() if extra not in declared} == {}
    from assay.integrations import optional_packages

    assert set(optional_packages.PACKAGES) <= set(declared)


def test_no_class_name_stands_twice():
    places: dict[str, set[str]] = {}
    for path, node in nodes():
        if isinstance(node, ast.ClassDef):
            places.setdefault(node.name, set()).add(str(path.relative_to(SRC)))
    assert {name: sorted(modules) for name, modules in places.items() if len(modules) > 1} == {}


def test_every_package_has_types():
    assert (SRC / "py.typed").exists()


def test_no_file_is_longer_than_a_few_hundred_lines():
    assert {str(path): lines for path in MODULES if (lines := path.read_text("utf-8").count("\n")) > 600} == {}


FACTORIES = {
    *("arange", "empty", "empty_strided", "eye", "full", "linspace", "logspace", "ones", "rand", "randint", "randn"),
    *("randperm", "scalar_tensor", "tensor", "zeros"),
}
"""Functions of torch whose tensors are on the default device of the user unless they are told a device."""


def takes_the_default_device(node: ast.AST) -> bool:
    """A tensor that is made without a device."""
    is_factory = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FACTORIES
    return (
        is_factory
        and is_torch(node.func.value)
        and not any(keyword.arg in ("device", None) for keyword in node.keywords)
    )


@pytest.mark.parametrize(("source", "found"), [("torch.zeros(2)", True), ("torch.zeros(2, device=d)", False)])
def test_the_scan_finds_factories(source, found):
    assert any(takes_the_default_device(node) for node in ast.walk(ast.parse(source))) is found


def test_every_tensor_is_made_on_a_device_that_is_named():
    """Under `torch.set_default_device("cuda")` compiled code would otherwise be given addresses on the GPU."""
    assert nodes_where(takes_the_default_device, "pretend") == []


OF_OTHERS = {
    *("_buffers", "_device", "_exit", "_is_compiled", "_modules", "_schema", "_to_copy", "_version"),  # torch, os
    *("_computed", "_to_sync", "_update_count"),  # metrics of TorchMetrics
    *("_make", "_replace"),  # every NamedTuple
}
"""Members of other libraries that classes of assay override, or have by chance as well."""


def private_reads(tree: ast.AST, classes: dict[str, ast.ClassDef], inside: frozenset[str] = frozenset()) -> list[str]:
    """Where code reads a private member of a class of assay, outside of that class and of those that inherit it."""
    found = []
    for node in ast.iter_child_nodes(tree):
        known = inside
        if isinstance(node, ast.ClassDef):
            known = inside.union(*(named_in(each) for each in with_bases(node, classes)))
        elif isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr) and node.attr not in inside:
            own = ast.unparse(node.value) in ("self", "cls", "super()")
            found += [] if own else [f"{node.lineno}: {ast.unparse(node)}"]
        found += private_reads(node, classes, known)
    return found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("class A:\n    def f(self, other: A):\n        self._x = other._x", []),
        ("class B(A):\n    def f(self, other: A):\n        return other._x", []),
        ("class C:\n    def f(self, other: A):\n        return self._x + other._x", ["3: other._x"]),
        ("def f(other: A):\n    return other._x", ["2: other._x"]),
    ],
)
def test_the_scan_finds_private_members_of_others(source, found):
    classes = {"A": ast.parse("class A:\n    _x: int").body[0]}
    assert private_reads(ast.parse(source), classes) == found


def test_no_place_outside_of_a_class_reads_its_private_members():
    classes = classes_by_name()
    ours = {name[1:] for name in set().union(*map(named_in, classes.values())) - OF_OTHERS}
    places = [
        f"{path.relative_to(SRC)}:{each}"
        for path, tree in trees().items()
        for each in private_reads(tree, classes)
        if each.rpartition("._")[2] in ours
    ]
    assert places == []


SECTION = re.compile(r"^ *(Args|Attributes):\n((?:(?: {4,}.*)?\n)*)", re.MULTILINE)


def documented(docstring: str | None) -> set[str]:
    """The names that the sections of arguments and attributes of a docstring describe."""
    found: set[str] = set()
    for _, text in SECTION.findall(f"{inspect.cleandoc(docstring or '')}\n"):
        lines = [line for line in text.splitlines() if re.match(r" {4}\S", line)]
        for line in lines:
            found |= set(re.findall(r"[\w.*]+", line.partition(":")[0])) if ":" in line else set()
    return {name.lstrip("*") for name in found}


@functools.cache
def named_in(node: ast.AST) -> set[str]:
    """The arguments of a function, or of a class its fields, attributes, properties and the arguments of `__init__`."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        return {each.arg for each in every if each}
    names: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.FunctionDef):
            names |= {each.name} | (named_in(each) if each.name == "__init__" else set())
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names.add(each.id)
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            names.add(each.attr)
    return names


def takes_any_keyword(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.args.kwarg is not None


def with_bases(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """A class and what it inherits from inside of src; a base of another library may have the name of a class here."""
    found = [node]
    for each in found:
        names = [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in each.bases]
        found += [classes[name] for name in names if name in classes and classes[name] not in found]
    return found


def test_docstrings_describe_arguments_and_attributes_that_there_are():
    wrong = []
    for path, node in nodes():
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or takes_any_keyword(node):
            continue
        if names := documented(ast.get_docstring(node)):
            owners = with_bases(node, classes_by_name()) if isinstance(node, ast.ClassDef) else [node]
            missing = names - set().union(*map(named_in, owners))
            wrong += [f"{path.relative_to(SRC)}:{node.lineno}: {node.name} has no {name}" for name in sorted(missing)]
    assert wrong == []


def lists_kinds(node: ast.AST) -> bool:
    """A collection or a pattern that names two kinds of device; a table of functions by kind is none."""
    if isinstance(node, ast.Dict):
        functions = all(isinstance(value, ast.Name | ast.Attribute) for value in node.values)
        named = [] if functions else [key.value for key in node.keys if isinstance(key, ast.Constant)]
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        named = [each.value for each in node.elts if isinstance(each, ast.Constant)]
    else:
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        alternatives = "|" in text
        named = [kind for kind in ACCELERATORS if alternatives and re.search(rf"\b{kind}\||\|{kind}\)", text)]
    return len({str(name).partition(":")[0] for name in named} & {*ACCELERATORS}) > 1


def test_one_module_lists_the_kinds_of_device():
    assert [place for place in nodes_where(lists_kinds) if not place.startswith("devices/kinds.py:")] == []


@pytest.mark.parametrize(
    "source", ["x in ('cuda', 'xpu')", "{'cuda': 1, 'mps': 2}", "['mps', 'cuda:1']", "r'(cuda|mps)'"]
)
def test_a_list_of_kinds_is_seen(source):
    assert any(map(lists_kinds, ast.walk(ast.parse(source))))


DIALECT = re.compile(r"\b(besides|alike|whatever|there is none)\b", re.IGNORECASE)
"""Words that a reader in a hurry reads twice; Python's `there is None` is code."""


def test_plain_words_are_used():
    code = re.compile(r"there is None")
    files = [*SRC.rglob("*.py"), *SRC.rglob("*.toml"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    found = {
        f"{file.relative_to(ROOT)}:{number}": line.strip()
        for file in files
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if DIALECT.search(code.sub("", line))
    }
    assert not found
