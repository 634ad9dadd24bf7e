"""The type of metrics: what is wrong with a call, and what to write."""

from __future__ import annotations

import difflib
import functools
import inspect
from abc import ABCMeta
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.errors import describe, plural


class MetricType(ABCMeta):
    """The type of metrics: arguments that a metric does not have raise an error that says what to write."""

    def __dir__(cls) -> list[str]:
        """What users of a metric of assay need, which `help` and completion show; all of a class of one's own."""
        if cls.__abstractmethods__ or not cls.__module__.startswith("assay.metrics."):
            return list(super().__dir__())
        return list(_FOR_USERS)  # the docstring has the arguments

    if not TYPE_CHECKING:  # for type checkers, calling a metric's class is its `__init__` alone

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().__call__(*args, **kwargs)
            except TypeError as error:
                signature = cls.__signature__
                try:
                    signature.bind(*args, **kwargs)
                except TypeError:
                    raise TypeError(_about_arguments(cls.__name__, signature, args, kwargs, error)) from None
                raise

        @property
        def __signature__(cls) -> inspect.Signature:
            signature = inspect.signature(cls.__init__)
            return signature.replace(parameters=list(signature.parameters.values())[1:])


_FOR_USERS = ("__call__", "higher_is_better", "plot", "value_range")


def needing_counts(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The `compute` of a metric, with an error for a call without counts that says what to write."""

    @functools.wraps(compute)
    def checked(self: Any, *counts: Any, **named: Any) -> Any:
        if counts or named:
            return compute(self, *counts, **named)
        raise TypeError(about_meters(self, "compute"))

    return checked


def about_meters(metric: Any, name: str) -> str:
    """What to write where a metric is used as one of another library, which holds counts."""
    do = f"Write meter = Meter(metric={metric!r}), meter.update(preds, target), meter.compute()"
    return describe(type(metric).__name__, f"no {name!r}, as a metric holds no counts", "a meter", do)


def about_name(metric: Any, name: str) -> str:
    """The message for a name that a metric does not have: and what to write."""
    if name in OF_METERS:
        return about_meters(metric, name)
    close = [] if name.startswith("_") else difflib.get_close_matches(name, [*metric.arguments, *_FOR_USERS], 1)
    said = f"; did you mean {close[0]}?" if close else ""
    return f"{type(metric).__name__!r} object has no attribute {name!r}{said}"


def _about_arguments(
    name: str, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any], error: TypeError
) -> str:
    """What is wrong with the arguments of a metric, and what to write."""
    names = list(signature.parameters)
    if "task" in kwargs:
        given = {key: value for key, value in kwargs.items() if key in ("num_classes", "num_labels")}
        shown = ", ".join(f"{key}={value!r}" for key, value in given.items())
        do = f"Write {name}({shown}), or import {name} from assay.compat.torchmetrics, which takes task="
        return describe(name, "task", "num_classes for several classes, num_labels for several labels, or neither", do)
    if args and args[0] in ("binary", "multiclass", "multilabel"):
        return _about_arguments(name, signature, args[1:], {"task": args[0], **kwargs}, error)
    unknown = sorted(kwargs.keys() - set(names))
    if unknown:
        close = difflib.get_close_matches(unknown[0], names, 1)
        do = f"Write {close[0]}=" if close else f"Leave {unknown[0]} out"
        return describe(name, f"unexpected keyword argument {unknown[0]!r}", f"some of {', '.join(names)}", do)
    keywords = [each for each, parameter in signature.parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    if len(args) > len(names) - len(keywords):
        do = f"Write the names, as in {name}({(keywords or names)[0]}={args[0]!r})" if names else "Leave them out"
        return describe(name, f"{plural(len(args), 'argument')} without a name", ", ".join(names) or "no argument", do)
    missing = [key for key, each in signature.parameters.items() if each.default is each.empty and key not in kwargs][
        len(args) :
    ]
    return (
        describe(name, f"no {', '.join(missing)}", ", ".join(names), f"Pass {missing[0]}=") if missing else str(error)
    )


def about_positions(metric: Any, others: int) -> str:
    """What to write where a call has more than predictions and targets without a name."""
    names = sorted({*metric.tally(False).columns}.union(*(each.columns for each in metric.encoders)) or {"weights"})
    do = f"Write {type(metric).__name__}(...)(preds, target, {', '.join(f'{name}=...' for name in names)})"
    return describe(type(metric).__name__, f"{others + 2} arguments without a name", "preds and target", do)


OF_METERS = frozenset(
    {"update", "reset", "forward", "to", "cpu", "cuda", "merge", "merge_state", "state_dict", "load_state_dict", "sync"}
    | {"device", "half", "float", "double", "set_dtype", "eval", "train", "persistent", "clone", "attach", "completed"}
    | {"value", "result", "add", "add_batch", "update_state", "reset_states", "reset_state", "rows", "metric_state"}
)
"""What metrics of other libraries have, and here a meter has or does not need."""
