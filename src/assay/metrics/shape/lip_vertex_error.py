"""The error of the lips of animated faces."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import Metric
from assay.metrics.exact_arithmetic import means, result
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.row_terms import LargestVertexError
from assay.tally.sums.polynomials import MEAN_OF_ROWS, QuotientOfSums
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True, kw_only=True)
class LipVertexError(Metric):
    """Mean lip vertex error (LVE) of the frames of an animated face.

    `max_v |preds_v - target_v|²` over the vertices of the mouth in each frame, and its mean over the frames.

    Shapes: `preds` and `target` are frames `(N, V, 3)` of V vertices. Weights are `(N,)`.

    Rounding: the error of a frame is computed in float32 (float64 where an argument is float64), with the same bits for
    any size of batch. The mean over the frames is exact, rounded once.

    Returns:
        float64 of shape `()`; NaN without data.

    Raises:
        ConfigError: a `mouth_map` that is empty, or has something that is no index from 0.
        ShapeError: `preds` and `target` of different shapes, or with fewer vertices than `mouth_map` needs.
        DtypeError: complex numbers.
        InvalidValuesError: by `compute`, for frames with vertices of the mouth that are NaN or infinite.

    Example:
        >>> import torch
        >>> target = torch.zeros(2, 4, 3)
        >>> preds = target + torch.tensor([1.0, 2.0, 3.0, 4.0])[:, None]
        >>> LipVertexError(mouth_map=[0, 2])(preds, target)
        tensor(27., dtype=torch.float64)

    Source: Richard, Zollhöfer, Wen, de la Torre, Sheikh, MeshTalk, ICCV 2021.
    """

    family = "shape"
    inputs = "meshes"
    higher_is_better = False
    exact_terms = False
    unchanged_by = frozenset({"swap"})
    examples = ({"mouth_map": (0, 2, 3)},)

    mouth_map: Annotated[tuple[int, ...], "the indices of the vertices of the mouth."]

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            indices = tuple(sorted({operator.index(each) for each in self.mouth_map}))
        except TypeError:
            indices = ()
        if not indices or indices[0] < 0:
            do = "Pass the indices of the vertices of the mouth, as [0, 1, 2]"
            raise ConfigError(describe("mouth_map", f"{self.mouth_map!r:.60}", "integers of 0 or more", do))
        object.__setattr__(self, "mouth_map", indices)

    @property
    def term(self) -> LargestVertexError:
        """What is measured of a frame."""
        ends = [k for k, each in enumerate(self.mouth_map) if k == 0 or each > self.mouth_map[k - 1] + 1]
        runs = zip(ends, [*ends[1:], len(self.mouth_map)], strict=True)
        return LargestVertexError(tuple((self.mouth_map[a], self.mouth_map[b - 1] + 1) for a, b in runs))

    def tally(self, weighted: bool) -> Tally:
        return RowSums(self.term, weighted)

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return MEAN_OF_ROWS

    def compute(self, counts: RowTotals) -> Tensor:
        return result(means(counts))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return SampleTerms.of(f"lip vertex error of {self!r}", self.term.errors(batch))
