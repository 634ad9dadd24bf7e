"""Sequences whose items are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

Item = TypeVar("Item")


class LateItems(Sequence[Item]):
    """So many items, each made once, when it is first asked for.

    Args:
        count: how many items there are.
        make: makes the item of a number.

    Example:
        >>> squares = LateItems(3, lambda k: k * k)
        >>> squares[2], list(squares)
        (4, [0, 1, 4])
    """

    def __init__(self, count: int, make: Callable[[int], Item]) -> None:
        self._count, self._make = count, make
        self._items: dict[int, Item] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Item: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Item]: ...

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(self._count))]
        k = range(self._count)[place]  # of places from the end, and an IndexError beyond both
        if k not in self._items:
            self._items[k] = self._make(k)
        return self._items[k]
