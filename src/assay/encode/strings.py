"""What encoders of strings have in common: checks that name the sample, and optional packages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.encode.base import Encoder
from assay.errors import InputError, MissingDependencyError, describe

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
EXTRA = "text"


class StringEncoder(Encoder):
    """An encoder of pairs of strings, whose rows have named columns.

    Attributes:
        several: whether a target may be a list of references.
        package: the optional package that it needs.
        counts: whether its rows count parts of the strings: they are int64, and their sums over a batch are, too.
    """

    takes: ClassVar[str] = "strings"
    several: ClassVar[bool] = False
    package: ClassVar[str] = ""
    counts: ClassVar[bool] = False

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What each column is called."""

    def check(self, preds: Sequence[Any], target: Sequence[Any]) -> None:
        check_strings("preds", preds)
        if self.several:
            check_references(target)
        else:
            check_strings("target", target)


def load_package(name: str) -> ModuleType:
    """Import a module of an optional package for metrics of text.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        root = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != root:
            raise  # the package is there and lacks something of its own
        raise MissingDependencyError(root, extra=EXTRA, purpose="this metric of text") from error


def check_strings(argument: str, values: Sequence[Any]) -> None:
    """Raise an `InputError` unless every value is a string."""
    check_list(argument, values)
    if not set(map(type, values)) <= {str}:
        for k, value in enumerate(values):
            check_string(f"{argument}[{k}]", value)


def check_string(place: str, value: Any) -> None:
    """Raise an `InputError` unless the value is a string."""
    if isinstance(value, bytes | bytearray):
        raise InputError(describe(place, "bytes", "a string", "Decode it, for example with .decode()"))
    if not isinstance(value, str):
        raise InputError(describe(place, _shown(value), "a string", 'Give one string a sample, "" for an empty one'))


def check_references(target: Sequence[Any]) -> None:
    """Raise an `InputError` unless every target is a string or a list of strings that is not empty."""
    check_list("target", target)
    if set(map(type, target)) <= {str}:
        return
    for k, each in enumerate(target):
        check_references_at(f"target[{k}]", each)
        if not each and not isinstance(each, str):
            expected = "at least one reference"
            raise InputError(
                describe(f"target[{k}]", "an empty list", expected, "Leave the sample out of preds and target")
            )


def check_references_at(place: str, value: Any) -> None:
    """Raise an `InputError` unless the value is a string or a list of strings."""
    if isinstance(value, str):
        return
    if isinstance(value, bytes | bytearray) or not isinstance(value, Sequence):
        got = "bytes" if isinstance(value, bytes | bytearray) else _shown(value)
        raise InputError(describe(place, got, "a string or a list of strings", "Give references as strings"))
    for i, reference in enumerate(value):
        check_string(f"{place}[{i}]", reference)


def check_list(argument: str, values: Any) -> None:
    """Raise an `InputError` for one string where one a sample is needed."""
    if isinstance(values, str | bytes | bytearray):
        got = f"one {type(values).__name__}"
        raise InputError(describe(argument, got, "a list with one element a sample", f"Pass [{argument}]"))


def _shown(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"


def references(target: Sequence[str | Sequence[str]]) -> tuple[list[str], Integers]:
    """All references of all samples one after the other, and how many each sample has."""
    if set(map(type, target)) <= {str}:
        return list(target), np.ones(len(target), np.int64)  # type: ignore[arg-type]
    lists = [[each] if isinstance(each, str) else each for each in target]
    return [each for several in lists for each in several], np.array([len(several) for several in lists], np.int64)


def table(columns: Sequence[Any], dtype: type[np.generic] = np.int64) -> Tensor:
    """Columns as rows: a tensor of shape `(N, k)`."""
    return torch.from_numpy(np.stack([np.asarray(column, dtype) for column in columns], 1))
