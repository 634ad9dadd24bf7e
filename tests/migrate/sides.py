"""Both sides of a difference, run: what a library gives for data, and what assay reads."""

from __future__ import annotations

import importlib
import math
import warnings
from typing import Any

import torch

import assay.metrics

MODULES = {
    "torchmetrics": (
        *("torchmetrics.segmentation", "torchmetrics.text", "torchmetrics.clustering", "torchmetrics.nominal"),
        *("torchmetrics", "torchmetrics.classification"),
    ),
    "ignite": ("ignite.metrics.regression", "ignite.metrics"),
    "torcheval": ("torcheval.metrics",),
}


def their_names(library: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in MODULES[library]:
        found |= vars(importlib.import_module(module))
    if library == "torchmetrics":
        found["DiceScore"] = importlib.import_module("torchmetrics.segmentation").DiceScore
    return found


def batch_of(data: str) -> tuple[Any, ...]:
    if not data:
        return ()
    names: dict[str, Any] = {"tensor": torch.tensor, "nan": math.nan}
    exec(data, names)
    return tuple(each for each in (names["preds"], names["target"]) if each is not None)


def measured(library: str, metric: Any, batch: tuple[Any, ...]) -> Any:
    """What a metric of a library gives for one batch."""
    if batch:
        metric.update(*([batch] if library == "ignite" else batch))
    return metric.compute()


def shown(value: Any) -> str:
    """A value with four digits behind the point."""
    if isinstance(value, torch.Tensor):
        return shown(value.tolist())
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(shown, value))}]"
    return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1e4 or math.isnan(value) else f"{value:.4g}"


def their_value(library: str, code: str, data: str) -> str:
    return _value(lambda: measured(library, eval(code, their_names(library)), batch_of(data)))


def our_value(code: str, data: str) -> str:
    from assay import Meter

    names = {name: getattr(assay.metrics, name) for name in assay.metrics.__all__}
    metric = eval(code, names)
    return _value(lambda: metric(*batch_of(data)) if data else Meter(value=metric).compute()["value"])


def _value(run: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(run())
        except Exception as error:
            return type(error).__name__
