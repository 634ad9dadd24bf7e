"""Groups of things of which no two can be told apart, and the places that each may have."""

from __future__ import annotations

from collections.abc import Collection


def groups_of(count: int, apart: Collection[tuple[int, int]]) -> list[frozenset[int]]:
    """The largest groups in which no pair is told apart; a thing may be in several.

    Args:
        count: how many things there are.
        apart: the pairs that are told apart.

    Example:
        >>> [sorted(group) for group in groups_of(4, [(0, 2), (0, 3), (1, 3)])]
        [[0, 1], [1, 2], [2, 3]]

    Source:
        Piepho 2004, An algorithm for a letter-based representation of all-pairwise comparisons, Journal of
        Computational and Graphical Statistics 13:456.
    """
    groups = [frozenset(range(count))]
    for first, second in apart:
        split = [group for group in groups if {first, second} <= group]
        groups = [group for group in groups if group not in split]
        for part in (group - {each} for group in split for each in (second, first)):
            if not any(part <= group for group in groups):
                groups = [group for group in groups if not group <= part] + [part]
    return sorted(groups, key=sorted)


def letters(number: int) -> str:
    """The name of a group: a, b, ..., z, aa, ab, ...

    Example:
        >>> letters(0), letters(25), letters(26), letters(701), letters(702)
        ('a', 'z', 'aa', 'zz', 'aaa')
    """
    name, number = "", number + 1
    while number:
        number, place = divmod(number - 1, 26)
        name = chr(ord("a") + place) + name
    return name


def places(count: int, better: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """The best and the worst place that each thing may have, from 1 on.

    Args:
        count: how many things there are.
        better: the pairs of which the first is known to be better.

    Example:
        >>> places(3, [(0, 2), (1, 2)])
        [(1, 2), (1, 2), (3, 3)]

    Source:
        Mogstad, Romano, Shaikh & Wilhelm 2024, Inference for ranks, Review of Economic Studies 91:476.
    """
    above, below = ([sum(pair[side] == each for pair in better) for each in range(count)] for side in (1, 0))
    return [(1 + above[each], count - below[each]) for each in range(count)]
