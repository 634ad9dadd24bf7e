"""`make test` runs one case of each kind, the same in each run, and another one for each test."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from thinning import Selection, one_of_each, represented, thin_out


@dataclass
class Case:
    """What the selection reads of a case of a test."""

    params: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.params)


def chosen(test: str, turns: int = 1, kinds: int = 10) -> list[dict[str, Any]]:
    cases = [Case({"n": n, "on": on}) for n in range(100) for on in ("cpu", "mps")]
    rest = represented(test, cases, lambda n, on: n % kinds, turns)
    return [case.params for case in cases if case not in rest]


def test_one_case_of_each_kind_is_left():
    left = chosen("test")
    assert sorted(each["n"] % 10 for each in left) == [*range(10)]
    assert {each["on"] for each in left} == {"cpu", "mps"}
    assert left == chosen("test")
    assert left != chosen("another_test")


def test_each_law_is_tried_on_a_part_of_the_kinds_and_every_kind_has_its_turn():
    tried = [{each["n"] % 10 for each in chosen(f"law {k}", turns=3)} for k in range(20)]
    assert {len(kinds) for kinds in tried} <= {3, 4}
    assert set.union(*tried) == {*range(10)}
    assert all(len(chosen(f"law {k}", turns=3, kinds=2)) == 1 for k in range(20))


def test_a_run_without_the_rest_makes_no_case_of_it(monkeypatch):
    def made(is_thin: bool, *cases: Any) -> list[Any]:
        calls = [SimpleNamespace(params={"n": n}, id=str(n), marks=[mark.mark for mark in marks]) for n, marks in cases]
        marker = one_of_each(lambda n: n % 2).mark
        test = SimpleNamespace(nodeid="test", get_closest_marker=lambda name: {"one_of_each": marker}.get(name))
        monkeypatch.setattr(Selection, "is_thin", is_thin)
        thin_out(SimpleNamespace(definition=test, _calls=calls))
        return calls

    exhaustive = [pytest.mark.exhaustive]
    cases = [(n, []) for n in range(10)]
    assert [len(made(is_thin, *cases)) for is_thin in (True, False)] == [2, 10]
    assert sum(bool(call.marks) for call in made(False, *cases)) == 8
    assert [call.params["n"] for call in made(True, (0, exhaustive), (1, exhaustive))] == [0], (
        "one, which -m leaves out"
    )
