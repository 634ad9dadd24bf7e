"""Which cases of a test with many of them `make test` runs: one of each kind. `make test-all` runs them all.

Of a law, which holds for every kind, `make test` runs a third of the kinds: each law another third.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any
from zlib import crc32

import pytest

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
EXAMPLES = 8
"""How many examples of a property `make test` draws; `make test-all` draws 40."""
TURNS = 3
"""How many laws it takes on average until each kind was tried."""


class Selection:
    """Whether this run leaves out what is marked `exhaustive`, which `tests/conftest.py` sets first."""

    is_thin = False


def draws(count: int) -> range:
    """The seeds of the data that a test draws: `count`, of which `make test` takes the first fifth, at least four."""
    return range(max(4, count // 5) if Selection.is_thin else count)


def one_of_each(kind: Callable[..., Hashable] = lambda **_: None, turns: int = 1) -> Decorator:
    """Decorate a parametrized test, so that `make test` runs one case of each kind.

    Args:
        kind: takes the parameters of a case by name and gives what is equal for the cases that one of them represents.
            By default all cases are of one kind.
        turns: run the cases of one kind in so many.
    """
    return pytest.mark.one_of_each.with_args(kind, turns)


every_third = pytest.mark.one_of_each.with_args(None, TURNS)
"""Decorate a parametrized test, so that `make test` runs a third of its cases: with others in each test."""


def every(cases: Sequence[Any], kind: Callable[[Any], Hashable] = attrgetter("kind"), turns: int = TURNS) -> Decorator:
    """Parametrize a law with cases, of which `make test` runs one of every third `kind`; on each device in turn.

    With `turns=1` it runs one of every kind: of laws that find what no other test does, as tests/mutations.py says.
    """
    parametrized = pytest.mark.parametrize("case", cases, ids=str)
    return lambda test: one_of_each(lambda case, **_: kind(case), turns)(parametrized(test))


def one_of_each_and_the_rest(cases: Sequence[Any]) -> Decorator:
    """Parametrize a test that takes many cases at once; `make test` gives it one of each `kind`."""
    first = list({case.kind: case for case in reversed(cases)}.values())
    rest = pytest.param([case for case in cases if case not in first], id="the rest", marks=pytest.mark.exhaustive)
    return pytest.mark.parametrize("cases", [pytest.param(first, id="one of each kind"), rest])


def thin_out(metafunc: pytest.Metafunc) -> None:
    """Mark as `exhaustive` the cases that another one of their kind represents; a run without those makes none of them.

    Which one does is the same in every run, and another one for each test and each kind: together, the tests run many
    of the cases, and each kind meets one of the devices. The kinds that have their turn differ between tests, too.
    """
    test, calls = metafunc.definition, metafunc._calls  # pytest has no other way to leave out a case before it is made
    if (marker := test.get_closest_marker("one_of_each")) is not None:
        for call in represented(test.nodeid, calls, *marker.args):
            call.marks.append(pytest.mark.exhaustive.mark)
    if Selection.is_thin:
        calls[:] = [call for call in calls if all(mark.name != "exhaustive" for mark in call.marks)] or calls[:1]


def represented(test: str, calls: Sequence[Any], kind: Callable[..., Hashable] | None, turns: int) -> list[Any]:
    """Those of the cases of a test (with `params` and an `id`) that another one of their kind represents."""
    kinds: dict[Hashable, list[Any]] = {}
    for call in calls:
        kinds.setdefault(kind(**call.params) if kind else call.id, []).append(call)
    number = min(turns, len(kinds))
    rest: list[Any] = []
    for place, cases in enumerate(kinds.values(), crc32(test.encode())):
        chosen = crc32(f"{test}[{cases[0].id}]".encode()) % len(cases) if place % number == 0 else len(cases)
        rest += cases[:chosen] + cases[chosen + 1 :]
    return rest


__all__ = [
    "EXAMPLES",
    "TURNS",
    "Selection",
    "draws",
    "every",
    "every_third",
    "one_of_each",
    "one_of_each_and_the_rest",
    "represented",
    "thin_out",
]
