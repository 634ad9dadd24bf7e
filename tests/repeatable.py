"""Each test draws the same random numbers, whichever tests ran before it in its process."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from types import ModuleType

import numpy as np
import torch


def seed_for_test(module: ModuleType) -> None:
    """Seed the generators of the libraries, and set those of the module to where they were after its import."""
    random.seed(0)
    np.random.seed(0)
    torch.default_generator.manual_seed(0)
    for rewind in _rewinds(module):
        rewind()


@cache
def _rewinds(module: ModuleType) -> list[Callable[[], None]]:
    """Of each generator that the module holds, what sets it to where it is now: before the first test."""
    return [rewind for value in vars(module).values() if (rewind := _rewind(value))]


def _rewind(value: object) -> Callable[[], None] | None:
    match value:
        case np.random.Generator():
            state = value.bit_generator.state
            return lambda: setattr(value.bit_generator, "state", state)
        case torch.Generator():
            tensor = value.get_state()
            return lambda: value.set_state(tensor) and None
        case random.Random():
            kept = value.getstate()
            return lambda: value.setstate(kept)
    return None
