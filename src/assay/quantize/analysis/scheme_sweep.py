"""`sweep`: a model in several schemes, as points of size and loss of quality."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from torch import nn

from assay.errors import ConfigError, describe
from assay.quantize.analysis.divergence import LOSS_AFTER, LOSS_BEFORE
from assay.quantize.analysis.output_report import distance_name
from assay.quantize.analysis.speed import nbytes
from assay.quantize.analysis.trials import TrialOptions, Trials, trial_report
from assay.quantize.planning.recipe import RecipeLike
from assay.report import Point, Points, Report, Table

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
        lower: the lower end of its interval, or None.
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
    title: str = "Sweep",
    **options: Unpack[TrialOptions],
) -> Sweep:
    """Measure a model in several schemes: what each takes, and how far the outputs move.

    Args:
        model: the model; afterwards as it was.
        data: as for `measure`.
        schemes: schemes, or recipes by name.
        title: of the report.
        options: how layers are rounded and outputs compared; see `TrialOptions`.

    Returns:
        The points, and a report that draws them.

    Raises:
        ConfigError: no layer fits a scheme, or the data cannot be read.

    Example:
        >>> import torch
        >>> from assay.quantize.analysis import DataSpec
        >>> model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        >>> result = sweep(model, [torch.randn(64, 32)], ["int8", "int2:g32"], data_spec=DataSpec(device="cpu"))
        >>> [point.name for point in result.points], result.points[0].distance > result.points[1].distance
        (['int2:g32', 'int8'], True)
    """
    trials = Trials(model, data, **options)
    jobs = {name: trials.layers(recipe) for name, recipe in named(schemes).items()}
    comparisons, loop = trials.compare(jobs, title)
    whole = nbytes(model)
    every = {each.candidate.name: each.candidate for job in jobs.values() for each in job}
    before, weights = sum(each.nbytes for each in every.values()), sum(math.prod(each.shape) for each in every.values())
    points = []
    for name, comparison in comparisons.items():
        saved = sum(each.candidate.nbytes - each.nbytes for each in jobs[name])
        size = 8 * (before - saved) / weights, len(jobs[name]), whole - saved
        has_losses = LOSS_BEFORE in comparison.columns
        change = comparison.mean(LOSS_AFTER) - comparison.mean(LOSS_BEFORE) if has_losses else None
        distance, lower, upper, agreement = trials.numbers(comparison)
        points.append(SweepPoint(name, *size, distance, lower, upper, agreement, change))
    points.sort(key=lambda each: (each.nbytes, each.name))
    note = (
        f"The model takes {whole / 2**20:,.2f} MiB unquantized. Bits are over the {len(every)} layers that any scheme "
        "takes; a skipped layer counts with the bits of its floats."
    )
    return Sweep(tuple(points), _report(points, distance_name(next(iter(comparisons.values()))), loop, title, note))


def named(schemes: Sequence[str] | Mapping[str, RecipeLike]) -> Mapping[str, RecipeLike]:
    """Schemes by their names, or recipes as they were named.

    Raises:
        ConfigError: there are none.
    """
    if isinstance(schemes, str) or not schemes:
        expected = "a list of schemes, or recipes by name"
        raise ConfigError(describe("schemes", repr(schemes), expected, 'Pass ["int8", "int4"]'))
    return schemes if isinstance(schemes, Mapping) else {str(each): each for each in schemes}


def _report(points: Sequence[SweepPoint], what: str, loop: Report, title: str, note: str) -> Report:
    heads = ("scheme", "bits a weight", "layers", "MiB", what, "lower", "upper", "top-1 agreement", "loss change")
    rows = [
        (p.name, p.bits, p.layers, p.nbytes / 2**20, p.distance, p.lower, p.upper, p.agreement, p.loss_change)
        for p in points
    ]
    dots = [Point(each.name, each.bits, each.distance, each.lower, each.upper) for each in points]
    picture = Points("Size and quality", "bits a weight", what, tuple(dots))
    return trial_report(loop, title, Table("Schemes", heads, tuple(rows)), picture, note)
