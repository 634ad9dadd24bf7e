"""Exact sums and products of the features of generated and of real samples: their means and covariances."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.devices.policies import integer_product
from assay.errors import ConfigError, InvalidValuesError, describe
from assay.tally.base import BAD_WEIGHTS, Batch, BatchLayout, InvalidValues, Rule, State, Tally, TensorLayout
from assay.tally.conservation import HostCount, Laws, at_most, equal, not_negative
from assay.tally.points.cluster_sums import check_points
from assay.tally.points.finite_rows import TARGET_RANGE
from assay.tally.stores.sample_store import SampleStore, canonical
from assay.tally.sums.fingerprints import PRIME, Fingerprint, FingerprintSize, of_table_at
from assay.tally.sums.integer_products import LARGEST, LIMB_BITS, add_products, slabs, table_size

_MOST = 1 << 38  # rows, or weight: up to there nothing overflows
_LARGEST_WEIGHT = (1 << 31) - 1
_NO_LIMIT = 1 << 62  # bytes
_KINDS_OF_INVALID = 5
_CHECKED = 1 << 12
"""Rows whose fingerprint is computed in one go on the CPU."""


@dataclass(frozen=True, eq=False)
class Moments:
    """The mean and the spread of the features of one group of samples.

    Attributes:
        count: how many samples there are.
        sums: of each feature, in units of `2 ** unit`.
        unit: of the sums.
        scatter: float64 of shape `(D, D)`, the sum over the samples of the products of their deviations from the mean.
        rounded: how many features, of all samples together, the fixed point does not hold.
    """

    count: int
    sums: Sequence[int]
    unit: int
    scatter: np.ndarray
    rounded: int

    @property
    def covariance(self) -> np.ndarray:
        """The unbiased covariance; of two samples or more."""
        return self.scatter / (self.count - 1)

    @property
    def largest_shift(self) -> float:
        """The largest Fréchet distance, as a root, that rounding can have put between these moments and the exact ones.

        No Fréchet distance of two groups is above the mean squared distance of their samples, taken in pairs, times
        `count / (count - 1)` for the unbiased covariance. A feature that is rounded moves by half a unit at most.
        """
        return 2.0 ** (self.unit - 1) * math.sqrt(self.rounded / (self.count - 1))


class _IntegerRows(NamedTuple):
    """Rows as they are kept, their groups, how many of their features are rounded, and where they are invalid."""

    rows: dict[str, Tensor]
    group: Tensor
    rounded: Tensor
    invalid: list[Tensor]


@dataclass(frozen=True)
class FeatureMoments(Tally):
    """Sums and products of `preds (N, num_features)` for each of two groups, by `target (N,)`: 0 or 1.

    Features are rounded to multiples of a power of two, so that `feature_range` takes at most 23 bits; sums of the
    integers and of their products are exact. Rows are kept while they take less memory than the table of products,
    up to `4 * num_features`; beyond that the table has all of them. Weighted rows are always kept.

    State: `invalid` of shape `(5,)`, counts of rows; `rounded` of shape `(2,)`, how many features of each group are no
    such multiples; `rows`, a `SampleStore`; unless weighted also `count` of shape
    `(2,)`, `sums` of shape `(2, num_features)` and `products` of shape `(2, 2, places)`, two limbs of the upper part
    of the table, int64: 68 MiB for 2,048 features.
    """

    num_features: int
    feature_range: float
    weighted: bool = False
    chunk_scale = 1 << 7
    fingerprint_size = FingerprintSize(4)

    def __post_init__(self) -> None:
        if not 2.0**-64 <= self.feature_range <= 2.0**64:
            do = "Give the largest absolute value that a feature may have"
            raise ConfigError(describe("feature_range", self.feature_range, "between 2 ** -64 and 2 ** 64", do))

    @property
    def unit(self) -> int:
        """Features are integers in units of `2 ** unit`."""
        mantissa, exponent = math.frexp(self.feature_range)
        return exponent - 23 + (mantissa * 2**23 > LARGEST)

    @property
    def keep(self) -> int:
        """How many rows are kept before they go into the table."""
        return 4 * self.num_features

    @property
    def fields(self) -> Mapping[str, Rule]:
        always: dict[str, Rule] = {"invalid": "sum", "rounded": "sum", "rows": "samples"}
        return always if self.weighted else always | {"count": "late", "sums": "late", "products": "late"}

    def check(self, layout: BatchLayout) -> None:
        check_points(layout, self.num_features)

    def zero(self, device: torch.device) -> State:
        counts = {
            name: torch.zeros(size, dtype=torch.int64, device=device) for name, size in (("invalid", 5), ("rounded", 2))
        }
        return {**counts, "rows": self._store()}

    def _store(self) -> SampleStore:
        columns = {
            "features": TensorLayout(torch.int32, (self.num_features,)),
            "target": TensorLayout(torch.int8, ()),
        }
        if self.weighted:
            columns["weights"] = TensorLayout(torch.int64, ())
        return SampleStore(columns, device_budget=_NO_LIMIT)

    def add(self, state: State, batch: Batch) -> None:
        found = batch.memoize(self, self._found)
        state["rounded"].index_add_(0, found.group, found.rounded)
        state["invalid"][: len(found.invalid)] += torch.stack(found.invalid).sum(1)
        store: SampleStore = state["rows"]
        store.append(**found.rows)
        if not self.weighted and store.rows > self.keep:
            self._pour(state)
            state["rows"] = store.emptied()

    def _found(self, batch: Batch) -> _IntegerRows:
        """The rows of a batch as integers, and what is wrong with them."""
        features, target = batch.preds, batch.needed_target.to(torch.int64)
        if features.dtype != torch.float64:
            features = features.float()
        numbers = (features * 2.0**-self.unit).round_()
        infinite = ~(features - features == 0).all(1)
        outside = ~infinite & (numbers.abs() > LARGEST).any(1)
        group = target.clamp(0, 1)
        wrong = [infinite, outside, group != target]
        counted = ~(infinite | outside)
        rounded = torch.ne(numbers * 2.0**self.unit, features).sum(1).masked_fill(~counted, 0)
        rows = {"features": torch.where(counted[:, None], numbers, 0).to(torch.int32), "target": group.to(torch.int8)}
        if batch.weights is not None:
            weights = batch.weights
            bad = ~((weights >= 0) & (weights < math.inf))
            fraction = ~bad & ((weights != weights.trunc()) | (weights > _LARGEST_WEIGHT))
            rows["weights"] = torch.where(bad | fraction, 0, weights).to(torch.int64)
            wrong += [bad, fraction]
            rounded = rounded * rows["weights"]
        return _IntegerRows(rows, group, rounded, wrong)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        found = batch.memoize(self, self._found)
        invalid = [torch.count_nonzero(each) for each in found.invalid]
        invalid += [invalid[0].new_zeros(())] * (_KINDS_OF_INVALID - len(invalid))
        of_groups = [torch.where(found.group == k, found.rounded, 0).sum() for k in range(2)]
        sizes = [torch.count_nonzero(found.group == k) for k in range(2)]
        counts = torch.stack([*invalid, *of_groups, *sizes])
        return Fingerprint(of_table_at(counts), _of_rows(found.rows["features"], found.group))

    def fingerprint_of(self, state: State) -> Fingerprint:
        sizes, found = state["invalid"].new_zeros(2), state["invalid"].new_zeros(4)
        for block in state["rows"].blocks():
            group = block["target"].to(torch.int64)
            sizes = sizes + torch.bincount(group, minlength=2)
            for some in torch.split(torch.arange(len(group), device="cpu"), _CHECKED):
                found = found + _of_rows(block["features"][some], group[some])
        if "count" in state:
            sizes, found = sizes + state["count"], found + torch.from_numpy(self._of_table(state))
        return Fingerprint(of_table_at(torch.cat([state["invalid"], state["rounded"], sizes])), found)

    def _of_table(self, state: State) -> np.ndarray:
        """What `_of_rows` gives for the rows in the table, from their sums and products."""
        factors = _factors(self.num_features, torch.device("cpu")).numpy()
        squares = []
        for of_group in state["products"].numpy():
            total = 0
            for rows, columns, low, high in _tiles(of_group, self.num_features):
                entries = (low % PRIME + (high % PRIME << LIMB_BITS)) % PRIME
                height = rows.stop - rows.start
                twice = np.where(np.arange(entries.shape[1]) < height, 1, 2)  # of what is right of the diagonal
                by_row = (entries * (factors[columns] * twice % PRIME) % PRIME).sum(1) % PRIME
                total += int((by_row * factors[rows] % PRIME).sum())
            squares.append(total % PRIME)
        sums = (state["sums"].numpy() % PRIME * factors % PRIME).sum(1) % PRIME
        return np.array([*sums.tolist(), *squares])

    def _pour(self, state: State) -> None:
        """Add the rows that are kept to the table."""
        if "products" not in state:
            device = state["invalid"].device
            shapes = {"count": (2,), "sums": (2, self.num_features), "products": (2, 2, table_size(self.num_features))}
            with torch.inference_mode(False):
                state |= {name: torch.zeros(shape, dtype=torch.int64, device=device) for name, shape in shapes.items()}
        for block in state["rows"].blocks():
            values, group = (block[name].to(state["invalid"].device) for name in ("features", "target"))
            group = group.to(torch.int64)
            state["count"].index_add_(0, group, torch.ones_like(group))
            state["sums"].index_add_(0, group, values.to(torch.int64))
            add_products(state["products"], values, group, integer_product(values.device))

    def canonicalize(self, state: State, rows: int) -> State:
        kept = state["rows"].rows
        if self.weighted or ("count" not in state and kept <= self.keep):
            return state | {"rows": canonical(state["rows"])}
        done = self._with_all(state)
        low, high = done["products"].unbind(1)
        carry = low >> LIMB_BITS
        done["products"] = torch.stack([low - (carry << LIMB_BITS), high + carry], 1)
        return done | {"rows": self._store()}

    def _with_all(self, state: State) -> State:
        """The state with the rows in the table."""
        done = {name: value.clone() if isinstance(value, Tensor) else value for name, value in state.items()}
        self._pour(done)
        return done

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        whats = (
            "features are NaN or infinite",
            f"features are outside feature_range={self.feature_range:g}: give a larger one",
            TARGET_RANGE,
            BAD_WEIGHTS,
            f"weights are not integers up to {_LARGEST_WEIGHT}",
        )
        counts = zip(whats, state["invalid"].tolist(), strict=True)
        return [InvalidValues(what, count) for what, count in counts if count]

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "invalid", "rounded", "count")
        rows = state["rows"].rows + int(state["count"].sum() if "count" in state else 0)
        yield from equal("rows that are kept and those of the table are the rows", given.rows, rows)
        yield from at_most("invalid rows are no more than the rows", given.rows, int(state["invalid"].max()))

    def compute(self, state: State) -> tuple[Moments, Moments]:
        """Of the generated and of the real samples."""
        if self.weighted:
            state = state | self._of_weighted(state["rows"])
        elif state["rows"].rows or "count" not in state:
            state = self._with_all(state)
        counts = state["count"].tolist()
        if sum(counts) >= _MOST:
            raise InvalidValuesError(describe("weights", f"a sum of {sum(counts)}", f"less than {_MOST}", "Scale them"))
        first, second = (
            Moments(
                count,
                state["sums"][k].tolist(),
                self.unit,
                np.ldexp(self._scatter(count, state["sums"][k].numpy(), state["products"][k].numpy()), 2 * self.unit),
                int(state["rounded"][k]),
            )
            for k, count in enumerate(counts)
        )
        return first, second

    def _of_weighted(self, store: SampleStore) -> State:
        """The table of rows with weights: for each bit of the weights the rows that have it."""
        tally = FeatureMoments(self.num_features, self.feature_range)
        total = tally._with_all(tally.zero(torch.device("cpu")))
        del total["invalid"], total["rounded"]
        columns = {name: store.column(name) for name in store.columns}
        weights = columns.pop("weights")
        for bit in range(_LARGEST_WEIGHT.bit_length()):
            has_bit = (weights >> bit) & 1 == 1
            if has_bit.any():
                state = tally.zero(torch.device("cpu"))
                state["rows"].append(**{name: column[has_bit] for name, column in columns.items()})
                tally._pour(state)
                for name in ("count", "sums", "products"):
                    total[name] += state[name] << bit
        return total

    def _scatter(self, count: int, sums: np.ndarray, products: np.ndarray) -> np.ndarray:
        """The sum of products of deviations from the mean, in units of `4 ** unit`; each rounded a few times.

        With `sums = count * mean + rest` in integers, deviations from the integer `mean` have the products
        `products - count * mean * mean - mean * rest - rest * mean`, which are exact, and what remains is
        `rest * rest / count`.
        """
        full = np.zeros((self.num_features, self.num_features))
        if count:
            mean, rest = np.divmod(sums, count)
            for rows, columns, low, high in _tiles(products, self.num_features):
                square = np.multiply.outer(mean[rows], mean[columns])
                carry = square >> LIMB_BITS
                low = low - count * (square - (carry << LIMB_BITS))
                low -= np.multiply.outer(mean[rows], rest[columns]) + np.multiply.outer(rest[rows], mean[columns])
                high = high - count * carry + (low >> LIMB_BITS)
                exact = np.ldexp(high.astype(np.float64), LIMB_BITS) + (low & ((1 << LIMB_BITS) - 1))
                tile = exact - np.multiply.outer(rest[rows] / count, rest[columns].astype(np.float64))
                full[rows, columns] = tile
                full[columns, rows] = tile.T
        return full


def _factors(width: int, device: torch.device) -> Tensor:
    """A number modulo `PRIME` for each feature."""
    return ((torch.arange(width, device=device) + 1) * 48271).remainder(PRIME)


def _of_rows(features: Tensor, group: Tensor) -> Tensor:
    """For both groups the sum of a linear function of the rows, and then of its squares, modulo `PRIME`.

    The table has the same of all rows: `x' (R' R) x` is the sum of the squares of `R x`.
    """
    linear = (features.to(torch.int64) * _factors(features.shape[1], features.device)).remainder(PRIME).sum(1)
    linear = linear.remainder(PRIME)
    both = torch.stack([linear, (linear * linear).remainder(PRIME)])
    return torch.cat([torch.where(group == k, both, 0).sum(1) for k in range(2)]).view(2, 2).T.reshape(-1)


def _tiles(products: np.ndarray, width: int) -> Iterator[tuple[slice, slice, np.ndarray, np.ndarray]]:
    """The rows and columns of each slab of the table that are no padding, and both limbs of its products."""
    for rows, places in slabs(width):
        inside, columns = slice(rows.start, min(rows.stop, width)), slice(rows.start, width)
        shape = rows.stop - rows.start, -1
        low, high = (limb[places].reshape(shape)[: inside.stop - rows.start, : width - rows.start] for limb in products)
        yield inside, columns, low, high
