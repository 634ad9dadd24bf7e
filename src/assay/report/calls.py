"""Functions that say how they are called, where a call has other arguments than they take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, ParamSpec, TypeVar

from assay.errors import ConfigError, describe

P = ParamSpec("P")
R = TypeVar("R")


def called_as(example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function raise a `ConfigError` that shows a call, instead of Python's `TypeError` for its arguments.

    Args:
        example: a call, as source.

    Example:
        >>> @called_as("half(3)")
        ... def half(number):
        ...     return number / 2
        >>> half(number=3)
        1.5
        >>> half()
        Traceback (most recent call last):
        assay.errors.ConfigError: half: got no 'number', expected some of number. Write half(3).
    """

    def declared(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise _refused(function.__name__, signature, kwargs, str(error), example) from None
            return function(*args, **kwargs)

        return checked

    return declared


def _refused(name: str, signature: inspect.Signature, given: dict[str, Any], why: str, example: str) -> ConfigError:
    names = list(signature.parameters)
    unknown = sorted(given.keys() - set(names))
    close = get_close_matches(unknown[0], names, 1) if unknown else []
    got = f"an argument {unknown[0]!r}" if unknown else why.replace("missing a required argument:", "no")
    do = f"Write {close[0]}=" if close else f"Write {example}"
    return ConfigError(describe(name, got, f"some of {', '.join(names)}", do))
