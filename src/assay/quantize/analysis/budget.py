"""`recipe_for_budget`: a scheme for each layer so that a model has a given size and its outputs move least."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from torch import nn

from assay.errors import ConfigError, describe
from assay.quantize.analysis.layer_sensitivity import Sensitivities, Sensitivity, sensitivity
from assay.quantize.analysis.scheme_sweep import SCHEMES as ALL
from assay.quantize.analysis.scheme_sweep import Sweep, named, sweep
from assay.quantize.analysis.speed import nbytes
from assay.quantize.analysis.trials import TrialOptions
from assay.quantize.planning.recipe import SKIP, Recipe, RecipeLike
from assay.report import Report, Section, Table

SCHEMES: Mapping[str, RecipeLike] = {name: ALL[name] for name in ("int3", "int4", "int5", "int6", "int8")}
CHOSEN = "chosen"
_UNITS = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30, "b": 1}


@dataclass(frozen=True)
class Budget:
    """A size that a model shall not exceed.

    Attributes:
        bits: a weight of the layers that can be quantized may take on average; 0 where bytes are given.
        nbytes: the whole model may take; None where bits are given.
    """

    bits: float = 0.0
    nbytes: int | None = None

    @classmethod
    def parse(cls, text: str | float | Budget) -> Budget:
        """Read "4.5bits", "300MB", "2GiB", or a number of bits.

        Raises:
            ConfigError: it is none of these.

        Example:
            >>> Budget.parse("4.5bits"), Budget.parse("2 kB")
            (Budget(bits=4.5, nbytes=None), Budget(bits=0.0, nbytes=2000))
        """
        if isinstance(text, Budget):
            return text
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(bits?|[kmg]?i?b|)\s*", str(text).lower())
        unit = match[2] if match else ""
        if not match or isinstance(text, bool) or float(match[1]) <= 0 or unit not in (*_UNITS, "", "bit", "bits"):
            do = 'Write "4.5bits" or "300MB"'
            raise ConfigError(describe("budget", repr(text), "bits a weight, or bytes of the model", do))
        if unit in _UNITS:
            return cls(nbytes=int(float(match[1]) * _UNITS[unit]))
        return cls(bits=float(match[1]))

    def __str__(self) -> str:
        return f"{self.bits:g} bits a weight" if self.nbytes is None else f"{self.nbytes:,} bytes"


@dataclass(frozen=True)
class BudgetResult:
    """A recipe for a size, and what it does.

    Attributes:
        recipe: a scheme, or none, for each layer by its name.
        bits: that a weight takes on average, scales and zeros included.
        nbytes: that the model takes.
        distance: how far the outputs really move, measured with all layers together.
        expected: how far they would if what single layers do added up.
        sensitivities: what single layers do.
        sweep: the recipe beside each scheme alone.
        report: all of it, to be shown and kept.
    """

    recipe: Recipe
    bits: float
    nbytes: int
    distance: float
    expected: float
    sensitivities: Sensitivities
    sweep: Sweep
    report: Report


def recipe_for_budget(
    model: nn.Module,
    data: Any,
    budget: str | float | Budget,
    *,
    schemes: Sequence[str] | Mapping[str, RecipeLike] = SCHEMES,
    title: str = "Recipe for a size",
    **options: Unpack[TrialOptions],
) -> BudgetResult:
    """Choose a scheme for each layer so that the model has a given size and its outputs move least.

    Each layer is measured alone in each scheme. All begin in the smallest; then the step to a larger one that takes
    away the most KL divergence for each byte is taken, as long as there is room. That single layers add up is an
    assumption; so the choice is measured as a whole, beside each scheme alone.

    Args:
        model: the model; afterwards as it was.
        data: as for `measure`. It is what the choice is fitted to: judge the result on other data.
        budget: "4.5bits" a weight of the layers that can be quantized, or "300MB" for the whole model.
        schemes: what layers may become, schemes or recipes by name; they may also stay as they are.
        title: of the report.
        options: how layers are rounded and outputs compared; see `TrialOptions`.

    Returns:
        The recipe, which `assay.quantize.plan` takes, and what it does.

    Raises:
        ConfigError: the smallest schemes take more, an invalid budget or scheme, or no layer to quantize.

    Source: greedy along the lower convex hull of each layer's options, as Shoham and Gersho, IEEE Transactions on
    Acoustics, Speech, and Signal Processing 36 (1988), 1445-1453, give bits to quantizers.
    """
    limit, recipes = Budget.parse(budget), named(schemes)
    single_layers = sensitivity(model, data, list(recipes.values()), **options)
    order = {name: k for k, (name, _) in enumerate(model.named_modules())}
    by_layer: dict[str, list[Sensitivity]] = {}
    for each in sorted(single_layers.layers, key=lambda each: order[each.layer]):
        by_layer.setdefault(each.layer, []).append(each)
    weights = sum(layer[0].weights for layer in by_layer.values())
    before = sum(layer[0].bytes_before for layer in by_layer.values())
    room = limit.bits * weights / 8 if limit.nbytes is None else limit.nbytes - (nbytes(model) - before)
    if before <= room:
        got, do = f"{limit}, in which the unquantized model fits", "Ask for less; nothing needs to be quantized"
        raise ConfigError(describe("budget", got, "less than it takes now", do))
    choice = choose_options(by_layer, room, limit)
    rows = [
        (layer, SKIP, by_layer[layer][0].bytes_before, 0.0)
        if option is None
        else (layer, option.scheme, option.bytes_after, option.distance)
        for layer, option in choice.items()
    ]
    recipe = Recipe.parse({**{layer: scheme for layer, scheme, _, _ in rows}, "*": SKIP})
    swept = sweep(model, data, {CHOSEN: recipe, **recipes}, **options)
    point = next(each for each in swept.points if each.name == CHOSEN)
    bits, expected = 8 * sum(row[2] for row in rows) / weights, sum(row[3] for row in rows)
    note = (
        f"Asked for: {limit}. Chosen: {bits:.3f} bits a weight. Measured as a whole: {point.distance:.4g}; "
        f"the sum over single layers is {expected:.4g}."
    )
    alone = "alone: how far the outputs move with this layer only."
    table = Table("Recipe", ("layer", "scheme", "bytes", "alone"), tuple(rows), note=alone)
    sections = (Section(title, (), (table,), note=note), *swept.report.sections)
    report = replace(swept.report, title=title, sections=sections)
    return BudgetResult(recipe, bits, point.nbytes, point.distance, expected, single_layers, swept, report)


def choose_options(
    by_layer: Mapping[str, Sequence[Sensitivity]], room: float, budget: object = ""
) -> dict[str, Sensitivity | None]:
    """One option for each layer, together at most `room` bytes; None: it is not quantized.

    Args:
        by_layer: the options of each layer.
        room: how many bytes all of them may take.
        budget: what was asked for, for the message.

    Raises:
        ConfigError: the smallest options take more.
    """
    ladders = {layer: _ladder(options) for layer, options in by_layer.items()}
    at = dict.fromkeys(ladders, 0)
    used = sum(ladder[0][0] for ladder in ladders.values())
    if used > room:
        got = f"{budget or room}, {max(0.0, room):,.0f} bytes for the layers that can be quantized"
        do = "Allow more, or name a smaller scheme in schemes="
        raise ConfigError(describe("budget", got, f"at least {used:,}, with each in its smallest scheme", do))
    steps = sorted(
        (-(ladder[k][1] - ladder[k + 1][1]) / (ladder[k + 1][0] - ladder[k][0]), layer, k)
        for layer, ladder in ladders.items()
        for k in range(len(ladder) - 1)
    )
    for _, layer, k in steps:  # along a convex hull the gain for a byte falls, so a layer's steps come in order
        size = ladders[layer][k + 1][0] - ladders[layer][k][0]
        if at[layer] == k and used + size <= room:
            at[layer], used = k + 1, used + size
    return {layer: ladder[at[layer]][2] for layer, ladder in ladders.items()}


_Rung = tuple[int, float, Sensitivity | None]


def _ladder(options: Sequence[Sensitivity]) -> list[_Rung]:
    """The options of a layer that are worth their bytes: the lower convex hull of bytes and distance."""
    rungs: list[_Rung] = [(each.bytes_after, each.distance, each) for each in options]
    rungs.append((options[0].bytes_before, 0.0, None))
    hull: list[_Rung] = []
    for rung in sorted(rungs, key=lambda each: (each[0], each[1])):
        if hull and rung[1] >= hull[-1][1]:
            continue
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], rung):
            hull.pop()
        hull.append(rung)
    return hull


def _slope(a: _Rung, b: _Rung) -> float:
    """How much distance a byte takes away."""
    return (a[1] - b[1]) / (b[0] - a[0])
