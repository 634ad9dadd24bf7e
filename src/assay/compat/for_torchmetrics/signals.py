"""Metrics of audio as TorchMetrics defines them: signals in any number of dimensions, and functions of each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torchmetrics.families import Arguments, Family, batch_of, without_counterpart
from assay.integrations.optional_packages import import_package
from assay.metrics import (
    ComplexScaleInvariantSignalNoiseRatio,
    PermutationInvariantTraining,
    ScaleInvariantSignalDistortionRatio,
    ScaleInvariantSignalNoiseRatio,
    SignalDistortionRatio,
    SignalNoiseRatio,
    SourceAggregatedSignalDistortionRatio,
)
from assay.metrics.base import Metric

_checks: Any = import_package("torchmetrics.utilities.checks", "metrics of its names")

_BY_FUNCTION: Mapping[str, Any] = {
    "complex_scale_invariant_signal_noise_ratio": ComplexScaleInvariantSignalNoiseRatio,
    "scale_invariant_signal_distortion_ratio": ScaleInvariantSignalDistortionRatio,
    "scale_invariant_signal_noise_ratio": ScaleInvariantSignalNoiseRatio,
    "signal_noise_ratio": SignalNoiseRatio,
    "source_aggregated_signal_distortion_ratio": SourceAggregatedSignalDistortionRatio,
}


@dataclass(frozen=True)
class SignalBatch:
    """All signals below each other.

    Args:
        dims: how many dimensions the numbers of one value have.
        complex: whether they are spectra, whose real and imaginary parts may be a dimension.
        lists: a list of signals.
    """

    dims: int = 1
    complex: bool = False
    lists: bool = False

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        if self.complex:
            preds, target = (torch.view_as_real(each) if each.is_complex() else each for each in (preds, target))
            if any(each.ndim < 3 or each.shape[-1] != 2 for each in (preds, target)):
                text = "Predictions and targets are expected to have the shape (..., frequency, time, 2),"
                raise RuntimeError(f"{text} but got {preds.shape} and {target.shape}.")
        _checks._check_same_shape(preds, target)
        if preds.ndim < self.dims:
            text = "The preds and target should have the shape (..., spk, time), but"
            raise RuntimeError(f"{text} {preds.shape} found")
        preds, target = (each.reshape(-1, *each.shape[each.ndim - self.dims :]) for each in (preds, target))
        return {"preds": list(preds) if self.lists else preds, "target": list(target) if self.lists else target}

    def before(self, preds: Tensor) -> torch.Size:
        """The shape of the values."""
        shape = torch.view_as_real(preds).shape if preds.is_complex() else preds.shape
        return shape[: len(shape) - self.dims]


def _of_signals(metric: Any, arguments: Arguments, batch: Mapping[str, Any], given: Sequence[Any]) -> Tensor:
    """The ratio of each signal; NaN where it has none."""
    found, dims = batch_of(metric.term, batch), {"sources": 2, "spectra": 3}.get(metric.inputs, 1)
    values, _ = metric.term.measure(found.preds, found.needed_target, found.compiled)
    return values.view(SignalBatch(dims).before(given[0]))  # type: ignore[no-any-return]


def _of_lists(metric: Any, arguments: Arguments, batch: Mapping[str, Any], given: Sequence[Any]) -> Tensor:
    metric.encoder.check(batch["preds"], batch["target"])
    rows: Tensor = metric.encoder.rows(batch["preds"], batch["target"])
    return rows.view(given[0].shape[:-1])


def _distortion(arguments: Arguments) -> Metric:
    if arguments["use_cg_iter"] is not None:
        raise without_counterpart("use_cg_iter", arguments["use_cg_iter"], "None")
    names = ("filter_length", "zero_mean", "load_diag")
    return SignalDistortionRatio(**{name: arguments[name] for name in names})


def _permuted(arguments: Arguments) -> Metric:
    function = arguments["metric_func"]
    home, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    known = home.removeprefix("assay.compat.").startswith("torchmetrics.functional.audio") and name in _BY_FUNCTION
    if not known:
        raise without_counterpart("metric_func", name or function, f"one of {', '.join(_BY_FUNCTION)}")
    own = ("metric_func", "mode", "eval_func", "dist_sync_on_step", "process_group", "dist_sync_fn")
    options = {each: value for each, value in arguments.items() if each not in own}
    try:
        metric = _BY_FUNCTION[name](**options)
    except TypeError as error:
        raise without_counterpart("metric_func", options, f"the options of {name}") from error
    return PermutationInvariantTraining(metric=metric, mode=arguments["mode"], eval_func=arguments["eval_func"])


def _with_sources(preds: Tensor, target: Tensor) -> dict[str, Any]:
    if preds.shape[:2] != target.shape[:2]:
        text = "Predictions and targets are expected to have the same shape at the batch and speaker dimensions"
        raise RuntimeError(text)
    return {"preds": preds, "target": target}


def _ratio(kind: Any, batch: SignalBatch, *names: str) -> Family:
    """The family of a ratio with some of the arguments of TorchMetrics."""
    return Family(
        kind.__name__,
        lambda all: kind(**{name: all[name] for name in names}),
        lambda all: batch,
        rows=_of_signals,
    )


OF_SIGNALS: Mapping[str, Family] = {
    "ComplexScaleInvariantSignalNoiseRatio": _ratio(
        ComplexScaleInvariantSignalNoiseRatio, SignalBatch(3, complex=True), "zero_mean"
    ),
    "PermutationInvariantTraining": Family("PermutationInvariantTraining", _permuted, lambda all: _with_sources),
    "ScaleInvariantSignalDistortionRatio": _ratio(ScaleInvariantSignalDistortionRatio, SignalBatch(), "zero_mean"),
    "ScaleInvariantSignalNoiseRatio": _ratio(ScaleInvariantSignalNoiseRatio, SignalBatch()),
    "SignalDistortionRatio": Family(
        "SignalDistortionRatio", _distortion, lambda all: SignalBatch(lists=True), rows=_of_lists
    ),
    "SignalNoiseRatio": _ratio(SignalNoiseRatio, SignalBatch(), "zero_mean"),
    "SourceAggregatedSignalDistortionRatio": _ratio(
        SourceAggregatedSignalDistortionRatio, SignalBatch(2), "scale_invariant", "zero_mean"
    ),
}
