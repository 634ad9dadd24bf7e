"""Which mistakes in the source the tests find: change one place at a time, and run the tests that concern it.

    python tests/mutations.py --count 200 --seed 0 --out found.jsonl

A mutation changes one operator, constant, bound, condition or order of two arguments of a module that
`tests/mutations.toml` names, in a copy of the tree. First the cases that `make test` selects are run until one fails:
those of the tests named there, then those of the laws of the metrics that the module serves. If none fails, the cases
follow that only `make test-all` runs. Processes are forked from one that has imported torch and the other libraries.
The same command continues a run: what `--out` already holds is not repeated.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/assay")
TABLE = tomllib.loads((ROOT / "tests/mutations.toml").read_text())
LIBRARIES = ("numpy", "torch", "scipy.stats", "sklearn.metrics", "torchmetrics", "ignite.metrics", "nltk")
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
    """One change of a file: the bytes from `start` to `end` become `new`."""

    path: str
    start: int
    end: int
    new: str
    change: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.change} in `{self.text}`"

    @property
    def key(self) -> dict[str, str]:
        """What names it also when other lines of the file have changed."""
        return {"path": self.path, "text": self.text, "change": self.change}


class Places(ast.NodeVisitor):
    """Collects the mutations of a module, but for messages, annotations, decorators and docstrings."""

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

    def _add(self, start: int, end: int, new: str, change: str) -> None:
        line = self.source[:start].count(b"\n") + 1
        column = start - self._starts[line - 1] + 1
        text = self.source.splitlines()[line - 1].decode().strip()
        self.found.append(Mutation(self.path, start, end, new, change, line, column, text))

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
            self._add(start + found[0].start(), start + found[0].end(), new, f"`{old}` to `{new}`")

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
            self._add(*self._span(node), self._text(node.operand), f"no `{sign}`")
        self.generic_visit(node)

    def _condition(self, node: ast.If | ast.IfExp | ast.While) -> None:
        if (
            not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp)
            and self._text(node.test) != "TYPE_CHECKING"
        ):
            self._add(*self._span(node.test), f"(not ({self._text(node.test)}))", "the condition negated")
        self.generic_visit(node)

    visit_If = visit_IfExp = visit_While = _condition  # noqa: N815

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(*self._span(node), str(not node.value), f"`{node.value}` to `{not node.value}`")
        elif isinstance(node.value, int | float):
            self._add(*self._span(node), f"({self._text(node)} + 1)", f"`{self._text(node)}` + 1")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("describe", "warn", "cast", "TypeVar"):
            return
        if name in NAMES:
            end = self._span(node.func)[1]
            self._add(end - len(name), end, NAMES[name], f"`{name}` to `{NAMES[name]}`")
        if len(node.args) > 1 and not any(isinstance(each, ast.Starred) for each in node.args[:2]):
            first, second = node.args[:2]
            if self._text(first) != self._text(second) and name not in ("isinstance", "hasattr", "getattr", *NAMES):
                between = self.source[self._span(first)[1] : self._span(second)[0]].decode()
                start, end = self._span(first)[0], self._span(second)[1]
                self._add(start, end, self._text(second) + between + self._text(first), "two arguments swapped")
        self.generic_visit(node)


def chosen(count: int, seed: int, only: str) -> list[Mutation]:
    """Mutations at random places; from each module in turn, so that large ones do not crowd out the others."""
    draw, by_module = random.Random(seed), []
    for pattern in TABLE["tests"]:
        for path in sorted((ROOT / SOURCE).glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            found = Places(name, path.read_bytes()).found
            draw.shuffle(found)
            by_module.append(found if only in name else [])
    draw.shuffle(by_module)
    longest = max(map(len, by_module))
    turns = [found[k] for k in range(longest) for found in by_module if k < len(found)]
    known = [{name: each[name] for name in ("path", "text", "change")} for each in TABLE.get("equivalent", [])]
    return [each for each in turns if each.key not in known][:count]


# --- runs ----------------------------------------------------------------------------------------------------------


def in_a_process(work: Callable[[], Any], folder: Path, seconds: int) -> Any:
    """What `work` gives in a forked process that imports assay from the folder; None if it ended before."""
    answer = folder / ".answer.json"
    answer.unlink(missing_ok=True)
    if (child := os.fork()) == 0:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            os.chdir(folder)
            out = os.open(folder / ".output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.environ["PYTHONPATH"] = str(folder / "src")
            sys.path[:0] = [str(folder / "src"), str(folder / "tests")]
            answer.write_text(json.dumps(work()))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    until = time.monotonic() + 10 * seconds
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.05)
    return json.loads(answer.read_text()) if answer.exists() else None


class FirstFailure:
    """A plugin of pytest that notes which test failed first, and how many ran."""

    name, ran = "", 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.ran += report.when == "call"
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid or "collection"


def run_tests(arguments: list[str]) -> dict[str, Any]:
    import pytest

    seen = FirstFailure()
    always = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = int(pytest.main([*always, *arguments], plugins=[seen]))
    failed = seen.name or ("collection" if code not in (0, 5) else "")
    return {"failed": failed, "ran": seen.ran}


def concerned() -> dict[str, list[str]]:
    """By module, the names of the metrics whose class, tally, terms or encoders are of a class that it defines."""
    from tally_laws import TALLY_CASES

    found: dict[str, set[str]] = {}
    for case in TALLY_CASES:
        for metric in case.metrics:
            tally = metric.tally(case.weighted)
            for part in (metric, tally, getattr(tally, "term", None), *metric.encoders):
                for kind in type(part).__mro__:
                    path = f"src/{kind.__module__.replace('.', '/')}.py"
                    found.setdefault(path, set()).add(type(metric).__name__)
    return {path: sorted(names) for path, names in found.items()}


@dataclass
class Tree:
    """A copy of the tree in which one file at a time is changed."""

    folder: Path
    names: dict[str, list[str]]
    seconds: int

    def runs(self, path: str) -> Iterator[list[str]]:
        """What to run for a module: its examples and the tests that are named for it, then the laws."""
        tests = next(tests for pattern, tests in TABLE["tests"].items() if Path(path).match(f"{SOURCE}/{pattern}"))
        yield [path, *(name for each in tests for name in sorted(self._paths(each)))]
        if path in self.names:
            yield [*TABLE["laws"], "-k", " or ".join(self.names[path])]

    def _paths(self, pattern: str) -> list[str]:
        found = [each.relative_to(self.folder).as_posix() for each in self.folder.glob(pattern)]
        assert found, f"tests/mutations.toml: no file is named {pattern}"
        return found

    def first_failure(self, mutation: Mutation | None, marker: str, arguments: list[str]) -> str:
        """The test that fails first; empty if none does."""
        with self._changed(mutation) if mutation else contextlib.nullcontext():
            work = lambda: run_tests(["-m", marker, *arguments])  # noqa: E731
            found = in_a_process(work, self.folder, self.seconds)
        return "pytest itself failed" if found is None else found["failed"]

    @contextlib.contextmanager
    def _changed(self, mutation: Mutation) -> Iterator[None]:
        file = self.folder / mutation.path
        before = file.read_bytes()
        try:
            self._write(file, before[: mutation.start] + mutation.new.encode() + before[mutation.end :])
            yield
        finally:
            self._write(file, before)

    def _write(self, file: Path, content: bytes) -> None:
        file.write_bytes(content)
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            compiled.unlink()  # a file that was changed twice within a second may seem to be the same

    def judged(self, mutation: Mutation) -> dict[str, str]:
        """Which selection finds a mutation, and by which test."""
        for marker, name in ((MAKE_TEST, "make test"), (MAKE_TEST_ALL, "make test-all")):
            for arguments in self.runs(mutation.path):
                if failed := self.first_failure(mutation, marker, arguments):
                    if "::" in failed and self.first_failure(None, "not slow", [failed]):
                        return {"by": "unclear", "test": failed}  # it fails without the mutation, too
                    return {"by": name, "test": failed}
        return {"by": "none", "test": ""}


def main() -> None:
    """Run mutations and report which were found by what."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many mutations")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", default="", metavar="PATH", help="part of the path of the modules to change")
    parser.add_argument("--out", type=Path, default=Path("mutations.jsonl"), help="the file that takes the results")
    parser.add_argument("--seconds", type=int, default=300, help="the CPU time that one run of tests may take")
    parser.add_argument("--list", action="store_true", help="print the mutations and run nothing")
    options = parser.parse_args()
    mutations = chosen(options.count, options.seed, options.only)
    if options.list:
        print(*mutations, sep="\n")
        return
    os.environ |= {"CI": "true", "OMP_NUM_THREADS": "1", "TRITON_INTERPRET": "1"}
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    results = {each["mutation"]: each for each in map(json.loads, lines)}
    with tempfile.TemporaryDirectory() as folder:
        skipped = shutil.ignore_patterns(".git", ".venv", "site", ".*_cache", ".hypothesis", "shared")
        copy = Path(shutil.copytree(ROOT, Path(folder) / "tree", ignore=skipped))
        tree = Tree(copy, in_a_process(concerned, copy, options.seconds), options.seconds)
        assert not tree.first_failure(None, MAKE_TEST, ["tests/test_thinning.py"]), (copy / ".output").read_text()
        for mutation in mutations:
            if str(mutation) not in results:
                results[str(mutation)] = {"mutation": str(mutation), **tree.judged(mutation)}
                with options.out.open("a") as file:
                    file.write(json.dumps(results[str(mutation)]) + "\n")
            print("{by}: {mutation}: {test}".format(**results[str(mutation)]), flush=True)
    counts = Counter(results[str(each)]["by"] for each in mutations)
    print(", ".join(f"{by}: {count}" for by, count in counts.most_common()))


if __name__ == "__main__":
    main()
