"""What metrics of retrieval have in common: how queries are given, and how their values become one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, InvalidValuesError, describe
from assay.metrics.base import SHARE, Examples, Metric, vector
from assay.metrics.exact_arithmetic import quotient, rounded
from assay.metrics.per_sample import SampleTerms
from assay.stats.intervals import FEWEST, Ends, mean_interval, order_statistics
from assay.tally.base import Batch, Tally
from assay.tally.queries.queries import (
    QueryBlocks,
    QueryDocuments,
    QueryMeasure,
    QueryRows,
    QueryStore,
    QueryValues,
    RowQueries,
)
from assay.tally.queries.query_terms import EmptyTargetAction, QueryTerm
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.sums.row_sums import RowSums, RowTotals

Aggregation = Literal["mean", "median", "min", "max"]
INTERVALS: Mapping[str, str] = {
    "mean": "Student's interval of queries, corrected for skewness",
    "median": "order statistics of queries",
}
"""Of queries by number: how the interval of an aggregation is found, for 12 queries or more."""
FEW_QUERIES = f"fewer than {FEWEST} queries"
"""Why queries by number have no interval."""
_OVER: Mapping[str, Callable[..., Any]] = {"median": np.median, "min": np.min, "max": np.max}


@dataclass(frozen=True, kw_only=True)
class RetrievalMetric(Metric):
    """A number of each query, and its mean over the queries.

    Documents with equal scores are in no order: the number of a query is the expectation over all of their orders.

    Shapes:
        `preds` are scores: floats of any size and sign. `target` has the relevance of each document, 0 or more; one
        above 0 is relevant. By default both are `(N,)` with a column `indexes (N,)`, the integer number of the query of
        each document; documents of a query may come in any order, batches and processes. With `by_row=True` both are
        `(Q, D)`, one query a row.

    Rounding: the number of a query is computed in float64 with `indexes`, and in float32 (float64 where an argument is
    float64) with `by_row=True`; the mean of these numbers is exact, rounded once.

    Returns:
        float64 of shape `()`. NaN, with a `NoDataWarning`, where no query counts.

    Raises:
        ConfigError: an argument that is out of range or unknown.
        InvalidValuesError: by `compute`, for NaN scores, relevances that are negative, infinite or NaN, and with
            `empty_target_action="error"`.
    """

    family = "retrieval"
    inputs = "queries"
    higher_is_better: ClassVar[bool | None] = True
    exact_terms = False
    unchanged_by = frozenset({"increasing", "shift", "scale"})
    defined_for = "queries that have documents and are not skipped"
    examples: ClassVar[Examples] = ({}, {"by_row": True})

    by_row: Annotated[
        bool, "each row of `preds (Q, D)` is a query, and no document is kept; otherwise `indexes` names the queries."
    ] = False
    empty_target_action: Annotated[
        EmptyTargetAction,
        'what a query without a relevant document counts: 0 ("neg"), 1 ("pos"), not at all ("skip"); or raise '
        '("error").',
    ] = "neg"
    ignore_index: Annotated[int | None, "documents with this target are left out, as the padding of short rows."] = None
    aggregation: Annotated[Aggregation, 'what is taken over the queries: "mean", "median", "min" or "max".'] = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("top_k", "max_k"):
            k = getattr(self, name, None)
            if k is not None and k < 1:
                raise ConfigError(describe(name, k, "1 or more documents", f"Leave {name} out for all documents"))

    @property
    @abstractmethod
    def term(self) -> QueryTerm:
        """What is measured of a query."""

    @property
    def measure(self) -> QueryMeasure:
        """The same with what is done with queries for which it is undefined."""
        return QueryMeasure(self.term, self.empty_target_action)

    def tally(self, weighted: bool) -> Tally:
        if weighted and self.aggregation != "mean":
            do = "Leave the weights out, or write aggregation='mean'"
            raise ConfigError(describe("aggregation", f"{self.aggregation!r} with weights", "'mean'", do))
        if not self.by_row:
            return QueryDocuments(self.ignore_index, weighted)
        if self.aggregation == "mean":
            return RowSums(RowQueries(self.measure, self.ignore_index), weighted)
        return QueryStore(self.measure, self.ignore_index)

    def compute(self, counts: RowTotals | QueryValues | QueryBlocks) -> Any:
        return self.value(self.aggregated(counts))

    @abstractmethod
    def value(self, numbers: Sequence[float]) -> Any:
        """The value, from the numbers of the queries as one each."""

    def aggregated(self, counts: RowTotals | QueryValues | QueryBlocks) -> list[float]:
        """The numbers of the queries as one each."""
        weights = None
        if isinstance(counts, QueryBlocks):
            weights = counts.weights
            counts = _checked(self, counts)
        if isinstance(counts, QueryValues):
            if self.aggregation != "mean":
                return self._over(counts)
            counts = _summed(counts, weights)
        return [rounded(quotient(total, counts.weight)) for total in counts.sums[0]]

    def _over(self, queries: QueryValues) -> list[float]:
        values = queries.values[queries.counted[:, 0]].numpy()
        if not len(values):
            return [float("nan")] * values.shape[1]
        return [float(each) for each in _OVER[self.aggregation](values, axis=0)]

    @property
    def estimates(self) -> bool:
        return self.by_row and self.aggregation == "mean"  # with indexes, samples are documents and not queries

    @property
    def without_estimate(self) -> str:
        if self.by_row and self.aggregation in INTERVALS:
            return "" if self.estimates else f"the {self.aggregation} of queries by row is not resampled"
        if self.aggregation in INTERVALS:
            return "with indexes= only unweighted means, medians and recalls have an interval"
        return super().without_estimate

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if not self.by_row or self.aggregation != "mean" or self.term.width > 1:
            return None
        found = self.measure(QueryRows.of(batch, self.ignore_index).queries)
        values, counted = found.values[:, 0], found.counted[:, 0]
        name = self.measure.title + (f", without {self.ignore_index}" if self.ignore_index is not None else "")
        if self.empty_target_action not in ("skip", "error") and self.ignore_index is None:
            return SampleTerms.of(name, values)
        kind = f"queries that have a {self.term.needs}" if self.empty_target_action in ("skip", "error") else "queries"
        return SampleTerms.of(name, values.masked_fill(~counted, 0), kind, counted)


def _checked(metric: RetrievalMetric, queries: QueryBlocks) -> QueryValues:
    """The numbers of all queries; raises for those that are invalid for this metric."""
    values, invalid = queries.values(metric.measure)
    for problem in metric.measure.invalid_values(invalid.tolist()):
        got, do = f"{problem.count} of the {problem.what}", "Correct or leave out those samples"
        raise InvalidValuesError(describe(type(metric).__name__, got, "none", do))
    return values


def _summed(queries: QueryValues, weights: Tensor | None) -> RowTotals:
    counted = queries.counted[:, 0]
    values = queries.values[counted]
    tally = RowSums(RowNumbers(values.shape[1]), weights is not None)
    state = tally.zero(torch.device("cpu"))
    tally.add(state, Batch(values, None, None if weights is None else weights[counted], compiled=True))
    return tally.compute(tally.canonicalize(state, len(values)))


@dataclass(frozen=True, kw_only=True)
class QueryMean(RetrievalMetric):
    """A metric whose value is one number, of all documents of a query or of those with the highest scores."""

    value_range = SHARE
    examples: ClassVar[Examples] = ({}, {"by_row": True, "top_k": 2})

    top_k: Annotated[int | None, "how many documents are retrieved for a query; None for all."] = None

    def value(self, numbers: Sequence[float]) -> Tensor:
        return vector(numbers)[0]

    @property
    def closed_form(self) -> str:
        """By row, samples are queries, and their values give the interval of the mean."""
        return "" if self.by_row else INTERVALS.get(self.aggregation, "")

    def interval(self, counts: QueryBlocks, confidence_level: float, rows: int) -> Ends | None:
        values = self._sorted(counts)
        if len(values) < FEWEST or _are_alike(values):
            return None
        if self.aggregation == "median":
            return order_statistics(values, 0.5, confidence_level)
        return mean_interval(values, confidence_level)

    def without_interval(self, counts: QueryBlocks) -> str:
        values = self._sorted(counts)
        if len(values) < FEWEST:
            return FEW_QUERIES
        return "all queries have the same value" if _are_alike(values) else super().without_interval(counts)

    def _sorted(self, counts: QueryBlocks) -> np.ndarray[Any, Any]:
        """The values of the queries that count, in ascending order."""
        queries = _checked(self, counts)
        return np.sort(queries.values[queries.counted].numpy())


def _are_alike(ascending: np.ndarray[Any, Any]) -> bool:
    """Whether numbers differ by rounding only."""
    return bool(ascending[-1] - ascending[0] <= 1e-12 * abs(ascending[-1]))
