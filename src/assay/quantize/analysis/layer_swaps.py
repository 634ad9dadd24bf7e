"""What each layer of a model could become, and what it would take: the layers are made beside the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from assay.errors import ConfigError, describe
from assay.language import CausalModel
from assay.language.scoring import BATCH_SIZE
from assay.progress import ProgressBar
from assay.quantize.analysis.output_comparison import DataSpec, OutputComparison, SwappedModel, compare_outputs, of_text
from assay.quantize.candidates import candidates
from assay.quantize.layers import QuantizedWeight
from assay.quantize.planning.apply import round_layer
from assay.quantize.planning.layers import Choice, choose
from assay.quantize.planning.recipe import Recipe, RecipeLike
from assay.quantize.rounding.gptq import Calibration
from assay.quantize.scheme import Scheme
from assay.report import Report

AT_ONCE = 2**31
"""Bytes of layers that are held beside the model at a time."""


@dataclass(frozen=True)
class TrialLayer:
    """A layer in a scheme, not made yet.

    Attributes:
        choice: the layer and its scheme.
        method: how its weight is rounded.
        calibration: what went into the layers; then a linear layer is rounded by GPTQ.
    """

    choice: Choice
    method: str
    calibration: Calibration | None = None

    @property
    def name(self) -> str:
        """Its name in the model."""
        return self.choice.candidate.name

    @property
    def scheme(self) -> Scheme:
        """What its weight becomes."""
        assert self.choice.scheme is not None, self.name
        return self.choice.scheme

    @property
    def weights(self) -> int:
        """How many weights it has."""
        rows, columns = self.choice.candidate.shape
        return rows * columns

    @property
    def bytes_before(self) -> int:
        """What its weight takes now."""
        return self.choice.candidate.weight().nbytes

    @property
    def bytes_after(self) -> int:
        """What its weight takes then, scales and zeros included."""
        return self.scheme.nbytes(self.choice.candidate.shape)

    def build(self) -> nn.Module:
        """The layer."""
        candidate = self.choice.candidate
        integers = round_layer(candidate, self.scheme, self.method, self.calibration)
        return candidate.replacement(QuantizedWeight(integers, candidate.weight().dtype))


def layers(
    model: nn.Module,
    recipe: RecipeLike,
    method: str,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    calibration: Calibration | None = None,
) -> list[TrialLayer]:
    """The layers that a recipe quantizes, those with a weight of their own.

    Args:
        model: the model.
        recipe: a scheme, or rules by name.
        method: how weights are rounded.
        include: patterns; where there are any, other layers are skipped.
        exclude: patterns of layers that are skipped.
        calibration: what went into the layers; then linear layers are rounded by GPTQ.

    Raises:
        ConfigError: there are none.
    """
    result, _ = candidates(model)
    chosen = choose(result, Recipe.parse(recipe), include, exclude)
    return [TrialLayer(each, method, calibration) for each in chosen if each.scheme]


def untied(result: Sequence[TrialLayer]) -> list[TrialLayer]:
    """Those that can be changed alone: no other layer shares their weight."""
    return [each for each in result if not each.choice.candidate.tied]


def compare_layers(
    model: nn.Module, jobs: Mapping[str, Sequence[TrialLayer]], data: Any, data_spec: DataSpec, title: str
) -> tuple[dict[str, OutputComparison], Report]:
    """Compare a model with some layers replaced with the model as it is, for several such sets of layers.

    The model is run with layers swapped and gets its own back after each batch, also when something fails. Sets are
    made as many at a time as `AT_ONCE` bytes hold; those share one pass over the data.

    Args:
        model: the model.
        jobs: sets of layers by name.
        data: what to run on.
        data_spec: how it is done.
        title: what to call it.

    Returns:
        The outcomes by name, and the report of the first pass.
    """
    windows = of_text(model, data, data_spec)
    runs: Callable[..., Any] = model
    if windows is not None:
        runs, data = CausalModel(model), windows
        data_spec = replace(data_spec, batch_size=data_spec.batch_size or BATCH_SIZE)
    result: dict[str, OutputComparison] = {}
    first: Report | None = None
    groups = list(_groups(jobs))
    for number, names in enumerate(groups):
        built = _build({name: jobs[name] for name in names}, data_spec)
        others = {name: SwappedModel(runs, model, replacements) for name, replacements in built.items()}
        part = f"{title}, part {number + 1} of {len(groups)}" if len(groups) > 1 else title
        outcomes, report = compare_outputs(runs, others, data, data_spec, part)
        result |= outcomes
        first = first or report
    if first is None:
        raise ConfigError(describe(title, "nothing to compare", "a layer or a scheme", "Name one"))
    return result, first


def _build(jobs: Mapping[str, Sequence[TrialLayer]], data_spec: DataSpec) -> dict[str, dict[str, nn.Module]]:
    """The layers of each job by their names."""
    result: dict[str, dict[str, nn.Module]] = {name: {} for name in jobs}
    total = sum(each.bytes_before for job in jobs.values() for each in job)
    with ProgressBar("Quantizing", total, data_spec.progress, unit="bytes") as bar:
        for name, job in jobs.items():
            for each in job:
                bar.update(text=each.name)
                result[name][each.name] = each.build()
                bar.update(advance=each.bytes_before)
    return result


def _groups(jobs: Mapping[str, Sequence[TrialLayer]]) -> Iterator[list[str]]:
    """Names of jobs, in order, as many together as may be held at once."""
    group: list[str] = []
    held = 0
    for name, each in jobs.items():
        size = sum(layer.bytes_after for layer in each)
        if group and held + size > AT_ONCE:
            yield group
            group, held = [], 0
        group.append(name)
        held += size
    if group:
        yield group
