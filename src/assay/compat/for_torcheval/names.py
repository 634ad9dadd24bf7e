"""Classes and functions in the place of those of TorchEval, by their names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torcheval.labels import OF_LABELS
from assay.compat.for_torcheval.metric import CompatibleTorchEval
from assay.compat.for_torcheval.scores import OF_SCORES
from assay.compat.for_torcheval.values import OF_VALUES
from assay.compat.for_torcheval.windows import WINDOWED, WindowedSamples, WindowedUpdates
from assay.compat.modules import SignatureOfOwner
from assay.integrations.optional_packages import import_package

_metrics: Any = import_package("torcheval.metrics", "metrics of its names")

_COUNTED: Mapping[str, type[CompatibleTorchEval]] = {
    **OF_LABELS,
    **OF_SCORES,
    **OF_VALUES,
    **{name: WindowedSamples if name == "WindowedBinaryAUROC" else WindowedUpdates for name in WINDOWED},
}
"""The class that counts each metric."""

_FUNCTIONS = {name.lower(): name for name in _COUNTED if not name.startswith("Windowed")}
"""The class that measures what a function does, by the name of the function without `_`."""

_DTYPE_OF_INPUT = ("mean", "sum", "mean_squared_error", "r2_score", "weighted_calibration", "peak_signal_noise_ratio")
_DTYPES = {"click_through_rate": torch.float32, "bleu_score": torch.float32, "word_error_rate": torch.float64}


@functools.cache
def compatible_class(original: Any) -> type[CompatibleTorchEval]:
    """The class in the place of one of TorchEval that assay counts."""
    name = original.__name__
    body: dict[str, Any] = {"__doc__": original.__doc__, "__module__": "assay.compat.torcheval.metrics"}
    body |= {"original": original, "__signature__": SignatureOfOwner(inspect.signature(original))}
    if name in WINDOWED:
        body["inner"] = compatible_class(getattr(_metrics, WINDOWED[name]))
    return type(name, (_COUNTED[name], original), body)


@functools.cache
def compatible_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function in the place of one of TorchEval that assay counts."""
    signature = inspect.signature(original)
    kind = compatible_class(getattr(_metrics, _FUNCTIONS[original.__name__.replace("_", "")]))
    settings, data = inspect.signature(kind).parameters, inspect.signature(kind.original.update).parameters

    @functools.wraps(original)
    def value(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if "weights" in given and given["weights"] is None:
            given = {name: each for name, each in given.items() if name != "weights"}
        taken = {name: each for name, each in given.items() if name in settings and name not in ("input", "target")}
        size = next((name for name in ("num_classes", "num_labels") if name in taken), None)
        if size and taken[size] is None and getattr(given["input"], "ndim", 0) == 2:
            taken[size] = given["input"].shape[1]
        batch = {name: each for name, each in given.items() if name in data and name not in taken}
        return _as_function(original.__name__, kind(**taken).update(**batch), given)

    value.__module__ = f"assay.compat.{original.__module__}"
    return value


def _as_function(name: str, metric: Any, given: Mapping[str, Any]) -> Any:
    """The value of a metric of one batch as a function of TorchEval gives it."""
    value, input = metric.compute(), given["input"]
    if name.endswith("confusion_matrix") and given["normalize"] in (None, "none"):
        return value.long()
    if name in _DTYPES:
        value = value.to(_DTYPES[name])
    if isinstance(input, Tensor):
        value = value.to(input.device) if isinstance(value, Tensor) else value
        if name in _DTYPE_OF_INPUT:
            value = value.to(input.dtype if input.is_floating_point() else torch.float32)
        if "num_tasks" in given and input.ndim == 1 and isinstance(value, Tensor) and value.shape == (1,):
            value = value[0]
        if "binned_auprc" in name:
            return value, metric.threshold
    return value


def is_counted(original: Any) -> bool:
    """Whether assay counts a class or function of TorchEval."""
    name = getattr(original, "__name__", "")
    return name in _COUNTED if isinstance(original, type) else name.replace("_", "") in _FUNCTIONS
