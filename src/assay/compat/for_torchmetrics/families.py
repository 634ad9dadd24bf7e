"""What the families have in common whose metrics take other arguments in assay: images, masks, signals and others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from assay.compat.for_torchmetrics.batches import BatchFormat
from assay.compat.for_torchmetrics.metric import CompatibleMetric, has_gradient, require_gradient
from assay.compat.for_torchmetrics.values import placed
from assay.devices.placement import can_read
from assay.errors import ConfigError, ShapeError, describe
from assay.integrations.optional_packages import import_package
from assay.integrations.torchmetrics import squeezed
from assay.meter import Meter
from assay.metrics.base import Metric
from assay.metrics.exact_arithmetic import result, sums_or_means
from assay.migrate.table import Counterpart
from assay.tally.base import Batch, BatchLayout, Tally, TensorLayout, shown
from assay.tally.rows.image_terms import MEAN_BITS, UNDEFINED
from assay.tally.sums.row_sums import RowSums, RowTerm, RowTotals, RowValues, SumShape

_eer_compute: Any = import_package("torchmetrics.functional.classification.eer", "metrics of its names")._eer_compute

VALUE = "value"

Arguments = Mapping[str, Any]
"""All arguments of a class of TorchMetrics, with their defaults."""


def _as_it_is(value: Any, arguments: Arguments) -> Any:
    return value


def _columns(preds: Any, arguments: Arguments) -> int:
    size: int = preds.shape[1]
    return size


def _plain_batch(arguments: Arguments) -> BatchFormat:
    return plain_batch


def plain_batch(preds: Any, target: Any) -> dict[str, Any]:
    """A batch as assay takes it already."""
    return {"preds": preds, "target": target}


@dataclass(frozen=True)
class Family:
    """How assay counts a class of TorchMetrics.

    Attributes:
        assay: the metric of assay.
        metric: makes it of the arguments; raises a `ConfigError` for those that it has no counterpart of.
        batch: makes the format of batches of the arguments; formats that are equal can share a meter.
        value: the value of the metric as TorchMetrics gives it.
        weighted: whether samples weigh.
        by_shape: the field of the metric that the first batch decides; empty where none does.
        size: that field, from `preds` of a batch in its format and the arguments.
        rows: for functions that give a number of each sample: makes these of the metric, the arguments, a batch in its
            format, and the arguments of the function that are data.
        dtype: that of values, where it is always the same.
        construct: makes a metric in the place of the constructor of TorchMetrics, which needs a package that assay does
            not.
        run: the batch in assay's format, of the metric and the arguments of its `update`; in the place of `batch` where
            a network or a program of TorchMetrics' class computes it.
        check: what is said of a batch before it is counted, of the metric and the arguments of its `update`.
        states: what gives each state of TorchMetrics' class, by its name, of what was counted of a sample or more and
            the metric; None where that does not say it.
    """

    assay: str
    metric: Callable[[Arguments], Metric]
    batch: Callable[[Arguments], BatchFormat] = _plain_batch
    value: Callable[[Any, Arguments], Any] = _as_it_is
    weighted: bool = False
    by_shape: str = ""
    size: Callable[[Any, Arguments], int] = _columns
    rows: Callable[[Any, Arguments, Mapping[str, Any], Sequence[Any]], Any] | None = None
    dtype: torch.dtype | None = None
    construct: Callable[..., None] | None = None
    run: Callable[..., dict[str, Any]] | None = None
    check: Callable[..., None] | None = None
    states: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OfRows(Metric):
    """The mean, or the sum, over rows of a number that a term of a metric of assay gives.

    Args:
        metric: has the term, or is the description that a subclass makes one of.
        reduction: "mean" or "sum".
    """

    metric: Metric
    reduction: Literal["mean", "sum"] = "mean"

    @property
    def inputs(self) -> str:  # type: ignore[override]
        """The samples that it takes."""
        return self.metric.inputs

    @property
    def term(self) -> RowTerm:
        """What is measured of a row."""
        term: RowTerm = self.metric.term  # type: ignore[attr-defined]
        return term

    def tally(self, weighted: bool) -> Tally:
        return RowSums(self.term, weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        (value,) = sums_or_means(counts, self.reduction)
        unit = Fraction(1, 1 << MEAN_BITS) if getattr(self.term, "bounded", False) else 1
        return result([value if isinstance(value, float) else value * unit])


@dataclass(frozen=True)
class ColumnTerm(RowTerm):
    """The numbers of each row `(N, width)`: floats; or integers in units of 2**-50, of which `UNDEFINED` is none."""

    width: int

    uses_target = False
    invalid = ("rows have numbers that are not defined: of values that are NaN, infinite or too large",)

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return (SumShape(self.width),)

    def check(self, layout: BatchLayout) -> None:
        if layout.preds.tail != (self.width,):
            do = "Give each batch the same number of channels or scores"
            raise ShapeError(describe("rows", f"shape {shown(layout.preds.tail)}", f"(N, {self.width})", do))

    def __call__(self, batch: Batch) -> RowValues:
        fine = (batch.preds != UNDEFINED).all(1)  # of floats, all are
        return RowValues(batch.preds, counted=fine, invalid=[~fine])


@dataclass(frozen=True, kw_only=True)
class ColumnSums(Metric):
    """The mean, or the sum, of each column of numbers that rows give; float64 of shape `(width,)`.

    Args:
        width: how many columns there are.
        reduction: "mean" or "sum".
        fixed: whether the numbers are integers in units of 2**-50.
    """

    inputs = "vectors"

    width: int = 1
    reduction: Literal["mean", "sum"] = "mean"
    fixed: bool = False

    def tally(self, weighted: bool) -> Tally:
        return RowSums(ColumnTerm(self.width), weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        unit = Fraction(1, 1 << MEAN_BITS) if self.fixed else 1
        values = sums_or_means(counts, self.reduction)
        return result([value if isinstance(value, float) else value * unit for value in values])


def reduced(metric: Metric, reduction: Any, kind: type[OfRows] = OfRows) -> OfRows:
    """The metric, with the argument `reduction` of TorchMetrics.

    Raises:
        ConfigError: the numbers of all samples, in their order, are wanted.
    """
    names: Mapping[Any, Literal["mean", "sum"]] = {"elementwise_mean": "mean", "mean": "mean", "sum": "sum"}
    if reduction not in names:
        raise without_counterpart("reduction", reduction, "'elementwise_mean' or 'sum'")
    return kind(metric=metric, reduction=names[reduction])


def without_counterpart(name: str, value: object, expected: str) -> ConfigError:
    """The error of an argument that assay does not have."""
    return ConfigError(describe(name, repr(value), expected, "Use another value, or keep the metric of TorchMetrics"))


def batch_of(term: RowTerm, batch: Mapping[str, Any]) -> Batch:
    """A batch whose rows a term measures and nothing counts; its metadata are checked."""
    preds, target = batch["preds"].detach(), batch["target"].detach()
    own, true = (TensorLayout(each.dtype, tuple(each.shape[1:])) for each in (preds, target))
    term.check(BatchLayout(own, true, None))
    return Batch(preds, target, None, compiled=can_read(preds) and can_read(target))


class CompatibleFamily(CompatibleMetric):
    """A metric whose `Family` says how assay counts it."""

    family: ClassVar[Family]

    @classmethod
    def _full(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with their defaults."""
        parameters = inspect.signature(cls.original).parameters.values()
        return {each.name: each.default for each in parameters if each.kind is not each.VAR_KEYWORD} | dict(arguments)

    def _construct(self, *args: Any, **kwargs: Any) -> None:
        if self.family.construct is None:
            super()._construct(*args, **kwargs)
        else:
            self.family.construct(self, *args, **kwargs)

    @classmethod
    def _counterpart(cls, arguments: Mapping[str, Any]) -> Metric:
        return cls.family.metric(cls._full(arguments))

    def _meter_of(self, metric: Any) -> Meter:
        self._metric, self._name = metric, VALUE
        self._all = self._full(self._arguments)
        self._format = self.family.batch(self._all)
        return Meter(weighted=self.family.weighted, value=metric)

    def _converted(self, value: Any) -> Any:
        value = squeezed(self.family.value(value, self._all))
        return placed(value, self.family.dtype or self._dtype, self._device)

    def _batch(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if self._left is not None:
            args, kwargs = self.first(*args), dict(zip(kwargs, self.first(*kwargs.values()), strict=True))
        if self.family.check is not None:
            self.family.check(self, *args, **kwargs)
        if self.family.run is None:
            batch = self._format(*args, **kwargs)
        else:
            with torch.no_grad():
                batch = self.family.run(self, *args, **kwargs)
        given = next((each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)), None)
        if given is not None:
            self.__dict__.update(_device=given.device)  # setattr of a module is slow
        if self.family.by_shape:
            self._follow(self._of_size(self.family.size(batch["preds"], self._all)))
        return batch

    def takes(self) -> Hashable:
        return super().takes() if self.family.run is None else id(self)

    def _value(self, value: Any) -> Any:
        """Without any sample, too: the class of TorchMetrics would make another network."""
        return super()._value(value) if self.family.run is None else self._converted(value)

    def _differentiable_value(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if self.family.run is None:
            return super()._differentiable_value(args, kwargs)
        if not (require_gradient((*args, *kwargs.values())) and has_gradient(self.original)):
            return None
        args, kwargs = self.first(*args), dict(zip(kwargs, self.first(*kwargs.values()), strict=True))
        rows = self.family.run(self, *args, **kwargs)["preds"]
        value = rows.sum(0) if self._metric.reduction == "sum" else rows.mean(0)
        return squeezed(self.family.value(value, self._all))

    def _dtype_of(self, data: Sequence[Any]) -> torch.dtype:
        preds = next((each for each in data if isinstance(each, Tensor)), None)
        return preds.dtype if preds is not None and preds.is_floating_point() else torch.get_default_dtype()

    def value_of(self, *args: Any) -> Any:
        """The value of a batch alone, or of each of its samples, in the dtype of the batch; nothing is counted."""
        if self.family.rows is None:
            return super().value_of(*args)
        self.__dict__["_dtype"] = self._dtype_of(args)  # setattr of a module is slow
        batch = self._batch(*args)
        value = self.family.rows(self._metric, self._all, batch, args)
        return None if value is None else placed(value, self._dtype, self._device)


class CompatibleEqualErrorRate(CompatibleMetric):
    """The rate where false positives and false negatives are nearest, on the curve that assay counts."""

    def _converted(self, value: Any) -> Any:
        fpr, tpr, _ = super()._converted(value)
        return _eer_compute(fpr, tpr)


def entry_of(name: str, family: Family) -> Counterpart:
    """What stands for a class in the place of a row of the table of `migrate`."""
    return Counterpart(name, "", family.assay, {}, {}, {}, "", "", (), (), 2, bool(family.by_shape))
