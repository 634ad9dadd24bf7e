"""Which mistakes in the source the tests find: change one line at a time, and run the tests that hold it.

    python tests/mutations.py                     # every mutation of tests/mutations.toml
    python tests/mutations.py --only stats/       # those of some modules
    python tests/mutations.py --rest              # run all other tests, too, for mutations that the named ones let pass
    python tests/mutations.py --draw 20 --seed 3  # print 20 more at random places

A mutation is a line of a module and what becomes of it: another operator, constant, bound, condition or order of two
arguments. Of the tests that are named for it, or else mirror the module, those that `make test` selects are run until
one fails; if none does, those that only `make test-all` runs. All is done in a copy of the tree. Each run is a process
that is forked from one that has imported the tests, with the code of the changed functions put into it; what a module
does when it is imported is changed before, as is again what nothing found. The same command continues a run: what
`--out` holds is not repeated.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests/mutations.toml"
LIBRARIES = ("numpy", "torch", "scipy.stats", "sklearn.metrics", "torchmetrics", "ignite.metrics", "nltk", "hypothesis")
MAKE_TEST, MAKE_TEST_ALL = "not slow and not exhaustive", "not slow and exhaustive"

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
NAMES = {"min": "max", "max": "min", "amin": "amax", "amax": "amin", "any": "all", "all": "any", "floor": "ceil"}
NO_VALUES = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)


# --- mutations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutation:
    """A line of a module, what becomes of it, and the tests that hold it."""

    path: str
    line: str
    becomes: str
    tests: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path}: `{self.line}` becomes `{self.becomes}`"

    def file(self, root: Path) -> Path:
        """The file that has the line, once: the one at the path, or the only other one if the line has moved."""
        known = root / self.path
        if known.exists() and self._count(known) == 1:
            return known
        found = [each for each in sorted((root / "src/assay").rglob("*.py")) if self._count(each)]
        assert len(found) == 1, f"{self.path}: the line `{self.line}` is in {len(found)} files; correct or replace it"
        assert self._count(found[0]) == 1, f"{found[0]}: has the line `{self.line}` more than once"
        return found[0]

    def _count(self, file: Path) -> int:
        return sum(each.strip() == self.line for each in file.read_text("utf-8").splitlines())

    def changed(self, source: str) -> str:
        """The source with the line changed."""
        lines = source.splitlines(keepends=True)
        k = next(k for k, each in enumerate(lines) if each.strip() == self.line)
        lines[k] = lines[k].replace(self.line, self.becomes)
        return "".join(lines)

    def test_files(self, root: Path) -> list[str]:
        """The test files that are named, wherever they lie now; else those whose names mirror the module."""
        if not self.tests:
            stem, folder = Path(self.path).stem, root / "tests" / Path(self.path).parts[2]
            return sorted(each.relative_to(root).as_posix() for each in folder.rglob(f"test_{stem}*.py"))
        found = []
        for name in self.tests:
            named = root / name
            files = [named] if named.exists() else sorted((root / "tests").rglob(named.name))
            assert len(files) == 1, f"tests/mutations.toml: {name} is no test file"
            found.append(files[0].relative_to(root).as_posix())
        return found

    def to_toml(self) -> str:
        entries = {"path": self.path, "line": self.line, "becomes": self.becomes}
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entries.items()]
        return (
            "\n".join(["[[mutation]]", *lines, *([f"tests = {json.dumps(self.tests)}"] if self.tests else [])]) + "\n"
        )


def mutations() -> list[Mutation]:
    """Those of the table."""
    table = tomllib.loads(TABLE.read_text("utf-8"))["mutation"]
    return [Mutation(**(each | {"tests": tuple(each.get("tests", ()))})) for each in table]


class Places(ast.NodeVisitor):
    """Collects changes of a module, but for messages, annotations, decorators and docstrings."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source, self.found = path, source, list[Mutation]()
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.visit(ast.parse(source))

    def _span(self, node: Any) -> tuple[int, int]:
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _text(self, node: ast.AST) -> str:
        return self.source[slice(*self._span(node))].decode()

    def _add(self, start: int, end: int, new: str) -> None:
        first, last = self.source.rfind(b"\n", 0, start) + 1, self.source.find(b"\n", end)
        line = self.source[first:last].decode().strip()
        becomes = (self.source[first:start] + new.encode() + self.source[end:last]).decode().strip()
        if "\n" not in line and sum(each.strip() == line for each in self.source.decode().splitlines()) == 1:
            self.found.append(Mutation(self.path, line, becomes))

    def _operator(self, left: ast.AST, operator: ast.AST, right: ast.AST) -> None:
        if type(operator) not in OPERATORS:
            return
        old, new = OPERATORS[type(operator)]
        start, end = self._span(left)[1], self._span(right)[0]
        between = self.source[start:end].decode()
        found = list(
            re.finditer(re.escape(old).replace(r"\ ", r"\s+"), re.sub(r"#.*", lambda m: " " * len(m[0]), between))
        )
        if len(found) == 1:
            self._add(start + found[0].start(), start + found[0].end(), new)

    def generic_visit(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
                continue
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST) and not isinstance(each, NO_VALUES):
                    self.visit(each)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(self._text(each) in ("examples", "__all__") for each in node.targets):
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._operator(node.left, node.op, node.right)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._operator(node.target, node.op, node.value)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._operator(node.values[-2], node.op, node.values[-1])
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            self._operator(left, operator, right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        sign = {ast.Not: "not", ast.USub: "-"}.get(type(node.op))
        if sign is not None:
            self._add(*self._span(node), self._text(node.operand))
        self.generic_visit(node)

    def _condition(self, node: ast.If | ast.IfExp | ast.While) -> None:
        if (
            not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp)
            and self._text(node.test) != "TYPE_CHECKING"
        ):
            self._add(*self._span(node.test), f"(not ({self._text(node.test)}))")
        self.generic_visit(node)

    visit_If = visit_IfExp = visit_While = _condition  # noqa: N815

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(*self._span(node), str(not node.value))
        elif isinstance(node.value, int | float):
            self._add(*self._span(node), f"({self._text(node)} + 1)")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("describe", "warn", "cast", "TypeVar"):
            return
        if name in NAMES:
            end = self._span(node.func)[1]
            self._add(end - len(name), end, NAMES[name])
        if len(node.args) > 1 and not any(isinstance(each, ast.Starred) for each in node.args[:2]):
            first, second = node.args[:2]
            if self._text(first) != self._text(second) and name not in ("isinstance", "hasattr", "getattr", *NAMES):
                between = self.source[self._span(first)[1] : self._span(second)[0]].decode()
                start, end = self._span(first)[0], self._span(second)[1]
                self._add(start, end, self._text(second) + between + self._text(first))
        self.generic_visit(node)


def drawn(count: int, seed: int, only: str) -> list[Mutation]:
    """Changes at random places; of each module in turn, so that large ones do not crowd out the others."""
    draw, by_module = random.Random(seed), []
    for path in sorted((ROOT / "src/assay").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        found = Places(name, path.read_bytes()).found if only in name else []
        draw.shuffle(found)
        by_module.append(found)
    draw.shuffle(by_module)
    return [each for turn in range(count) for found in by_module for each in found[turn : turn + 1]][:count]


# --- runs ----------------------------------------------------------------------------------------------------------


def in_a_process(work: Callable[[], Any], folder: Path, seconds: int) -> Any:
    """What `work` gives in a forked process; None if it ended before."""
    answer = folder / ".answer.json"
    answer.unlink(missing_ok=True)
    if (child := os.fork()) == 0:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            out = os.open(folder / ".output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            answer.write_text(json.dumps(work()))
            os._exit(0)
        except BaseException:
            answer.write_text(json.dumps({"error": traceback.format_exc()}))
            os._exit(1)
    until = time.monotonic() + 20 * seconds
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    found = json.loads(answer.read_text()) if answer.exists() else None
    assert not isinstance(found, dict), found["error"]
    return found


class FirstFailure:
    """A plugin of pytest that notes which test failed first."""

    name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid or "collection"


def run_tests(marker: str, arguments: list[str]) -> str:
    """The test that fails first; empty if none does."""
    import pytest

    seen = FirstFailure()
    always = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = int(pytest.main([*always, "-m", marker, *arguments], plugins=[seen]))
    assert code in (0, 1, 2, 5), f"pytest ended with {code}: {arguments}"
    return seen.name or ("collection" if code in (1, 2) else "")


def code_of(source: str, file: Path) -> dict[tuple[str, int], CodeType]:
    """The code of a module, its classes and functions, by name and line."""
    found, rest = {}, [compile(source, str(file), "exec", dont_inherit=True)]
    for code in rest:
        found[code.co_qualname, code.co_firstlineno] = code
        rest += [each for each in code.co_consts if isinstance(each, CodeType)]
    return found


def own(code: CodeType) -> tuple[Any, ...]:
    """What a piece of code does itself, without the functions that are made in it."""
    constants = [None if isinstance(each, CodeType) else (type(each), each) for each in code.co_consts]
    return code.co_code, repr(constants), code.co_names, code.co_varnames


@dataclass
class Tree:
    """A copy of the tree in which one line at a time is changed."""

    folder: Path
    seconds: int
    functions: dict[str, list[FunctionType]] | None = None
    """The functions of each file, once the tests are imported."""
    broken: list[str] = field(default_factory=list)
    """Tests that fail without a mutation, too: here, or in every tree."""

    def import_tests(self, files: list[str]) -> None:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
            run_tests("", ["--collect-only", *files])
        gc.unfreeze()  # what conftest.py set aside
        self.functions = {}
        for each in gc.get_objects():
            if type(each) is FunctionType:
                self.functions.setdefault(each.__code__.co_filename, []).append(each)
        gc.freeze()

    def first_failure(self, mutation: Mutation, marker: str, arguments: list[str]) -> str:
        """The test that fails first, and passes without the mutation; empty if none does."""
        failed = self._failed(mutation, marker, arguments)
        while "::" in failed and self._failed(None, "not slow", [failed]):
            self.broken.append(failed)
            failed = self._failed(mutation, marker, arguments)
        return failed

    def _failed(self, mutation: Mutation | None, marker: str, arguments: list[str]) -> str:
        without = [f"--deselect={each}" for each in self.broken if each not in arguments]
        with self._changed(mutation) if mutation else contextlib.nullcontext(()) as functions:
            work = lambda: self._run(dict(functions), marker, [*without, *arguments])  # noqa: E731
            found = in_a_process(work, self.folder, self.seconds)
        return "the tests did not end" if found is None else str(found)

    def _run(self, functions: dict[FunctionType, CodeType], marker: str, arguments: list[str]) -> str:
        for function, code in functions.items():
            function.__code__ = code
        return run_tests(marker, arguments)

    def is_in_functions(self, mutation: Mutation) -> bool:
        """Whether no statement of the module or of a class is changed, which runs when it is imported."""
        file = mutation.file(self.folder)
        before, after = (code_of(each, file) for each in self._sources(file, mutation))
        optimized = 1  # CO_OPTIMIZED: what has local variables is a function
        return before.keys() == after.keys() and all(
            code.co_flags & optimized for name, code in before.items() if own(code) != own(after[name])
        )

    def _sources(self, file: Path, mutation: Mutation) -> tuple[str, str]:
        source = file.read_text("utf-8")
        return source, mutation.changed(source)

    @contextlib.contextmanager
    def _changed(self, mutation: Mutation) -> Iterator[dict[FunctionType, CodeType]]:
        """Change the file, and say which code the functions that are imported get."""
        file = mutation.file(self.folder)
        before, after = self._sources(file, mutation)
        code = code_of(after, file)
        known = [(each, (each.__code__.co_qualname, each.__code__.co_firstlineno)) for each in self._functions_of(file)]
        try:
            self._write(file, after)
            yield {each: code[name] for each, name in known if name in code}
        finally:
            self._write(file, before)

    def _functions_of(self, file: Path) -> list[FunctionType]:
        return [] if self.functions is None else self.functions.get(str(file), [])

    def _write(self, file: Path, content: str) -> None:
        file.write_text(content, "utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            compiled.unlink()  # a file that was changed twice within a second may seem to be the same

    def judged(self, mutation: Mutation, with_rest: bool) -> dict[str, str]:
        """Which selection finds a mutation, and by which test."""
        files = mutation.test_files(self.folder)
        rest = ["tests", *(f"--ignore={each}" for each in files)]
        steps = [("make test", MAKE_TEST, files)] * bool(files) + [("make test", MAKE_TEST, rest)] * with_rest
        steps += [("make test-all", MAKE_TEST_ALL, files)] * bool(files)
        for name, marker, arguments in steps:
            if failed := self.first_failure(mutation, marker, arguments):
                return {"by": name, "test": failed}
        return {"by": "none", "test": ""}


@contextlib.contextmanager
def copy_of_the_tree(seconds: int) -> Iterator[Tree]:
    """A copy, from which assay and the tests are imported."""
    os.environ |= {"CI": "true", "OMP_NUM_THREADS": "1", "TRITON_INTERPRET": "1"}
    with tempfile.TemporaryDirectory() as folder:
        skipped = shutil.ignore_patterns(".git", ".venv", "site", ".*_cache", ".hypothesis", "shared")
        copy = Path(shutil.copytree(ROOT, Path(folder) / "tree", ignore=skipped))
        os.chdir(copy)
        os.environ["PYTHONPATH"] = str(copy / "src")
        own = {str(ROOT / each) for each in ("", "src", "tests")}
        ours = [str(copy / "src"), str(copy / "tests"), str(copy)]  # the last one for `benchmarks`
        sys.path[:] = [*ours, *(each for each in sys.path if each not in own)]
        for name in LIBRARIES:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        yield Tree(copy, seconds)


@dataclass
class Run:
    """The judgement of mutations, whose results a file holds."""

    tree: Tree
    out: Path
    with_rest: bool

    def results(self) -> dict[str, dict[str, str]]:
        lines = self.out.read_text("utf-8").splitlines() if self.out.exists() else []
        return {each["mutation"]: each for each in map(json.loads, lines)}

    def judge(self, mutation: Mutation) -> None:
        result = {"mutation": str(mutation), **self.tree.judged(mutation, self.with_rest)}
        with self.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        print("{by}: {mutation}: {test}".format(**result), flush=True)

    def judge_all(self, wanted: list[Mutation]) -> None:
        """Those in functions by a process that has imported the tests; the others, and what that lets pass, afresh."""
        missing = [each for each in wanted if str(each) not in self.results()]
        in_functions = [each for each in missing if self.tree.is_in_functions(each)]
        if in_functions and (child := os.fork()) == 0:
            try:
                self.tree.import_tests(sorted({each for one in in_functions for each in one.test_files(ROOT)}))
                for each in in_functions:
                    self.judge(each)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        elif in_functions:
            assert os.waitpid(child, 0)[1] == 0
        found = {name for name, each in self.results().items() if each["by"] == "make test"}
        for each in missing:
            if str(each) not in found:
                self.judge(each)


def main() -> None:
    """Run mutations and report which were found by what."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="PATH", help="part of the path of the modules to change")
    parser.add_argument(
        "--rest", action="store_true", help="run the rest of the tests where the named ones find nothing"
    )
    parser.add_argument("--draw", type=int, default=0, metavar="COUNT", help="print so many more, and run nothing")
    parser.add_argument("--seed", type=int, default=0, help="which ones to draw")
    parser.add_argument("--out", type=Path, default=Path("mutations.jsonl"), help="the file that takes the results")
    parser.add_argument("--seconds", type=int, default=300, help="the CPU time that one run of tests may take")
    options = parser.parse_args()
    if options.draw:
        print(*(each.to_toml() for each in drawn(options.draw, options.seed, options.only)), sep="\n")
        return
    wanted, out = [each for each in mutations() if options.only in each.path], options.out.resolve()
    with copy_of_the_tree(options.seconds) as tree:
        run = Run(tree, out, options.rest)
        run.judge_all(wanted)
        counts = Counter(run.results()[str(each)]["by"] for each in wanted)
    print(", ".join(f"{by}: {count}" for by, count in counts.most_common()), f"of {len(wanted)}")


if __name__ == "__main__":
    main()
