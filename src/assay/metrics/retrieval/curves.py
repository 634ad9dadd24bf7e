"""Precision and recall at every number of retrieved documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, Self

import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import number, vector
from assay.metrics.retrieval.base import RetrievalMetric
from assay.tally.queries.queries import QueryBlocks
from assay.tally.queries.query_terms import QueryCurve, QueryTerm


class RetrievalCurve(NamedTuple):
    """Precision and recall, float64 `(max_k,)`, at `top_k` retrieved documents: 1 ... max_k."""

    precision: Tensor
    recall: Tensor
    top_k: Tensor


class RecallAtPrecision(NamedTuple):
    """The highest recall, float64, and the number of retrieved documents that has it, int64."""

    recall: Tensor
    top_k: Tensor


@dataclass(frozen=True, kw_only=True)
class RetrievalCurveMetric(RetrievalMetric):
    """A metric of the means of precision and recall over the queries, at each number of retrieved documents."""

    examples = ({}, {"by_row": True, "max_k": 4})

    max_k: Annotated[
        int | None, "the largest number of retrieved documents; None, without `by_row`, for all of the longest query."
    ] = None
    adaptive_k: Annotated[bool, "divide by the number of documents of a query that has fewer than k."] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by_row and self.max_k is None:
            do = "Write max_k=D for rows of D documents"
            raise ConfigError(describe("max_k", "None with by_row=True", "1 or more documents", do))

    @property
    def term(self) -> QueryTerm:
        return QueryCurve(self.max_k or 1, self.adaptive_k)

    def of_width(self, most_documents: int) -> Self:
        """The metric with a `max_k`: that of the longest query where none was given."""
        return self if self.max_k is not None else replace(self, max_k=max(1, most_documents))

    def compute(self, counts: Any) -> Any:
        metric = self.of_width(counts.most_documents) if isinstance(counts, QueryBlocks) else self
        return super(RetrievalCurveMetric, metric).compute(counts)

    def value(self, numbers: Sequence[float]) -> Any:
        k = len(numbers) // 2
        return self.of_curve(
            RetrievalCurve(vector(numbers[:k]), vector(numbers[k:]), torch.arange(1, k + 1, device="cpu"))
        )

    def of_curve(self, curve: RetrievalCurve) -> Any:
        """The value, from the curve."""
        return curve


@dataclass(frozen=True, kw_only=True)
class RetrievalPrecisionRecallCurve(RetrievalCurveMetric):
    """Precision and recall at 1 ... `max_k` retrieved documents, each the mean over the queries.

        precision(k) = mean over queries of hits in the first k / k
        recall(k) = mean over queries of hits in the first k / R

    Returns:
        `(precision, recall, top_k)` of shape `(max_k,)`: float64, float64 and int64. NaN where no query counts.

    Example:
        >>> import torch
        >>> curve = RetrievalPrecisionRecallCurve(by_row=True, max_k=2)
        >>> curve(torch.tensor([[0.2, 0.3, 0.5]]), torch.tensor([[1, 0, 1]])).precision
        tensor([1.0000, 0.5000], dtype=torch.float64)

    Source: Manning, Raghavan, Schütze, Introduction to Information Retrieval, section 8.4.
    """

    higher_is_better = None
    picture = "pr"


@dataclass(frozen=True, kw_only=True)
class RetrievalRecallAtFixedPrecision(RetrievalCurveMetric):
    """The highest recall at a number of retrieved documents whose precision is `min_precision` or more.

        max_k recall(k) where precision(k) >= min_precision

    Precision and recall are means over the queries. Of numbers with the same recall, the largest is given. Where no
    precision is high enough, or the recall is 0: 0 at the largest number.

    Returns:
        `(recall, top_k)` of shape `()`: float64 and int64. The recall is NaN where no query counts.

    Example:
        >>> import torch
        >>> metric = RetrievalRecallAtFixedPrecision(by_row=True, max_k=3, min_precision=0.6)
        >>> metric(torch.tensor([[0.2, 0.3, 0.5]]), torch.tensor([[1, 0, 1]])).top_k
        tensor(3)

    Source: the definition is TorchMetrics'.
    """

    examples = ({"max_k": 3, "min_precision": 0.5}, {"by_row": True, "max_k": 4, "min_precision": 0.5})

    min_precision: Annotated[float, "between 0 and 1."] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.min_precision <= 1:
            do = "Write a share such as min_precision=0.8"
            raise ConfigError(describe("min_precision", self.min_precision, "a number between 0 and 1", do))

    def of_curve(self, curve: RetrievalCurve) -> RecallAtPrecision:
        last = len(curve.top_k)
        if bool(curve.recall.isnan().all()):
            return RecallAtPrecision(number(math.nan), torch.tensor(last, device="cpu"))
        points = zip(*(column.tolist() for column in curve), strict=True)
        best, k = max(
            ((recall, k) for precision, recall, k in points if precision >= self.min_precision), default=(0.0, last)
        )
        return RecallAtPrecision(number(best), torch.tensor(k if best else last, device="cpu"))
