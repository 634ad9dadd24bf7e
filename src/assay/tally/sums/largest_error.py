"""The largest absolute error, exactly, as integers that order as the errors do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from assay.errors import DtypeError, describe
from assay.tally.base import Batch, BatchLayout, InvalidValues, Rule, State, Tally
from assay.tally.conservation import HostCount, Laws, at_most, not_negative
from assay.tally.layout_checks import check_as_preds, check_real, check_weights
from assay.tally.sums.extremes import decoded, elements_without_weight, keys
from assay.tally.sums.fingerprints import NO_KEY, Fingerprint, FingerprintSize, largest, of_table_at

_NONE = torch.iinfo(torch.int64).min
_KINDS = ("float32", "halves", "float64", "integer")
_MIDDLE = 1 << 31  # added to the 32 bits of a key's lower half, so that they are not negative


class _ErrorKeys(NamedTuple):
    """For each kind the keys of the errors; and where elements have no weight, are not finite, or not held exactly."""

    keys: dict[str, Tensor]
    weightless: Tensor | None
    invalid: Tensor | None = None
    inexact: Tensor | None = None

    @property
    def counted(self) -> Tensor:
        """How many elements have weight."""
        assert self.weightless is not None
        return len(self.weightless) - self.weightless.sum()


@dataclass(frozen=True)
class LargestError(Tally):
    """The largest `|preds - target|` of all elements; those of weight 0 are left out.

    State, all int64: `errors` of shape `(4,)`, merged by the maximum: the key of the largest error of float32 (which
    holds half precision), of float32 where only half of the difference fits, of float64, and of integers; `count`,
    `invalid` and `inexact` of shape `(1,)`: how many elements there were, how many of them were not finite, and how
    many integers beside floats the floats do not hold. 56 bytes.

    A difference of two float32 is the sum of two float32, the rounded difference and what the rounding left: both are
    in one key, the former first. A difference of two float64 is rounded to float64, which keeps the order.
    """

    fields: ClassVar[Mapping[str, Rule]] = {"errors": "max", "count": "sum", "invalid": "sum", "inexact": "sum"}
    fingerprint_size = FingerprintSize(keys=len(_KINDS))

    def check(self, layout: BatchLayout) -> None:
        check_real("preds", layout.preds)
        dtypes = {layout.preds.dtype, check_as_preds("target", layout.target, layout.preds).dtype}
        wide = [dtype for dtype in dtypes if not dtype.is_floating_point and dtype.itemsize > 2]
        if wide and torch.float64 not in dtypes and any(dtype.is_floating_point for dtype in dtypes):
            got = f"{wide[0]} beside a narrow float, which does not hold all its values"
            raise DtypeError(describe("target", got, "two floats or two integers", "Pass both as float64"))
        check_weights(layout.weights, layout.preds.tail)

    def zero(self, device: torch.device) -> State:
        zeros = {name: torch.zeros(1, dtype=torch.int64, device=device) for name in ("count", "invalid", "inexact")}
        return {"errors": torch.full((len(_KINDS),), _NONE, dtype=torch.int64, device=device), **zeros}

    def add(self, state: State, batch: Batch) -> None:
        if not batch.preds.numel():
            return
        found = batch.memoize(self, self._found)
        state["count"] += batch.preds.numel() if found.weightless is None else found.counted
        for name, each in (("invalid", found.invalid), ("inexact", found.inexact)):
            if each is not None:
                state[name] += each.sum()
        for kind, column in found.keys.items():
            place = state["errors"][_KINDS.index(kind)]
            torch.maximum(place, column.amax(), out=place)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        if not batch.preds.numel():
            return Fingerprint.zero(FingerprintSize(keys=len(_KINDS)), batch.preds.device)
        found = batch.memoize(self, self._found)
        columns = [found.keys.get(kind) for kind in _KINDS]
        like = next(each for each in columns if each is not None)
        none = like.new_full((), NO_KEY)
        ends = torch.stack([none if each is None else largest(each) for each in columns])
        count, zero = like.new_full((), len(like)), like.new_zeros(())
        counts = [count if found.weightless is None else count - torch.count_nonzero(found.weightless)]
        counts += [zero if each is None else torch.count_nonzero(each) for each in (found.invalid, found.inexact)]
        return Fingerprint(of_table_at(torch.stack(counts)), like.new_zeros(0), ends)

    def fingerprint_of(self, state: State) -> Fingerprint:
        counts = of_table_at(torch.cat([state[name] for name in ("count", "invalid", "inexact")]))
        return Fingerprint(counts, counts.new_zeros(0), state["errors"])

    def _found(self, batch: Batch) -> _ErrorKeys:
        """The errors of all elements as keys, and what is wrong with them."""
        preds, target = batch.preds.reshape(-1), batch.needed_target.reshape(-1)
        weightless = elements_without_weight(batch)
        if weightless is not None:
            preds, target = preds.masked_fill(weightless, 0), target.masked_fill(weightless, 0)
        floats = [x.dtype for x in (preds, target) if x.dtype.is_floating_point]
        if not floats:
            large, small = _ordered(preds.long(), target.long())
            # Unsigned: what passes 63 bits wraps, and the flip orders it.
            return _ErrorKeys({"integer": (large - small) ^ _NONE}, weightless)
        dtype, inexact = torch.float64 if torch.float64 in floats else torch.float32, None
        for whole in (x for x in (preds, target) if x.dtype.itemsize == 8 and not x.dtype.is_floating_point):
            inexact = torch.ne(whole.to(dtype).long(), whole)
        large, small = _ordered(preds.to(dtype), target.to(dtype))
        finite = (large < math.inf) & (small > -math.inf)
        large, small = large.where(finite, 0), small.where(finite, 0)
        by_kind = {"float64": keys(large - small)} if dtype == torch.float64 else _exact_keys(large, small)
        return _ErrorKeys(by_kind, weightless, ~finite, inexact)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        invalid, inexact = int(state["invalid"]), int(state["inexact"])
        problems = [InvalidValues("values are NaN or infinite", invalid, fatal=False)] if invalid else []
        return problems + [InvalidValues("integers are beyond what float64 holds", inexact)] * bool(inexact)

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "count", "invalid", "inexact")
        count = int(state["count"])
        yield from at_most("errors that were counted are no more than the elements", given.preds, count)
        yield from at_most(
            "values that are not finite are no more than the elements", given.preds, int(state["invalid"])
        )

    def compute(self, state: State) -> float:
        """The error; NaN without elements, and where a value was not finite."""
        if int(state["invalid"]) or not int(state["count"]):
            return math.nan
        largest = zip(_KINDS, state["errors"].tolist(), strict=True)
        return max(_decoded(kind, key) for kind, key in largest)


def _ordered(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return torch.maximum(a, b), torch.minimum(a, b)


def _exact_keys(large: Tensor, small: Tensor) -> dict[str, Tensor]:
    """Keys of differences of float32; of their halves where the difference is too large for a float32."""
    fits = (large - small) < math.inf
    return {
        "float32": _pair_keys(large.where(fits, 0), small.where(fits, 0)),
        "halves": _pair_keys(large.where(~fits, 0) * 0.5, small.where(~fits, 0) * 0.5),
    }


def _pair_keys(large: Tensor, small: Tensor) -> Tensor:
    """The rounded difference and what the rounding left of it (Knuth's two-sum), as one key."""
    rounded = large - small
    remainder = large - rounded
    rest = (large - (rounded + remainder)) + (remainder - small)
    return keys(rounded) * (2 * _MIDDLE) + (keys(rest) + _MIDDLE)


def _decoded(kind: str, key: int) -> float:
    if key == _NONE:  # without elements of this kind, or integers that are all equal
        return 0.0
    if kind == "integer":
        return float(key - _NONE)
    if kind == "float64":
        return float(decoded("float64", key))
    rounded, rest = divmod(key, 2 * _MIDDLE)
    error = decoded("float32", rounded) + decoded("float32", rest - _MIDDLE)  # rounded once, in float64
    return 2 * error if kind == "halves" else error
