"""`make test` runs one case of each kind, the same in each run, and another one for each test."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from thinning import mark_the_rest, one_of_each


@dataclass
class Item:
    """What the selection reads of a case of a test."""

    test: str
    params: dict[str, Any]
    kind: Any = None
    turns: int = 1
    marks: list[str] = field(default_factory=list)

    @property
    def nodeid(self) -> str:
        return f"{self.test}[{self.params}]"

    @property
    def callspec(self) -> Any:
        return SimpleNamespace(params=self.params)

    def get_closest_marker(self, name: str) -> Any:
        assert name == "one_of_each"
        return self.kind and one_of_each(self.kind, self.turns).mark

    def add_marker(self, name: str) -> None:
        self.marks.append(name)


def items(test: str, turns: int, kinds: int) -> list[Item]:
    return [Item(test, {"n": n, "on": on}, lambda n, on: n % kinds, turns) for n in range(100) for on in ("cpu", "mps")]


def chosen(test: str, turns: int = 1, kinds: int = 10) -> list[dict[str, Any]]:
    cases = items(test, turns, kinds)
    mark_the_rest(cases)
    assert all(case.marks in ([], ["exhaustive"]) for case in cases)
    return [case.params for case in cases if not case.marks]


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


def test_other_tests_keep_every_case():
    cases = [Item("test", {"n": n}) for n in range(5)]
    mark_the_rest(cases)
    assert all(case.marks == [] for case in cases)
