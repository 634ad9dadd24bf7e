"""Any metric for each column of its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.composition import WrapperMetric, values_of, without_data
from assay.metrics.regression.errors import MeanSquaredError
from assay.metrics.regression.rank_correlation import SpearmanCorrCoef
from assay.tally.base import Tally
from assay.tally.composite import combine
from assay.tally.output import of_output


@dataclass(frozen=True)
class PerOutput(WrapperMetric):
    """A metric for each output by itself: of `preds[:, k]` and `target[:, k]`, for each k.

        value[k] = metric(preds[:, k], target[:, k])

    Many regression metrics take `num_outputs=` themselves, and are faster with it; this is for those that do not.

    Shapes: `preds` and `target` are `(N, outputs, ...)`; without dimension 1, they are what the metric takes. Weights
    are one per sample, `(N,)`, or one for each output as well.

    Rounding: as that of the metric.

    Returns:
        The values stacked: float64, shape `(outputs,)` for a metric with a single number.

    Raises:
        ConfigError: no metric, no output, or a metric whose value is a curve or a table.
        ShapeError: when updated, if dimension 1 is of another size.
        InvalidValuesError: by `compute`, as the metric does; says in which output.

    Example:
        >>> import torch
        >>> from assay.metrics import AUROC
        >>> target = torch.tensor([[0, 1], [1, 0], [1, 0]])
        >>> PerOutput(AUROC(), 2)(torch.tensor([[0.1, 0.9], [0.4, 0.3], [0.8, 0.95]]), target)
        tensor([1.0000, 0.5000], dtype=torch.float64)

    Source: the values are those of the metric.
    """

    examples = ({"metric": MeanSquaredError(), "outputs": 2}, {"metric": SpearmanCorrCoef(), "outputs": 2})

    outputs: Annotated[int, "how many there are."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.outputs < 1:
            raise ConfigError(describe("outputs", self.outputs, "1 or more", "Give the size of dimension 1"))
        if not isinstance(without_data("metric", self.metric), Tensor):
            do = "Use a metric whose value is one tensor, or a meter for each output"
            raise ConfigError(describe("metric", f"{self.metric!r}, which reads several parts", "one tensor", do))

    def tally(self, weighted: bool) -> Tally:
        counts = self.metric.batch_tally(weighted)
        return combine(of_output(counts, k, self.outputs) for k in range(self.outputs))

    def compute(self, counts: tuple[Any, ...]) -> Tensor:
        return torch.stack(list(values_of([self.metric] * self.outputs, counts)))
