"""Values per class under the names of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import Metric
from assay.metrics.classification.rates import Recall
from assay.metrics.composition import WrapperMetric, without_data
from assay.tally.base import Tally


@dataclass(frozen=True)
class Classwise(WrapperMetric):
    """The values of a metric with one for each class, label or output, under their names.

    `{names[k]: value[k]}`. Better values and intervals are those of the metric; nothing else is counted than for it.

    Shapes: the arguments of an update are those of the metric.

    Rounding: as that of the metric.

    Returns:
        A dictionary from names to float64, shape `()`. In a report and in intervals, they are numbers `"recall cat"`.

    Raises:
        ConfigError: the metric has no value per class, or another number of them than there are names.

    Example:
        >>> import torch
        >>> from assay.metrics import Recall
        >>> recall = Classwise(Recall(num_classes=3, average=None), ("cat", "dog", "fish"))
        >>> recall(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 1, 2]))["dog"]
        tensor(0.5000, dtype=torch.float64)

    Source: the values are those of the metric.
    """

    examples = ({"metric": Recall(num_labels=3, average=None), "names": ("a", "b", "c")},)

    metric: Annotated[Metric, "one with a value per class, as `Recall(num_classes=3, average=None)`."]
    names: Annotated[tuple[str, ...], "as many names, each once."]

    def __post_init__(self) -> None:
        super().__post_init__()
        names: Any = self.names
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(describe("names", repr(names), "a tuple of names", 'Write ("cat", "dog", ...)'))
        object.__setattr__(self, "names", tuple(names))
        twice = sorted({name for name in names if self.names.count(name) > 1})
        if twice:
            raise ConfigError(
                describe("names", f"{', '.join(twice)} twice", "names that differ", "Rename one of the two classes")
            )
        value = without_data("metric", self.metric)
        if not isinstance(value, Tensor) or value.ndim != 1:
            do = "Give it average=None, several outputs, or the like"
            raise ConfigError(describe("metric", repr(self.metric), "one with a value for each class", do))
        if len(value) != len(self.names):
            do = "Give a name for each value, in their order"
            raise ConfigError(describe("names", f"{len(self.names)} names", f"{len(value)}", do))

    def tally(self, weighted: bool) -> Tally:
        return self.metric.batch_tally(weighted)

    def compute(self, counts: Any) -> dict[str, Tensor]:
        return dict(zip(self.names, self.metric.compute(counts).unbind(), strict=True))
