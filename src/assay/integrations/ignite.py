"""Ignite: a meter as an `ignite.metrics.Metric`, whose results come into `engine.state.metrics`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from assay.errors import ConfigError, ShapeError, describe
from assay.integrations.optional_packages import import_package
from assay.integrations.padding import real_rows
from assay.meter import Meter
from assay.metrics.base import Metric

ignite: Any = import_package("ignite.metrics", "metrics that it takes for its own")


def _same(output: Any) -> Any:
    return output


class IgniteMetric(ignite.Metric):  # type: ignore[misc]
    """A meter that Ignite takes for a metric of its own; made by `as_ignite`.

    Counts are on the device of each batch, and are summed over processes when they are read. Samples that the engine's
    `DistributedSampler` gave twice are counted once.

    Attributes:
        meter: what was counted.
    """

    def __init__(self, meter: Meter, alone: bool, output_transform: Callable[[Any], Any]) -> None:
        self.meter, self._alone = meter, alone
        self._left: int | None = None
        self.required_output_keys = ("y_pred", "y", *sorted(meter.columns))
        super().__init__(output_transform=output_transform)

    def reset(self) -> None:
        """Forget everything that was counted."""
        self.meter.reset()
        self._left = None

    def started(self, engine: Any) -> None:
        """Begin anew, and see how many rows of the engine's loader are real."""
        self.reset()
        self._left = real_rows(engine.state.dataloader)

    def update(self, output: Any) -> None:
        """Count a batch.

        Args:
            output: `(y_pred, y)`, followed by the named columns that the metrics take, in the order of their names, and
                by weights. Ignite makes it of a dictionary with these names.
        """
        names = self.required_output_keys[2:]
        most = len(names) + 3
        if not isinstance(output, Sequence) or isinstance(output, str) or not 1 <= len(output) <= most:
            got = f"{len(output)} parts" if isinstance(output, Sequence) else type(output).__name__
            expected = ", ".join(("y_pred", "y", *names))
            do = "Pass output_transform= that gives them, or a dictionary"
            raise ShapeError(describe("output of the engine", got, f"({expected}) or ({expected}, weights)", do))
        parts = [None if each is None else each[: self._left] for each in (*output, *[None] * most)[:most]]
        preds, target, *columns, weights = parts
        if self._left is not None:
            self._left -= len(output[0][: self._left])
        self.meter.update(preds, target, weights=weights, **dict(zip(names, columns, strict=True)))

    def compute(self) -> Any:
        """The value over all processes, or values by name; numbers are floats."""
        values = {name: _plain(value) for name, value in self.meter.sync().compute().items()}
        return next(iter(values.values())) if self._alone else values

    def completed(self, engine: Any, name: str) -> None:
        """Put the values into `engine.state.metrics`: those of a meter under the names that it gives them."""
        value = self.compute()
        engine.state.metrics.update({name: value} if self._alone else value)

    def _state_dict_per_rank(self) -> OrderedDict[str, Tensor]:
        return OrderedDict(self.meter.state_dict())

    def _load_state_dict_per_rank(self, state_dict: Mapping[str, Tensor]) -> None:
        self.meter.load_state_dict(state_dict)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Tensor) and not value.ndim else value


def as_ignite(
    metric: Metric | Meter, output_transform: Callable[[Any], Any] = _same, *, weighted: bool = False
) -> IgniteMetric:
    """A metric of assay as an `ignite.metrics.Metric`: for evaluators, `RunningAverage`, arithmetic and checkpoints.

    Args:
        metric: a metric; or a meter, whose values go into `engine.state.metrics` by name. A meter is copied empty.
        output_transform: how the engine's output becomes `(y_pred, y)`, followed by the named columns that the
            metrics take and by weights.
        weighted: there are weights.

    Raises:
        ConfigError: it is neither.
        MissingDependencyError: Ignite is not installed.

    Example:
        >>> import torch
        >>> from ignite.engine import Engine
        >>> from assay import Accuracy
        >>> evaluator = Engine(lambda engine, batch: batch)
        >>> as_ignite(Accuracy(num_classes=3)).attach(evaluator, "accuracy")
        >>> evaluator.run([(torch.eye(3), torch.tensor([0, 1, 1]))]).metrics
        {'accuracy': 0.6666666666666666}
    """
    if isinstance(metric, Meter):
        return IgniteMetric(metric.fresh(), False, output_transform)
    argument: object = metric
    if not isinstance(argument, Metric):
        got = type(argument).__name__
        raise ConfigError(describe("metric", got, "a metric or a meter of assay", "Pass Accuracy(num_classes=10)"))
    return IgniteMetric(Meter(weighted=weighted, value=metric), True, output_transform)


def attach(
    engine: Any, meter: Meter, output_transform: Callable[[Any], Any] = _same, usage: str = "epoch_wise"
) -> IgniteMetric:
    """Let an engine measure with a meter: its values come into `engine.state.metrics` under the names it gives them.

    Args:
        engine: an `ignite.engine.Engine`.
        meter: which metrics; it is copied empty.
        output_transform: how the engine's output becomes `(y_pred, y)`, followed by the named columns that the
            metrics take and by weights.
        usage: when values are read: "epoch_wise", "running_epoch_wise", "batch_wise", "running_batch_wise" or
            "single_epoch_running_batch_wise", as Ignite defines them.

    Returns:
        What was attached; `detach(engine, usage)` ends it, and it may go into a checkpoint.

    Raises:
        ConfigError: it is no meter.

    Example:
        >>> import torch
        >>> from ignite.engine import Engine
        >>> from assay import Accuracy, Meter
        >>> evaluator = Engine(lambda engine, batch: batch)
        >>> attached = attach(evaluator, Meter(accuracy=Accuracy(num_classes=3)))
        >>> evaluator.run([(torch.eye(3), torch.tensor([0, 1, 1]))]).metrics
        {'accuracy': 0.6666666666666666}
    """
    argument: Any = meter
    if not isinstance(argument, Meter):
        do = "Pass Meter(accuracy=Accuracy(num_classes=10))"
        raise ConfigError(describe("meter", type(argument).__name__, "a meter, which names its metrics", do))
    metric = as_ignite(meter, output_transform)
    metric.attach(engine, ", ".join(meter.metrics), usage)
    return metric
