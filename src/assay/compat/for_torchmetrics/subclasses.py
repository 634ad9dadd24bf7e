"""Subclasses of the compatible classes: which assay counts, and which stay with the class of TorchMetrics."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from abc import ABCMeta
from collections.abc import Iterator
from types import CodeType
from typing import Any

from assay.compat.modules import warn_of_others_own
from assay.integrations.torchmetrics import torchmetrics

_ANY_CLASS_MAY_DEFINE = ("__init__", "plot")


class CompatibleType(ABCMeta):
    """The type of compatible classes, `class MeanSquaredError(CompatibleMetric, torchmetrics.MeanSquaredError)`.

    A subclass that defines how it counts, or reads states, needs those of TorchMetrics' class: its method resolution
    order skips assay's classes. What inherits TorchMetrics' class is a subclass of the compatible class.
    """

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        order = type.mro(cls)
        if (why := _why_not_counted(order)) and "_itself" not in namespace:
            kind = _compatible(order)
            home = ".".join(kind.original.__module__.split(".")[:2])
            do = f"Use it as before; derive it from {home}.{kind.__name__} to be rid of this warning"
            warn_of_others_own(f"{name} (a subclass of {kind.__name__})", kind.original, f"it {why}", do, 2)

    def mro(cls) -> list[type]:
        """The order of methods, without assay's classes where they do not count."""
        order = super().mro()
        if not _why_not_counted(order):
            return order
        left_out = _of_assay(order)
        return [each for each in order if each not in left_out]

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(vars(cls).get("original", cls), subclass)


@functools.cache
def itself(kind: Any) -> Any:
    """The class that counts with TorchMetrics' own, in the place of a compatible class or a subclass of one."""
    if "original" in vars(kind):
        return kind.original
    body = {"_itself": True, "__module__": kind.__module__, "__doc__": kind.__doc__, "__reduce_ex__": _reduced}
    return CompatibleType(kind.__name__, (kind,), body)


def _reduced(metric: Any, protocol: int) -> tuple[Any, ...]:
    return _empty, (type(metric).__mro__[1],), metric.__getstate__()


def _empty(kind: Any) -> Any:
    found = itself(kind)
    return found.__new__(found)


def _compatible(order: list[type]) -> Any:
    """The compatible class that the classes of an order inherit first, or None."""
    return next((each for each in order if "original" in vars(each)), None)


def _of_assay(order: list[type]) -> list[type]:
    """The classes of an order between the compatible class and that of TorchMetrics."""
    kind = _compatible(order)
    between = kind.__mro__[1 : kind.__mro__.index(kind.original)]
    return [each for each in between if each in order]


def _why_not_counted(order: list[type]) -> str:
    """What the first class of an order does that assay's counts cannot serve; empty where they can, or need not."""
    kind = _compatible(order)
    if kind is None or kind is order[0] or not _of_assay(order):
        return ""
    methods, states = _methods(kind.original), _states(kind.original)
    private = {name for name in methods if name.startswith("_")}
    for each in order[: order.index(kind)]:
        if "_itself" in vars(each):
            return "is TorchMetrics' own"
        for name, value in vars(each).items():
            if name in methods:
                return f"defines `{name}`"
            if found := sorted(set(_names_in(value)) & (states | private)):
                return f"uses `{found[0]}` of TorchMetrics' class in `{name}`"
    return ""


def _families(original: type) -> list[type]:
    """A class of TorchMetrics and those that it inherits, without the base class of all metrics."""
    return original.__mro__[: original.__mro__.index(torchmetrics.Metric)]  # type: ignore[return-value]


@functools.cache
def _methods(original: type) -> set[str]:
    """The methods with which a class of TorchMetrics counts."""
    found = {name for each in _families(original) for name, value in vars(each).items() if inspect.isroutine(value)}
    return {name for name in found if name not in _ANY_CLASS_MAY_DEFINE and not name.startswith("__")}


@functools.cache
def _states(original: type) -> set[str]:
    """The names of the states that a class of TorchMetrics adds."""
    return {name for each in _families(original) for name in _added_states(each)}


def _added_states(kind: type) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except OSError:  # no source
        return
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            adds = isinstance(call.func, ast.Attribute) and call.func.attr == "add_state"
            given = [each.value for each in call.keywords if each.arg == "state_name" or (adds and each.arg == "name")]
            yield from (
                each.value
                for each in [*(call.args[:1] if adds else []), *given]
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )


def _names_in(value: Any) -> Iterator[str]:
    """The names of attributes that a function, or a property, uses."""
    if isinstance(value, property):
        yield from _names_in(value.fget)
        yield from _names_in(value.fset)
        return
    value = getattr(value, "__func__", value)
    code = getattr(inspect.unwrap(value), "__code__", value) if callable(value) else value
    if isinstance(code, CodeType):
        yield from code.co_names
        for each in code.co_consts:
            yield from _names_in(each)
