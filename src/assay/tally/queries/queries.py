"""Queries with their documents: sums over queries that are rows, and documents that are kept until they are grouped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.tally.base import (
    BAD_WEIGHTS,
    Batch,
    BatchLayout,
    InvalidValues,
    Rule,
    State,
    Tally,
    TensorLayout,
    bad_weights,
    shown,
)
from assay.tally.conservation import HostCount, Laws, at_most, equal, not_negative
from assay.tally.layout_checks import AS_SCORES, check_as_preds, check_weights
from assay.tally.queries.query_terms import EmptyTargetAction, QueryTerm
from assay.tally.queries.ranked_queries import RankedQueries, ranked
from assay.tally.stores.sample_store import ANY, SampleStore, canonical
from assay.tally.sums.row_sums import RowTerm, RowValues, SumShape
from assay.tally.term_log import ROUNDING

INVALID = (
    "scores are NaN",
    "relevances are negative, infinite or NaN",
    "relevances are above max_relevance={highest:g}",
    "queries have no {needs}, and empty_target_action='error'",
)
_BLOCK = 1 << 16  # documents of a block of queries: what is computed of them stays in a cache
_CACHED = 1 << 20  # documents whose ranks are kept for the next metric

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class QueryValues:
    """The numbers of queries, `(rows, width)`, and which of the queries count, bool of shape `(rows, 1)`."""

    values: Tensor
    counted: Tensor


@dataclass(frozen=True)
class QueryMeasure:
    """What is measured of each query, and what of those that lack what the measure needs.

    Args:
        term: the measure.
        empty_target_action: 0 ("neg"), 1 ("pos"), leave out ("skip"), or leave out and report ("error").
    """

    term: QueryTerm
    empty_target_action: EmptyTargetAction = "neg"

    def __call__(self, queries: RankedQueries) -> QueryValues:
        """The numbers of each query; queries without documents are left out."""
        lacks, counted = self.term.lacks(queries), queries.num_documents > 0
        if self.empty_target_action in ("skip", "error"):
            counted = counted & ~lacks
        default = float(self.empty_target_action == "pos")
        return QueryValues(self.term(queries).masked_fill(lacks, default), counted)

    def invalid_queries(self, queries: RankedQueries) -> tuple[Tensor, Tensor]:
        """Which relevances are too high, and which queries lack what they must have: a row for each query."""
        highest = self.term.max_relevance
        lacks = self.term.lacks(queries) & (queries.num_documents > 0) & (self.empty_target_action == "error")
        above = queries.relevance > highest if highest < torch.inf else torch.zeros_like(lacks)
        return above, lacks

    @property
    def title(self) -> str:
        """What the numbers are called."""
        return self.term.title + ", or 1" * (self.empty_target_action == "pos")

    @property
    def invalid(self) -> tuple[str, ...]:
        """What is counted as invalid, for messages."""
        return tuple(text.format(highest=self.term.max_relevance, needs=self.term.needs) for text in INVALID)

    def invalid_values(self, counts: Sequence[int]) -> list[InvalidValues]:
        """What the counts of `invalid` say."""
        return [InvalidValues(what, count) for what, count in zip(self.invalid, counts, strict=True) if count]


def _check_scores(layout: BatchLayout) -> None:
    """Raise when `preds` are no scores, or `target` no relevances of them."""
    preds, target = layout.preds, layout.target
    if not preds.dtype.is_floating_point:
        raise DtypeError(describe("preds", preds.dtype, "scores as floats", AS_SCORES))
    check_as_preds("target", target, preds)


@dataclass(frozen=True)
class RowQueries(RowTerm):
    """What queries give that are rows: `preds (N, D)` and `target (N, D)`."""

    measure: QueryMeasure
    ignore_index: int | None = None

    chunk_scale = 1
    not_finite = "gains of a query are beyond the range of floats"

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return (SumShape(self.measure.term.width),)

    @property
    def invalid(self) -> tuple[str, ...]:
        return self.measure.invalid

    def check(self, layout: BatchLayout) -> None:
        check_rows(layout)

    def __call__(self, batch: Batch) -> RowValues:
        rows = QueryRows.of(batch, self.ignore_index)
        numbers = self.measure(rows.queries)
        return RowValues(numbers.values, counted=numbers.counted[:, 0], invalid=rows.invalid_for(self.measure))


@dataclass(frozen=True)
class QueryStore(Tally):
    """What each query gives that is a row, kept: for medians and extremes over queries.

    State: one `SampleStore`, of 4 bytes a number and 1 a query; and `invalid`, the counts of what `INVALID` names.
    """

    measure: QueryMeasure
    ignore_index: int | None = None
    fields: ClassVar[Mapping[str, Rule]] = {"queries": "samples", "invalid": "sum"}

    def check(self, layout: BatchLayout) -> None:
        check_rows(layout)

    def zero(self, device: torch.device) -> State:
        columns = {"values": TensorLayout(torch.float32, (self.measure.term.width,)), "counted": TensorLayout(ANY, ())}
        return {"queries": SampleStore(columns), "invalid": torch.zeros(4, dtype=torch.int64, device=device)}

    def add(self, state: State, batch: Batch) -> None:
        rows = QueryRows.of(batch, self.ignore_index)
        numbers = self.measure(rows.queries)
        values = numbers.values.masked_fill(~numbers.counted, 0)
        values, counted = batch.rounded(self.measure, [values, numbers.counted[:, 0]], ROUNDING)
        state["queries"].append(values=values, counted=counted)
        state["invalid"] += torch.stack([each.sum() for each in rows.invalid_for(self.measure)])

    def canonicalize(self, state: State, rows: int) -> State:
        return state | {"queries": canonical(state["queries"])}

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        return self.measure.invalid_values(state["invalid"].tolist())

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "invalid")
        yield from equal("every query is kept", given.rows, state["queries"].rows)

    def compute(self, state: State) -> QueryValues:
        """The numbers of all queries."""
        store = state["queries"]
        return QueryValues(store.column("values").double(), store.column("counted")[:, None])


@dataclass(frozen=True, eq=False)
class QueryRows:
    """The queries of a batch, one a row, and which of their scores and relevances are invalid."""

    queries: RankedQueries
    invalid: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, batch: Batch, ignore_index: int | None) -> QueryRows:
        """The queries of a batch, ranked once for all tallies."""
        return batch.memoize(("ranked queries", ignore_index), lambda b: cls._ranked(b, ignore_index))

    @classmethod
    def _ranked(cls, batch: Batch, ignore_index: int | None) -> QueryRows:
        scores, target = batch.preds, _wide(batch.needed_target)
        absent = torch.zeros_like(target, dtype=torch.bool) if ignore_index is None else torch.eq(target, ignore_index)
        no_score, relevance = scores.isnan() & ~absent, target
        invalid = _is_invalid(relevance) & ~absent
        dtype = torch.float64 if torch.float64 in (scores.dtype, target.dtype) else torch.float32
        queries = ranked(
            scores.masked_fill(no_score | absent, 0), relevance.masked_fill(invalid, 0), absent, dtype, batch.compiled
        )
        return cls(queries, (no_score, invalid))

    def invalid_for(self, measure: QueryMeasure) -> list[Tensor]:
        """For each kind of `INVALID` a tensor with a row for each query, true where something is."""
        return [*self.invalid, *measure.invalid_queries(self.queries)]


def check_rows(layout: BatchLayout) -> None:
    """Raise when the rows of a batch are no queries."""
    if len(layout.preds.tail) != 1 or not layout.preds.tail[0]:
        do = "Give one query a row, or query ids as indexes= with by_row=False"
        raise ShapeError(describe("preds", f"shape {shown(layout.preds.tail)}", "shape (N, D)", do))
    _check_scores(layout)
    check_weights(layout.weights)


def _wide(relevance: Tensor) -> Tensor:
    """Integers as int64: every `ignore_index` can be compared with them."""
    return relevance if relevance.dtype.is_floating_point else relevance.to(torch.int64)


def _is_invalid(relevance: Tensor) -> Tensor:
    """Whether a relevance is negative, infinite or NaN."""
    if relevance.dtype.is_floating_point:
        return ~((relevance >= 0) & (relevance < torch.inf))
    return relevance < 0


@dataclass(frozen=True)
class QueryDocuments(Tally):
    """Every document with the number of its query, its score and its relevance.

    State: one `SampleStore`. Size: 20 bytes a document with int64 `indexes`, float32 scores and int64 relevances.
    """

    ignore_index: int | None = None
    weighted: bool = False
    fields: ClassVar[Mapping[str, Rule]] = {"documents": "samples"}
    columns = frozenset({"indexes"})

    def check(self, layout: BatchLayout) -> None:
        _check_scores(layout)
        indexes, preds, weights = layout.columns.get("indexes"), layout.preds, layout.weights
        if indexes is None or indexes.tail != preds.tail:
            got = "nothing" if indexes is None else f"shape {shown(indexes.tail)} with preds {shown(preds.tail)}"
            do = "Pass indexes=, the number of the query of each document, or make the metric with by_row=True"
            raise ShapeError(describe("indexes", got, "the shape of preds", do))
        if indexes.dtype.is_floating_point or indexes.dtype.is_complex or indexes.dtype == torch.bool:
            raise DtypeError(describe("indexes", indexes.dtype, "integers", "Pass indexes.long()"))
        if weights is not None and weights.tail != preds.tail:
            got = f"shape {shown(weights.tail)} with preds {shown(preds.tail)}"
            raise ShapeError(describe("weights", got, "the shape of preds", "Give each document its query's weight"))

    def zero(self, device: torch.device) -> State:
        layouts = {"indexes": ANY, "scores": torch.float32, "relevance": ANY}
        if self.weighted:
            layouts["weights"] = torch.float32
        return {"documents": SampleStore({name: TensorLayout(dtype, ()) for name, dtype in layouts.items()})}

    def add(self, state: State, batch: Batch) -> None:
        relevance = batch.needed_target
        if relevance.dtype.is_floating_point:
            relevance = relevance + 0.0  # -0.0 is 0.0
        rows = {"indexes": batch.columns["indexes"], "scores": batch.preds + 0.0, "relevance": relevance}
        if self.weighted and batch.weights is not None:
            rows["weights"] = batch.weights
        state["documents"].append(**{name: tensor.reshape(-1) for name, tensor in rows.items()})

    def canonicalize(self, state: State, rows: int) -> State:
        """The documents that are not ignored, by query, then by score, then by relevance."""
        store: SampleStore = state["documents"]
        values = {name: store.column(name) for name in store.columns}
        if self.ignore_index is not None:
            known = _wide(values["relevance"]) != self.ignore_index
            values = {name: value[known] for name, value in values.items()}
        return {"documents": store.replaced(_sorted(values))}

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        store = state["documents"]
        counts = [int(store.column("scores").isnan().sum()), int(_is_invalid(_wide(store.column("relevance"))).sum())]
        problems = [InvalidValues(what, count) for what, count in zip(INVALID[:2], counts, strict=True) if count]
        bad = int(bad_weights(store.column("weights")).sum()) if self.weighted else 0
        return [*problems, InvalidValues(BAD_WEIGHTS, bad)] if bad else problems

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        kept = state["documents"].rows
        yield from at_most("documents that are kept are no more than those that were given", given.preds, kept)
        if self.ignore_index is None:  # the canonical state has no ignored ones
            yield from equal("every document is kept", given.preds, kept)

    def compute(self, state: State) -> QueryBlocks:
        """The queries, ranked."""
        store = state["documents"]
        columns = {name: store.column(name) for name in store.columns}
        columns["relevance"] = columns["relevance"].double()
        return QueryBlocks({name: column.numpy() for name, column in columns.items()})


def _sorted(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Documents by query, score, relevance and weight, all from the lowest to the highest."""
    indexes, scores, relevance = (values[name] for name in ("indexes", "scores", "relevance"))
    whole = not relevance.dtype.is_floating_point
    if len(indexes) and scores.dtype == torch.float32 and whole and "weights" not in values:
        lowest, least = int(indexes.min()), int(relevance.min())
        bits = (int(relevance.max()) - least).bit_length()
        if (int(indexes.max()) - lowest).bit_length() + 32 + bits <= 64:
            return _sorted_keys(indexes, scores, relevance, (lowest, least, bits))
    columns = [value.double().numpy() if value.dtype.is_floating_point else value.numpy() for value in values.values()]
    order = torch.from_numpy(np.lexsort([*columns[3:], *columns[2::-1]]))
    return {name: value[order] for name, value in values.items()}


def _sorted_keys(indexes: Tensor, scores: Tensor, relevance: Tensor, layout: tuple[int, int, int]) -> dict[str, Tensor]:
    """The same by one integer a document, which is several times as fast."""
    lowest, least, bits = layout
    raw = scores.contiguous().numpy().view(np.int32)
    in_order = (raw ^ ((raw >> 31) & 0x7FFFFFFF)).view(np.uint32) ^ np.uint32(1 << 31)
    keys = (indexes.long().numpy() - lowest).astype(np.uint64) << np.uint64(32)
    keys = ((keys | in_order) << np.uint64(bits)) | (relevance.long().numpy() - least).astype(np.uint64)
    keys.sort()
    relevances = (keys & np.uint64((1 << bits) - 1)).astype(np.int64) + least
    keys >>= np.uint64(bits)
    in_order = keys.astype(np.uint32) ^ np.uint32(1 << 31)
    raw = in_order.view(np.int32)
    raw = raw ^ ((raw >> 31) & 0x7FFFFFFF)
    numbers = (keys >> np.uint64(32)).astype(np.int64) + lowest
    return {
        "indexes": torch.from_numpy(numbers).to(indexes.dtype),
        "scores": torch.from_numpy(raw.view(np.float32)),
        "relevance": torch.from_numpy(relevances).to(relevance.dtype),
    }


@dataclass(frozen=True, eq=False)
class QueryBlocks:
    """Documents on the CPU, sorted; and from them the queries in blocks of about equal numbers of documents."""

    columns: Mapping[str, Array]
    _blocks: list[Any] = field(default_factory=list)

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Where the documents of each query begin and end."""
        numbers = self.columns["indexes"]
        if not len(numbers):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
        return starts, np.append(starts[1:], len(numbers))

    @property
    def most_documents(self) -> int:
        """How many documents a query has at most; queries of weight 0 are left out."""
        starts, ends = self.bounds
        sizes = ends - starts
        return int((sizes if self.weights is None else sizes[self.weights.numpy() != 0]).max(initial=0))

    @cached_property
    def weights(self) -> Tensor | None:
        """The weight of each query: the mean of those of its documents."""
        if "weights" not in self.columns:
            return None
        starts, ends = self.bounds
        weights = self.columns["weights"].astype(np.float64)
        large = weights.max(initial=0) > 2.0**960  # then sums of fewer than 2 ** 64 could overflow
        queries = np.repeat(np.arange(len(starts)), ends - starts)
        means = np.bincount(queries, weights * 2.0**-64 if large else weights, len(starts)) / (ends - starts)
        return torch.from_numpy(means * 2.0**64 if large else means)

    def values(self, measure: QueryMeasure) -> tuple[QueryValues, Tensor]:
        """The numbers of all queries, and how many of each kind of `INVALID` there are beyond those of the data."""
        count, width = len(self.bounds[0]), measure.term.width
        values = torch.zeros(count, width, dtype=torch.float64, device="cpu")
        counted = torch.zeros(count, 1, dtype=torch.bool, device="cpu")
        invalid = torch.zeros(len(INVALID), dtype=torch.int64, device="cpu")
        for rows, queries in self._ranked():
            numbers = measure(queries)
            values[rows], counted[rows] = numbers.values, numbers.counted
            invalid[2:] += torch.stack([each.sum() for each in measure.invalid_queries(queries)])
        return QueryValues(values, counted), invalid

    def _ranked(self) -> Iterator[tuple[Tensor, RankedQueries]]:
        """Blocks of queries whose numbers of documents have one power of two above them, and which queries they are."""
        if self._blocks:
            yield from self._blocks
            return
        starts, ends = self.bounds
        sizes = ends - starts
        exponents = np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)
        keep = len(self.columns["indexes"]) <= _CACHED
        for exponent in np.unique(exponents):
            rows = np.flatnonzero(exponents == exponent)
            size = max(1, _BLOCK >> int(exponent))
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                block = torch.from_numpy(some), self._block(starts[some], ends[some], 1 << int(exponent))
                if keep:
                    self._blocks.append(block)
                yield block

    def _block(self, starts: Array, ends: Array, width: int) -> RankedQueries:
        """Queries from the highest score to the lowest, and places without documents behind these."""
        places = ends[:, None] - 1 - np.arange(width)
        absent = places < starts[:, None]
        places = np.maximum(places, starts[:, None])
        scores = self.columns["scores"][places]
        relevance = np.where(absent, 0, self.columns["relevance"][places])
        first = np.ones_like(absent)
        first[:, 1:] = (scores[:, 1:] != scores[:, :-1]) | (absent[:, 1:] & ~absent[:, :-1])
        relevances, firsts, absents = map(torch.from_numpy, (relevance, first, absent))
        return RankedQueries(relevances, firsts, absents, on_host=True, by_number=True)
