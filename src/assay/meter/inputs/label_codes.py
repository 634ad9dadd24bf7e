"""Strings as labels: their numbers, by one code book for predictions and targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from assay.errors import ConfigError, InputError, InvalidValuesError, ShapeError, describe
from assay.metrics.base import Metric
from assay.tally.arrays import has_strings
from assay.tally.inputs import type_name


def takes_labels(metric: Metric) -> bool:
    """Whether predictions and targets are labels of classes: a metric of binary or multiclass data."""
    of_classes = metric.inputs == "labels" and hasattr(metric, "num_classes")
    return of_classes and getattr(metric, "num_labels", None) is None


def checked_labels(labels: Sequence[str] | None, metrics: Mapping[str, Metric]) -> tuple[str, ...]:
    """Labels as a meter has them, in the order of their numbers; empty where none are given.

    Raises:
        ConfigError: they are no strings that differ, or as many as the classes of each metric.
    """
    if labels is None:
        return ()
    do, known = 'Write labels=["ham", "spam"]', list(labels)
    if isinstance(labels, str) or not all(isinstance(each, str) for each in known):
        raise ConfigError(
            describe("labels", repr(labels), "the strings of all classes, in the order of their numbers", do)
        )
    if len(set(known)) < len(known):
        twice = next(each for each in known if known.count(each) > 1)
        raise ConfigError(describe("labels", f"{twice!r} twice", "strings that differ", "Remove the second one"))
    for name, metric in metrics.items():
        kind = type(metric).__name__
        if not takes_labels(metric):
            expected, do = "metrics of binary or multiclass labels", f"Make another meter for {kind}"
            raise ConfigError(describe("labels", f"labels for {name}={metric!r}", expected, do))
        wanted = getattr(metric, "num_classes", None) or 2
        if len(known) != wanted:
            shown = ", ".join(known[:10]) + ", ..." * (len(known) > 10)
            do = f"Write {kind}(num_classes={len(known)}), or pass all {wanted} labels"
            raise ConfigError(describe("labels", f"{len(known)} ({shown})", f"{wanted} for {name}={metric!r}", do))
    return tuple(known)


def found_labels(metric: Metric, preds: Any, target: Any) -> tuple[str, ...] | None:
    """The strings of predictions and targets, sorted; None where the two are not strings both.

    Raises:
        ConfigError: data is binary, as which of two strings is the positive class is not found in them; or there are
            fewer or more than classes.
    """
    if not (takes_labels(metric) and has_strings(preds) and has_strings(target)):
        return None
    found = sorted({*strings("preds", preds).flat, *strings("target", target).flat})
    if len(found) <= 2 and not getattr(metric, "num_classes", None):
        first, second = (*found, "other")[:2]
        do = f'Pass labels=["{first}", "{second}"]: the second one is the positive class'
        raise ConfigError(describe("labels", "none for binary data", "both classes in their order", do))
    return checked_labels(found, {type(metric).__name__: metric})


def strings(name: str, value: Any) -> NDArray[np.object_]:
    """An array of strings.

    Raises:
        ShapeError: it has no one shape.
        InvalidValuesError: an element is no string.
    """
    try:
        array = np.asarray(value, dtype=object)
    except ValueError as error:
        do = "Pass one label a sample"
        raise ShapeError(describe(name, f"{type_name(value)} of several lengths", "one shape", do)) from error
    for place, each in zip(np.ndindex(array.shape), array.flat, strict=True):
        if not isinstance(each, str):
            got = f"{each!r} at {', '.join(map(str, place))}"
            do = "Drop the sample, or fill it with a label that ignore_index is the number of"
            raise InvalidValuesError(describe(name, got, "a string, as other labels are", do))
    return array


def numbered(name: str, value: Any, labels: Sequence[str]) -> Any:
    """Strings as the numbers of their labels; anything else unchanged.

    Raises:
        InputError: a string is none of the labels.
    """
    if isinstance(value, torch.Tensor) or not has_strings(value):
        return value
    array = strings(name, value)
    number: dict[Any, int] = {label: k for k, label in enumerate(labels)}
    try:
        codes = [number[each] for each in array.flat]
    except KeyError as error:
        shown = ", ".join(map(repr, labels[:10])) + ", ..." * (len(labels) > 10)
        do = "Add it to labels=, or correct it"
        raise InputError(describe(name, repr(error.args[0]), f"one of the labels {shown}", do)) from None
    return torch.tensor(codes, dtype=torch.int64, device="cpu").reshape(array.shape)
