"""`sweep`: a model in several schemes, as points of size and loss of quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from assay.errors import ConfigError, describe
from assay.quantize.analysis.divergence import LOSS_AFTER, LOSS_BEFORE
from assay.quantize.analysis.layer_swaps import TrialLayer, compare_layers, layers
from assay.quantize.analysis.output_comparison import DataSpec, OutputComparison
from assay.quantize.analysis.output_report import distance_name, headline
from assay.quantize.analysis.speed import nbytes
from assay.quantize.planning.recipe import RecipeLike
from assay.quantize.rounding.gptq import Calibration
from assay.report import Point, Points, Report, Section, Table

SCHEMES: Mapping[str, RecipeLike] = {
    "int8": "int8",
    "int6": "int6, int6:g64, int6:g32",
    "int5": "int5, int5:g64, int5:g32",
    "int4:g32": "int4:g32",
    "int4": "int4, int4:g64, int4:g32",
    "int3:g32": "int3:g32",
    "int3": "int3, int3:g64, int3:g32",
}
"""Schemes by name, with smaller groups where a layer's width asks for them."""


@dataclass(frozen=True)
class SweepPoint:
    """A model in one scheme.

    Attributes:
        name: the scheme, or the name of a recipe.
        bits: that a weight takes, scales and zeros included, over the layers that any of the schemes quantizes.
        layers: how many layers it quantizes; the others stay as they are.
        nbytes: what the whole model takes.
        distance: the mean KL divergence of the outputs, or the relative squared error of numbers.
        lower: the lower end of its interval; None where there is none.
        upper: the upper end.
        agreement: the share of predictions with the same first choice; None for numbers.
        loss_change: how much the mean loss grew; None without targets.
    """

    name: str
    bits: float
    layers: int
    nbytes: int
    distance: float
    lower: float | None
    upper: float | None
    agreement: float | None
    loss_change: float | None


@dataclass(frozen=True)
class Sweep:
    """A model in several schemes.

    Attributes:
        points: the smallest first.
        report: the same, to be shown and kept, with the picture.
    """

    points: tuple[SweepPoint, ...]
    report: Report


def sweep(
    model: nn.Module,
    data: Any,
    schemes: Sequence[str] | Mapping[str, RecipeLike] = SCHEMES,
    *,
    method: str = "nearest",
    calibration: Calibration | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    confidence_level: float = 0.95,
    data_spec: DataSpec | None = None,
    title: str = "Sweep",
) -> Sweep:
    """Measure a model in several schemes: what each takes, and how far the outputs move.

    Args:
        model: the model; afterwards as it was.
        data: as for `measure`.
        schemes: schemes, or recipes by name.
        method: how weights are rounded; with calibration, how the scales of a group are chosen.
        calibration: what went into the layers; then linear layers are rounded by GPTQ.
        include: patterns; where there are any, other layers are skipped.
        exclude: patterns of layers that are skipped.
        confidence_level: of the intervals.
        data_spec: how data are read and outputs compared.
        title: of the report.

    Returns:
        The points, and a report that draws them.

    Raises:
        ConfigError: no layer can be quantized so, or the data cannot be read.

    Example:
        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        >>> found = sweep(model, [torch.randn(64, 32)], ["int8", "int2:g32"], data_spec=DataSpec(device="cpu"))
        >>> [point.name for point in found.points], found.points[0].distance > found.points[1].distance
        (['int2:g32', 'int8'], True)
    """
    recipes = named(schemes)
    jobs = {name: layers(model, recipe, method, include, exclude, calibration) for name, recipe in recipes.items()}
    outcomes, loop = compare_layers(model, jobs, data, data_spec or DataSpec(), title)
    whole = nbytes(model)
    every = {layer.name: layer for trials in jobs.values() for layer in trials}
    points = [_point(name, jobs[name], every, outcome, whole, confidence_level) for name, outcome in outcomes.items()]
    points.sort(key=lambda each: (each.nbytes, each.name))
    what = distance_name(next(iter(outcomes.values())))
    sections = _sections(points, what, whole, len(every), loop, title)
    return Sweep(tuple(points), replace(loop, title=title, sections=sections))


def named(schemes: Sequence[str] | Mapping[str, RecipeLike]) -> Mapping[str, RecipeLike]:
    """Schemes by their names, or recipes as they were named.

    Raises:
        ConfigError: there are none.
    """
    if isinstance(schemes, str) or not schemes:
        expected = "a list of schemes, or recipes by name"
        raise ConfigError(describe("schemes", repr(schemes), expected, 'Pass ["int8", "int4"]'))
    return schemes if isinstance(schemes, Mapping) else {str(each): each for each in schemes}


def bits_of(trials: Sequence[TrialLayer], every: Mapping[str, TrialLayer]) -> float:
    """Bits that a weight of all layers by name takes when some of them are quantized, scales and zeros included."""
    names = {each.name for each in trials}
    rest = sum(each.bytes_before for name, each in every.items() if name not in names)
    return 8 * (rest + sum(each.bytes_after for each in trials)) / sum(each.weights for each in every.values())


def bytes_with(trials: Sequence[TrialLayer], whole: int) -> int:
    """Bytes of a model of `whole` bytes with these layers."""
    return whole - sum(each.bytes_before - each.bytes_after for each in trials)


def _point(
    name: str,
    trials: Sequence[TrialLayer],
    every: Mapping[str, TrialLayer],
    outcome: OutputComparison,
    whole: int,
    confidence_level: float,
) -> SweepPoint:
    value = headline(outcome, confidence_level)
    change = None
    if LOSS_BEFORE in outcome.columns:
        change = outcome.mean(LOSS_AFTER) - outcome.mean(LOSS_BEFORE)
    size = bits_of(trials, every), len(trials), bytes_with(trials, whole)
    return SweepPoint(name, *size, value.value, value.lower, value.upper, outcome.agreement, change)


def _sections(
    points: Sequence[SweepPoint], what: str, whole: int, count: int, loop: Report, title: str
) -> tuple[Section, ...]:
    heads = ("scheme", "bits a weight", "layers", "MiB", what, "lower", "upper", "top-1 agreement", "loss change")
    rows = [
        (p.name, p.bits, p.layers, p.nbytes / 2**20, p.distance, p.lower, p.upper, p.agreement, p.loss_change)
        for p in points
    ]
    dots = [Point(each.name, each.bits, each.distance, each.lower, each.upper) for each in points]
    picture = Points("Size and quality", "bits a weight", what, tuple(dots))
    size = f"The model takes {whole / 2**20:,.2f} MiB as it is."
    note = f"{size} Bits are over the {count} layers that any scheme takes; what one skips counts as it is."
    (proof,) = loop.sections
    return (
        Section(title, (), (Table("Schemes", heads, tuple(rows)),), (picture,), note=note),
        Section("How it was measured", (), proof.tables),
    )
