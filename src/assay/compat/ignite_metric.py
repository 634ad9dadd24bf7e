"""Classes with the names, arguments and definitions of Ignite's metrics, on assay's counts."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.compat.counterparts import counterpart
from assay.compat.drop_ins import IGNITE_SCORES
from assay.compat.modules import SignatureOfOwner
from assay.compat.torchmetrics_values import placed
from assay.decide import Rows, TopK
from assay.errors import AssayWarning, NoDataWarning, ShapeError, StateError, describe
from assay.integrations.ignite import IgniteMetric
from assay.integrations.optional_packages import import_package
from assay.meter import Meter
from assay.metrics import Accuracy, ExactMatch, Mean
from assay.metrics.base import Metric
from assay.metrics.exact_arithmetic import quotient, root, rounded
from assay.migrate.table import Counterpart, library

NotComputableError: Any = import_package("ignite.exceptions", "metrics of its names").NotComputableError

_distributed: Any = import_package("ignite.distributed", "metrics of its names")

_regression: Any = import_package("ignite.metrics.regression._base", "metrics of its names")

TABLE = library("ignite")
_OF_LABELS = ("Accuracy", "Precision", "Recall")
_OF_CLASSES = (*_OF_LABELS, *IGNITE_SCORES)
"""Names of metrics that must know how many classes or labels there are, and take it from the first batch."""

_OVER_ROWS = ("MeanAbsoluteError", "MeanSquaredError", "RootMeanSquaredError")
"""Names of metrics that divide the sum over all numbers by the number of rows."""

_TOTALS = ("CanberraMetric", "WaveHedgesDistance")
"""Names of sums, which are 0 without data."""


class CompatibleIgniteMetric(IgniteMetric):
    """A metric with the arguments of a class of Ignite, which checks them, and the shapes of batches.

    How many classes there are is taken from the first batch of any process.
    """

    entry: ClassVar[Counterpart]
    original: ClassVar[Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An empty metric; that of Ignite itself, with a warning, where an argument has no counterpart."""
        if kwargs.get("average") == "samples" and kwargs.get("is_multilabel"):
            itself = cls.original(*args, **kwargs)
            got, do = "average='samples'", "Use it unchanged, or F1Score(num_labels=..., multidim_average='samplewise')"
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
        self._layout: tuple[int, int] | None = None
        if self.entry.name not in _OF_CLASSES:
            self._begin(0, 0)

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
            self._begin(classes, int(preds.ndim == target.ndim or classes == 1))
        self.meter.update(*self._batch(preds, target))

    def _begin(self, classes: int, labels: int) -> None:
        """Count batches of so many classes, whose predictions are labels or not."""
        self._layout = classes, labels
        self.meter = Meter(value=self._metric(classes))

    def _agree(self) -> None:
        """Learn from the other processes how many classes there are, without a batch of one's own."""
        if self.entry.name in _OF_CLASSES and _distributed.get_world_size() > 1:
            classes, labels = self._layout or (0, 0)
            largest = int(_distributed.all_reduce(2 * classes + labels, "MAX"))
            if largest and self._layout is None:
                self._begin(largest // 2, largest % 2)

    def _state_dict_per_rank(self) -> OrderedDict[str, Any]:
        state: OrderedDict[str, Any] = super()._state_dict_per_rank()
        return OrderedDict(state, layout=self._layout) if self._layout else OrderedDict()

    def _load_state_dict_per_rank(self, state_dict: Mapping[str, Any]) -> None:
        self.reset()
        if "layout" in state_dict:
            if len(state_dict["layout"]) != 2:
                do = "Count the data again: rows were counted in another way there"
                raise StateError(describe("state_dict", "a state of an older release", "one of this release", do))
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
            return Accuracy(num_classes=2)  # of hits and misses
        if name == "ConfusionMatrix":
            fields["ignore_index"] = -1
        return counterpart(self.entry, self._counted(), **fields)

    def _counted(self) -> dict[str, Any]:
        """The arguments. Means over classes are taken afterwards, as those without data count as 0, and so are those
        over samples."""
        average = self._arguments.get("average")
        if average in ("macro", True):
            return {**self._arguments, "average": False}
        return {**self._arguments, "average": None} if average == "samples" else self._arguments

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        name = self.entry.name
        if name in _OF_LABELS and (self._multilabel or self._binary):
            preds = preds if self._multilabel else preds.reshape(target.shape)
            return _zeros_and_ones(preds), _zeros_and_ones(target)
        if name in _OF_LABELS:
            return preds, target.long()
        if name == "TopKCategoricalAccuracy":
            return _hits(preds, target, self._arguments["k"])
        if name in _OVER_ROWS or name == "MaximumAbsoluteError":
            return preds.reshape(target.shape), target
        if name == "ConfusionMatrix":  # labels of no class are left out
            target = torch.where((target >= 0) & (target < self._arguments["num_classes"]), target, -1)
        if name in IGNITE_SCORES:
            preds, target = preds if preds.is_floating_point() else preds.float(), _zeros_and_ones(target)
        if name != "MeanPairwiseDistance" and preds.ndim == 2 and preds.shape[1] == 1:
            return preds.flatten(), target.flatten()
        return preds, target

    def compute(self) -> Any:
        """The value over all processes, as Ignite gives it."""
        self._agree()
        meter, name = self.meter.sync(), self.entry.name
        if not meter.rows and name in _TOTALS:
            return 0.0
        if self._layout is None or not (meter.rows or name in ("Precision", "Recall")):
            raise NotComputableError(f"{name} must have at least one example before it can be computed.")
        with warnings.catch_warnings():
            if "average" in self._arguments:  # classes without data are 0
                warnings.simplefilter("ignore", NoDataWarning)
            value = meter.compute()["value"]
        value = _over_rows(meter) if name in _OVER_ROWS else self._value(value, meter.rows)
        of_class_1 = self._binary and self._arguments.get("average") is False  # which stays a tensor there
        if isinstance(value, Tensor) and not value.ndim and not of_class_1:
            return value.item()
        return placed(value, self._double_dtype, self._device)

    def _value(self, value: Any, rows: int) -> Any:
        """A value of assay's metric as Ignite has it."""
        if isinstance(value, tuple):
            return tuple(value)
        if "average" not in self._arguments:
            return value
        average, value = self._arguments["average"], value.nan_to_num(0.0)
        if average == "samples":
            return value / rows
        if average in ("macro", True):
            return value.mean()
        return value[1] if self._binary and average is False else value

    def completed(self, engine: Any, name: str) -> None:
        """Put the value into `engine.state.metrics`, as Ignite does."""
        self.original.completed(self, engine, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.meter!r})"


def _zeros_and_ones(labels: Tensor) -> Tensor:
    """Labels as integers; other numbers than 0 and 1 are invalid ones."""
    return torch.where(labels == labels * labels, labels, -1).long()


def _over_rows(meter: Meter) -> float:
    """The sum over all numbers by the number of rows, rounded once; or the root of that."""
    metric: Any = meter.metrics["value"]
    total = metric.formula.above.evaluate(meter.counts_of("value").sum_of(0))
    value = quotient(total, Fraction(meter.rows))
    return root(value) if metric.formula.root else rounded(value)


def _hits(scores: Tensor, target: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """1 for each target among the `k` highest scores of its row, 0 for others; and 1 for each. Invalid ones are 2."""
    if scores.ndim < 2 or scores.shape[1] < k:
        got, expected = f"shape {tuple(scores.shape)}", f"(N, C) with at least {k} classes"
        raise ShapeError(describe("y_pred", got, expected, "Pass scores of all classes, or a smaller k"))
    classes = scores.shape[1]
    scores = scores if scores.dtype == torch.float64 else scores.float()
    label = target.flatten().long()
    is_class = (label >= 0) & (label < classes) & (label == target.flatten())
    label = label.clamp(0, classes - 1)
    decided = TopK(k)(Rows(scores.movedim(1, -1).reshape(-1, classes), label))
    hits = (decided == label).long().masked_fill(decided == classes, 2)
    return hits, torch.ones_like(hits).masked_fill(~is_class, 2)


@functools.cache
def compatible_class(original: type) -> type:
    """The class in the place of one of Ignite that has a counterpart."""
    body: dict[str, Any] = {"__doc__": original.__doc__, "__module__": "assay.compat.ignite.metrics"}
    body |= {"entry": TABLE.entries[original.__name__], "original": original}
    body["__signature__"] = SignatureOfOwner(inspect.signature(original))
    return type(original.__name__, (CompatibleIgniteMetric, original), body)
