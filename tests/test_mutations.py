"""The mutations of `tests/mutations.toml` still apply: each line is there once, and what becomes of it compiles."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path

import pytest

from mutations import Mutation, Tree, drawn, mutations

ROOT = Path(__file__).parents[1]


@functools.lru_cache(maxsize=4)
def dumped(source: str) -> str:
    return ast.dump(ast.parse(source))


@pytest.fixture
def nothing_collected():
    """Trees of hundreds of modules have no circles to look for."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("nothing_collected")
def test_each_mutation_changes_a_line_and_has_tests():
    found = mutations()
    assert len(found) >= 200
    assert len({str(each) for each in found}) == len(found)
    for each in found:
        source = each.file(ROOT).read_text("utf-8")
        assert dumped(each.changed(source)) != dumped(source), each
        assert each.test_files(ROOT), each


def test_a_line_that_moved_to_another_module_is_found_there():
    known = mutations()[0]
    moved = Mutation("src/assay/nowhere.py", known.line, known.becomes, known.tests)
    assert moved.file(ROOT) == known.file(ROOT)


def test_changes_of_functions_are_told_from_those_of_what_runs_at_import(tmp_path):
    (tmp_path / "src/assay").mkdir(parents=True)
    (tmp_path / "src/assay/one.py").write_text("LIMIT = 1\n\n\ndef double(x, times=2):\n    return x * times\n")
    tree = Tree(tmp_path, seconds=1)
    lines = {"LIMIT = 1": "LIMIT = 2", "def double(x, times=2):": "def double(x, times=3):"}
    for line, becomes in lines.items():
        assert not tree.is_in_functions(Mutation("src/assay/one.py", line, becomes))
    assert tree.is_in_functions(Mutation("src/assay/one.py", "return x * times", "return x + times"))


def test_drawn_mutations_apply():
    for each in drawn(20, 0, "stats/"):
        source = each.file(ROOT).read_text("utf-8")
        assert each.changed(source) != source
        ast.parse(each.changed(source))
