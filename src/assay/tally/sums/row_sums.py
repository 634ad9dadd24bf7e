"""The exact sums of numbers that rows give: losses, angles, distances, counts of words.

A `RowTerm` says which numbers a row gives; `RowSums` adds them up, weighted or not. A term may round when it computes
them. The sums add no rounding, and do not depend on how the rows were split.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from assay.native.library import takes
from assay.native.quotients import StateQuotient
from assay.native.sums import DTYPES, PreparedSums, ProductSums, column_of, product_of, sum_products
from assay.native.values import add_integers
from assay.tally.base import (
    BAD_WEIGHTS,
    Batch,
    BatchLayout,
    InvalidValues,
    PreparedAdd,
    Rule,
    State,
    Tally,
    Whole,
    bad_weights,
)
from assay.tally.conservation import BrokenLaw, HostCount, Laws, at_most, equal, not_negative
from assay.tally.row_cells import RowCells
from assay.tally.sums import exact
from assay.tally.sums.exact import Number
from assay.tally.sums.fingerprints import Fingerprint, FingerprintSize, of_limbs, of_product, of_table_at, residues
from assay.tally.sums.polynomials import MEAN_OF_ROWS, SUM_OF_ROWS, QuotientOfSums, RowSum, SumInput, SumOf, program_of
from assay.tally.term_log import ROUNDING
from assay.triton_kernels import sums as triton_sums


@dataclass(frozen=True)
class SumShape:
    """`width` sums over the rows, of a number each, or of their squares (`power` 2).

    With a width of 1, a row may give several numbers; all of them go into the one sum.
    """

    width: int = 1
    power: int = 1


class RowValues:
    """What the rows of a batch give.

    Args:
        values: for each `SumShape` of the term a tensor of shape `(rows, width)`, or `(rows,)` for a width of 1:
            float32, float64 or integers.
        counted: bool of shape `(rows,)`: the rows that count; None for all. The values of the others may be any.
        invalid: for each text in the `invalid` of the term a tensor of shape `(rows, ...)` or `(samples, ...)` that is
            not 0 where something is invalid; none where nothing is.
    """

    def __init__(self, *values: Tensor, counted: Tensor | None = None, invalid: Sequence[Tensor] = ()) -> None:
        self.values = [value if value.ndim == 2 else value.view(-1, 1) for value in values]
        self.counted = counted
        self.invalid = invalid

    def looked_through(self, batch: Batch) -> RowValues:
        """These, where all rows count and nothing is invalid without what says so; it is looked in host memory only."""
        if not batch.compiled or (self.counted is None and not self.invalid):
            return self
        is_plain = self.counted is None or bool(self.counted.numpy().all())
        if not is_plain or any(each.numpy().any() for each in self.invalid):
            return self
        return RowValues(*self.values)

    def rounded(self, batch: Batch, term: RowTerm) -> RowValues:
        """These, or those that a device computed of the same batch."""
        counted = [] if self.counted is None else [self.counted]
        tensors = [*self.values, *counted, *self.invalid]
        tensors = batch.rounded(term, tensors, term.rounding, term.is_of_inputs)
        rest = tensors[len(self.values) + len(counted) :]
        return RowValues(
            *tensors[: len(self.values)], counted=tensors[len(self.values)] if counted else None, invalid=rest
        )


class RowColumns(NamedTuple):
    """What compiled code sums of a batch, in one pass: for each sum of a term the columns that are multiplied.

    `columns` are descriptions, as `native.sums` has them, of so many `rows`; `invalid`, int64 of shape `(1,)`, is then
    how many rows they do not hold for.
    """

    rows: int
    columns: list[int]
    products: Sequence[Sequence[int]]
    invalid: Tensor


class RowTerm(ABC):
    """A frozen description of the numbers that a row gives, computed on the device."""

    uses_target: bool = True
    """Whether the target is counted, or only `preds`."""
    columns: frozenset[str] = frozenset()
    """The names of the columns that it takes in addition to `preds`, `target` and `weights`."""
    chunk_scale: int = 16  # a softmax reads and writes its rows once, and the rest is small
    """See `Tally.chunk_scale`."""
    rounding: float = ROUNDING
    """How far apart two devices may compute the numbers, as a part of the largest; 0 where they have the same bits."""
    is_of_inputs: bool = False
    """Whether that is a part of the largest input, too, as of differences of nearly equal inputs."""
    not_finite: str = ""
    """What to warn of if numbers are NaN or infinite; empty where infinity is a value, and NaN is in `invalid`."""

    @property
    def sums(self) -> tuple[SumShape, ...]:
        """The sums that the numbers go into."""
        return (SumShape(),)

    @property
    def invalid(self) -> tuple[str, ...]:
        """What invalid rows are. They raise when a metric is computed."""
        return ()

    @abstractmethod
    def check(self, layout: BatchLayout) -> None:
        """Raise an `InputError` when a batch of this layout has no such rows."""

    def columns_of(self, batch: Batch) -> RowColumns | None:
        """How compiled code sums the numbers of a batch that may be valid; None where it does not."""
        return None

    @abstractmethod
    def __call__(self, batch: Batch) -> RowValues:
        """The numbers of every row. A sample has one row or several, which follow each other."""


@dataclass(frozen=True)
class RowTotals:
    """Exact sums on the CPU.

    `count` is the number of rows and `weight` the sum of their weights, which without weights is the same. `sums` has a
    list of numbers for each `SumShape`: inf, -inf or NaN where values were not finite.
    """

    count: int
    weight: Number
    sums: tuple[list[Number], ...]


@dataclass(frozen=True)
class RowSums(Tally):
    """Exact sums over rows.

    Weighted, each number is multiplied by the weight of its row; rows of weight 0 contribute nothing.

    State, all int64: `count` of shape `(1,)`; `invalid`, the counts of what the term calls invalid; for each `SumShape`
    the limbs `sum<k>` of shape `(1, width, words)`, and in `special<k>` of shape `(width, 3)` how many values were
    +inf, -inf and NaN; weighted also `weight`, limbs of shape `(1, 1, words)`, and `bad_weights`. Size: 0.6 KiB a sum,
    and 0.5 KiB more for squares and for weights.
    """

    term: RowTerm
    weighted: bool = False
    has_cells = True

    @property
    def chunk_scale(self) -> int:
        return self.term.chunk_scale

    @property
    def uses_target(self) -> bool:
        return self.term.uses_target

    @property
    def columns(self) -> frozenset[str]:
        return self.term.columns

    @cached_property
    def fields(self) -> Mapping[str, Rule]:
        numbered = [f"{name}{k}" for k in range(len(self.term.sums)) for name in ("sum", "special")]
        return dict.fromkeys(["count", "invalid", *numbered, *["weight", "bad_weights"] * self.weighted], "sum")

    def check(self, layout: BatchLayout) -> None:
        self.term.check(layout)

    def zero(self, device: torch.device) -> State:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        state = {"count": zeros(1), "invalid": zeros(len(self.term.invalid))}
        for k, shape in enumerate(self.term.sums):
            state[f"sum{k}"] = zeros(1, shape.width, exact.num_limbs(self._order(shape)))
            state[f"special{k}"] = zeros(shape.width, 3)
        return state | {"weight": zeros(1, 1, exact.num_limbs(1)), "bad_weights": zeros(1)} if self.weighted else state

    def _order(self, shape: SumShape) -> int:
        return shape.power + self.weighted

    def add(self, state: State, batch: Batch) -> None:
        self._add(state, batch)

    def add_cells(self, states: State, batch: Batch, cells: RowCells) -> None:
        self._add(states, batch, cells)

    def _add(self, state: State, batch: Batch, cells: RowCells | None = None) -> None:
        if cells is None and not self.weighted and self._add_columns(state, batch):
            return
        rows = self._values(batch)
        count, counted = len(rows.values[0]), rows.counted
        if rows.invalid:
            add_invalid(state["invalid"], batch, rows.invalid, cells)
        if cells is not None:
            cells = cells.repeated(count // max(1, len(cells)))
        if counted is not None:
            _add_counts(state["count"], counted, cells)
        elif cells is None:
            state["count"] += count
        else:
            state["count"][: cells.count] += cells.sizes[:, None]
        weights = self._weights(batch, rows)
        if weights is not None and batch.weights is not None:
            _add_counts(state["bad_weights"], self._bad(batch.weights, rows), cells)
            add_products(state["weight"], batch, [weights[:, None]], cells=cells)
        for k, factors in enumerate(self._factors(rows, weights)):
            special = state[f"special{k}"] if factors[0].dtype.is_floating_point else None
            add_products(state[f"sum{k}"], batch, factors, special, cells)

    prepares_compiled_calls = False  # the term is made by operators of torch

    def prepare(self, state: State, batch: Batch) -> PreparedAdd | None:
        if not self._is_one_sum or batch.preds.numel() > batch.cache_elements * self.chunk_scale:
            return None
        if self.term.columns_of(batch) is not None:
            return None
        first, count = self._values(batch).values[0], state["count"].numpy()
        sum_values = self._prepared_sum(state, first)
        if sum_values is None:
            return None
        size, dtype = first.shape, first.dtype

        def add(preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
            preds = preds.detach() if preds.requires_grad else preds
            target = target.detach() if target is not None and target.requires_grad else target
            rows = Batch(preds, target, compiled=True)
            found = self.term(rows).looked_through(rows)
            values = found.values[0]
            if found.counted is not None or found.invalid or values.shape != size or values.dtype != dtype:
                self.add(state, rows)
                return
            count[0] += values.shape[0]  # `len` of a tensor is a function of Python
            sum_values(values.contiguous())

        return add

    def _prepared_sum(self, state: State, like: Tensor) -> Callable[[Tensor], None] | None:
        """What adds contiguous values like these to the only sum; None where compiled code does not."""
        (shape,), limbs = self.term.sums, state["sum0"]
        if not like.numel() or not takes(like, dtypes=(*DTYPES, torch.int64)):
            return None
        if like.dtype == torch.int64:
            return None if shape.power > 1 else lambda values: add_integers(limbs[0], values, exact.origin(1))
        column = column_of(like.reshape(-1, 1), state["special0"].data_ptr(), 0, 1)
        product = product_of(limbs.shape[-1], exact.origin(shape.power), [0] * shape.power)
        sums = PreparedSums(like.numel(), column, [limbs.data_ptr(), *product], list(state.values()))
        return lambda values: sums.add([values.data_ptr()])

    @property
    def _is_one_sum(self) -> bool:
        """Whether there are no weights, and one number for all rows."""
        return not self.weighted and len(self.term.sums) == 1 and self.term.sums[0].width == 1

    def _add_columns(self, state: State, batch: Batch) -> bool:
        """Count a batch in one pass of compiled code; false where it is not valid, and then nothing was counted."""
        given = self.term.columns_of(batch)
        if given is None:
            return False
        sums = [state[f"sum{k}"] for k in range(len(self.term.sums))]
        before = [each.clone() for each in sums]
        products: list[int] = []
        for shape, limbs, places in zip(self.term.sums, sums, given.products, strict=True):
            products += [limbs.data_ptr(), *product_of(limbs.shape[-1], exact.origin(self._order(shape)), places)]
        sum_products((given.rows, 1), given.columns, products)
        if given.invalid.numpy().any():
            for limbs, each in zip(sums, before, strict=True):
                limbs.copy_(each)
            return False
        state["count"] += given.rows
        return True

    def _values(self, batch: Batch) -> RowValues:
        """What the rows give, computed once for all that ask."""
        key = ("row values", self.term)
        return batch.memoize(key, lambda _: self.term(batch).rounded(batch, self.term).looked_through(batch))

    def _weights(self, batch: Batch, rows: RowValues) -> Tensor | None:
        """One finite weight for each row, 0 for those that do not count; None without weights."""
        if not self.weighted or batch.weights is None:
            return None
        weights = _row_weights(batch.weights, len(rows.values[0]))
        weights = torch.where((weights - weights) == 0, weights, 0)
        return weights if rows.counted is None else torch.where(rows.counted, weights, 0)

    @staticmethod
    def _bad(weights: Tensor, rows: RowValues) -> Tensor:
        """Which rows that count have an invalid weight."""
        bad = bad_weights(_row_weights(weights, len(rows.values[0])))
        return bad if rows.counted is None else bad.logical_and_(rows.counted)

    def _factors(self, rows: RowValues, weights: Tensor | None) -> Iterator[list[Tensor]]:
        """For each sum the factors `(rows, width)` whose product is summed; rows that do not count have 0."""
        weighs = rows.counted if weights is None else weights != 0
        for shape, given in zip(self.term.sums, rows.values, strict=True):
            values = given if weighs is None else torch.where(weighs[:, None], given, 0)
            factors = [values.reshape(-1, shape.width)] * shape.power
            if weights is not None:
                factors.append(weights[:, None].expand_as(values).reshape(-1, shape.width))
            yield factors

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        return FingerprintSize(sum(2 * shape.width for shape in self.term.sums) + self.weighted)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        rows = self._values(batch)
        weights = self._weights(batch, rows)
        found = [residues(exact.parts(weights[:, None])).sum(0)] if weights is not None else []
        for factors in self._factors(rows, weights):
            product = of_product(*(exact.parts(factor.contiguous()) for factor in factors))
            found += [product.sum(0), _not_finite(factors[0])]
        together = torch.cat(found)
        count = len(rows.values[0])
        counts = [together.new_full((), count) if rows.counted is None else torch.count_nonzero(rows.counted)]
        counts += [torch.ne(each, 0).sum() for each in rows.invalid] or [together.new_zeros(())] * len(
            self.term.invalid
        )
        if self.weighted and batch.weights is not None:
            counts.append(torch.count_nonzero(self._bad(batch.weights, rows)))
        return Fingerprint(of_table_at(torch.stack(counts)), together)

    def fingerprint_of(self, state: State) -> Fingerprint:
        found = [of_limbs(state["weight"]).view(-1)] if self.weighted else []
        for k in range(len(self.term.sums)):
            found += [of_limbs(state[f"sum{k}"]).view(-1), state[f"special{k}"].sum(-1)]
        counts = [state[name] for name in ("count", "invalid", "bad_weights") if name in state]
        return Fingerprint(of_table_at(torch.cat(counts)), torch.cat(found))

    def canonicalize(self, state: State, rows: int) -> State:
        state = state | ({"weight": exact.canonical(state["weight"])} if self.weighted else {})
        for k in range(len(self.term.sums)):
            state[f"sum{k}"] = exact.canonical(state[f"sum{k}"])
            if exact.has_nonzero(state[f"special{k}"]):
                finite = (state[f"special{k}"].sum(1) == 0).to(torch.int64)
                state[f"sum{k}"] = state[f"sum{k}"] * finite[:, None]
        return state

    def canonicalize_cells(self, states: State, rows: Whole) -> State:
        if any(exact.has_nonzero(states[f"special{k}"]) for k in range(len(self.term.sums))):
            return super().canonicalize_cells(states, rows)
        return self.canonicalize(states, int(rows.sum()))

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        counts = dict(zip(self.term.invalid, state["invalid"].tolist(), strict=True))
        if self.weighted:
            counts[BAD_WEIGHTS] = int(state["bad_weights"])
        problems = [InvalidValues(what, count) for what, count in counts.items() if count]
        special = [state[f"special{k}"] for k in range(len(self.term.sums) if self.term.not_finite else 0)]
        if any(map(exact.has_nonzero, special)):
            count = sum(int(each.sum()) for each in special)
            problems.append(InvalidValues(self.term.not_finite, count, fatal=False))
        return problems

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        sums = range(len(self.term.sums))
        yield from not_negative(state, "count", "invalid", "bad_weights", *map("special{}".format, sums))
        count = int(state["count"])
        if not given.rows and given.preds is not None:  # else other processes may count the rows of these elements
            yield from equal("without rows nothing is counted", 0, count)
        most = None if given.preds is None else max(given.rows, given.preds, given.targets or 0)
        yield from at_most("rows that were counted are no more than the elements", most, count)
        if self.weighted:
            yield from at_most("invalid weights are no more than the rows", count, int(state["bad_weights"]))
        for k, shape in enumerate(self.term.sums):
            if not count and any(exact.has_nonzero(state[f"{name}{k}"]) for name in ("sum", "special")):
                yield BrokenLaw("without counted rows there is no sum", "0", "another sum")
            if shape.power == 2 and min(exact.to_integers(state[f"sum{k}"]).flat, default=0) < 0:
                yield BrokenLaw("no sum of squares is negative", "0 or more", "less")

    def quotient(self, formula: QuotientOfSums) -> StateQuotient | None:
        """What computes a quotient of sums of states; None for one of the only number of rows that give several."""
        if formula in (MEAN_OF_ROWS, SUM_OF_ROWS) and self.term.sums[0].width > 1:
            return None
        flaws = {"invalid": len(self.term.invalid), "bad_weights": 1}
        flaws |= {f"special{k}": 3 * shape.width for k, shape in enumerate(self.term.sums)}
        counted = [(name, size) for name, size in flaws.items() if name in self.fields]
        return StateQuotient(counted, *program_of(formula, self._input))

    def _input(self, total: SumOf) -> SumInput:
        if total.term is None:
            field = "weight" if self.weighted else "count"
            return SumInput(field, 0, *((exact.num_limbs(1), exact.origin(1)) if self.weighted else (1, 0)))
        assert isinstance(total.term, RowSum), "rows have no terms"
        order = self._order(self.term.sums[total.term.place])
        words = exact.num_limbs(order)
        return SumInput(f"sum{total.term.place}", 8 * total.term.column * words, words, exact.origin(order))

    def compute(self, state: State) -> RowTotals:
        """The sums as exact numbers."""
        count = int(state["count"])
        weight = exact.fractions(state["weight"], 1)[0] if self.weighted else Fraction(count)
        count = count if weight else 0  # rows of weight 0 are no data
        return RowTotals(count, weight, tuple(self._sums(state, k, s) for k, s in enumerate(self.term.sums)))

    def _sums(self, state: State, k: int, shape: SumShape) -> list[Number]:
        finite = exact.fractions(state[f"sum{k}"], self._order(shape))
        if not exact.has_nonzero(state[f"special{k}"]):
            return list(finite)
        special = state[f"special{k}"].tolist()
        return [_number(value, shape, *each) for value, each in zip(finite, special, strict=True)]


def _number(value: Number, shape: SumShape, above: int, below: int, nan: int) -> Number:
    """A sum in which there were infinite values and NaN, as IEEE 754 has it."""
    if shape.power == 2:
        above, below = above + below, 0
    if nan or (above and below):
        return math.nan
    return math.inf if above else -math.inf if below else value


def _row_weights(weights: Tensor, rows: int) -> Tensor:
    """One weight per row, from one each or one per sample of several rows."""
    flat = weights.reshape(-1)
    if weights.dtype.is_floating_point and weights.dtype.itemsize < 4:
        flat = flat.float()
    return flat if len(flat) == rows else flat.view(-1, 1).expand(-1, rows // len(flat)).reshape(-1)


def _not_finite(values: Tensor) -> Tensor:
    """How many values of each column are not finite."""
    if not values.dtype.is_floating_point:
        return torch.zeros(values.shape[1:], dtype=torch.int64, device=values.device)
    return torch.count_nonzero(torch.ne(values - values, 0), 0)


def _add_counts(counts: Tensor, rows: Tensor, cells: RowCells | None) -> None:
    """Add how many rows there are, given as booleans: to one count, or to that of the cell of each."""
    if cells is None:
        counts += rows.sum()
    else:
        cells.add_to(counts, rows)


def add_invalid(counts: Tensor, batch: Batch, invalid: Sequence[Tensor], cells: RowCells | None) -> None:
    """Add how many numbers of each tensor are not 0: to the counts of a batch, or to those of the cell of each row."""
    found = torch.stack([torch.count_nonzero(each) for each in invalid])
    if cells is None:
        counts[: len(found)] += found
    elif not batch.compiled or found.any():  # in host memory the check costs nothing
        for k, each in enumerate(invalid):
            by_row = torch.ne(each, 0).reshape(len(each), -1).sum(1)
            cells.repeated(len(each) // max(1, len(cells))).add_to(counts, by_row, k)


def add_products(
    limbs: Tensor,
    batch: Batch,
    factors: Sequence[Tensor],
    special: Tensor | None = None,
    cells: RowCells | None = None,
) -> None:
    """Add the sums over the rows of the products of `factors`, each of shape `(rows, columns)`, from a batch.

    In `special` is counted how many values of the first factor are +inf, -inf and NaN. With cells, limbs and counts
    have a first dimension for them, and each row goes to those of its cell.
    """
    if cells is not None:
        cells = cells.repeated(len(factors[0]) // max(1, len(cells)))
    elif batch.triton and _add_in_triton(limbs, factors, special):
        return
    if batch.compiled and takes(*factors, dtypes=DTYPES):
        sums = ProductSums()
        if special is not None:
            sums.count_special(factors[0], special)
        sums.add(limbs, factors, exact.origin(len(factors)))
        sums.run(None if cells is None else cells.segments)
        return
    if cells is None and batch.compiled and len(factors) == 1 and takes(factors[0], dtypes=(torch.int64,)):
        add_integers(limbs[0], factors[0].contiguous(), exact.origin(1))
        return
    if special is not None:
        kinds = torch.stack([factors[0] == math.inf, factors[0] == -math.inf, factors[0].isnan()], -1)
        if cells is None:
            special += kinds.sum(0)
        else:
            cells.add_to(special, kinds)
    product = exact.parts(factors[0])
    for factor in factors[1:]:
        product = exact.product(product, exact.parts(factor.contiguous()))
    if cells is None:
        exact.add_columns(limbs, [[product]])
    else:
        exact.add_to(limbs.view(-1, limbs.shape[-1]), product, cells.places(limbs.shape[-2]))


def _add_in_triton(limbs: Tensor, factors: Sequence[Tensor], special: Tensor | None) -> bool:
    """The same in kernels on the device; false where they do not take these factors, and then nothing was counted."""
    if not triton_sums.takes_columns(factors):
        return False
    order, places = len(factors), range(len(factors))
    product = (0, 0, exact.first_bit(order, order), *places)
    counted = limbs.new_empty(0, limbs.shape[1], 3) if special is None else special[None]
    return exact.add_in_triton(factors, [product], [limbs], counted)


def sum_each_row(x: Tensor) -> Tensor:
    """The sum of each row of a contiguous `(rows, columns)`, in floating point, of shape `(rows, 1)`.

    A single long row torch adds up in several threads, in another order than it has among other rows.
    """
    return x.expand(2, -1).sum(1, keepdim=True)[:1] if x.shape[0] == 1 else x.sum(1, keepdim=True)
