"""Targets and ids as they come from files: classes as numbers with names, nothing missing, no id twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.render.text import first_names


def number_classes(names: Sequence[str | None], classes: Sequence[str], where: str) -> tuple[Tensor, tuple[str, ...]]:
    """Class names as numbers.

    Args:
        names: the class of each sample.
        classes: all names in the order of their numbers; those that occur, sorted, where it is empty.
        where: what the names are, in messages.

    Returns:
        The numbers, int64 of shape (N,), and the names.

    Example:
        >>> number_classes(["cat", "dog", "cat"], (), "labels")
        (tensor([0, 1, 0]), ('cat', 'dog'))
    """
    empty = [k for k, name in enumerate(names) if name is None or not name.strip()]
    if empty:
        raise ConfigError(describe(where, f"no label in {rows_at(empty)}", "one each", "Fill it in or remove the row"))
    texts = [str(name) for name in names]
    known = tuple(classes) or tuple(sorted(set(texts)))
    number = {name: k for k, name in enumerate(known)}
    if len(number) < len(known):
        raise ConfigError(describe("classes", ", ".join(known), "each name once", "Remove the name that comes twice"))
    unknown = sorted(set(texts) - set(number))
    if unknown:
        got = first_names(map(repr, unknown), 5)
        do = "Name all classes in the order of the model's outputs as classes"
        raise ConfigError(describe(where, got, f"one of the classes {', '.join(known)}", do))
    return torch.tensor([number[name] for name in texts], dtype=torch.int64, device="cpu"), known


def rows_at(rows: Sequence[int]) -> str:
    """Where rows are, for messages; rows are counted from 0, as ids are."""
    return f"row{'s' * (len(rows) > 1)} {first_names(rows, 5)}"


def to_target(values: Any, classes: Sequence[Any], where: str) -> tuple[Tensor, tuple[str, ...]]:
    """A column as the target: texts as the numbers of classes, numbers as they are.

    Where the classes are no texts but the labels of an estimator, labels become their places among these.
    """
    if classes and not isinstance(classes[0], str):
        return torch.from_numpy(class_numbers(values, classes, where)), tuple(map(str, classes))
    if not isinstance(values, Tensor):
        array = np.asarray(values)
        if array.dtype.kind in "OUS":
            return number_classes(array.tolist(), classes, where)
        values = tensor(array, where)
    target: Tensor = values.to(torch.int64) if values.dtype == torch.bool else values
    if target.is_floating_point():
        bad = _rows(~torch.isfinite(target))
        if bad:
            do = "Remove these rows, or fill them in"
            raise ConfigError(describe(where, f"NaN or infinity in {rows_at(bad)}", "a finite number each", do))
    elif classes and len(target):
        outside = _rows((target < 0) | (target >= len(classes)))
        if outside:
            got = f"{target[outside[0]].tolist()} in {rows_at(outside)}"
            expected = f"numbers below {len(classes)}, as there are {len(classes)} classes"
            raise ConfigError(describe(where, got, expected, "Correct classes or the data"))
    return target, tuple(classes)


def class_numbers(values: Any, classes: Sequence[Any], where: str) -> np.ndarray[Any, Any]:
    """The place of each value among the classes, int64.

    Raises:
        ConfigError: a value is none of the classes.

    Example:
        >>> class_numbers(["dog", "cat"], ("cat", "dog"), "target")
        array([1, 0])
    """
    number = {each: k for k, each in enumerate(classes)}
    plain = np.asarray(values).tolist()
    unknown = next((each for each in plain if each not in number), None)
    if unknown is not None:
        shown = ", ".join(map(repr, classes[:8])) + (", …" if len(classes) > 8 else "")
        do = "Give all classes in the order of the model's outputs"
        raise ConfigError(describe(where, repr(unknown), f"one of the classes {shown}", do))
    return np.array([number[each] for each in plain], np.int64)


def _rows(mask: Tensor) -> list[int]:
    """The rows in which something is true."""
    return mask.reshape(len(mask), -1).any(1).nonzero().flatten().tolist()


def tensor(array: Any, where: str) -> Tensor:
    """An array as a tensor."""
    try:
        return torch.from_numpy(np.ascontiguousarray(array))
    except TypeError as error:
        do = "Save numbers, or name the columns that hold them"
        raise ConfigError(describe(where, f"{array.dtype} values", "numbers", do)) from error


def check_ids(ids: Any, where: str) -> None:
    """Raise where two samples have one id."""
    listed = ids.tolist()
    rows: dict[Any, int] = {}
    for k, each in enumerate(listed):
        if each is None or isinstance(each, float) or each in rows:
            got = f"{each!r} in {rows_at([rows[each], k] if each in rows else [k])}"
            do = "Give each sample an integer or a string of its own"
            raise ConfigError(describe(where, got, "an id of its own for each sample", do))
        rows[each] = k


def class_note(classes: Sequence[str], by: str) -> str:
    """A line for the report: which number is which class.

    Args:
        classes: the names.
        by: who gave the order.
    """
    shown = ", ".join(f"{k} = {name}" for k, name in enumerate(classes[:20])) + (", …" if len(classes) > 20 else "")
    return f"{len(classes)} classes in {by}: {shown}."


def check_classes(labels: Tensor | None, classes: Sequence[str], metrics: Mapping[str, Any]) -> None:
    """Raise where the data have classes that the metrics have not, before anything is evaluated."""
    for name, metric in metrics.items():
        count = getattr(metric, "num_classes", None)
        if count is None or getattr(metric, "num_labels", None) is not None:
            continue
        if classes and len(classes) != count:
            do = "Correct num_classes, or name all classes in the order of the model's outputs as classes"
            raise ConfigError(describe("classes", f"{len(classes)} ({_some(classes)})", f"{count}, as {name} has", do))
        if labels is None or labels.is_floating_point() or getattr(metric, "ignore_index", None) is not None:
            continue
        outside = _rows((labels < 0) | (labels >= count))
        if outside:
            got = f"{labels[outside[0]].tolist()} in {rows_at(outside)}"
            do = "Correct num_classes or the data, or name ignore_index"
            raise ConfigError(describe("target", got, f"labels below {count}, as {name} has {count} classes", do))


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "")
