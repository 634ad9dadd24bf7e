"""The largest and the smallest value, as integers that order as the values do."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.native.library import takes
from assay.native.readings import largest as largest_of
from assay.tally.base import NAN_LEFT_OUT, Batch, BatchLayout, InvalidValues, NanPolicy, Rule, State, Tally
from assay.tally.conservation import BrokenLaw, HostCount, Laws, at_most, equal, not_negative
from assay.tally.layout_checks import check_weights
from assay.tally.sums.fingerprints import NO_KEY, Fingerprint, FingerprintSize, largest, of_table_at

_NONE = torch.iinfo(torch.int64).min
_KINDS = ("float32", "float64", "integer")
_LOWEST = {torch.float32: -(0xFF << 23) - 1, torch.float64: -(0x7FF << 52) - 1}
"""The keys of -inf."""


class Range(NamedTuple):
    """The largest and the smallest value; NaN without one, or where a NaN counts."""

    largest: float | int
    smallest: float | int


@dataclass(frozen=True)
class Extremes(Tally):
    """The largest and the smallest of all elements of an argument; those of weight 0 are left out.

    State, all int64: `extremes` of shape `(3, 2)`, merged by the maximum: for float32 (which holds half precision), for
    float64 and for integers the key of the largest value and that of the smallest one's negative; `count` and `nan` of
    shape `(1,)`: how many values there were, and how many of them were NaN. 64 bytes.

    The key of a float is its bits, those of the magnitude flipped for negative numbers: keys order as the numbers do.
    """

    nan_policy: NanPolicy = "propagate"
    argument: Literal["preds", "target"] = "preds"
    fields: ClassVar[Mapping[str, Rule]] = {"extremes": "max", "count": "sum", "nan": "sum"}
    fingerprint_size = FingerprintSize(keys=2 * len(_KINDS))

    @property
    def uses_target(self) -> bool:
        return self.argument == "target"

    def check(self, layout: BatchLayout) -> None:
        column = getattr(layout, self.argument)
        if column is None:
            raise ShapeError(describe(self.argument, "nothing", "a tensor", f"Pass {self.argument}"))
        if column.dtype.is_complex:
            expected = "real numbers: others have no order"
            raise DtypeError(describe(self.argument, column.dtype, expected, "Pass the real part or the modulus"))
        check_weights(layout.weights, layout.preds.tail)

    def zero(self, device: torch.device) -> State:
        return {
            "extremes": torch.full((len(_KINDS), 2), _NONE, dtype=torch.int64, device=device),
            "count": torch.zeros(1, dtype=torch.int64, device=device),
            "nan": torch.zeros(1, dtype=torch.int64, device=device),
        }

    def add(self, state: State, batch: Batch) -> None:
        values = self._values(batch)
        if not len(values):
            return
        weightless = elements_without_weight(batch)
        if weightless is None and batch.compiled and self._add_on_host(state, values):
            return
        state["count"] += len(values) if weightless is None else len(values) - weightless.sum()
        if values.dtype.is_floating_point:
            kind, ends = self._add_floats(state, values, weightless)
        else:
            kind, ends = "integer", _ends(values.to(torch.int64), weightless)
        if weightless is not None:
            ends = ends.masked_fill(weightless.all(), _NONE)
        row = state["extremes"][_KINDS.index(kind)]
        torch.maximum(row, ends, out=row)

    def _values(self, batch: Batch) -> Tensor:
        return (batch.preds if self.argument == "preds" else batch.needed_target).reshape(-1)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        values, weightless = self._values(batch), elements_without_weight(batch)
        if not len(values):
            return Fingerprint.zero(self.fingerprint_size, values.device)
        out, nan, kind, none = weightless, None, "integer", NO_KEY
        if values.dtype.is_floating_point:
            values = values if values.dtype == torch.float64 else values.float()
            kind, none = str(values.dtype).removeprefix("torch."), _LOWEST[values.dtype]
            if isinstance(self.nan_policy, float):
                values = values.nan_to_num(self.nan_policy, math.inf, -math.inf)
            nan = values.isnan() if weightless is None else values.isnan() & ~weightless
            out = nan if weightless is None else nan | weightless
            values = keys(values)
        both = torch.stack([values.to(torch.int64), ~values.to(torch.int64)], 1)
        ends = largest(both if out is None else both.masked_fill(out[:, None], none))
        if weightless is not None:
            ends = ends.masked_fill(torch.count_nonzero(weightless) == len(values), NO_KEY)
        place, empty = _KINDS.index(kind), ends.new_full((2 * len(_KINDS) - 2,), NO_KEY)
        count = ends.new_full((), len(values))
        counts = [
            count if weightless is None else count - torch.count_nonzero(weightless),
            ends.new_zeros(()) if nan is None else torch.count_nonzero(nan),
        ]
        found = torch.cat([empty[: 2 * place], ends, empty[2 * place :]])
        return Fingerprint(of_table_at(torch.stack(counts)), ends.new_zeros(0), _without_signs(found))

    def fingerprint_of(self, state: State) -> Fingerprint:
        counts = of_table_at(torch.cat([state["count"], state["nan"]]))
        return Fingerprint(counts, counts.new_zeros(0), _without_signs(state["extremes"].reshape(-1)))

    def _add_on_host(self, state: State, values: Tensor) -> bool:
        """Count floats in host memory by NumPy, which takes less time; false where nothing was counted."""
        if isinstance(self.nan_policy, float) or not takes(values, dtypes=(torch.float32, torch.float64)):
            return False
        numbers = values.numpy()
        if np.count_nonzero(numbers != numbers):
            return False
        size = 8 * numbers.itemsize
        bits: np.ndarray[Any, np.dtype[np.int64]] = numbers.view(np.int32 if size == 32 else np.int64)
        order = bits ^ ((bits >> (size - 1)) & (2 ** (size - 1) - 1))  # as `keys` has it
        row = state["extremes"].numpy()[_KINDS.index("float32" if size == 32 else "float64")]
        np.maximum(row, (order.max(), ~order.min()), out=row)  # the key of a negative is the complement
        state["count"].numpy()[0] += len(numbers)
        return True

    def _add_floats(self, state: State, values: Tensor, weightless: Tensor | None) -> tuple[str, Tensor]:
        values = values if values.dtype == torch.float64 else values.float()
        if isinstance(self.nan_policy, float):
            values = values.nan_to_num(self.nan_policy, math.inf, -math.inf)
        is_nan = torch.ne(values, values, out=torch.empty_like(values))
        largest = values.nan_to_num(-math.inf, math.inf, -math.inf)
        smallest = values.nan_to_num(math.inf, math.inf, -math.inf)
        if weightless is not None:
            is_nan = is_nan.masked_fill(weightless, 0)
            largest, smallest = largest.masked_fill(weightless, -math.inf), smallest.masked_fill(weightless, math.inf)
        state["nan"] += is_nan.sum().to(torch.int64)
        return str(values.dtype).removeprefix("torch."), keys(torch.stack([largest.amax(), -smallest.amin()]))

    def union(self, other: Tally) -> Tally | None:
        if not isinstance(other, Extremes) or self.argument != other.argument:
            return None
        if isinstance(self.nan_policy, float) or isinstance(other.nan_policy, float):
            return self if self == other else None
        policies = self.nan_policy, other.nan_policy
        return Extremes(
            next((each for each in ("raise", "propagate", "warn") if each in policies), "ignore"), self.argument
        )

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        nan = int(state["nan"])
        if not nan or self.nan_policy == "ignore":
            return []
        what = NAN_LEFT_OUT if self.nan_policy == "warn" else "values are NaN"
        return [InvalidValues(what, nan, fatal=self.nan_policy == "raise")]

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "count", "nan")
        count, nan = int(state["count"]), int(state["nan"])
        elements = given.preds if self.argument == "preds" else given.targets
        yield from at_most("values that were counted are no more than the elements", elements, count)
        yield from equal("the keys of nothing are empty", 0, 0 if count else int((state["extremes"] != _NONE).sum()))
        if not isinstance(self.nan_policy, float):
            yield from at_most("values that are NaN are no more than the values", count, nan)
        if count > nan:
            largest, negated = (_largest(keys, k) for k, keys in enumerate(state["extremes"].T.tolist()))
            if largest < -negated:
                yield BrokenLaw(
                    "the largest value is no less than the smallest", f"{-negated:g} or more", f"{largest:g}"
                )

    def plain_end(self, state: State, smallest: bool) -> float | None:
        """The largest or the smallest value of a state; None where `compute` must be asked, as of NaN and integers."""
        found = largest_of(state["extremes"], state["count"], state["nan"], smallest)
        return None if found is None else _signed(found, smallest)

    def compute(self, state: State) -> Range:
        """The extremes, decoded."""
        nan, count = int(state["nan"]), int(state["count"])
        if nan == count or (nan and self.nan_policy not in ("ignore", "warn")):
            return Range(math.nan, math.nan)
        largest, negated = (_largest(keys, k) for k, keys in enumerate(state["extremes"].T.tolist()))
        return Range(_signed(largest), _signed(negated, negative=True))


def _signed(value: float, negative: bool = False) -> float:
    """A value or its negative; 0.0 in the place of -0.0, as either may have been kept of both."""
    return 0 - value if negative else value + 0


def _largest(keys: Sequence[int], column: int) -> float | int:
    """The largest value that the keys of all kinds say; in column 1, keys of integers are one too small."""
    counted = [(kind, key) for kind, key in zip(_KINDS, keys, strict=True) if key != _NONE]
    numbers = [decoded(kind, key) + (column if kind == "integer" else 0) for kind, key in counted]
    return max(numbers, default=_NONE + column)  # without a key: all are the one integer whose key is that of nothing


def _without_signs(ends: Tensor) -> Tensor:
    """The keys with that of 0.0 instead of that of -0.0, as either may be the largest of both."""
    floats = ends[:4]
    return torch.cat([torch.where(floats == -1, 0, floats), ends[4:]])


def elements_without_weight(batch: Batch) -> Tensor | None:
    """Which elements of `preds` have weight 0, of shape `(elements,)`; None for a batch without weights."""
    weights, shape = batch.weights, batch.preds.shape
    if weights is None:
        return None
    if weights.shape != shape:
        weights = weights.view(-1, *(1,) * (len(shape) - 1)).expand(shape)
    return weights.eq(0).reshape(-1)


def _ends(values: Tensor, weightless: Tensor | None) -> Tensor:
    """The largest value and, since the negative of an int64 may not fit one, the complement of the smallest."""
    if weightless is None:
        return torch.stack([values.amax(), ~values.amin()])
    return torch.stack([each.masked_fill(weightless, _NONE).amax() for each in (values, ~values)])


def keys(values: Tensor) -> Tensor:
    """Keys of floats, which order as they do."""
    whole = torch.int64 if values.dtype == torch.float64 else torch.int32
    bits = values.view(whole)
    flip = (bits >> torch.iinfo(whole).bits - 1) & torch.iinfo(whole).max
    return (bits ^ flip).to(torch.int64)


def decoded(kind: str, key: int) -> float | int:
    """The value of a key."""
    if kind == "integer":
        return key
    pattern, word, top = ("<d", "<q", 2**63 - 1) if kind == "float64" else ("<f", "<i", 2**31 - 1)
    value: float = struct.unpack(pattern, struct.pack(word, key ^ top if key < 0 else key))[0]
    return value
