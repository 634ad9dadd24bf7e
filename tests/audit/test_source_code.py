from __future__ import annotations

import ast
import sys

import pytest
import torch

from assay.audit.watching.source_code import (
    SITES,
    expression,
    library_line,
    line_of,
    method_line,
    names_in,
    names_index,
    shorten,
    state_line,
    statement,
    where,
)
from assay.pretend.events import Frame


@pytest.fixture
def frame(tmp_path):
    def write(line):
        file = tmp_path / "code.py"
        line = line.removesuffix(" pass") + "\n        pass" if line.endswith(" pass") else line
        file.write_text(f"def update(self, x, y, mask):\n    {line}\n")
        return Frame(str(file), 2, "update")

    return write


@pytest.mark.parametrize(
    ("line", "operator", "found"),
    [
        ("return float(x.sum())", "aten::_local_scalar_dense", "float(x.sum())"),
        ("self.hits += (x == y).sum().item()", "aten::_local_scalar_dense", "(x == y).sum().item()"),
        ("if x.max() > 1: pass", "aten::_local_scalar_dense", "x.max() > 1"),
        ("while x.any(): pass", "aten::_local_scalar_dense", "x.any()"),
        ("assert x.all(), 'no'", "aten::_local_scalar_dense", "x.all()"),
        ("z = 1 if x.min() else 2", "aten::_local_scalar_dense", "1 if x.min() else 2"),
        ("z = torch.unique(x)", "aten::_unique2", "torch.unique(x)"),
        ("z = x.nonzero()", "aten::nonzero", "x.nonzero()"),
        ("z = x[mask] + 1", "aten::index.Tensor", "x[mask]"),
        ("z = x.cpu().numpy()", "aten::copy_", "x.cpu().numpy()"),
        ("z = [v.tolist() for v in x]", "aten::copy_", "v.tolist()"),
        ("self.z = something(x)", "aten::odd_one", "something(x)"),
    ],
)
def test_the_expression_that_waits_is_named(frame, line, operator, found):
    assert expression(frame(line), operator, waits=True) == found


@pytest.mark.parametrize(
    ("line", "operator", "found"),
    [
        ("z = x + y * 2", "aten::add.Tensor", "x + y * 2"),
        ("z = x + y * 2", "aten::mul.Tensor", "y * 2"),
        ("z = x.sum() if x >= y else y", "aten::ge.Tensor", "x >= y"),
        ("z = torch.linalg.svd(x)[0]", "aten::linalg_svd", "torch.linalg.svd(x)"),
        ("for v in torch.cumsum(x, 0): pass", "aten::cumsum", "torch.cumsum(x, 0)"),
        ("z = x.to('cuda')", "aten::_to_copy", "x.to('cuda')"),
        ("with torch.no_grad(): pass", "aten::add.Tensor", ""),
    ],
)
def test_the_expression_of_an_operator_is_named(frame, line, operator, found):
    assert expression(frame(line), operator) == found


def test_a_statement_over_several_lines_is_read_whole(tmp_path):
    file = tmp_path / "code.py"
    file.write_text("z = f(\n    x,\n    y.item(),\n)\n")
    for number in (1, 2, 3):
        assert expression(Frame(str(file), number, "<module>"), "aten::_local_scalar_dense", waits=True) == "y.item()"


@pytest.mark.parametrize("text", ["def f(:\n", "", "\0"])
def test_what_cannot_be_read_has_no_expression(tmp_path, text):
    file = tmp_path / "code.py"
    file.write_text(text)
    assert expression(Frame(str(file), 1, "f"), "aten::add") == ""
    assert statement(Frame(str(tmp_path / "missing.py"), 1, "f")) is None
    assert line_of(Frame(str(tmp_path / "missing.py"), 1, "f")) == ""


def test_names_are_told_in_the_order_of_the_line():
    assert names_in(ast.parse("a.b.c(d) + self.total[e] - d")) == ["a.b", "d", "self.total", "e"]


def test_long_expressions_are_cut():
    assert shorten("x" * 200) == "x" * 89 + "…"


def test_the_machinery_of_python_is_not_the_line():
    import contextlib

    stack = [Frame(contextlib.__file__, 9, "inner"), Frame("<string>", 1, "<module>"), Frame("/mine/a.py", 2, "f")]
    assert str(where(stack)) == "/mine/a.py:2"
    assert where(stack[:2]) is None


class Base:
    def __init__(self):
        self.add_state("total", torch.zeros(()))
        self.named: int = 3

    def add_state(self, name, value):
        setattr(self, name, value)

    def compute(self):
        return 0


class Child(Base):
    def update(self):
        self.total = self.total + 1
        self.own = 1


def code_at(found):
    return line_of(found)


def test_a_state_is_made_where_it_is_registered_else_where_it_is_assigned():
    assert code_at(state_line(Child.__mro__, "total")) == 'self.add_state("total", torch.zeros(()))'
    assert code_at(state_line(Child.__mro__, "own")) == "self.own = 1"
    assert code_at(state_line(Child.__mro__, "named")) == "self.named: int = 3"
    assert state_line(Child.__mro__, "missing") is None


def test_a_method_is_where_a_class_or_its_base_defines_it():
    assert code_at(method_line(Child.__mro__, "compute")) == "def compute(self):"
    assert code_at(method_line(Child.__mro__, "missing")) == "class Child(Base):"
    assert method_line([int], "compute") is None


MOVES = """
import torch
device, other = torch.device("cuda", 1), torch.device("cuda")
def moved(x, y):
    return lambda: {}
"""


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("x.to('cuda:0')", True),
        ("x.to(0)", True),
        ("x.cuda(1)", True),
        ("x.to(device, non_blocking=True)", True),
        ("torch.ones(3, device=device)", True),
        ("x.to(y.device)", True),
        ("x.to(y)", True),
        ("x.cuda()", False),
        ("x.to('cuda')", False),
        ("x.to(other)", False),
        ("x.sum(0)", False),
    ],
)
def test_a_line_says_to_which_device_a_tensor_goes(tmp_path, line, named):
    file = tmp_path / "moves.py"
    file.write_text(MOVES.format(line))
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    frames = []

    class Seen:
        device = None

        def __getattr__(self, name):
            return lambda *args, **kwargs: frames.append(sys._getframe(1))

    if "torch.ones" in line:
        names["torch"] = Seen()
    names["moved"](Seen(), torch.ones(1))()
    assert names_index(frames[0], "cuda") is named


def test_the_line_is_the_users_and_not_that_of_an_installed_library(tmp_path):
    library, own = Frame(SITES[0] + "lib/x.py", 7, "f"), Frame(str(tmp_path / "train.py"), 3, "main")
    assert where([library, own]) == own
    assert where([library, own], (SITES[0] + "lib/",)) == library
    assert where([library]) == library
    assert library_line([library, own], own) == library
    assert library_line([own, library], own) is None
