"""Metrics of language models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from assay.metrics.base import Metric, number
from assay.metrics.exact_arithmetic import means, rounded
from assay.native.quotients import StateQuotient
from assay.tally.base import Tally
from assay.tally.rows.row_terms import TokenLogLoss
from assay.tally.state_quotients import state_quotient
from assay.tally.sums.polynomials import MEAN_OF_ROWS
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True)
class Perplexity(Metric):
    """Perplexity of a language model.

    `exp(-sum(w log p(target)) / sum(w))` with `p = softmax(preds)`. An improbable token does not make it infinite: the
    softmax itself is never formed.

    Rounding: the log probability of each token is computed in float32, also from half precision (float64 where preds is
    float64); their sum is exact, and the exponential is taken of it in float64.

    Shapes: `preds` are logits of shape `(N, T, V)`, with the vocabulary last, and `target (N, T)` are the indices of
    the tokens; any number of dimensions between `N` and `V`. Weights are `(N,)` or `(N, T)`.

    Returns:
        float64, shape `()`; 1 or more. NaN without data.

    Raises:
        InvalidValuesError: by `compute`, if targets were out of range.

    Example:
        >>> import torch
        >>> logits = torch.tensor([[[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
        >>> Perplexity()(logits, torch.tensor([[0, 2]]))
        tensor(1.9524, dtype=torch.float64)

    Source: Jelinek, Mercer, Bahl, Baker, Journal of the Acoustical Society of America 62 (1977), S63.
    """

    value_range = (1.0, math.inf)

    family = "probabilities"
    higher_is_better = False
    exact_terms = False
    inputs = "tokens"

    ignore_index: Annotated[int | None, "tokens with this target are left out."] = None
    scale = "exponential"

    def tally(self, weighted: bool) -> Tally:
        return RowSums(TokenLogLoss(self.ignore_index), weighted)

    def reading(self, tally: Tally) -> StateQuotient | None:
        mean = state_quotient(tally, MEAN_OF_ROWS)
        return None if mean is None else mean.through(_exponential)

    def compute(self, counts: RowTotals) -> Tensor:
        (mean,) = means(counts)
        return number(_exponential(rounded(mean)))


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
