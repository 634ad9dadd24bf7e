"""What an encoder is: a frozen description of how raw samples become rows of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from torch import Tensor

from assay.errors import ShapeError, describe, plural
from assay.tally.inputs import type_name
from assay.tally.layout_checks import NO_TARGET
from assay.tally.ragged import Ragged

TENSORS = "tensors"
"""What encoders take that are given the tensors of an update, as metrics without an encoder are."""


class Encoder(ABC):
    """Turns raw samples, such as pairs of strings, into rows of numbers before they are counted.

    Subclasses are frozen dataclasses: equal encoders are the same one, and a meter runs each once a batch. An encoder
    is pure and works sample by sample, so that `rows(a + b)` is `rows(a)` followed by `rows(b)`. Rows are made at once;
    everything behind it (weights, merging, files, slices, resampling) is that of any rows of numbers.

    Attributes:
        takes: what a sample is, as "strings"; the metrics of a meter take the same. With "tensors", other metrics are
            given the arguments of an update as they are.
        on_cpu: whether its rows are on the CPU wherever the samples are; otherwise they are where the samples are.
        columns: the named columns of an update that it takes.
        function: what it calls, if the caller brought it: no part of its equality.
    """

    takes: ClassVar[str]
    on_cpu: ClassVar[bool] = True
    columns: ClassVar[frozenset[str]] = frozenset()
    function: ClassVar[Callable[..., Any] | None] = None

    @cached_property
    def column(self) -> str:
        """The name of its rows among the columns of a batch."""
        return repr(self)

    def encode(self, preds: Any, target: Any, columns: Mapping[str, Any]) -> Tensor | Ragged:
        """The rows of the arguments of an update, after they were checked.

        Args:
            preds: as given to the update.
            target: likewise.
            columns: those named in `columns`.

        Raises:
            InputError: the arguments are no sequences of equal lengths, or a sample cannot be encoded.
        """
        samples = raw_samples(preds, target)
        self.check(*samples)
        return self.rows(*samples)

    @abstractmethod
    def check(self, preds: Sequence[Any], target: Sequence[Any]) -> None:
        """Raise an `InputError` that names the argument and the sample, if one cannot be encoded.

        Both are sequences; that they have equal lengths was checked before.
        """

    @abstractmethod
    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor | Ragged:
        """One row a sample: int64 or float64 of shape `(N, k)` on the CPU; `(0, k)` for no sample.

        Samples of tensors of any length become a `Ragged` column, on their device and without reading a value.
        """


def raw_samples(preds: Any, target: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Both arguments as lists or tuples of equal lengths; a string by itself is one sample.

    Raises:
        ShapeError: there is no target, one is no sequence, or they have different lengths.
    """
    samples = _sequence("preds", preds)
    if target is None:
        raise ShapeError(describe("target", "nothing", "a list with one entry a sample", NO_TARGET))
    others = _sequence("target", target)
    if len(others) != len(samples):
        got, expected = plural(len(others), "sample"), f"as many as preds has, {len(samples)}"
        raise ShapeError(describe("target", got, expected, "Give one entry a sample in both"))
    return samples, others


def _sequence(name: str, value: Any) -> Sequence[Any]:
    """Samples as a list or tuple."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return value
    no_list = isinstance(value, Tensor | bytes | Mapping | set | frozenset)
    if no_list or not (hasattr(value, "__len__") and hasattr(value, "__iter__")):
        got = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type_name(value)
        raise ShapeError(describe(name, got, "a list with one entry a sample", f"Pass {name} as a list"))
    return list(value)
