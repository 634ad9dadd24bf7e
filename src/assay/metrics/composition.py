"""What metrics that are made of other metrics have in common: their tally, and what each of the others reads of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from assay.encode.base import Encoder
from assay.errors import AssayWarning, ConfigError, describe
from assay.metrics.base import Metric
from assay.tally.base import BatchLayout, compute_batches
from assay.tally.composite import CompositeTally, combine, components


@dataclass(frozen=True)
class WrapperMetric(Metric):
    """A metric whose values are those of another one."""

    family: ClassVar[str] = "metrics of metrics"

    metric: Annotated[Metric, "any metric whose value is one tensor."]

    def __post_init__(self) -> None:
        super().__post_init__()
        without_data("metric", self.metric)  # raises for what is no metric
        object.__setattr__(self, "higher_is_better", self.metric.higher_is_better)
        object.__setattr__(self, "unchanged_by", self.metric.unchanged_by)
        object.__setattr__(self, "value_range", self.metric.value_range)

    @property
    def estimates(self) -> bool:
        return self.metric.estimates

    @property
    def without_estimate(self) -> str:
        return self.metric.without_estimate

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        return self.metric.encoders

    def check(self, layout: BatchLayout) -> None:
        self.metric.check(layout)


def tally_of(metrics: Iterable[Metric], weighted: bool) -> CompositeTally:
    """What metrics are read from: their tallies, together."""
    return combine(metric.batch_tally(weighted) for metric in metrics)


def values_of(metrics: Iterable[Metric], counts: Sequence[Any]) -> Iterator[Any]:
    """The value of each metric, from what `tally_of` of them reads."""
    start = 0
    for metric in metrics:
        own = metric.tally(False)  # weighted or not, a metric is read from as many tallies
        stop = start + len(components(own))
        yield metric.compute(tuple(counts[start:stop]) if isinstance(own, CompositeTally) else counts[start])
        start = stop


def without_data(name: str, metric: object) -> Any:
    """What a metric reads before any sample was counted: it shows the form of its values.

    Raises:
        ConfigError: it is no metric.
    """
    if not isinstance(metric, Metric):
        got = f"the class {metric.__name__}" if isinstance(metric, type) else repr(metric)
        raise ConfigError(describe(name, got, "a metric", "Pass an instance such as Accuracy()"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssayWarning)
        return metric.compute(compute_batches(metric.tally(False)))
