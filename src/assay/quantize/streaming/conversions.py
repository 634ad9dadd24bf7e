"""What becomes of each tensor of a source: integers by the recipe, or a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from torch import nn

from assay.errors import ConfigError, describe
from assay.quantize.candidates import candidates
from assay.quantize.files.container import TensorEntry
from assay.quantize.files.description import WeightDescription
from assay.quantize.files.meta_models import from_config, meta_model
from assay.quantize.planning.apply import check_planned
from assay.quantize.planning.layers import Choice, choose
from assay.quantize.planning.plan import Plan
from assay.quantize.planning.recipe import Recipe
from assay.quantize.streaming.tensor_source import Stored, TensorSource, from_names

ModelLike: TypeAlias = "nn.Module | Callable[[], nn.Module] | Literal['auto', 'names']"

SCALES = torch.bfloat16  # what torch's kernels in bfloat16 read exactly


@dataclass(frozen=True)
class TensorConversion:
    """One tensor of the source and what is written for it.

    Attributes:
        stored: the tensor.
        entries: what is written.
        weight: the weight that it becomes; None where it is copied.
        transposed: it is stored as ``(in, out)``.
        same_as: another tensor of the source, with which it is shared: nothing is written.
    """

    stored: Stored
    entries: tuple[TensorEntry, ...]
    weight: WeightDescription | None = None
    transposed: bool = False
    same_as: str = ""


@dataclass
class Conversions:
    """All pieces of a source, in its order.

    Attributes:
        pieces: by the name of the tensor.
        skipped: layers that are skipped, and why.
        tied: further names of weights -> the name under which they are stored.
        notes: what a reader should know about how the layers were found.
    """

    pieces: dict[str, TensorConversion]
    skipped: dict[str, str] = field(default_factory=dict)
    tied: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def plan_conversions(
    source: TensorSource, recipe: Recipe | Plan, model: ModelLike, include: Sequence[str], exclude: Sequence[str]
) -> Conversions:
    """Decide what becomes of each tensor.

    Raises:
        ConfigError: nothing can be quantized, a rule takes no layer, or the source lacks a weight of the model.
        StateError: the layers are not those of the plan.
    """
    copies = {name: (stored, TensorEntry(name, stored.dtype, stored.shape)) for name, stored in source.tensors.items()}
    conversions = Conversions({name: TensorConversion(stored, (entry,)) for name, (stored, entry) in copies.items()})
    modules = _modules(source, model, conversions.notes)
    holders, _ = candidates(modules)
    if isinstance(recipe, Plan):
        check_planned(recipe, holders, str(source.path), dtypes=False)
        recipe = recipe.recipe
    for choice in choose(holders, recipe, include, exclude):
        _place(choice, source, conversions)
    known = modules.state_dict(keep_vars=True)
    if strangers := [name for name in source.tensors if name not in known]:
        some = ", ".join(strangers[:3]) + (", …" if len(strangers) > 3 else "")
        conversions.notes.append(f"tensors that are not in the model were copied, {len(strangers)} of them: {some}")
    return conversions


def _modules(source: TensorSource, model: ModelLike, notes: list[str]) -> nn.Module:
    """The modules whose layers the recipe speaks of."""
    if isinstance(model, nn.Module):
        return model
    if callable(model):
        return meta_model(model)
    if model not in ("auto", "names"):
        expected = 'a module, a factory, "auto" or "names"'
        raise ConfigError(describe("model", repr(model), expected, "Pass one of them"))
    configured = from_config(source.folder) if model == "auto" and source.config and source.folder else None
    if configured is not None:
        return configured
    notes.append("linear layers and embeddings were recognized by their names and shapes")
    return from_names(source.tensors.values())


def _place(choice: Choice, source: TensorSource, conversions: Conversions) -> None:
    """Enter the choice for one layer under the tensor that holds its weight."""
    each = choice.candidate
    # Ties also name parameters that are no weight of a layer.
    names = [name if name in source.tensors else f"{name}.weight" for name in (each.name, *each.tied)]
    there = [name for name in names if name in source.tensors]
    if choice.scheme is None:
        conversions.skipped[each.name] = choice.why
    elif not there:
        do = "Name the folder that belongs to the model, or pass model='names'"
        raise ConfigError(describe(str(source.path), f"no {names[0]}", "every weight of the model", do))
    if not there:
        return
    first = min(there, key=list(source.tensors).index)
    conversions.tied |= {name: first for name in names if name != first}
    stored = source.tensors[first]
    shape = (stored.shape[1], stored.shape[0]) if each.transposed else stored.shape
    if shape != each.shape:
        do = "Name the folder that belongs to the model"
        raise ConfigError(describe(str(source.path), f"{first} of shape {shape}", f"shape {each.shape}", do))
    if choice.scheme is None:
        return
    weight = WeightDescription(each.kind, choice.scheme, each.shape, stored.dtype)
    entries = tuple(weight.entries(first, SCALES))
    conversions.pieces[first] = TensorConversion(stored, entries, weight, each.transposed)
    for other in there:
        if other != first:
            conversions.pieces[other] = TensorConversion(source.tensors[other], (), same_as=first)
