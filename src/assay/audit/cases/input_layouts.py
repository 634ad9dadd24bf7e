"""Inputs for a metric class that nobody has described: common layouts are tried on the CPU until one fits."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch

from assay.audit.cases.case import Case
from assay.audit.tensor_trees import mapped
from assay.audit.watching.observations import MOVED, USAGES
from assay.errors import describe

ROWS, CLASSES, BATCHES = 16, 5, 3


def guess_case(thing: type) -> Case:
    """A case for a class with ``update`` and ``compute`` that can be made without arguments.

    It has the first common layout of inputs that runs on the CPU, or says why none does.
    """
    name = f"{thing.__module__}.{thing.__qualname__}"
    if why := _cannot_build(thing):
        return Case(name, thing, why_not=why)
    for batches in layouts():
        if _runs(thing, batches):
            return Case(name, thing, batches, usages=(MOVED,) if _moves_its_states(thing) else USAGES)
    todo = "Give a case with inputs by a function audit_cases() in its module"
    got, expected = "an error from each common layout of inputs", "scores and labels, two vectors, or values"
    return Case(name, thing, why_not=describe("update", got, expected, todo))


def _moves_its_states(thing: type) -> bool:
    """Whether its states are registered, as TorchMetrics does: it is moved to the device first, like a module."""
    return callable(getattr(thing, "add_state", None))


def _cannot_build(thing: type) -> str:
    signature = "unknown"
    try:
        thing()
    except Exception as error:
        with suppress(TypeError, ValueError):
            signature = str(inspect.signature(thing))
        todo = "Give a case that builds it by a function audit_cases() in its module"
        got = f"{type(error).__name__}: {error} (its arguments: {signature})"
        return describe(f"{thing.__qualname__}()", got, "a metric without arguments", todo)
    return ""


def layouts() -> Iterator[tuple[tuple[Any, ...], ...]]:
    """Batches in the layouts that metrics commonly take, the most telling first; each also as one pair (Ignite)."""
    generator = torch.Generator().manual_seed(0)

    def probabilities(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator, device="cpu")

    def labels(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, high, shape, generator=generator, device="cpu")

    def partly_right(target: torch.Tensor) -> torch.Tensor:
        """Every other value is the target's, so that hits are counted, and the others add up to no integer."""
        return torch.where(torch.arange(ROWS, device="cpu") % 2 == 0, target.float(), probabilities(ROWS))

    makers = (
        lambda: (probabilities(ROWS, CLASSES), labels(CLASSES, ROWS)),
        lambda: (partly_right(target := labels(2, ROWS)), target),
        lambda: (labels(CLASSES, ROWS), labels(CLASSES, ROWS)),
        lambda: (partly_right(target := probabilities(ROWS)), target),
        lambda: (probabilities(ROWS, CLASSES), probabilities(ROWS, CLASSES)),
        lambda: (probabilities(ROWS, CLASSES), labels(2, ROWS, CLASSES)),
        lambda: (probabilities(ROWS),),
        lambda: (probabilities(2, 3, 32, 32), probabilities(2, 3, 32, 32)),
    )
    for make in makers:
        batches = tuple(make() for _ in range(BATCHES))
        yield batches
        if len(batches[0]) > 1:
            yield tuple((batch,) for batch in batches)


def _runs(thing: type, batches: tuple[tuple[Any, ...], ...]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            metric: Any = thing()
            for batch in batches:
                metric.update(*mapped(batch, torch.Tensor.clone))
            metric.compute()
        except Exception:
            return False
    return True
