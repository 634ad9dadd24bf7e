"""Numbers of pairs of arrays, such as two signals or two point clouds, in float64 on the CPU."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import to_host
from assay.encode.base import Encoder
from assay.errors import DtypeError, InputError, InvalidValuesError, ShapeError, describe
from assay.tally.layout_checks import NO_TARGET

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairEncoder(Encoder):
    """A row a pair, with one number: of two arrays of one shape, with finite real numbers."""

    shape: ClassVar[str]
    """The shape of a sample, for messages, such as "(T,)"."""
    dims: ClassVar[int]

    @abstractmethod
    def number(self, preds: Floats, target: Floats) -> float:
        """The number of a pair.

        Raises:
            ValueError: the pair has none; says why.
        """

    def check(self, preds: Sequence[Any], target: Sequence[Any] | None) -> None:
        if target is None:
            raise ShapeError(describe("target", "nothing", f"a list of {self.takes}", NO_TARGET))
        if self._fine_together(preds, target):
            return
        for k, (own, true) in enumerate(zip(preds, target, strict=True)):
            for name, each in ((f"preds[{k}]", own), (f"target[{k}]", true)):
                self._check_array(name, each)
            if own.shape != true.shape:
                got = f"shape {tuple(true.shape)} with preds of shape {tuple(own.shape)}"
                raise ShapeError(describe(f"target[{k}]", got, "the shape of preds", "Give pairs of one shape"))

    def _fine_together(self, *sides: Sequence[Any]) -> bool:
        """Whether all samples are surely fine: tensors of one shape, which is much faster to see for all at once."""
        return self.batches(*sides) is not None

    def batches(self, *sides: Sequence[Any]) -> list[NDArray[Any]] | None:
        """All samples of each side below each other, if they are tensors of one shape and surely fine."""
        batches = [batch for batch in map(_stacked, sides) if batch is not None]
        fine = len(batches) == len(sides) and len({batch.shape for batch in batches}) == 1
        return batches if fine and all(map(self._fine, batches)) else None

    def _fine(self, batch: NDArray[Any]) -> bool:
        real = batch.ndim == self.dims + 1 and batch.size > 0 and batch.dtype.kind in "fiu"
        return real and bool(np.isfinite(batch).all())

    def _check_array(self, name: str, value: Any) -> None:
        if not isinstance(value, Tensor | np.ndarray):
            do = f"Pass {name.partition('[')[0]} as a list of tensors"
            raise ShapeError(describe(name, type(value).__name__, f"a tensor of shape {self.shape}", do))
        if value.ndim != self.dims or 0 in value.shape:
            do = f"Give one sample an entry: list({name.partition('[')[0]}) of a batch"
            expected = f"shape {self.shape}" + ", none of them 0" * (0 in value.shape)
            raise ShapeError(describe(name, f"shape {tuple(value.shape)}", expected, do))
        kind = _array(value[:0]).dtype.kind
        if kind not in "fiu":
            raise DtypeError(describe(name, value.dtype, "real numbers", f"Pass {name}.real, or {name}.float()"))
        if not np.isfinite(_array(value)).all():
            do = "Correct the sample, or leave it out"
            raise InvalidValuesError(describe(name, "NaN or infinite values", "finite numbers", do))

    def rows(self, preds: Sequence[Any], target: Sequence[Any] | None) -> Tensor:
        assert target is not None, "it was checked"
        numbers = [self._row(k, own, true) for k, (own, true) in enumerate(zip(preds, target, strict=True))]
        return torch.tensor(numbers, dtype=torch.float64, device="cpu").reshape(len(numbers), 1)

    def _row(self, k: int, preds: Any, target: Any) -> float:
        try:
            return self.number(*(_array(each).astype(np.float64) for each in (preds, target)))
        except InputError:
            raise
        except ValueError as error:
            do = "Leave the pair out of preds and target"
            raise InvalidValuesError(describe(f"sample {k}", str(error), "a pair with a number", do)) from error


def as_batch(samples: Sequence[Any]) -> Floats:
    """Samples of one shape below each other, in float64."""
    batch = _stacked(samples)
    return np.stack([_array(each) for each in samples], dtype=np.float64) if batch is None else batch.astype(np.float64)


def _stacked(samples: Sequence[Any]) -> NDArray[Any] | None:
    """Samples below each other, where they are tensors of one shape, dtype and device; else None."""
    if {type(each) for each in samples} != {Tensor} or len({each.dtype for each in samples}) > 1:
        return None
    try:
        return _array(torch.stack(list(samples)))
    except RuntimeError:  # of several shapes or devices
        return None


def _array(value: Any) -> NDArray[Any]:
    """A sample on the CPU, where its number is computed: this waits for the device of a tensor."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    host = to_host(value)
    return (host.float() if host.dtype == torch.bfloat16 else host).numpy()
