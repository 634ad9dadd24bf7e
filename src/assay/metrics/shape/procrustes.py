"""How far apart shapes are, up to place, size and rotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from torch import Tensor

from assay.encode.points import ProcrustesDistance
from assay.metrics.base import Metric
from assay.metrics.exact_arithmetic import quotient_of_rows, result, sums_or_means
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.sums.polynomials import QuotientOfSums
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True, kw_only=True)
class ProcrustesDisparity(Metric):
    """Procrustes disparity of point clouds.

    `min |x - s y R|²` over scales s and orthogonal matrices R, where x and y are the points of preds and target around
    their means, with a sum of squares of 1; its mean or sum over the samples. It is between 0 and 1.

    Shapes: `preds` and `target` are lists of point clouds `(M, D)`, of M corresponding points each; `list(batch)` of a
    batch `(N, M, D)`. Weights are `(N,)`.

    Rounding: the disparity of a sample is computed in float64, on the CPU. The sum and mean are exact, rounded once.

    Returns:
        float64 of shape `()`; NaN without data.

    Raises:
        ShapeError: a cloud that is not `(M, D)`, or a pair of different shapes.
        DtypeError: complex numbers, or booleans.
        InvalidValuesError: by `update`, for clouds with NaN or infinite coordinates, or whose points are all the same;
            the message has its position.

    Example:
        >>> import torch
        >>> square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        >>> ProcrustesDisparity()([3 * square.flip(1) + 5], [square]).round(decimals=12)
        tensor(0., dtype=torch.float64)
        >>> ProcrustesDisparity()([square + torch.tensor([[1.0, 0], [0, 0], [0, 0], [0, 0]])], [square])
        tensor(0.2857, dtype=torch.float64)

    Source: Gower, Generalized procrustes analysis, Psychometrika 40 (1975); equal to `scipy.spatial.procrustes`.
    """

    family = "shape"
    inputs = "point lists"
    higher_is_better = False
    exact_terms = False
    examples = ({}, {"reduction": "sum"})

    reduction: Annotated[Literal["mean", "sum"], '"mean" over the samples, or "sum".'] = "mean"
    encoder = ProcrustesDistance()

    @property
    def estimates(self) -> bool:
        return self.reduction == "mean"

    def tally(self, weighted: bool) -> Tally:
        return RowSums(RowNumbers(), weighted)

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return quotient_of_rows(self.reduction)

    def compute(self, counts: RowTotals) -> Tensor:
        return result(sums_or_means(counts, self.reduction))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return SampleTerms.of("Procrustes disparity", batch.preds[:, 0]) if self.estimates else None
