"""The inception score: how sure a classifier is of generated samples, and how much they vary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from assay.errors import ConfigError, DtypeError, ShapeError, describe
from assay.metrics.base import Metric, number
from assay.metrics.exact_arithmetic import means, rounded
from assay.tally.base import Batch, BatchLayout, Tally, shown
from assay.tally.layout_checks import check_weights
from assay.tally.sums.row_sums import RowSums, RowTerm, RowTotals, RowValues, SumShape, sum_each_row


@dataclass(frozen=True)
class ClassProbabilities(RowTerm):
    """The softmax `p` of each row of logits, `preds (N, num_classes)`, and the sum of `p log p`."""

    num_classes: int

    uses_target = False
    invalid = ("rows have logits that are NaN or infinite, or none above -inf",)

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return SumShape(self.num_classes), SumShape()

    def check(self, layout: BatchLayout) -> None:
        preds = layout.preds
        if preds.tail != (self.num_classes,):
            expected = f"shape (N, {self.num_classes}), the logits of each sample"
            raise ShapeError(describe("preds", f"shape {shown(preds.tail)}", expected, "Check num_classes"))
        if not preds.dtype.is_floating_point:
            raise DtypeError(describe("preds", preds.dtype, "floats: logits", "Pass the logits"))
        check_weights(layout.weights)

    def __call__(self, batch: Batch) -> RowValues:
        dtype = torch.float64 if batch.preds.dtype == torch.float64 else torch.float32
        logs = batch.preds.log_softmax(1, dtype=dtype)
        shares = logs.exp()
        undefined = shares.isnan().any(1)
        shares = torch.where(undefined[:, None], 0, shares)
        terms = torch.where(shares == 0, 0, shares * logs)
        return RowValues(shares, sum_each_row(terms), counted=~undefined, invalid=[undefined])


@dataclass(frozen=True, kw_only=True)
class InceptionScore(Metric):
    r"""The inception score of generated samples, from the logits that the caller's classifier gives them.

    $$ \exp \frac{1}{N} \sum_i \sum_c p_{ic} (\log p_{ic} - \log \bar p_c) $$

    with the softmax p of the logits of each sample and its mean over the samples. It is between 1 and the number of
    classes. All samples are used at once and nothing is drawn, so the same samples give the same value; a resampled
    interval says how uncertain it is.

    Shapes: `preds` `(N, num_classes)`, logits; no target; weights `(N,)`.

    Returns:
        float64, shape `()`; NaN with a warning without samples.

    Raises:
        ConfigError: `num_classes` below 1.
        InvalidValuesError: by `compute`, if logits are NaN or infinite, other than single ones of -inf, or a weight is
            negative or NaN.

    Example:
        >>> import torch
        >>> InceptionScore(num_classes=2)(torch.tensor([[9.0, 0.0], [0.0, 9.0]]))
        tensor(1.9975, dtype=torch.float64)

    Source: T. Salimans, I. Goodfellow, W. Zaremba, V. Cheung, A. Radford, X. Chen, Improved techniques for training
    GANs, NeurIPS 2016.
    """

    family = "generative"
    inputs = "logits"
    higher_is_better = True
    exact_terms = False
    defined_for = "samples that have weight"
    examples = ({"num_classes": 4},)

    num_classes: Annotated[int, "the number of classes of the classifier."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes < 1:
            raise ConfigError(
                describe("num_classes", self.num_classes, "1 or more", "Give the size of dimension 1 of preds")
            )

    def tally(self, weighted: bool) -> Tally:
        return RowSums(ClassProbabilities(self.num_classes), weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        if not counts.weight:
            return number(math.nan)
        shares, (negative_entropy,) = ([rounded(mean) for mean in means(counts, k)] for k in range(2))
        logs = [share * math.log(share) if share else 0.0 for share in shares]
        return number(math.exp(max(0.0, negative_entropy - math.fsum(logs))))
