"""`sensitivity`: how far the outputs move when one layer alone is quantized."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from torch import nn

from assay.quantize.analysis.output_report import distance_name
from assay.quantize.analysis.trials import TrialOptions, Trials, trial_report
from assay.quantize.planning.recipe import RecipeLike
from assay.report import Bars, Report, Table

MAX_BARS = 30
LABEL = 22
"""How many layers a picture shows, and how long their names are in it."""


@dataclass(frozen=True)
class Sensitivity:
    """What one layer in one scheme does to the outputs, all others as they were.

    Attributes:
        layer: its name.
        scheme: what its weight became.
        weights: how many weights it has.
        bytes_before: what they took.
        bytes_after: what they take.
        distance: the mean KL divergence of the outputs, or the relative squared error of numbers.
        lower: the lower end of its interval, or None.
        upper: the upper end.
        agreement: the share of predictions with the same first choice; None for numbers.
    """

    layer: str
    scheme: str
    weights: int
    bytes_before: int
    bytes_after: int
    distance: float
    lower: float | None
    upper: float | None
    agreement: float | None


@dataclass(frozen=True)
class Sensitivities:
    """Layers by what they do to the outputs.

    Attributes:
        layers: those that move the outputs most first.
        report: the same, to be shown and kept.
    """

    layers: tuple[Sensitivity, ...]
    report: Report

    def of(self, layer: str) -> dict[str, Sensitivity]:
        """What was measured of one layer, by scheme."""
        return {each.scheme: each for each in self.layers if each.layer == layer}


def sensitivity(
    model: nn.Module,
    data: Any,
    scheme: RecipeLike | Sequence[RecipeLike] = "int4",
    *,
    title: str = "Sensitivity",
    **options: Unpack[TrialOptions],
) -> Sensitivities:
    """Quantize each layer alone and measure how far the outputs move.

    On every batch the model is run once unchanged and once for each layer; between two runs it gets its own layer back,
    the same object. Layers that share their weight with others cannot be changed alone and are left out.

    Args:
        model: the model; afterwards as it was.
        data: as for `measure`.
        scheme: a scheme, a recipe, or several schemes as a list: then each layer is measured in each.
        title: of the report.
        options: how layers are rounded and outputs compared; see `TrialOptions`.

    Returns:
        The layers, those that move the outputs most first.

    Raises:
        ConfigError: no layer fits a scheme, or the data cannot be read.

    Example:
        >>> import torch
        >>> from assay.quantize.analysis import DataSpec
        >>> model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        >>> result = sensitivity(model, [torch.randn(8, 32)], "int2:g32", data_spec=DataSpec(device="cpu"))
        >>> sorted(each.layer for each in result.layers)
        ['0', '2']
    """
    trials = Trials(model, data, **options)
    recipes: list[Any] = list(scheme) if isinstance(scheme, list | tuple) else [scheme]
    choices = [each for recipe in recipes for each in trials.layers(recipe) if not each.candidate.tied]
    jobs = {f"{each.candidate.name} {each.scheme}": each for each in choices}
    comparisons, loop = trials.compare({name: [each] for name, each in jobs.items()}, title)
    rows = []
    for name, each in jobs.items():
        layer, size = each.candidate, (math.prod(each.candidate.shape), each.candidate.nbytes, each.nbytes)
        distance, lower, upper, agreement = trials.numbers(comparisons[name])
        rows.append(Sensitivity(layer.name, str(each.scheme), *size, distance, lower, upper, agreement))
    rows.sort(key=lambda each: (-each.distance, each.layer, each.scheme))
    return Sensitivities(tuple(rows), _report(rows, distance_name(next(iter(comparisons.values()))), loop, title))


def _report(rows: Sequence[Sensitivity], what: str, loop: Report, title: str) -> Report:
    heads = ("layer", "scheme", "weights", "bytes", what, "lower", "upper", "top-1 agreement")
    cells = [
        (each.layer, each.scheme, each.weights, each.bytes_after, each.distance, each.lower, each.upper, each.agreement)
        for each in rows
    ]
    has_schemes = len({each.scheme for each in rows}) > 1
    labels = [f"{each.layer} {each.scheme}" if has_schemes else each.layer for each in rows[:MAX_BARS]]
    ends = tuple(name if len(name) <= LABEL else f"…{name[1 - LABEL :]}" for name in labels)  # which tell layers apart
    bars = Bars(f"{what} with one layer quantized", ends, tuple(each.distance for each in rows[:MAX_BARS]))
    note = "One layer at a time, all others as they were; those that move the outputs most first."
    return trial_report(loop, title, Table("Layers", heads, tuple(cells)), bars, note)
