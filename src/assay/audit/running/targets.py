"""What is audited: a script, a module, a class or a function of one, or the metrics of a library."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import pkgutil
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.audit.cases.case import Case
from assay.errors import ConfigError, describe

LIBRARIES = ("torchmetrics", "ignite", "torcheval", "assay")
HOOKS = ("audit", "audit_cases")


@dataclass(frozen=True)
class Target:
    """A target as it was named."""

    text: str  # as the user wrote it
    file: Path | None = None  # the script, or ``None``
    module: str = ""  # the module, or ``""``
    name: str = ""  # the class or function in it, or ``""``

    @property
    def library(self) -> str:
        """The library whose metrics come with inputs, or ``""``."""
        top = self.module.partition(".")[0]
        return top if top in LIBRARIES else ""

    def is_package(self) -> bool:
        """Whether it is a module with modules in it, which Python runs only if it has one named ``__main__``."""
        spec = importlib.util.find_spec(self.module) if self.module else None
        return spec is not None and spec.submodule_search_locations is not None

    def only_defines(self) -> bool:
        """Whether the target's file defines classes and nothing that would run, by itself or as a hook: no script."""
        body = tree.body if (tree := _tree(self)) else []
        kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
        classes = any(isinstance(node, ast.ClassDef) for node in body)
        return classes and not hooks(self) and all(isinstance(node, kinds) or _is_text(node) for node in body)

    def roots(self) -> tuple[str, ...]:
        """The folders or files to which findings point; none for a script, whose libraries are of interest, too."""
        if self.file is not None:
            return (str(self.file),) if self.name or self.only_defines() else ()
        top = importlib.util.find_spec(self.module.partition(".")[0])
        if top is None:
            return ()
        folders = [str(Path(each)) + "/" for each in top.submodule_search_locations or ()]
        return tuple(folders) or ((top.origin,) if top.origin else ())


def parse(text: object) -> Target:
    """The target that a text names; a module is looked for and not imported.

    Args:
        text: ``path/file.py``, ``path/file.py:Name``, ``package.module`` or ``package.module:Name``.

    Raises:
        ConfigError: there is no such file or module.

    Example:
        >>> parse("json:loads").name
        'loads'
    """
    if not isinstance(text, str):
        kind = text if isinstance(text, type) else type(text)
        do = f"Pass the name of what is to run, such as {kind.__module__}:{kind.__qualname__}"
        raise ConfigError(describe("target", kind.__name__, "a string", do))
    place, colon, name = text.rpartition(":")
    place, name = (place, name) if colon and name.isidentifier() else (text, "")
    path = Path(place)
    if path.is_dir() and not _is_package(place):
        todo = "Name a script in it, or a module by its dotted name"
        raise ConfigError(describe("target", f"the folder {place}", "a Python file or a module", todo))
    if place.endswith(".py"):
        if not path.is_file():
            raise ConfigError(describe("target", f"{place}, which is no file", "a Python file", "Check the path"))
        return Target(text, file=path.resolve(), name=name)
    if not _importable(place):
        todo = "Install it, check the spelling, or give the path of a file that ends in .py"
        raise ConfigError(describe("target", repr(place), "a Python file or a module that can be imported", todo))
    return Target(text, module=place, name=name)


def _is_package(name: str) -> bool:
    """Whether a folder's name is also that of a package that can be imported, and not only of the folder."""
    return _importable(name) and getattr(importlib.util.find_spec(name), "origin", None) is not None


def _importable(name: str) -> bool:
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def hooks(target: Target) -> tuple[str, ...]:
    """Which of the functions for audits the target's file defines at its top level; the file is read and not run."""
    tree = _tree(target)
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} if tree else set()
    return tuple(name for name in HOOKS if name in defined)


def names_function(target: Target) -> bool:
    """Whether the target names a function of its file; the file is read and not run."""
    tree = _tree(target)
    return any(isinstance(node, ast.FunctionDef) and node.name == target.name for node in tree.body) if tree else False


def _tree(target: Target) -> ast.Module | None:
    file = target.file or _origin(target.module)
    try:
        return ast.parse(Path(file).read_text("utf-8")) if file else None
    except (OSError, SyntaxError, ValueError):
        return None


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _origin(module: str) -> str | None:
    spec = importlib.util.find_spec(module)
    return spec.origin if spec and spec.origin and spec.origin.endswith(".py") else None


def load(target: Target) -> Any:
    """Import the target's module, or its file under the file's name, which may import what lies beside it."""
    if target.file is None:
        return importlib.import_module(target.module)
    if str(target.file.parent) not in sys.path:  # as for a script
        sys.path.insert(0, str(target.file.parent))
    name = target.file.stem if target.file.stem.isidentifier() else "audited"
    spec = importlib.util.spec_from_file_location(name, target.file)
    assert spec is not None
    assert spec.loader is not None, target
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


def find_cases(target: Target, inputs: Sequence[str] = ()) -> Iterator[Case]:
    """The cases of a target: those of a known library, those it gives itself, or one for each metric or module in it.

    ``inputs`` are the shapes and dtypes of what a module takes. Raises a ConfigError where there is nothing that can be
    run.
    """
    known = list(_library_cases(target))
    if known:
        yield from known
        return
    module = load(target)
    if "audit_cases" in hooks(target) and not target.name:
        yield from module.audit_cases()
        return
    from assay.audit.cases.input_layouts import guess_case
    from assay.audit.cases.module_case import case_of

    for name, thing in _subjects(target, module):
        yield guess_case(thing) if is_metric(thing) and inspect.isclass(thing) else case_of(thing, name, inputs)


def runs_cases(target: Target) -> bool:
    """Whether cases of the target are run, each moved to the device; else :func:`run_program` runs it unchanged.

    A file whose function or script is run is not imported here.
    """
    if target.library or (not target.name and "audit_cases" in hooks(target)):
        return True
    if target.name:
        thing = None if names_function(target) else named(target, load(target))
        return inspect.isclass(thing) or is_module(thing)
    if "audit" in hooks(target) or target.module.rpartition(".")[2] == "__main__":
        return False
    if target.file is not None and not target.only_defines():
        return False
    return bool(subjects_of(load(target))) or (target.is_package() and not _importable(f"{target.module}.__main__"))


def run_program(target: Target, device: Any, arguments: Sequence[str] = ()) -> Any:
    """Call the target's function, with the device if it takes an argument, or run it as ``python file.py`` does."""
    if target.name or "audit" in hooks(target):
        function = named(target, load(target)) if target.name else load(target).audit
        required = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
        return function(device) if required else function()
    argv, path = sys.argv, sys.path
    sys.argv = [str(target.file or target.module), *arguments]
    try:
        if target.file is None:
            return runpy.run_module(target.module, run_name="__main__", alter_sys=True)
        sys.path = [str(target.file.parent), *path]
        return runpy.run_path(str(target.file), run_name="__main__")
    finally:
        sys.argv, sys.path = argv, path


def _library_cases(target: Target) -> Iterator[Case]:
    if not target.library:
        return
    from assay.audit import other_libraries
    from assay.audit.cases import own

    for case in own.cases() if target.library == "assay" else other_libraries.cases(target.library):
        inside = f"{case.name}.".startswith(f"{target.module}.") or target.module == target.library
        if inside and target.name in ("", _class_of(case)):
            yield case


def _class_of(case: Case) -> str:
    """The class in a name such as ``torcheval.metrics.BinaryRecallAtFixedPrecision(min_precision=0.5)``."""
    return case.name.partition("(")[0].partition("[")[0].rpartition(".")[2]


def _subjects(target: Target, module: Any) -> list[tuple[str, Any]]:
    """The metric classes and the modules that are to be run, by name."""
    if target.name:
        thing = named(target, module)
        if not can_be_exercised(thing):
            todo = "For anything else, define audit(device) in the module, which uses it, or name a function"
            expected = "a class with update and compute, or a torch.nn.Module"
            raise ConfigError(describe("target", f"{target.text}, which is none", expected, todo))
        return [(f"{module.__name__}.{target.name}", thing)]
    subjects = subjects_of(module)
    if not subjects:
        todo = "Define audit(device) or audit_cases() in it, or name a class in it as module:Class"
        raise ConfigError(describe("target", f"{target.text} without a metric class", "something to run", todo))
    return subjects


def subjects_of(module: Any) -> list[tuple[str, Any]]:
    """The metric classes of a module of Python, else its classes of torch.nn.Module that need no arguments, by name.

    Those of a package are the public ones that it names itself, wherever in it they are defined; of a package that
    names none, those of its modules that can be imported.
    """
    own = _defined_in(module)
    if not own and hasattr(module, "__path__") and not _importable(f"{module.__name__}.__main__"):
        own = _named_by(module) or _public_in(module)
    metrics = [(name, thing) for name, thing in own.items() if is_metric(thing)]
    modules = [(name, thing) for name, thing in own.items() if is_module(thing) and not _needs_arguments(thing)]
    return list(dict([*metrics, *modules]).items()) if hasattr(module, "__path__") else metrics or modules


def _defined_in(module: Any) -> dict[str, type]:
    """The classes that a module defines, by their names with the module's."""
    classes = ((name, thing) for name, thing in vars(module).items() if inspect.isclass(thing))
    return {f"{module.__name__}.{name}": thing for name, thing in classes if thing.__module__ == module.__name__}


def _named_by(package: Any) -> dict[str, type]:
    """The public classes that a package names and that are defined in it."""
    names = [name for name in getattr(package, "__all__", dir(package)) if not name.startswith("_")]
    things = ((name, getattr(package, name, None)) for name in names)
    inside = f"{package.__name__}."
    return {
        f"{inside}{name}": thing
        for name, thing in things
        if inspect.isclass(thing) and thing.__module__.startswith(inside) and can_be_exercised(thing)
    }


def _public_in(package: Any) -> dict[str, type]:
    """The public classes that the modules of a package define."""
    classes = ((name, thing) for module in _modules_in(package) for name, thing in _defined_in(module).items())
    return {name: thing for name, thing in classes if not thing.__name__.startswith("_")}


def _modules_in(package: Any) -> Iterator[Any]:
    """The modules of a package, but for private ones and those that lack another package."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.name.rpartition(".")[2].startswith("_"):
            with suppress(ImportError):
                module = importlib.import_module(found.name)
                yield from (module, *_modules_in(module)) if found.ispkg else (module,)


def can_be_exercised(thing: Any) -> bool:
    """Whether it is a metric class, a module, or a class of modules."""
    return (inspect.isclass(thing) and is_metric(thing)) or is_module(thing)


def is_module(thing: Any) -> bool:
    """Whether it is a torch.nn.Module or a class of them."""
    torch = sys.modules.get("torch")
    kind = thing if inspect.isclass(thing) else type(thing)
    return torch is not None and issubclass(kind, torch.nn.Module)


def _needs_arguments(thing: type) -> bool:
    parameters = list(inspect.signature(thing.__init__).parameters.values())[1:]  # type: ignore[misc]
    return any(each.default is each.empty and each.kind in (0, 1, 3) for each in parameters)


def named(target: Target, module: Any) -> Any:
    """The class or function that the target names; a ConfigError where the module has none of that name."""
    if not hasattr(module, target.name):
        where = target.file or target.module
        raise ConfigError(describe("target", repr(target.name), f"a name in {where}", "Check the spelling"))
    return getattr(module, target.name)


def is_metric(thing: Any) -> bool:
    """Whether a class is used by ``update`` and ``compute``."""
    return callable(getattr(thing, "update", None)) and callable(getattr(thing, "compute", None))
