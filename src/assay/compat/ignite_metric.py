"""Classes with the names, arguments and definitions of Ignite's metrics, on assay's counts."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.compat.counterparts import counterpart
from assay.errors import ConfigError, ShapeError, describe
from assay.integrations.ignite import IgniteMetric
from assay.integrations.optional_packages import import_package
from assay.meter import Meter
from assay.metrics import ExactMatch, Mean
from assay.metrics.base import Metric
from assay.migrate.table import Counterpart, library

NotComputableError: Any = import_package("ignite.exceptions", "metrics of its names").NotComputableError

TABLE = library("ignite")
SCORES = ("AveragePrecision", "PrecisionRecallCurve", "ROC_AUC")
"""Names of metrics of scores of one class or of several labels."""

_OF_LABELS = ("Accuracy", "Precision", "Recall")
_SUMS = {"MeanAbsoluteError": 1.0, "MeanSquaredError": 1.0, "RootMeanSquaredError": 0.5}
"""Sums over the numbers of a sample, and the power of their count by which the mean over all numbers is multiplied."""


class CompatibleIgniteMetric(IgniteMetric):
    """A metric with the arguments of one of Ignite; how many classes there are is taken from the first batch.

    A process without any batch cannot take part in `compute`, since it does not know how many classes there are.
    """

    entry: ClassVar[Counterpart]
    original: ClassVar[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.original(*args, **kwargs)  # checks the arguments
        bound = inspect.signature(self.original).bind(*args, **kwargs)
        bound.apply_defaults()
        self._arguments = dict(bound.arguments)
        self._multilabel = self._arguments.pop("is_multilabel", False)
        if self._multilabel and self._arguments.get("average") == "samples":
            do = f"Import {self.entry.name} from ignite.metrics"
            raise ConfigError(describe("average", "samples", "False, 'micro', 'macro' or 'weighted'", do))
        skip_unrolling = self._arguments.pop("skip_unrolling", False)
        super().__init__(Meter(value=Mean()), True, self._arguments["output_transform"])
        self._skip_unrolling = skip_unrolling

    def reset(self) -> None:
        """Forget everything that was counted, and how many classes there are."""
        super().reset()
        self._numbers: int | None = None  # of a sample
        self._binary = False

    def update(self, output: Any) -> None:
        """Count a batch `(y_pred, y)`."""
        if not isinstance(output, Sequence) or len(output) != 2:
            got = f"{len(output)} parts" if isinstance(output, Sequence) else type(output).__name__
            raise ShapeError(
                describe("output of the engine", got, "(y_pred, y)", "Pass output_transform= that gives them")
            )
        preds, target = (each[: self._left] for each in output)
        if self._left is not None:  # the samples after these are repeated by the sampler
            self._left -= len(preds)
        if self._numbers is None:
            self._numbers = math.prod(preds.shape[1:])
            self.meter = Meter(value=self._metric(preds, target))
        self.meter.update(*self._batch(preds, target))

    def _metric(self, preds: Tensor, target: Tensor) -> Metric:
        """What counts batches like this one."""
        name, classes = self.entry.name, preds.shape[1] if preds.ndim > 1 else 1
        if self._multilabel and name == "Accuracy":
            return ExactMatch(num_labels=classes)
        if self._multilabel or (name in SCORES and classes > 1):
            return counterpart(self.entry, self._counted(), num_labels=classes)
        if name in _OF_LABELS:
            self._binary = preds.ndim == target.ndim or classes == 1
            return counterpart(self.entry, self._counted(), num_classes=2 if self._binary else classes)
        sizes = {"num_classes": classes} if name == "TopKCategoricalAccuracy" else {}
        return counterpart(self.entry, self._counted(), **sizes)

    def _counted(self) -> dict[str, Any]:
        """The arguments; means over classes are taken afterwards, as those without data count as 0."""
        macro = self._arguments.get("average") in ("macro", True)
        return {**self._arguments, "average": False} if macro else self._arguments

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        name = self.entry.name
        if name in _OF_LABELS and (self._multilabel or self._binary):
            preds = preds if self._multilabel else preds.reshape(target.shape)
            return torch.where(preds == preds * preds, preds, -1).long(), target
        if name in _SUMS or name == "MaximumAbsoluteError":
            return preds.flatten(), target.view_as(preds).flatten()
        if name not in _OF_LABELS and preds.ndim == 2 and preds.shape[1] == 1:
            return preds.flatten(), target.flatten()
        return preds, target

    def compute(self) -> Any:
        """The value over all processes, as Ignite gives it."""
        if self._numbers is None:
            raise NotComputableError(f"{self.entry.name} must have at least one example before it can be computed.")
        value = super().compute()
        if isinstance(value, tuple):
            return value
        if self.entry.name in _SUMS:
            return value * self._numbers ** _SUMS[self.entry.name]
        if self.entry.name in _OF_LABELS and isinstance(value, Tensor):
            value = value.nan_to_num(0.0)
            if self._arguments["average"] in ("macro", True):
                return value.mean().item()
            return value[1] if self._binary and self._arguments["average"] is False else value
        return value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.meter!r})"


@functools.cache
def compatible_class(original: type) -> type:
    """The class in the place of one of Ignite that has a counterpart."""
    body: dict[str, Any] = {"__doc__": original.__doc__, "__module__": "assay.compat.ignite.metrics"}
    body |= {"entry": TABLE.entries[original.__name__], "original": original}
    return type(original.__name__, (CompatibleIgniteMetric,), body)
