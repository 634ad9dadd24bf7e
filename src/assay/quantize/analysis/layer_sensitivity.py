"""`sensitivity`: how far the outputs move when one layer alone is quantized."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from assay.quantize.analysis.layer_swaps import TrialLayer, compare_layers, layers, untied
from assay.quantize.analysis.output_comparison import DataSpec
from assay.quantize.analysis.output_report import distance_name, headline
from assay.quantize.planning.recipe import RecipeLike
from assay.quantize.rounding.gptq import Calibration
from assay.report import Bars, Report, Section, Table

SHOWN = 30
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
        lower: the lower end of its interval; None where there is none.
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
        """What was found of one layer, by scheme."""
        return {each.scheme: each for each in self.layers if each.layer == layer}


def sensitivity(
    model: nn.Module,
    data: Any,
    scheme: RecipeLike | Sequence[RecipeLike] = "int4",
    *,
    method: str = "nearest",
    calibration: Calibration | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    confidence_level: float = 0.95,
    data_spec: DataSpec | None = None,
    title: str = "Sensitivity",
) -> Sensitivities:
    """Quantize each layer alone and measure how far the outputs move.

    On every batch the model is run once as it is and once for each layer; between two runs it gets its own layer back,
    the same object. Layers that share their weight with others cannot be changed alone and are left out.

    Args:
        model: the model; afterwards as it was.
        data: as for `measure`.
        scheme: a scheme, a recipe, or several schemes as a list: then each layer is measured in each.
        method: how weights are rounded; with calibration, how the scales of a group are chosen.
        calibration: what went into the layers; then linear layers are rounded by GPTQ.
        include: patterns; where there are any, other layers are left out.
        exclude: patterns of layers that are left out.
        confidence_level: of the intervals.
        data_spec: how data are read and outputs compared.
        title: of the report.

    Returns:
        The layers, those that move the outputs most first.

    Raises:
        ConfigError: no layer can be quantized so, or the data cannot be read.

    Example:
        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        >>> found = sensitivity(model, [torch.randn(8, 32)], "int2:g32", data_spec=DataSpec(device="cpu"))
        >>> sorted(each.layer for each in found.layers)
        ['0', '2']
    """
    data_spec = data_spec or DataSpec()
    recipes: list[Any] = list(scheme) if isinstance(scheme, list | tuple) else [scheme]
    trials: dict[str, TrialLayer] = {}
    for each in recipes:
        for layer in untied(layers(model, each, method, include, exclude, calibration)):
            trials[f"{layer.name} {layer.scheme}"] = layer
    outcomes, loop = compare_layers(model, {name: [layer] for name, layer in trials.items()}, data, data_spec, title)
    rows = []
    for name, layer in trials.items():
        value = headline(outcomes[name], confidence_level)
        agreement = outcomes[name].agreement
        size = layer.weights, layer.bytes_before, layer.bytes_after
        rows.append(Sensitivity(layer.name, str(layer.scheme), *size, value.value, value.lower, value.upper, agreement))
    rows.sort(key=lambda each: (-each.distance, each.layer, each.scheme))
    what = distance_name(next(iter(outcomes.values())))
    return Sensitivities(tuple(rows), replace(loop, title=title, sections=_sections(rows, what, loop, title)))


def _sections(rows: Sequence[Sensitivity], what: str, loop: Report, title: str) -> tuple[Section, ...]:
    heads = ("layer", "scheme", "weights", "bytes", what, "lower", "upper", "top-1 agreement")
    cells = [
        (each.layer, each.scheme, each.weights, each.bytes_after, each.distance, each.lower, each.upper, each.agreement)
        for each in rows
    ]
    several = len({each.scheme for each in rows}) > 1
    shown = rows[:SHOWN]
    labels = tuple(_label(f"{each.layer} {each.scheme}" if several else each.layer) for each in shown)
    bars = Bars(f"{what} with one layer quantized", labels, tuple(each.distance for each in shown))
    note = "One layer at a time, all others as they were; those that move the outputs most first."
    (proof,) = loop.sections
    return (
        Section(title, (), (Table("Layers", heads, tuple(cells)),), (bars,), note=note),
        Section("How it was measured", (), proof.tables),
    )


def _label(name: str) -> str:
    """The end of a long name, which tells layers apart."""
    return name if len(name) <= LABEL else f"…{name[1 - LABEL :]}"
