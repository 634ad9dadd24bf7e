"""Retrieval as TorchMetrics defines it: the number of each query, and what is taken over the queries."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.compat.counterparts import counterpart
from assay.compat.for_torchmetrics.few_queries import few_queries, is_of_one_query, numbers_of
from assay.compat.for_torchmetrics.metric import CompatibleMetric
from assay.compat.for_torchmetrics.values import placed
from assay.errors import InvalidValuesError, describe
from assay.integrations.optional_packages import import_package
from assay.metrics.base import Metric
from assay.metrics.retrieval.base import QueryMean, RetrievalMetric
from assay.tally.base import State, Tally
from assay.tally.queries.queries import QueryBlocks, QueryDocuments
from assay.tally.queries.query_terms import QueryTerm
from assay.tally.queries.ranked_queries import RankedQueries
from assay.tally.queries.ranked_query import RankedQuery

_base: Any = import_package("torchmetrics.retrieval.base", "metrics of its names")
_curves: Any = import_package("torchmetrics.retrieval.precision_recall_curve", "metrics of its names")


@dataclass(frozen=True)
class CutGroup:
    """The last documents with equal scores of the first `top_k` of each query; all tensors are `(rows, 1)`.

    Which of these documents are among the first `top_k` is open, and all choices are as likely.

    Args:
        start: the place of the first of them.
        slots: how many of them are among the first `top_k`.
        relevant: how many of all with this score are relevant.
        size: how many have this score.
        before: relevant documents with higher scores.
    """

    start: Tensor
    slots: Tensor
    relevant: Tensor
    size: Tensor
    before: Tensor

    @classmethod
    def of(cls, queries: RankedQueries, top_k: int | None) -> CutGroup:
        """That of each query."""
        width = queries.relevance.shape[1]
        last = (queries.num_documents.clamp(max=width if top_k is None else top_k) - 1).clamp(min=0).long()

        def there(values: Tensor) -> Tensor:
            return values.expand_as(queries.relevance).gather(1, last).to(queries.dtype)

        start = there(queries.start)
        size = there(queries.end) - start
        return cls(start, last + 1 - start, there(queries.relevant_within), size, there(queries.relevant_before))

    @classmethod
    def of_query(cls, query: Any, top_k: int | None) -> CutGroup:
        """That of one query: the last document of those that are taken, in numbers."""
        last = query.taken(top_k) - 1
        return cls(last, 1, query.relevant_within[last], 1, query.relevant_before[last])  # type: ignore[arg-type]

    def hits(self) -> Iterator[tuple[int, Tensor]]:
        """Each number of relevant documents among the slots, and how probable it is (hypergeometric)."""
        for m in range(int(torch.minimum(self.relevant, self.slots).max()) + 1):
            possible = (m <= self.relevant) & (m <= self.slots) & (self.slots - m <= self.size - self.relevant)
            ways = _log_choose(self.relevant, m) + _log_choose(self.size - self.relevant, self.slots - m)
            yield m, (ways - _log_choose(self.size, self.slots)).exp().masked_fill(~possible, 0)


def _log_choose(n: Tensor, k: Tensor | int) -> Tensor:
    k = torch.as_tensor(k, dtype=n.dtype, device="cpu")
    return (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).clamp(min=0).lgamma()


class TermOfFirst(QueryTerm):
    """A number of the first `top_k` documents of a query, as if there were no others; 0 where it is undefined."""

    def __call__(self, queries: RankedQueries) -> Tensor:
        cut = CutGroup.of(queries, self.top_k)
        return sum(
            (share * self.value(queries, cut, m).nan_to_num(0.0) for m, share in cut.hits()),
            torch.zeros((), device="cpu"),
        )

    def of_query(self, query: RankedQuery) -> float:
        """The number of one query; 0 where it is undefined."""
        alone: Any = query
        cut: Any = CutGroup.of_query(query, self.top_k)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(self.value(alone, cut, cut.relevant))
        return 0.0 if math.isnan(value) else value

    @abstractmethod
    def value(self, queries: RankedQueries, cut: CutGroup, hits: int) -> Tensor:
        """Its expectation, where so many of the cut group are relevant."""


@dataclass(frozen=True)
class AveragePrecisionOfFirst(TermOfFirst):
    """The mean of the precision at the relevant documents among the first `top_k`."""

    top_k: int | None = None

    name = "average precision"

    def value(self, queries: RankedQueries, cut: CutGroup, hits: int) -> Tensor:
        share = queries.relevant_within / queries.group
        others = (queries.relevant_within - 1) / (queries.group - 1).clamp(min=1)
        precision = share * (queries.relevant_before + 1 + queries.within * others) / (queries.place + 1)
        slot = queries.place - cut.start
        of_cut = hits / cut.slots * (cut.before + 1 + slot * ((hits - 1) / (cut.slots - 1).clamp(min=1)))
        precision = torch.where(slot < 0, precision, of_cut / (queries.place + 1))
        return queries.total(precision.masked_fill(slot >= cut.slots, 0)) / (cut.before + hits)


@dataclass(frozen=True)
class AUROCOfFirst(TermOfFirst):
    """The area under the ROC curve of the first `top_k` documents; with `max_fpr` standardized (McClish 1989)."""

    top_k: int | None = None
    max_fpr: float | None = None

    name = "area under the ROC curve"

    def value(self, queries: RankedQueries, cut: CutGroup, hits: int) -> Tensor:
        of_cut = queries.place == cut.start
        first = (queries.place == queries.start) & (queries.place <= cut.start)
        relevant = queries.where(~of_cut, queries.relevant_within, hits)
        others = queries.where(~of_cut, queries.group - queries.relevant_within, cut.slots - hits)
        total_others, total_relevant = cut.start + cut.slots - cut.before - hits, cut.before + hits
        most = 1.0 if self.max_fpr is None else self.max_fpr
        left = most * total_others - (queries.start - queries.relevant_before)
        width = queries.at_most(queries.at_least(left, 0), others)
        height = queries.relevant_before + relevant * (width / queries.at_least(others, 1)) / 2
        area = queries.total(queries.where(first, width * height, 0)) / (total_others * total_relevant)
        least = most**2 / 2
        return area if most == 1 else torch.where(area.isnan(), area, (1 + (area - least) / (most - least)) / 2)


@dataclass(frozen=True, kw_only=True)
class MAPOfFirst(QueryMean):
    """Mean average precision, over the relevant documents that are among the first `top_k`."""

    @property
    def term(self) -> QueryTerm:
        return AveragePrecisionOfFirst(self.top_k)


@dataclass(frozen=True, kw_only=True)
class RetrievalAUROCOfFirst(QueryMean):
    """Mean over queries of the area under the ROC curve of the first `top_k` documents."""

    max_fpr: float | None = None

    @property
    def term(self) -> QueryTerm:
        return AUROCOfFirst(self.top_k, self.max_fpr)


_OF_FIRST: dict[str, type[QueryMean]] = {"RetrievalMAP": MAPOfFirst, "RetrievalAUROC": RetrievalAUROCOfFirst}


@dataclass(frozen=True, kw_only=True)
class QueryNumbers(Metric):
    """The numbers of each query that counts, `(queries, width)`, before anything is taken over them."""

    metric: RetrievalMetric
    binary: bool = True

    def tally(self, weighted: bool) -> Tally:
        return QueryDocuments(self.metric.ignore_index)

    def reading(self, tally: Tally) -> Callable[[State], Tensor | None] | None:
        is_plain = isinstance(tally, QueryDocuments) and tally.ignore_index is None and not tally.weighted
        return self._of_few if is_plain else None

    def _of_few(self, state: State) -> Tensor | None:
        """The same of a few queries; None where `compute` must be asked."""
        metric: Any = self.metric
        queries = few_queries(state["documents"], not self.binary)
        if queries is None:
            return None
        if getattr(metric, "max_k", 1) is None:
            metric = replace(metric, max_k=max(each.num_documents for each in queries))
        measure = metric.measure
        is_area = isinstance(measure.term, AUROCOfFirst) and measure.term.max_fpr is None
        return numbers_of(measure, queries) if is_area or is_of_one_query(measure.term) else None

    def compute(self, counts: QueryBlocks) -> Tensor:
        above = int((counts.columns["relevance"] > 1).sum())
        if self.binary and above:
            do = "Pass (target > 0).long()"
            raise InvalidValuesError(describe("`target` must contain `binary` values", f"{above} above 1", "none", do))
        metric: Any = self.metric
        if getattr(metric, "max_k", 1) is None:
            metric = replace(metric, max_k=max(1, counts.most_documents))
        queries, invalid = counts.values(metric.measure)
        if lacking := int(invalid[3]):
            kind = "negative" if type(metric).__name__ == "RetrievalFallOut" else "positive"
            what = f"`compute` method was provided with a query with no {kind} target."
            do = "Leave them out with empty_target_action='skip'"
            raise InvalidValuesError(f"{what} {describe('queries without one', lacking, 'none', do)}")
        return queries.values[queries.counted[:, 0]]


class CompatibleRetrieval(CompatibleMetric):
    """A number of each query, and what the class of TorchMetrics takes over them; 0 where no query counts."""

    @classmethod
    def _counterpart(cls, arguments: Mapping[str, Any]) -> RetrievalMetric:
        given = {name: value for name, value in arguments.items() if name != "aggregation"}
        of_first = _OF_FIRST.get(cls.entry.assay)
        cut = {name: given.pop(name, None) for name in ("top_k", "max_fpr")} if of_first else {}
        metric: Any = counterpart(cls.entry, given)
        if of_first is None or (cls.entry.assay == "RetrievalMAP" and cut["top_k"] is None):
            return metric  # type: ignore[no-any-return]
        same = {"empty_target_action": metric.empty_target_action, "ignore_index": metric.ignore_index}
        return of_first(**same, **{name: cut[name] for name in of_first.arguments if name in cut})

    def _counted(self, metric: Any) -> Metric:
        return QueryNumbers(metric=metric, binary=not self.allow_non_binary_target)

    def _converted(self, value: Tensor) -> Any:
        numbers = value if isinstance(self.aggregation, str) else placed(value, self._dtype, self._device)
        precision_first = "max_k" in self.entry.defaults()
        if not len(numbers):
            taken = numbers.new_zeros(numbers.shape[1] if precision_first else ())
        elif precision_first:
            taken = _base._retrieval_aggregate(numbers, self.aggregation, 0)
        else:
            taken = _base._retrieval_aggregate(numbers[:, 0], self.aggregation)
        taken = placed(taken, self._dtype, self._device)
        return self._curve(*taken.chunk(2)) if precision_first else taken

    def _curve(self, precision: Tensor, recall: Tensor) -> Any:
        k = torch.arange(1, len(precision) + 1, device=self._device)
        if self.entry.assay == "RetrievalPrecisionRecallCurve":
            return precision, recall, k
        return _curves._retrieval_recall_at_fixed_precision(precision, recall, k, self.min_precision)
