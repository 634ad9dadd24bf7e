"""Transformers: `compute_metrics` of its Trainer from a meter, at the end or batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.meter import Meter
from assay.metrics.base import Metric
from assay.metrics.parsing import as_metrics

Transform = Callable[[Any, Any], "tuple[Any, ...] | Mapping[str, Any]"]

_ARGUMENTS = ("preds", "target", "weights")


class ComputeMetrics:
    """What a Trainer calls with predictions and labels; made by `compute_metrics`.

    Attributes:
        meter: what was counted of the evaluation that is under way.
    """

    def __init__(self, meter: Meter, transform: Transform | None = None, texts: Any = None) -> None:
        self.meter, self._transform, self._texts = meter, transform, texts
        self._is_first = True  # batch of an evaluation

    def __call__(self, prediction: Any, compute_result: bool = True) -> dict[str, Any]:
        """Count predictions, and give the values where this was the last batch.

        Args:
            prediction: an `EvalPrediction`, of arrays or tensors, or the pair of predictions and labels.
            compute_result: whether no batch follows.
        """
        try:
            pair = prediction if isinstance(prediction, tuple) else (prediction.predictions, prediction.label_ids)
            parts = (self._transform or _firsts)(*pair)
            arguments = parts if isinstance(parts, Mapping) else _by_name(parts)
            if self._is_first and self._texts is not None and (classes := _class_count(arguments)):
                self.meter = Meter(**as_metrics(self._texts, {}, {"num_classes": classes}))
            self._is_first = compute_result
            self.meter.update(**(arguments if self.meter.takes_raw else _tensors(arguments)))
            values = _flat(self.meter.compute()) if compute_result else {}
        except Exception:
            self.meter.reset()  # this evaluation ends here, and the next one starts with nothing
            self._is_first = True
            raise
        if compute_result:
            self.meter.reset()
        return values


def _firsts(preds: Any, labels: Any) -> tuple[Any, Any]:
    """The first part of each: logits come first where a model gives more than them."""
    first, second = (part[0] if isinstance(part, tuple | list) else part for part in (preds, labels))
    return first, second


def _class_count(arguments: Mapping[str, Any]) -> int:
    """How many classes there are: the scores of a sample, where its target is one number; else 0."""
    preds, target = (tuple(getattr(arguments.get(name), "shape", ())) for name in ("preds", "target"))
    return int(preds[1]) if len(preds) == 2 and len(target) == 1 and preds[1] > 1 else 0


def _by_name(parts: tuple[Any, ...]) -> dict[str, Any]:
    if len(parts) > len(_ARGUMENTS):
        do = "Return a dictionary with the arguments of Meter.update"
        raise ConfigError(describe("transform", f"{len(parts)} parts", f"up to {len(_ARGUMENTS)}", do))
    return dict(zip(_ARGUMENTS, parts, strict=False))


def _tensors(arguments: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: torch.as_tensor(part) for name, part in arguments.items() if part is not None}


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers and lists of them under plain names, as the Trainer logs them."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Tensor):
            flat[name] = value.tolist()
        else:
            named = dict(value) if isinstance(value, Mapping) else dict(enumerate(value))
            parts = value._asdict() if hasattr(value, "_asdict") else named
            flat |= _flat({f"{name}_{part}": each for part, each in parts.items()})
    return flat


def compute_metrics(
    metrics: str | Metric | Meter | Mapping[str, Metric | str],
    transform: Transform | None = None,
    *,
    num_classes: int | None = None,
) -> ComputeMetrics:
    """Metrics of assay for a `transformers.Trainer`.

    Give it as `Trainer(compute_metrics=...)`. With `batch_eval_metrics=True` in its arguments it counts batch by batch
    on their device, and no predictions are kept; without, it is given all of them as arrays at the end. The values are
    the same. The Trainer gathers predictions from all processes itself, and leaves repeated samples out.

    Args:
        metrics: metrics by name, as text ("accuracy,f1:average=macro"), one metric, or a meter, which is copied
            empty. Labels of -100, with which the Trainer pads, are left out by metrics with `ignore_index=-100`.
        transform: how predictions and labels become `(preds, target)`, `(preds, target, weights)`, or the arguments of
            `Meter.update` by name (lists of strings for metrics of text); the first part of each by default.
        num_classes: the number of classes of metrics that are written as text; by default that of the scores, where
            predictions are `(N, C)` and labels `(N,)`.

    Raises:
        ConfigError: it is nothing of these.

    Example:
        >>> import numpy as np
        >>> from types import SimpleNamespace
        >>> compute = compute_metrics("accuracy,f1:average=macro")
        >>> compute(SimpleNamespace(predictions=np.eye(3), label_ids=np.array([0, 1, 1])))
        {'accuracy': 0.6666666666666666, 'f1': 0.5555555555555556}
    """
    if isinstance(metrics, Metric):
        metrics = {type(metrics).__name__: metrics}
    opened: Any = as_metrics(metrics, {} if num_classes is None else {"num_classes": num_classes})
    if isinstance(opened, Meter):
        return ComputeMetrics(opened.fresh(), transform)
    if not isinstance(opened, Mapping):
        got, do = type(opened).__name__, 'Pass {"accuracy": Accuracy(num_classes=3)}'
        raise ConfigError(describe("metrics", got, "metrics by name, or a meter", do))
    return ComputeMetrics(Meter(**opened), transform, metrics if num_classes is None else None)
