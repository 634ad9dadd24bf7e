"""The modules that a model uses: itself, or those that a function or another object calls."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

_DEEPEST = 6
_MOST_ITEMS = 64


def modules_of(model: Any) -> list[nn.Module]:
    """All modules of a model, inner ones too.

    Of a function these are the modules in its closure, its defaults and the names of its module that it uses; of an
    object those in its attributes.

    Example:
        >>> inner = nn.Linear(2, 2)
        >>> modules_of(lambda x: inner(x).argmax(1)) == [inner]
        True
    """
    found: dict[int, nn.Module] = {}
    visited: set[int] = set()
    waiting = [(model, 0)]
    while waiting:
        value, depth = waiting.pop()
        if id(value) in visited or depth > _DEEPEST:
            continue
        visited.add(id(value))
        if isinstance(value, nn.Module):
            found |= {id(each): each for each in value.modules()}
        else:
            waiting += [(each, depth + 1) for each in _parts(value)]
    return list(found.values())


def _parts(value: Any) -> Iterator[Any]:
    """What a function or an object holds."""
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, list | tuple):
        yield from value[:_MOST_ITEMS]
    elif isinstance(value, Mapping):
        yield from list(value.values())[:_MOST_ITEMS]
    elif callable(value) and not isinstance(value, type):
        yield from getattr(value, "__dict__", {}).values()
        call = type(value).__call__
        if isinstance(call, FunctionType):
            yield call


def _of_function(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a variable without a value yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        if isinstance(value, nn.Module) or getattr(value, "__module__", None) == function.__module__:
            yield value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
