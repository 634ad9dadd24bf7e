"""The likely cause of a difference, in one sentence: rules over what was seen, the first that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from assay.evaluation.model.every_module import every_module
from assay.evaluation.model.operator_trace import FirstDifference, OperatorTrace
from assay.evaluation.model.output_gap import MOST_ULPS, OutputGap, spacing
from assay.stability.model_state import out_of_reach

_OVER_THE_BATCH = (
    *("mean", "sum", "var", "std", "amax", "amin", "max", "min", "median", "norm", "linalg_vector_norm", "prod"),
    *("_softmax", "_log_softmax", "logsumexp", "cumsum", "cumprod", "cummax", "topk", "sort", "argsort", "kthvalue"),
    *("var_mean", "std_mean", "logcumsumexp", "flip", "roll"),
)
_DROPOUT = ("native_dropout", "bernoulli", "feature_dropout", "alpha_dropout")


@dataclass(frozen=True)
class Observed:
    """What was seen of one difference.

    Attributes:
        check: what was changed: ``"repeat"``, ``"batch size"``, ...
        gap: how far the outputs are apart; None where the model raised an error.
        place: the first operator that differs, where one was found.
        state: what of the model changed in a call.
        drawn: the global generators from which a call drew.
        model: the model, in the mode in which it ran.
        error: what it raised; empty where it did not.
    """

    check: str
    gap: OutputGap | None
    place: FirstDifference | None
    state: tuple[str, ...]
    drawn: tuple[str, ...]
    model: Any
    error: str = ""


def cause_of(seen: Observed) -> str:
    """The likely cause."""
    return next(cause for rule in _RULES if (cause := rule(seen)))


def batch_norms(model: Any) -> list[str]:
    """The names of the batch norms that normalize by the batch: in training mode, or without running statistics."""
    modules = every_module(model).items()
    return [
        name for name, each in modules if isinstance(each, _BatchNorm) and (each.training or each.running_mean is None)
    ]


def _of_dropout(seen: Observed) -> str:
    place = seen.place
    if place is None or not place.is_random:
        return ""
    module = every_module(seen.model).get(place.module)
    if isinstance(module, _DropoutNd | nn.Dropout):
        return f"dropout is active: {_training(seen.model, place.module)}"
    if place.name.startswith(_DROPOUT):
        return f"dropout is active {_in(place.module)}: pass training=self.training to torch.nn.functional.dropout"
    return ""


def _of_another_order(seen: Observed) -> str:
    if seen.check != "repeat" or seen.gap is None or not 0 < seen.gap.ulps <= MOST_ULPS:
        return ""
    where = "" if seen.place is None or not seen.place.is_random else f" ({seen.place.name} draws it)"
    return f"numbers are added in another order from call to call, as atomics or a shuffle do{where}"


def _of_random_numbers(seen: Observed) -> str:
    if seen.check != "repeat":
        return ""
    if seen.place is not None and seen.place.is_random:
        return f"random numbers without a seed: {seen.place.name} {_in(seen.place.module)}"
    others = [each for each in seen.drawn if each != "torch" or seen.place is None]
    return f"random numbers without a seed: {others[0]}" if others else ""


def _of_batch_norm(seen: Observed) -> str:
    found = batch_norms(seen.model)
    if not found or seen.check not in _OF_BATCHES:
        return ""
    place = seen.place
    if place is not None and place.module not in found:
        return ""
    name = found[0] if place is None else place.module
    module = every_module(seen.model)[name]
    if not module.training:
        return f"the batch norm {name!r} normalizes by the batch: it has no running statistics"
    return f"the batch norm {name!r} normalizes by the batch: {_training(seen.model, name)}"


def _of_state(seen: Observed) -> str:
    state = [each for each in seen.state if "num_batches_tracked" not in each]
    if seen.check == "padding" or not state:
        return ""
    if state[0].startswith("cache"):
        return f"the {state[0]} keeps results of earlier calls"
    return f"state is carried from call to call: {state[0]}"


def _of_padding(seen: Observed) -> str:
    return "padding leaks: what stands in positions that the mask excludes changes outputs" * (seen.check == "padding")


def _of_dtype(seen: Observed) -> str:
    if seen.place is None or seen.place.kind != "dtype":
        return ""
    return f"the dtype depends on the data: {seen.place.name} {_in(seen.place.module)} computes in another one"


def _of_the_batch(seen: Observed) -> str:
    place = seen.place
    if place is None or seen.check not in _OF_BATCHES or place.name.rstrip("_") not in _OVER_THE_BATCH:
        return ""
    return f"{place.name} {_in(place.module)} works over the samples of a batch"


def _of_a_branch(seen: Observed) -> str:
    if seen.place is None or seen.place.kind != "operators":
        return ""
    return f"other operators run {_in(seen.place.module)}: a branch depends on the batch"


def _of_something_else(seen: Observed) -> str:
    if seen.check == "repeat":
        return "outputs depend on something outside of the model, such as the time, an id or a hash"
    if seen.check == "order":
        return "outputs depend on the place in the batch"
    if seen.check == "neighbours":
        return "outputs depend on the other samples of the batch"
    return f"outputs depend on the {seen.check}"


def _of_an_error(seen: Observed) -> str:
    norm = _of_batch_norm(seen)
    return f"raises {seen.error}" + (f"; {norm}" if norm else "") if seen.error else ""


_OF_BATCHES = ("batch size", "order", "neighbours")
_RULES: tuple[Callable[[Observed], str], ...] = (
    _of_an_error,
    _of_another_order,
    _of_dropout,
    _of_random_numbers,
    _of_padding,
    _of_batch_norm,
    _of_state,
    _of_dtype,
    _of_the_batch,
    _of_a_branch,
    _of_something_else,
)


def _in(module: str) -> str:
    return f"in {module!r}" if module else "in the model's own forward"


def _training(model: Any, name: str) -> str:
    if name in out_of_reach(model):
        return f"eval() does not reach {name!r}, which a plain list or dictionary holds (use nn.ModuleList)"
    return f"{name!r} is in training mode (call eval())"


def coarse_operator(trace: OperatorTrace, dtype: torch.dtype) -> FirstDifference | None:
    """The first operator whose result has fewer bits than the dtype of the model."""
    for each in trace.operators:
        if each.dtype.is_floating_point and spacing(each.dtype) > spacing(dtype):
            return FirstDifference(each.name, each.module, "dtype")
    return None
