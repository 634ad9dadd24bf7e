"""Exact sums of terms over samples: the state of every metric that is read from sums."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from assay.errors import ShapeError, describe
from assay.native.library import takes
from assay.native.quotients import StateQuotient
from assay.native.sums import DTYPES, PreparedSums, column_of, computed_column, product_of, sum_products
from assay.tally.base import (
    BAD_WEIGHTS,
    NAN_LEFT_OUT,
    Batch,
    BatchLayout,
    InvalidValues,
    NanPolicy,
    PreparedAdd,
    Rule,
    State,
    Tally,
    Whole,
    bad_weights,
    shown,
)
from assay.tally.conservation import HostCount, Laws
from assay.tally.layout_checks import check_as_preds, check_weights
from assay.tally.row_cells import RowCells
from assay.tally.sums import exact, modular_sums, sum_columns, sum_laws
from assay.tally.sums.fingerprints import Fingerprint, FingerprintSize, added, of_equal_counts, of_limbs, of_table_at
from assay.tally.sums.polynomials import QuotientOfSums
from assay.tally.sums.terms import (
    PREDS,
    WEIGHTS,
    Argument,
    ArgumentValue,
    Factor,
    FloatTerm,
    Leaf,
    Product,
    Term,
    column,
    columns_of_terms,
)
from assay.tally.sums.totals import SumLayout, SumPlace, Totals
from assay.triton_kernels import sums as triton_sums


@dataclass(frozen=True)
class Sums(Tally):
    """Exact sums of terms over all samples, for each of `num_outputs` outputs.

    State, all int64: `count` of shape `(outputs,)`, without samples of weight 0; for every float that the terms are
    made of, how many were not finite in `invalid` of shape `(leaves, outputs)`, and in `special` of shape `(leaves,
    outputs, 3)` what is positive where +inf, -inf and NaN were met; and for each order of terms `sums<order>` of shape
    `(terms, outputs, num_limbs(order))`. Size: 0.6, 1.1 or 1.6 KiB per term and output for orders 1, 2 and 3. Weighted,
    each term is multiplied by the weight of its sample, and `bad_weights` counts the invalid weights. With
    `nan_policy="warn"`, `left_out` of shape `(outputs,)` counts the samples whose `preds` are NaN.

    With `num_outputs`, arguments are `(N, num_outputs)`, or `(N,)` for 1; without, every element of `(N, ...)` is a
    sample of one output. `nan_policy` says what becomes of samples whose `preds` are NaN.
    """

    terms: frozenset[Term]
    num_outputs: int | None = None
    weighted: bool = False
    arguments: tuple[Argument, ...] = ("preds", "target")
    nan_policy: NanPolicy = "propagate"
    has_cells = True

    @property
    def chunk_scale(self) -> int:
        if self._outputs > 64:  # else a chunk of many outputs would have but a few rows
            return 64
        if any(isinstance(leaf, FloatTerm) for leaf in self._leaves):
            return 1
        has_temporaries = self.weighted or self.nan_policy not in ("propagate", "raise")
        return 8 if has_temporaries else 64  # compiled code has its own blocks, and `add` those of other code

    @property
    def uses_target(self) -> bool:
        return "target" in self.arguments

    @cached_property
    def _outputs(self) -> int:
        return self.num_outputs or 1

    @cached_property
    def _by_order(self) -> dict[int, list[Term]]:
        terms = sorted(self.terms, key=repr)
        counted = [*(Product(term, WEIGHTS) for term in terms), WEIGHTS] if self.weighted else terms
        orders = sorted({term.order for term in counted})
        return {order: [term for term in counted if term.order == order] for order in orders}

    @cached_property
    def _leaves(self) -> list[Leaf]:
        leaves = {leaf for terms in self._by_order.values() for term in terms for leaf in term.leaves}
        return sorted(leaves, key=repr)

    @cached_property
    def fields(self) -> Mapping[str, Rule]:
        always = ["count", "invalid", "special", *(f"sums{order}" for order in self._by_order)]
        optional = ["bad_weights"] * self.weighted + ["left_out"] * (self.nan_policy == "warn")
        return dict.fromkeys(always + optional, "sum")

    def check(self, layout: BatchLayout) -> None:
        columns = {"preds": layout.preds, "target": layout.target}
        for name in self.arguments:
            check_as_preds(name, columns[name], layout.preds)
        tail = layout.preds.tail
        if self.num_outputs == 1 and tail not in ((), (1,)):
            do = "Give num_outputs for several outputs, or flatten preds and target for one"
            raise ShapeError(describe("preds", f"shape {shown(tail)}", "shape (N,) or (N, 1)", do))
        if self.num_outputs not in (None, 1) and tail != (self.num_outputs,):
            expected = f"shape (N, {self.num_outputs})"
            raise ShapeError(describe("preds", f"shape {shown(tail)}", expected, "Check num_outputs"))
        check_weights(layout.weights, tail)

    def zero(self, device: torch.device) -> State:
        _ = self._layout, self._products  # found before an update is traced: torch.compile cannot take their locks

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        leaves, outputs = len(self._leaves), self._outputs
        state = {"count": zeros(outputs), "invalid": zeros(leaves, outputs), "special": zeros(leaves, outputs, 3)}
        for order, terms in self._by_order.items():
            state[f"sums{order}"] = zeros(len(terms), outputs, exact.num_limbs(order))
        state |= {"bad_weights": zeros(1)} if self.weighted else {}
        return state | ({"left_out": zeros(outputs)} if self.nan_policy == "warn" else {})

    def add(self, state: State, batch: Batch) -> None:
        if self.weighted and batch.weights is not None:
            state["bad_weights"] += bad_weights(batch.weights).sum()
        columns, left_out = batch.memoize(self._layout, self._columns)
        uncounted = sum_columns.uncounted(columns, left_out)
        state["count"] += len(columns.preds) if uncounted is None else len(columns.preds) - uncounted.sum(0)
        if left_out is not None and "left_out" in state:
            state["left_out"] += left_out.sum(0)
        if self._takes(columns):
            self._add_compiled(state, columns)
        elif not (columns.triton and self._add_in_triton(state, columns)):
            split = batch.memoize((*self._layout, "chunks"), lambda b: sum_columns.split(columns, b.cache_elements))
            rest = [chunk for chunk in split if not self._add_modular(state, chunk)]
            if rest:
                self._add(state, columns, rest)

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        return FingerprintSize(sum(map(len, self._by_order.values())) * self._outputs)

    def fingerprint(self, batch: Batch) -> Fingerprint:
        columns, left_out = batch.memoize(self._layout, self._columns)
        chunks = batch.memoize((*self._layout, "chunks"), lambda _: [columns])  # those that were added
        terms = [term for of_order in self._by_order.values() for term in of_order]
        found = [torch.stack([term.residues(chunk).sum(0) for term in terms]).view(-1) for chunk in chunks]
        uncounted = sum_columns.uncounted(columns, left_out)
        if uncounted is None:
            return Fingerprint(of_equal_counts(self._outputs, len(columns.preds)), added(found))
        counted = found[0].new_full((self._outputs,), len(columns.preds))
        counted = counted - torch.count_nonzero(uncounted, 0)
        if self.weighted and batch.weights is not None:
            counted = torch.cat([counted, torch.count_nonzero(bad_weights(batch.weights)).view(1)])
        return Fingerprint(of_table_at(counted), added(found))

    def fingerprint_of(self, state: State) -> Fingerprint:
        found = torch.cat([of_limbs(state[f"sums{order}"]).view(-1) for order in self._by_order])
        counts = [state[name] for name in ("count", "bad_weights") if name in state]
        return Fingerprint(of_table_at(torch.cat(counts)), found)

    def add_cells(self, states: State, batch: Batch, cells: RowCells) -> None:
        if self.weighted and batch.weights is not None:
            cells.add_to(states["bad_weights"], bad_weights(batch.weights).reshape(len(cells), -1).sum(1))
        columns, left_out = batch.memoize(self._layout, self._columns)
        cells = cells.repeated(len(columns.preds) // max(1, len(cells)))
        states["count"][: cells.count] += cells.sizes[:, None]
        uncounted = sum_columns.uncounted(columns, left_out)
        if uncounted is not None:
            cells.add_to(states["count"], -uncounted.to(torch.int64))
        if left_out is not None and "left_out" in states:
            cells.add_to(states["left_out"], left_out.to(torch.int64))
        if self._takes(columns):
            self._add_compiled(states, columns, cells)
            return
        for k, leaf in enumerate(self._leaves):
            values = leaf.values(columns)
            if values.dtype.is_floating_point:
                kinds = torch.stack([values == math.inf, values == -math.inf, values.isnan()], -1)
                cells.add_to(states["special"], kinds, 3 * k * self._outputs)
                cells.add_to(states["invalid"], kinds.any(-1), k * self._outputs)
        for order, terms in self._by_order.items():
            limbs = states[f"sums{order}"].view(-1, exact.num_limbs(order))
            for k, term in enumerate(terms):
                places = cells.places(len(terms) * self._outputs, k * self._outputs, self._outputs)
                exact.add_to(limbs, term.parts(columns), places)

    @cached_property
    def _layout(self) -> tuple[Hashable, ...]:
        return ("columns", self._outputs, self.weighted, self.arguments, self.nan_policy)

    def _takes(self, columns: Batch) -> bool:
        """Whether compiled code does."""
        return columns.compiled and takes(*(column(columns, each) for each in self._columns_read), dtypes=DTYPES)

    @cached_property
    def _products(self) -> tuple[list[Factor], list[tuple[int, int, list[int]]]]:
        """The columns that are multiplied, leaves first; and for each product its order, the index of its term, and
        those of its columns."""
        factors: list[Factor] = list(self._leaves)
        products = []
        for order, terms in self._by_order.items():
            for k, addend in ((k, addend) for k, term in enumerate(terms) for addend in term.addends):
                factors += [factor for factor in dict.fromkeys(addend) if factor not in factors]
                products.append((order, k, [factors.index(factor) for factor in addend]))
        return factors, products

    @cached_property
    def _compiled(self) -> tuple[list[Factor], list[tuple[str, int, list[int]]]]:
        """The columns that compiled code reads; and for each product the field of its limbs, at which byte they start,
        and how `sum_products` describes it."""
        factors, products = self._products
        described = []
        for order, k, places in products:
            words = exact.num_limbs(order)
            stride = len(self._by_order[order]) * self._outputs * words
            product = product_of(words, exact.origin(order), places, stride)
            described.append((f"sums{order}", 8 * k * self._outputs * words, product))
        return factors, described

    def prepare(self, state: State, batch: Batch) -> PreparedAdd | None:
        factors = self._compiled[0]
        tensors = [column(batch, name) for name in self._columns_read]
        drops_nan = self.nan_policy in ("warn", "ignore")
        known = self.nan_policy in ("propagate", "raise") or (drops_nan and self.arguments == ("preds",))
        rows = batch.preds.numel()
        are_computed = not all(isinstance(each, ArgumentValue) or each.computed for each in factors)
        if (are_computed and (drops_nan or rows > batch.cache_elements)) or not known or self._outputs > 1 or not rows:
            return None
        if not takes(*tensors, dtypes=DTYPES) or any(each.numel() != rows for each in tensors):
            return None
        columns, count = sum_columns.as_columns(batch.preds, batch.target, batch.weights), state["count"].numpy()
        nan_were_found = state["special"].numpy()[:, 0, 2]
        sums = PreparedSums(rows, *self._described(state, columns), owners=list(state.values()))
        values_of = columns_of_terms(factors)
        places = {"preds": 0, "target": 1, "weights": 2}  # and 3 of what is computed, which has no address
        of_column = [places[each.argument] if isinstance(each, ArgumentValue) else 3 for each in factors]

        def add(preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
            if weights is not None and not weigh(preds, weights):
                self.add(state, Batch(preds.detach(), target, weights.detach(), compiled=True))
                return
            count[0] += rows
            if are_computed:
                preds = preds.detach() if preds.requires_grad else preds
                target = target.detach() if target is not None and target.requires_grad else target
                values = values_of(preds, target, weights)
                sums.add([0 if each is None else each.data_ptr() for each in values])
            else:
                addresses = [0 if each is None else each.data_ptr() for each in (preds, target, weights, None)]
                sums.add([addresses[place] for place in of_column])
            if drops_nan and nan_were_found.any():
                leave_out(int(preds.isnan().sum()))

        def weigh(preds: Tensor, weights: Tensor) -> bool:
            """Whether all weights are positive numbers, and nothing is left out."""
            of_rows = weights.detach().numpy()
            if np.count_nonzero((of_rows > 0) & (of_rows < math.inf)) < rows:  # NaN is neither
                return False
            if not drops_nan:
                return True
            values = preds.detach().numpy()
            return not np.count_nonzero(values != values)

        def leave_out(nan: int) -> None:
            """Count NaN, which added nothing to the sums, as if they had been no values."""
            state["count"] -= nan
            state["invalid"] -= nan
            nan_were_found[:] = 0
            if "left_out" in state:
                state["left_out"] += nan

        return add

    def _add_compiled(self, state: State, columns: Batch, cells: RowCells | None = None) -> None:
        described = self._described(state, columns)
        sum_products(columns.preds.shape, *described, None if cells is None else cells.segments)

    def _described(self, state: State, columns: Batch) -> tuple[list[int], list[int]]:
        """The columns, and the products that are added to a state, as `sum_products` takes them."""
        factors, products = self._compiled
        special, invalid, size = state["special"].data_ptr(), state["invalid"].data_ptr(), 8 * self._outputs
        described = []
        for k, factor in enumerate(factors):
            counts = (special + 3 * k * size, invalid + k * size, len(self._leaves) * self._outputs)
            counts = counts if k < len(self._leaves) else (0, 0, 0)
            if factor.computed and (columns.terms is None or not isinstance(factor, FloatTerm)):
                kind, arguments, exponent = factor.computed
                places = [factors.index(ArgumentValue(each)) for each in arguments]
                described += computed_column(kind, places, counts, exponent)
            else:
                described += column_of(factor.values(columns), *counts)
        starts = {name: state[name].data_ptr() for name in dict.fromkeys(name for name, _, _ in products)}
        numbers = [number for name, first, product in products for number in (starts[name] + first, *product)]
        return described, numbers

    @cached_property
    def _in_triton(self) -> tuple[tuple[int, ...], ...]:
        """How `triton_sums.add_products` describes each product of float32."""
        orders = list(self._by_order)
        return tuple(
            (orders.index(order), k, exact.first_bit(order, len(places)), *places)
            for order, k, places in self._products[1]
        )

    def _add_in_triton(self, state: State, columns: Batch) -> bool:
        """Count in kernels on the device; false where they do not take these columns, and then nothing was counted."""
        if not triton_sums.takes_columns([column(columns, each) for each in self._columns_read]):
            return False
        values = [factor.values(columns) for factor in self._products[0]]
        limbs = [state[f"sums{order}"] for order in self._by_order]
        return exact.add_in_triton(values, self._in_triton, limbs, state["special"], state["invalid"])

    def _add_modular(self, state: State, columns: Batch) -> bool:
        """Count float32 in host memory by NumPy; false where that is not possible, and then nothing was counted."""
        tensors = [column(columns, each) for each in self._columns_read]
        if not columns.compiled or any(type(each) is not Tensor or each.dtype != torch.float32 for each in tensors):
            return False
        factors, products = self._products
        places = [of_columns for _, _, of_columns in products]
        sums = modular_sums.sums_of_columns([factor.values(columns) for factor in factors], places)
        for output, of_output in enumerate(sums or ()):
            for (order, k, of_columns), value in zip(products, of_output, strict=True):
                exact.add_integer(state[f"sums{order}"][k, output], value, exact.first_bit(order, len(of_columns)))
        return sums is not None

    def _add(self, state: State, columns: Batch, chunks: Sequence[Batch]) -> None:
        self._inspect(state, chunks)
        dtypes = [column(columns, argument).dtype for argument in self._columns_read]
        mixed = len({exact.base(dtype) for dtype in dtypes}) > 1
        for order, terms in self._by_order.items():
            limbs = state[f"sums{order}"]
            for group in [slice(k, k + 1) for k in range(len(terms))] if mixed else [slice(len(terms))]:
                exact.add_columns(limbs[group], ([term.parts(chunk) for term in terms[group]] for chunk in chunks))

    def _inspect(self, state: State, chunks: Sequence[Batch]) -> None:
        """Count the floats that are not finite. Comparisons that give floats and not booleans are vectorised."""
        for k, leaf in enumerate(self._leaves):
            summaries = [_summary(leaf.values(chunk)) for chunk in chunks]
            if summaries[0] is not None:
                invalid, high, low = torch.stack(summaries, 1)  # type: ignore[arg-type]
                state["invalid"][k] += invalid.sum(0).to(torch.int64)
                flags = torch.stack([high == math.inf, low == -math.inf, high.isnan()], -1)
                state["special"][k] += flags.sum(0)

    @property
    def _columns_read(self) -> tuple[Argument, ...]:
        return (*self.arguments, "weights") if self.weighted else self.arguments

    def _columns(self, batch: Batch) -> tuple[Batch, Tensor | None]:
        """The batch with every argument of shape `(rows, outputs)`, and which of them are left out."""
        shape = batch.preds.shape

        def arranged(tensor: Tensor) -> Tensor:
            if tensor.shape != shape:  # weights of shape (N,)
                tensor = tensor.view(-1, *(1,) * (len(shape) - 1)).expand(shape)
            if tensor.dtype in (torch.float16, torch.bfloat16) and not batch.triton:  # kernels read them as they are
                tensor = tensor.float()
            return tensor.reshape(-1, self._outputs)

        columns = {name: arranged(column(batch, name)) for name in self._columns_read}
        if batch.compiled and self._outputs > 1:  # compiled code reads one column after the other
            columns = {name: tensor.t().contiguous().t() for name, tensor in columns.items()}
        left_out = None
        if batch.preds.dtype.is_floating_point and self.nan_policy not in ("propagate", "raise"):
            is_nan = columns["preds"].isnan()
            if isinstance(self.nan_policy, float):
                columns["preds"] = columns["preds"].masked_fill(is_nan, self.nan_policy)
            else:
                left_out = is_nan
                columns = {name: tensor.masked_fill(is_nan, 0) for name, tensor in columns.items()}
        return Batch(
            columns["preds"],
            columns.get("target"),
            columns.get("weights"),
            batch.cache_elements,
            batch.compiled,
            triton=batch.triton,
            terms=batch.terms,
        ), left_out

    def canonicalize(self, state: State, rows: int) -> State:
        done = {**state, **{name: exact.canonical(state[name]) for name in map("sums{}".format, self._by_order)}}
        if exact.has_nonzero(state["special"]):
            done["special"] = special = _settled_special(state["special"])
            for order, terms in self._by_order.items():
                finite = torch.stack([1 - special[self._index(_decisive(term))].amax((0, 2)) for term in terms])
                done[f"sums{order}"] = done[f"sums{order}"] * finite[..., None]
        return done

    def canonicalize_cells(self, states: State, rows: Whole) -> State:
        if exact.has_nonzero(states["special"]):
            return super().canonicalize_cells(states, rows)
        return self.canonicalize(states, int(rows.sum()))

    def _index(self, leaves: Sequence[Leaf]) -> list[int]:
        return [self._leaves.index(leaf) for leaf in leaves]

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        problems = self._left_out_or_bad(state)
        if not exact.has_nonzero(state["invalid"]):
            return problems
        invalid = dict(zip(self._leaves, state["invalid"].sum(1).tolist(), strict=True))
        values = sum(count for leaf, count in invalid.items() if isinstance(leaf, ArgumentValue))
        if values:
            fatal = self.nan_policy == "raise" and bool(state["special"][self._leaves.index(PREDS), :, 2].any())
            problems.append(InvalidValues("values are NaN or infinite", values, fatal))
        for k, (leaf, count) in enumerate(invalid.items()):
            if isinstance(leaf, FloatTerm) and count > values:  # finite inputs gave a term that is not
                undefined = not values and bool(state["special"][k, :, 2].any())
                what = f"terms of {leaf!r} are {'NaN' if undefined else 'NaN or infinite'}, which needs {leaf.needs}"
                problems.append(InvalidValues(what, count - values, fatal=undefined))
        return problems

    def _left_out_or_bad(self, state: State) -> list[InvalidValues]:
        """What the canonical state says of NaN that were left out, and of the weights."""
        counted = state.get("left_out")
        left_out = int(counted.sum()) if counted is not None and exact.has_nonzero(counted) else 0
        return [
            *([InvalidValues(NAN_LEFT_OUT, left_out, fatal=False)] if left_out else []),
            *self.weight_problems(state),
        ]

    def weight_problems(self, state: State) -> list[InvalidValues]:
        """What the canonical state says of the weights."""
        bad = int(state["bad_weights"]) if self.weighted else 0
        return [InvalidValues(BAD_WEIGHTS, bad)] if bad else []

    def union(self, other: Tally) -> Tally | None:
        if not isinstance(other, Sums) or self._outputs != other._outputs:
            return None
        flat = None if None in (self.num_outputs, other.num_outputs) else self.num_outputs
        joined = replace(self, terms=self.terms | other.terms, num_outputs=flat)
        return joined if replace(other, terms=joined.terms, num_outputs=flat) == joined else None

    def extract(self, state: State, wanted: Tally) -> State:
        assert isinstance(wanted, Sums)
        leaves = torch.tensor(self._index(wanted._leaves), device="cpu")
        chosen: State = {name: state[name] for name in ("count", "bad_weights", "left_out") if name in state}
        chosen |= {name: state[name].index_select(0, leaves) for name in ("invalid", "special")}
        for order, terms in wanted._by_order.items():
            index = torch.tensor([self._by_order[order].index(term) for term in terms], device="cpu")
            chosen[f"sums{order}"] = state[f"sums{order}"].index_select(0, index)
        return chosen

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        samples = given.preds if given.preds is None else given.preds // self._outputs
        counts_all = not self.weighted and self.nan_policy != "ignore"
        yield from sum_laws.of_counts(state, samples, counts_all)
        if not self.weighted and not state["special"].numpy().any():
            yield from sum_laws.of_squares(state, self._squares)

    @cached_property
    def _squares(self) -> list[tuple[int, int]]:
        """For each leaf whose sum and sum of squares are counted the places of both among their terms."""
        firsts, seconds = self._by_order.get(1, []), self._by_order.get(2, [])
        products = [(each.left, each) for each in seconds if isinstance(each, Product) and each.left == each.right]
        return [(firsts.index(leaf), seconds.index(each)) for leaf, each in products if leaf in firsts]

    def compute(self, state: State) -> Totals:
        """The sums of the terms as exact numbers."""
        return Totals(state, self._sum_layout)

    def quotient(self, formula: QuotientOfSums) -> StateQuotient | None:
        """What computes a quotient of sums of states; None for several outputs, and where it takes no weights."""
        if self._outputs > 1 or (self.weighted and not formula.takes_weights):
            return None
        flaws = {"invalid": len(self._leaves), "special": 3 * len(self._leaves), "bad_weights": 1, "left_out": 1}
        counted = [(name, size) for name, size in flaws.items() if name in self.fields]
        return StateQuotient(counted, *self._sum_layout.program(formula))

    @cached_property
    def _sum_layout(self) -> SumLayout:
        places = {}
        for order, terms in self._by_order.items():
            for k, term in enumerate(terms):
                name = term.left if self.weighted and isinstance(term, Product) and term.right == WEIGHTS else term
                places[name] = SumPlace(order, k, self._index(_decisive(term)))
        return SumLayout(self._outputs, places)


def _summary(x: Tensor) -> Tensor | None:
    """How many values of each column are not finite, the largest and the smallest; nothing for integers."""
    if not x.dtype.is_floating_point or not len(x):
        return None
    if x.element_size() < 4:
        x = x.float()  # a count of rows does not fit float16
    not_finite = x - x  # NaN where x is not finite, else 0
    return torch.stack([torch.ne(not_finite, not_finite, out=not_finite).sum(0), x.amax(0), x.amin(0)])


def _settled_special(special: Tensor) -> Tensor:
    """One of none, +inf, -inf and NaN; infinities of both signs make NaN."""
    plus, minus, nan = special.clamp(max=1).unbind(-1)
    nan = torch.maximum(nan, plus * minus)
    return torch.stack([plus * (1 - nan), minus * (1 - nan), nan], -1)


def _decisive(term: Term) -> tuple[Leaf, ...]:
    """The floats that must be finite for the sum of a term to be."""
    return (term,) if isinstance(term, Leaf) else term.leaves
