"""Divergences and entropies of predicted distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import NOT_NEGATIVE, Metric, number
from assay.metrics.exact_arithmetic import means, quotient_of_rows, result, rounded, sums_or_means
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.row_terms import Divergence
from assay.tally.rows.vector_terms import DivergenceOfMean, PredictedEntropy
from assay.tally.sums.polynomials import MEAN_OF_ROWS, QuotientOfSums
from assay.tally.sums.row_sums import RowSums, RowTerm, RowTotals, sum_each_row


@dataclass(frozen=True, kw_only=True)
class DivergenceMetric(Metric):
    """A divergence of the distributions in the rows of `preds` and `target`.

    Shapes: `preds` and `target` floats of shape `(N, d)`; weights `(N,)`.

    Returns:
        float64 of shape `()`; NaN without data.

    Raises:
        ConfigError: an unknown reduction.
        InvalidValuesError: by `compute`, for NaN, negative probabilities, or a row whose sum is 0 or infinite.
    """

    family = "probabilities"
    higher_is_better = False
    exact_terms = False
    inputs = "distributions"
    examples = ({}, {"reduction": "sum"})
    term: ClassVar[Callable[[bool], RowTerm]]
    """The number, or the numbers, of a row; takes `log_prob`."""
    name: ClassVar[str]

    log_prob: Annotated[bool, "both are logarithms of probabilities."] = False
    reduction: Annotated[Literal["mean", "sum"], '`"mean"` or `"sum"` over the rows.'] = "mean"

    @property
    def estimates(self) -> bool:
        return self.reduction == "mean"

    def tally(self, weighted: bool) -> Tally:
        return RowSums(type(self).term(self.log_prob), weighted)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if self.reduction == "sum":
            return None
        values = type(self).term(self.log_prob)(batch).values[0]
        return SampleTerms.of(self.name, sum_each_row(values.reshape(len(values), -1).contiguous()).view(-1))

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return quotient_of_rows(self.reduction)

    def compute(self, counts: RowTotals) -> Tensor:
        return result(sums_or_means(counts, self.reduction))


@dataclass(frozen=True, kw_only=True)
class KLDivergence(DivergenceMetric):
    r"""The mean Kullback-Leibler divergence of `target` from `preds`, in nats.

    $$ D(P \| Q) = \sum_x P(x) \log \frac{P(x)}{Q(x)} $$

    with P the rows of `preds` and Q those of `target`, as in TorchMetrics. Rows are divided by their sums, unless they
    are logarithms. Infinite where Q is 0 and P is not.

    Example:
        >>> import torch
        >>> KLDivergence()(torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]]))
        tensor(0.1438, dtype=torch.float64)

    Source: S. Kullback, R. A. Leibler, On information and sufficiency, Annals of Mathematical Statistics 22 (1951).
    """

    value_range = NOT_NEGATIVE

    unchanged_by = frozenset({"scale"})
    term, name = Divergence, "Kullback-Leibler divergence"


@dataclass(frozen=True, kw_only=True)
class JensenShannonDivergence(DivergenceMetric):
    r"""The mean Jensen-Shannon divergence of the distributions in the rows of `preds` and `target`, in nats.

    $$ \tfrac12 D(P \| M) + \tfrac12 D(Q \| M), \quad M = \tfrac12 (P + Q) $$

    between 0 and log 2; its root is a distance. Rows are divided by their sums, unless they are logarithms.

    Example:
        >>> import torch
        >>> JensenShannonDivergence()(torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]]))
        tensor(0.0338, dtype=torch.float64)

    Source: J. Lin, Divergence measures based on the Shannon entropy, IEEE Transactions on Information Theory 37 (1991).
    """

    value_range = NOT_NEGATIVE

    unchanged_by = frozenset({"scale", "swap"})
    term, name = DivergenceOfMean, "Jensen-Shannon divergence"


@dataclass(frozen=True)
class Entropy(Metric):
    r"""The mean entropy of predicted distributions, in nats: how unsure predictions are.

    $$ -\frac{1}{n} \sum_i \sum_c p_{ic} \log p_{ic} $$

    Shapes: `preds (N, C)`, no target; weights `(N,)`.

    Returns:
        float64 of shape `()`; NaN without data.

    Raises:
        InvalidValuesError: by `compute`, for NaN, and for a score outside [0, 1] without `logits=True`.

    Example:
        >>> import torch
        >>> Entropy()(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
        tensor(0.3466, dtype=torch.float64)

    Source: C. E. Shannon, A mathematical theory of communication, Bell System Technical Journal 27 (1948).
    """

    family = "probabilities"
    exact_terms = False
    inputs = "logits"
    examples = ({"logits": True},)

    logits: Annotated[bool, "scores go through a softmax first; otherwise they are probabilities."] = False

    def tally(self, weighted: bool) -> Tally:
        return RowSums(PredictedEntropy(self.logits), weighted)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return SampleTerms.of("entropy", PredictedEntropy(self.logits)(batch).values[0].view(-1))

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return MEAN_OF_ROWS

    def compute(self, counts: RowTotals) -> Tensor:
        return result(means(counts))


@dataclass(frozen=True)
class MutualInformation(Metric):
    r"""The mutual information of samples and predicted classes, in nats: how much predictions differ and are sure.

    $$ H\Big(\frac1n \sum_i p_i\Big) - \frac1n \sum_i H(p_i) $$

    the entropy of the mean prediction less the mean entropy of predictions: 0 if all are equal, and at most log C.

    Shapes: `preds (N, C)`, no target; weights `(N,)`.

    Returns:
        float64 of shape `()`; NaN without data.

    Raises:
        ConfigError: `num_classes` below 2.
        InvalidValuesError: by `compute`, for NaN, and for a score outside [0, 1] without `logits=True`.

    Example:
        >>> import torch
        >>> MutualInformation(num_classes=2)(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        tensor(0.6931, dtype=torch.float64)

    Source: J. S. Bridle, A. J. R. Heading, D. J. C. MacKay, Unsupervised classifiers, mutual information and phantom
    targets, NIPS 1991.
    """

    family = "probabilities"
    exact_terms = False
    inputs = "logits"
    examples = ({"logits": True},)

    num_classes: Annotated[int | None, "how many scores a row has; it must be given."] = None
    logits: Annotated[bool, "scores go through a softmax first; otherwise they are probabilities."] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes is None or self.num_classes < 2:
            raise ConfigError(describe("num_classes", self.num_classes, "2 or more", "Give the number of scores a row"))

    def tally(self, weighted: bool) -> Tally:
        return RowSums(PredictedEntropy(self.logits, self.num_classes), weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        (entropy,), shares = (means(counts, k) for k in range(2))
        if isinstance(entropy, float):
            return number(math.nan)
        rounded_shares = map(rounded, shares)
        of_mean = -math.fsum(share * math.log(share) for share in rounded_shares if share)
        return number(max(of_mean - rounded(entropy), 0.0))
