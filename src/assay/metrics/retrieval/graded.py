"""Metrics of documents whose relevance has grades."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from assay.errors import ConfigError, describe
from assay.metrics.retrieval.base import QueryMean
from assay.tally.queries.query_terms import Gain, QueryExpectedReciprocalRank, QueryNormalizedDCG, QueryTerm


@dataclass(frozen=True, kw_only=True)
class RetrievalNormalizedDCG(QueryMean):
    r"""Mean over queries of the normalized discounted cumulative gain.

    $$ \sum_{i=1}^{k} \frac{g(r_i)}{\log_2(i + 1)} \Big/ \sum_{i=1}^{k} \frac{g(r^*_i)}{\log_2(i + 1)} $$

    with r the relevances from the highest score to the lowest, r* from the highest relevance to the lowest, and the
    gain g(r) = r or 2^r - 1.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.1, 0.2, 0.3, 4.0, 70.0]])
        >>> RetrievalNormalizedDCG(by_row=True)(preds, torch.tensor([[10, 0, 0, 1, 5]]))
        tensor(0.6957, dtype=torch.float64)

    Source: Järvelin, Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20 (2002); the exponential
    gain is that of Burges et al., Learning to rank using gradient descent, ICML 2005.
    """

    examples = ({}, {"by_row": True, "top_k": 2, "gain": "exponential"})

    gain: Annotated[Gain, '"linear": the relevance; "exponential": `2 ** relevance - 1`.'] = "linear"

    @property
    def term(self) -> QueryTerm:
        return QueryNormalizedDCG(self.top_k, self.gain)


@dataclass(frozen=True, kw_only=True)
class ExpectedReciprocalRank(QueryMean):
    """Mean over queries of the expected reciprocal rank.

    `sum(1 / rank * stop * product of (1 - stop) before)`, where a user is content with a document, and stops, with
    probability `stop = (2 ** relevance - 1) / 2 ** max_relevance`. With equal scores and `by_row=True`, the time grows
    with D times the largest group of them (on other devices than the CPU, with the square of D).

    Raises:
        ConfigError: an argument that is out of range or unknown.
        InvalidValuesError: by `compute`, for NaN scores, and relevances that are negative or above `max_relevance`.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5]])
        >>> ExpectedReciprocalRank(by_row=True, max_relevance=2)(preds, torch.tensor([[0, 2, 1]]))
        tensor(0.5312, dtype=torch.float64)

    Source: Chapelle, Metzler, Zhang, Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009.
    """

    max_relevance: Annotated[float, "the highest grade there is, not only in these data; TREC's web tracks have 4."] = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.max_relevance <= 64:
            got, expected = self.max_relevance, "a grade above 0 and up to 64"
            raise ConfigError(describe("max_relevance", got, expected, "Rescale the grades, say to 0 ... 4"))

    @property
    def term(self) -> QueryTerm:
        return QueryExpectedReciprocalRank(self.max_relevance, self.top_k)
