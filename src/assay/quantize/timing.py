"""Calls that are timed in turns, so that what slows the machine slows all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from assay.devices.cost import wait


def in_turns(
    calls: Mapping[str, Callable[[int], Any]], device: torch.device, is_enough: Callable[[int, float], bool]
) -> dict[str, list[float]]:
    """Time calls round by round; the device has finished its work before and after each.

    Args:
        calls: by name, functions of the number of the round.
        device: where they work.
        is_enough: whether to end, after so many rounds and seconds; asked after each round.

    Returns:
        The seconds of each call by name.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    rounds, start = 0, time.perf_counter()
    while rounds == 0 or not is_enough(rounds, time.perf_counter() - start):
        for name, call in calls.items():
            wait(device)
            begin = time.perf_counter()
            call(rounds)
            wait(device)
            times[name].append(time.perf_counter() - begin)
        rounds += 1
    return times
