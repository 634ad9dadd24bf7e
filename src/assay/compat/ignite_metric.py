"""Classes with the names, arguments and definitions of Ignite's metrics, on assay's counts."""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.compat.counterparts import counterpart
from assay.compat.drop_ins import IGNITE_SCORES
from assay.errors import AssayWarning, ShapeError, describe
from assay.integrations.ignite import IgniteMetric
from assay.integrations.optional_packages import import_package
from assay.meter import Meter
from assay.metrics import ExactMatch, Mean
from assay.metrics.base import Metric
from assay.migrate.table import Counterpart, library

NotComputableError: Any = import_package("ignite.exceptions", "metrics of its names").NotComputableError

_regression: Any = import_package("ignite.metrics.regression._base", "metrics of its names")

TABLE = library("ignite")
_OF_LABELS = ("Accuracy", "Precision", "Recall")
_SUMS = {"MeanAbsoluteError": 1.0, "MeanSquaredError": 1.0, "RootMeanSquaredError": 0.5}
"""Sums over the numbers of a sample, and the power of their count by which the mean over all numbers is multiplied."""


class CompatibleIgniteMetric(IgniteMetric):
    """A metric with the arguments of a class of Ignite, which checks them, and the shapes of batches.

    How many classes there are is taken from the first batch. A process without any batch cannot take part in `compute`,
    since it does not know how many classes there are.
    """

    entry: ClassVar[Counterpart]
    original: ClassVar[Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An empty metric; that of Ignite itself, with a warning, where an argument has no counterpart."""
        if kwargs.get("average") == "samples" and kwargs.get("is_multilabel"):
            itself = cls.original(*args, **kwargs)
            got, do = "average='samples'", "Use it as it is, or F1Score(num_labels=..., multidim_average='samplewise')"
            expected = "False, 'micro', 'macro' or 'weighted'; it is the metric of ignite itself"
            warnings.warn(describe(cls.__name__, got, expected, do), AssayWarning, 2)
            return itself
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(self.original).bind(*args, **kwargs)
        bound.apply_defaults()
        self._arguments = dict(bound.arguments)
        self._multilabel = self._arguments.pop("is_multilabel", False)
        self._arguments.pop("skip_unrolling", False)
        self.meter, self._alone = Meter(value=Mean()), True
        self.original.__init__(self, *args, **kwargs)

    def reset(self) -> None:
        """Forget everything that was counted, and how many classes there are."""
        self.original.reset(self)
        super().reset()
        self._layout: tuple[int, ...] | None = None
        self._updated = False

    def _check_binary_multilabel_cases(self, output: Any) -> None:
        """Nothing: invalid values are counted, and raise in `compute`."""

    def _check(self, output: Any) -> None:
        """Raise what the class of Ignite raises for these shapes."""
        for check in ("_check_shape", "_check_type"):
            if hasattr(self.original, check):
                getattr(self, check)(output)
        if self.original.__module__.startswith("ignite.metrics.regression"):
            _regression._check_output_shapes(output)
            _regression._check_output_types(output)

    def update(self, output: Any) -> None:
        """Count a batch `(y_pred, y)`."""
        if not isinstance(output, Sequence) or len(output) < 2:
            got = f"{len(output)} parts" if isinstance(output, Sequence) else type(output).__name__
            raise ShapeError(
                describe("output of the engine", got, "(y_pred, y)", "Pass output_transform= that gives them")
            )
        preds, target = (each[: self._left] for each in output[:2])
        self._check((preds, target))
        if self._left is not None:  # the samples after these are repeated by the sampler
            self._left -= len(preds)
        if self._layout is None:
            classes = preds.shape[1] if preds.ndim > 1 else 1
            self._begin(classes, preds.ndim == target.ndim or classes == 1, math.prod(preds.shape[1:]))
        self.meter.update(*self._batch(preds, target))
        self._updated = True

    def _begin(self, *layout: int) -> None:
        """Count batches of this layout: how many classes, whether labels are predicted, and the numbers of a sample."""
        self._layout = layout
        self.meter = Meter(value=self._metric(layout[0]))

    def _state_dict_per_rank(self) -> OrderedDict[str, Any]:
        state: OrderedDict[str, Any] = super()._state_dict_per_rank()
        return OrderedDict(state, layout=self._layout) if self._layout else OrderedDict()

    def _load_state_dict_per_rank(self, state_dict: Mapping[str, Any]) -> None:
        self.reset()
        if "layout" in state_dict:
            self._begin(*state_dict["layout"])
            super()._load_state_dict_per_rank({name: value for name, value in state_dict.items() if name != "layout"})

    @property
    def _binary(self) -> bool:
        """Whether labels of two classes are predicted."""
        return bool(self._layout and self._layout[1]) and not self._multilabel and self.entry.name in _OF_LABELS

    def _metric(self, classes: int) -> Metric:
        """What counts batches with this size of dimension 1."""
        name = self.entry.name
        fields: dict[str, Any] = {"logits": True} if name in IGNITE_SCORES else {}  # of any size
        if self._multilabel and name == "Accuracy":
            return ExactMatch(num_labels=classes)
        if self._multilabel or (name in IGNITE_SCORES and classes > 1):
            return counterpart(self.entry, self._counted(), num_labels=classes, **fields)
        if name in _OF_LABELS:
            return counterpart(self.entry, self._counted(), num_classes=2 if self._binary else classes)
        if name == "TopKCategoricalAccuracy":
            fields["num_classes"] = classes
        if name == "ConfusionMatrix":
            fields["ignore_index"] = -1
        return counterpart(self.entry, self._counted(), **fields)

    def _counted(self) -> dict[str, Any]:
        """The arguments; means over classes are taken afterwards, as those without data count as 0."""
        macro = self._arguments.get("average") in ("macro", True)
        return {**self._arguments, "average": False} if macro else self._arguments

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        name = self.entry.name
        if name in _OF_LABELS and (self._multilabel or self._binary):
            preds = preds if self._multilabel else preds.reshape(target.shape)
            return _zeros_and_ones(preds), _zeros_and_ones(target)
        if name in _OF_LABELS:
            return preds, target.long()
        if name in _SUMS or name == "MaximumAbsoluteError":
            return preds.flatten(), target.view_as(preds).flatten()
        if name == "ConfusionMatrix":  # labels of no class are left out
            target = torch.where((target >= 0) & (target < self._arguments["num_classes"]), target, -1)
        if name in IGNITE_SCORES:
            preds, target = preds if preds.is_floating_point() else preds.float(), _zeros_and_ones(target)
        if name != "MeanPairwiseDistance" and preds.ndim == 2 and preds.shape[1] == 1:
            return preds.flatten(), target.flatten()
        return preds, target

    def compute(self) -> Any:
        """The value over all processes, as Ignite gives it."""
        if self._layout is None:
            raise NotComputableError(f"{self.entry.name} must have at least one example before it can be computed.")
        value = super().compute()
        if isinstance(value, tuple):
            return value
        if self.entry.name in _SUMS:
            return value * self._layout[2] ** _SUMS[self.entry.name]
        if self.entry.name in _OF_LABELS and isinstance(value, Tensor):
            value = value.nan_to_num(0.0)
            if self._arguments["average"] in ("macro", True):
                return value.mean().item()
            return value[1] if self._binary and self._arguments["average"] is False else value
        return value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.meter!r})"


def _zeros_and_ones(labels: Tensor) -> Tensor:
    """Labels as integers; other numbers than 0 and 1 are invalid ones."""
    return torch.where(labels == labels * labels, labels, -1).long()


@functools.cache
def compatible_class(original: type) -> type:
    """The class in the place of one of Ignite that has a counterpart."""
    body: dict[str, Any] = {"__doc__": original.__doc__, "__module__": "assay.compat.ignite.metrics"}
    body |= {"entry": TABLE.entries[original.__name__], "original": original}
    return type(original.__name__, (CompatibleIgniteMetric, original), body)
