"""Equal numbers of forwards: a process without batches goes on calling the model with samples that do not count."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import Any

from assay.evaluation.data.data_source import ANOTHERS, Unit, Units

_REPEAT = Unit(None, None, own=False)


def up_to(units: Units, own: int, most: int) -> Units:
    """Batches, and then as many repeated ones as other processes have more.

    Args:
        units: the batches of this process.
        own: how many they are.
        most: how many the process with the most batches has.
    """
    with closing(units):
        yield from units
    for _ in range(most - own):
        yield _REPEAT


def one_by_one(units: Units, most: Callable[[int], int], borrowed: Callable[[Any], Any]) -> Units:
    """Batches of a stream, whose number nobody knows, and repeated ones until the streams of all processes end.

    Args:
        units: the batches of this process.
        most: the largest of the numbers that processes give it.
        borrowed: gives processes without a first batch that of another one.
    """
    spare = _REPEAT
    with closing(units):
        for number in count():
            unit = next(units, None)
            while unit is not None and unit.data is ANOTHERS:
                yield unit
                unit = next(units, None)
            if not most(int(unit is not None)):
                return
            if not number:
                spare = Unit(None, borrowed(None if unit is None else unit.data), own=False)
            yield spare if unit is None else unit
