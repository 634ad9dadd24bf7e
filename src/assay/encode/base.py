"""What an encoder is: a frozen description of how raw samples become rows of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from assay.tally.ragged import Ragged


class Encoder(ABC):
    """Turns raw samples, such as pairs of strings, into rows of numbers before they are counted.

    Subclasses are frozen dataclasses: equal encoders are the same one, and a meter runs each once a batch. An encoder
    is pure and works sample by sample, so that `rows(a + b)` is `rows(a)` followed by `rows(b)`. It runs on the CPU at
    once; everything behind it (weights, merging, files, slices, resampling) is that of any rows of numbers.

    Attributes:
        takes: what a sample is, as "strings"; the metrics of a meter take the same.
        on_cpu: whether its rows are on the CPU wherever the samples are; otherwise they are where the samples are.
    """

    takes: ClassVar[str]
    on_cpu: ClassVar[bool] = True

    @property
    def column(self) -> str:
        """The name of its rows among the columns of a batch."""
        return repr(self)

    @abstractmethod
    def check(self, preds: Sequence[Any], target: Sequence[Any] | None) -> None:
        """Raise an `InputError` that names the argument and the sample, if one cannot be encoded.

        Both are sequences; that they have equal lengths was checked before.
        """

    @abstractmethod
    def rows(self, preds: Sequence[Any], target: Sequence[Any] | None) -> Tensor | Ragged:
        """One row a sample: int64 or float64 of shape `(N, k)` on the CPU; `(0, k)` for no sample.

        Samples of tensors of any length become a `Ragged` column, on their device and without reading a value.
        """
