"""Applying a plan: all layers are made beside the model, then they take their places; or the model is as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from assay.errors import AssayError, ConfigError, StateError, describe
from assay.quantize.files.progress import Bar
from assay.quantize.integers import Integers
from assay.quantize.layers import QuantizedEmbedding, QuantizedLinear, QuantizedWeight
from assay.quantize.planning.candidates import Candidate, Place, candidates
from assay.quantize.planning.plan import LayerPlan
from assay.quantize.rounding import Calibration, gptq, quantize_weight
from assay.quantize.scheme import Scheme

if TYPE_CHECKING:
    from assay.quantize.planning.plan import Plan

# What hangs on a module and not on its class. The dictionaries themselves move, so that handles still remove hooks.
HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_is_full_backward_hook",
)


GPTQ = "gptq"
WITHOUT_INPUTS = "search"  # the method of embeddings, and of what is no torch.nn.Linear, where the others have GPTQ


def apply(plan: Plan, model: nn.Module, calibration: Calibration | None = None) -> nn.Module:
    """Do what the plan says; see :meth:`Plan.apply`."""
    _check_calibration(plan.method, calibration)
    taken = _taken(plan, model)
    rounded = _rounding(plan.method, calibration)
    made: dict[Candidate, nn.Module] = {}
    weights: dict[str, QuantizedWeight] = {}
    with Bar(sum(layer.bytes_before for _, layer in taken)) as bar, torch.no_grad():
        for candidate, layer in taken:
            bar.step("Quantizing", layer.name)
            made[candidate] = _layer(candidate, _weight(candidate, layer, rounded, weights))
            bar.step("Quantizing", layer.name, layer.bytes_before)
    _replace([(place, layer) for candidate, layer in made.items() for place in candidate.places])
    return model


def _taken(plan: Plan, model: nn.Module) -> list[tuple[Candidate, LayerPlan]]:
    """The layers that become integers, with what was planned, if this is the model that was planned."""
    found, _ = candidates(model)
    for planned, here in zip(map(_told, plan.layers), map(_told, found), strict=False):
        if planned != here:
            got = f"{here} where the plan has {planned}"
            raise StateError(describe("model", got, "the model that was planned", _AGAIN))
    if len(found) != len(plan.layers):
        got = f"{len(found)} layers where the plan has {len(plan.layers)}"
        raise StateError(describe("model", got, "the model that was planned", _AGAIN))
    taken = [(each, layer) for each, layer in zip(found, plan.layers, strict=True) if layer.scheme is not None]
    for each, _ in taken:
        if each.why_not:
            raise StateError(describe(each.name, each.why_not, "what it was when it was planned", _AGAIN))
        if each.weight().is_meta:
            do = "Load the weights, then apply the plan"
            raise StateError(describe(each.name, "a weight on the meta device", "one that has values", do))
    return taken


_AGAIN = "Plan again"


def _told(each: LayerPlan | Candidate) -> str:
    """What a plan and a model must have in common, layer by layer."""
    tied = f", tied to {' and '.join(each.tied)}" if each.tied else ""
    return f"{each.name}, {each.kind}, {each.dtype} of shape {each.shape}{tied}"


def _check_calibration(method: str, calibration: Calibration | None) -> None:
    if method == GPTQ and calibration is None:
        do = "Run the model on data inside assay.quantize.rounding.Calibration(model), and pass that"
        raise ConfigError(describe("calibration", "none", f"data for the method {GPTQ}", do))
    if method != GPTQ and calibration is not None:
        do = f'Plan with method="{GPTQ}", or leave the data out'
        raise ConfigError(describe("calibration", "data", f"none for the method {method}", do))


def _rounding(method: str, calibration: Calibration | None) -> Callable[[Candidate, Scheme], Integers]:
    """How the weight of a layer becomes integers."""

    def rounded(candidate: Candidate, scheme: Scheme) -> Integers:
        if calibration is not None and isinstance(candidate.module, nn.Linear):
            return gptq(candidate.weight(), calibration.hessian(candidate.name), scheme)
        return quantize_weight(candidate.weight(), scheme, WITHOUT_INPUTS if method == GPTQ else method)

    return rounded


def _weight(
    candidate: Candidate,
    layer: LayerPlan,
    rounded: Callable[[Candidate, Scheme], Integers],
    weights: dict[str, QuantizedWeight],
) -> QuantizedWeight:
    """The integers of a layer; those of another one that shares its weight, where it was made before."""
    for name in candidate.tied:
        if name in weights:
            return weights[name]
    assert layer.scheme is not None
    try:
        integers = rounded(candidate, layer.scheme)
    except AssayError as error:
        raise type(error)(f"{candidate.name}: {error}") from error
    weights[candidate.name] = QuantizedWeight(integers, candidate.weight().dtype)
    return weights[candidate.name]


def _layer(candidate: Candidate, weight: QuantizedWeight) -> nn.Module:
    old = candidate.module
    new: nn.Module
    if candidate.kind == "embedding":
        new = QuantizedEmbedding(weight, old.padding_idx)  # type: ignore[arg-type]
    else:
        new = QuantizedLinear(weight, old.bias)  # type: ignore[arg-type]
    new.training = old.training
    new.__dict__.update({name: old.__dict__[name] for name in HOOKS if name in old.__dict__})
    return new


def _replace(new: Sequence[tuple[Place, nn.Module]]) -> None:
    """Put the layers in their places; if that is interrupted, the old ones go back."""
    old = [(place, place.parent._modules[place.attribute]) for place, _ in new]
    try:
        for place, layer in new:
            place.parent._modules[place.attribute] = layer
    except BaseException:
        for place, layer in old:  # type: ignore[assignment]
            place.parent._modules[place.attribute] = layer
        raise
