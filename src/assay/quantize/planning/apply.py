"""Applying a plan: all layers are made beside the model, then they take their places; or the model is as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from assay.errors import AssayError, ConfigError, StateError, describe
from assay.progress import ProgressBar
from assay.quantize.candidates import Candidate, candidates
from assay.quantize.files.transformers_registration import mark
from assay.quantize.layers import QuantizedWeight
from assay.quantize.planning.layers import Choice
from assay.quantize.rounding import Calibration, gptq, quantize_weight

if TYPE_CHECKING:
    from assay.quantize.planning.plan import LayerPlan, Plan

GPTQ = "gptq"
WITHOUT_INPUTS = "search"  # the method of embeddings, and of what is no torch.nn.Linear, where the others have GPTQ


def apply(plan: Plan, model: nn.Module, calibration: Calibration | None = None) -> nn.Module:
    """Do what the plan says; see :meth:`Plan.apply`."""
    _check_calibration(plan.method, calibration)
    planned = _planned(plan, model)
    method = WITHOUT_INPUTS if plan.method == GPTQ else plan.method
    layers: dict[Candidate, nn.Module] = {}
    weights: dict[str, QuantizedWeight] = {}
    total = sum(layer.bytes_before for _, layer in planned)
    with ProgressBar("Quantizing", total, unit="bytes") as bar, torch.no_grad():
        for candidate, layer in planned:
            bar.update(text=layer.name)
            weight = next((weights[name] for name in candidate.tied if name in weights), None)
            try:
                weight = weight or quantized_weight(Choice(candidate, layer.scheme), method, calibration)
            except AssayError as error:
                raise type(error)(f"{candidate.name}: {error}") from error
            weights[candidate.name] = weight
            layers[candidate] = candidate.replacement(weight)
            bar.update(advance=layer.bytes_before)
    try:
        for candidate, new in layers.items():
            candidate.install(new)
    except BaseException:  # an interrupt
        for candidate in layers:
            candidate.install(candidate.module)
        raise
    mark(model)
    return model


def _planned(plan: Plan, model: nn.Module) -> list[tuple[Candidate, LayerPlan]]:
    """The layers that become integers, with what was planned, if this is the model that was planned."""
    holders, _ = candidates(model)
    check_planned(plan, holders, "model")
    pairs = [(each, layer) for each, layer in zip(holders, plan.layers, strict=True) if layer.scheme is not None]
    for each, _ in pairs:
        if each.why_not:
            raise StateError(describe(each.name, each.why_not, "what it was when it was planned", _AGAIN))
        if each.weight().is_meta:
            do = "Load the weights, then apply the plan"
            raise StateError(describe(each.name, "a weight on the meta device", "one that has values", do))
    return pairs


_AGAIN = "Plan again"


def check_planned(plan: Plan, holders: Sequence[Candidate], where: str, *, dtypes: bool = True) -> None:
    """Raise a StateError where the layers of a model are not those of a plan, or (``dtypes``) have other dtypes."""

    def identity(each: LayerPlan | Candidate) -> str:
        tied = f", tied to {' and '.join(each.tied)}" if each.tied else ""
        return f"{each.name}, {each.kind}, {each.dtype + ' ' if dtypes else ''}of shape {each.shape}{tied}"

    expected = "the model that was planned"
    for planned, here in zip(map(identity, plan.layers), map(identity, holders), strict=False):
        if planned != here:
            raise StateError(describe(where, f"{here} where the plan has {planned}", expected, _AGAIN))
    if len(holders) != len(plan.layers):
        got = f"{len(holders)} layers where the plan has {len(plan.layers)}"
        raise StateError(describe(where, got, expected, _AGAIN))


def _check_calibration(method: str, calibration: Calibration | None) -> None:
    if method == GPTQ and calibration is None:
        do = "Run the model on data inside assay.quantize.rounding.Calibration(model), and pass that"
        raise ConfigError(describe("calibration", "none", f"data for the method {GPTQ}", do))
    if method != GPTQ and calibration is not None:
        do = f'Plan with method="{GPTQ}", or leave the data out'
        raise ConfigError(describe("calibration", "data", f"none for the method {method}", do))


def quantized_weight(choice: Choice, method: str, calibration: Calibration | None = None) -> QuantizedWeight:
    """The weight of a layer as integers: by GPTQ where its inputs were collected, else by the method alone."""
    layer, scheme, weight = choice.candidate, choice.scheme, choice.candidate.weight()
    assert scheme is not None, layer.name
    if calibration is not None and isinstance(layer.module, nn.Linear):
        integers = gptq(weight, calibration.hessian(layer.name), scheme, method=method)
    else:
        integers = quantize_weight(weight, scheme, method)
    return QuantizedWeight(integers, weight.dtype)
