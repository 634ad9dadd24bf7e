"""Log loss and predictions in relation to how often the target is 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import Tensor

from assay.metrics.base import NOT_NEGATIVE, Metric, number
from assay.metrics.exact_arithmetic import means, quotient, rounded
from assay.metrics.output_metrics import ElementwiseMetric, Of
from assay.tally.base import Tally
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.losses import LogLossAndTarget
from assay.tally.sums.exact import Number
from assay.tally.sums.float_terms import as_float
from assay.tally.sums.row_sums import RowSums, RowTotals
from assay.tally.sums.terms import PREDS, TARGET
from assay.tally.sums.totals import Totals


@dataclass(frozen=True, kw_only=True)
class NormalizedEntropy(Metric):
    r"""The log loss in relation to that of always predicting how often the target is 1: below 1 for what knows more.

    $$ \frac{-\frac1n \sum_i y_i \log p_i + (1 - y_i) \log (1 - p_i)}{-(q \log q + (1 - q) \log (1 - q))} $$

    with q the share of targets that are 1.

    Shapes: `preds` scores of any shape, `target` 0 or 1 of the same shape.

    Returns:
        float64 of shape `()`. If all targets are equal: infinite, or NaN without any loss. NaN without
        data.

    Raises:
        InvalidValuesError: by `compute`, for NaN, a target out of range, or a score outside [0, 1] without
            `logits=True`.

    Example:
        >>> import torch
        >>> NormalizedEntropy()(torch.tensor([0.25, 0.5, 1.0]), torch.tensor([0, 1, 1]))
        tensor(0.5136, dtype=torch.float64)

    Source: X. He et al., Practical lessons from predicting clicks on ads at Facebook, ADKDD 2014.
    """

    value_range = NOT_NEGATIVE

    family = "probabilities"
    inputs = "labels"
    higher_is_better = False
    exact_terms = False
    examples = ({}, {"logits": True})

    logits: Annotated[bool, "scores are logits; otherwise they are probabilities."] = False
    ignore_index: Annotated[int | None, "rows with this target are left out."] = None

    def tally(self, weighted: bool) -> Tally:
        data = score_spec(None, None, self.ignore_index, self.logits)
        return RowSums(LogLossAndTarget(data), weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        (loss,), (share,) = means(counts), means(counts, 1)
        if math.isnan(loss) or math.isnan(share):
            return number(math.nan)
        sides = rounded(share), rounded(1 - share)
        base = -math.fsum(side * math.log(side) for side in sides if side)
        if not base:
            return number(math.inf if loss else math.nan)
        return number(rounded(loss) / base)


@dataclass(frozen=True)
class WeightedCalibration(ElementwiseMetric):
    """The sum of predictions over that of the target: 1 where as much was predicted as there was.

    `sum(w preds) / sum(w target)`.

    Returns:
        float64, shape `()` or `(num_outputs,)`. With a target that sums to 0: infinite, or NaN when the predictions do,
        too. NaN without data.

    Example:
        >>> import torch
        >>> WeightedCalibration()(torch.tensor([0.8, 0.4, 0.3]), torch.tensor([1, 1, 0]))
        tensor(0.7500, dtype=torch.float64)

    Source: TorchEval, WeightedCalibration.
    """

    higher_is_better = None
    inputs = "positive pairs"
    terms = frozenset({PREDS, TARGET})
    per_sample_terms: ClassVar[Mapping[str, Of]] = {
        "prediction": lambda preds, target: as_float(preds),
        "target": lambda preds, target: as_float(target),
    }

    def value(self, counts: Totals, k: int) -> Number:
        return quotient(counts[PREDS][k], counts[TARGET][k])
