"""The error of pretend devices, and functions that raise it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.errors import AssayError, describe


class PretendError(AssayError, RuntimeError):
    """A pretend device does not support an operation, or is not available."""


def refuse(what: str) -> Callable[..., Any]:
    """A function that cannot be had without a real device."""

    def refused(*_: object, **__: object) -> Any:
        expected = "a real device: there is nothing here that could run or measure it"
        do = "Leave this part out here; the device's name says whether it is pretended"
        raise PretendError(describe(what, "a call on a pretend device", expected, do))

    return refused
