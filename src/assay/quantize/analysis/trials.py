"""A model with some layers quantized, compared with the unquantized model: layer by layer, or scheme by scheme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

from torch import nn

from assay.errors import ConfigError, describe
from assay.progress import ProgressBar
from assay.quantize.analysis.data_spec import DataSpec
from assay.quantize.analysis.output_comparison import OutputComparison, SwappedModel, compare_outputs, prepare
from assay.quantize.analysis.output_report import headline
from assay.quantize.candidates import candidates
from assay.quantize.planning.apply import quantized_weight
from assay.quantize.planning.layers import Choice, choose
from assay.quantize.planning.recipe import Recipe, RecipeLike
from assay.quantize.rounding.gptq import Calibration
from assay.report import Plot, Report, Section, Table

AT_ONCE = 2**31
"""Bytes of layers that are held beside the model at a time."""


class TrialOptions(TypedDict, total=False):
    """Options of `sensitivity`, `sweep` and `recipe_for_budget`.

    Attributes:
        method: how weights are rounded, "nearest" by default; with calibration, how the scales of a group are chosen.
        calibration: what went into the layers; then linear layers are rounded by GPTQ.
        include: patterns; where there are any, other layers are skipped.
        exclude: patterns of layers that are skipped.
        confidence_level: of the intervals, 0.95 by default.
        data_spec: how data are read and outputs compared.
    """

    method: str
    calibration: Calibration | None
    include: Sequence[str]
    exclude: Sequence[str]
    confidence_level: float
    data_spec: DataSpec | None


class Trials:
    """Sets of quantized layers of one model, compared with the unquantized model; the model is afterwards as it was."""

    def __init__(
        self,
        model: nn.Module,
        data: Any,
        *,
        method: str = "nearest",
        calibration: Calibration | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        confidence_level: float = 0.95,
        data_spec: DataSpec | None = None,
    ) -> None:
        self.model, self.data, self.data_spec = model, data, data_spec or DataSpec()
        self._method, self._calibration, self._level = method, calibration, confidence_level
        self._include, self._exclude = include, exclude

    def layers(self, recipe: RecipeLike) -> list[Choice]:
        """The layers that a recipe quantizes.

        Raises:
            ConfigError: there are none.
        """
        choices = choose(candidates(self.model)[0], Recipe.parse(recipe), self._include, self._exclude)
        return [each for each in choices if each.scheme]

    def compare(self, jobs: Mapping[str, Sequence[Choice]], title: str) -> tuple[dict[str, OutputComparison], Report]:
        """Compare the model with each of several sets of its layers quantized.

        The model is run with layers swapped and gets its own back after each batch, also when something fails. Sets are
        made as many at a time as `AT_ONCE` bytes hold; those share one pass over the data.

        Returns:
            The comparisons by the names of the sets, and the report of the first pass.
        """
        if not jobs:
            raise ConfigError(describe(title, "nothing to compare", "a layer or a scheme", "Name one"))
        runs, data, data_spec = prepare(self.model, self.data, self.data_spec)
        result: dict[str, OutputComparison] = {}
        reports = []
        groups = list(_groups(jobs))
        for number, names in enumerate(groups):
            built = self._build({name: jobs[name] for name in names})
            others = {name: SwappedModel(runs, self.model, layers) for name, layers in built.items()}
            part = f"{title}, part {number + 1} of {len(groups)}" if len(groups) > 1 else title
            comparisons, report = compare_outputs(runs, others, data, data_spec, part)
            result |= comparisons
            reports.append(report)
        return result, reports[0]

    def numbers(self, comparison: OutputComparison) -> tuple[float, float | None, float | None, float | None]:
        """The distance that ranks, the ends of its interval, and the share of equal first choices."""
        value = headline(comparison, self._level)
        return value.value, value.lower, value.upper, comparison.agreement

    def _build(self, jobs: Mapping[str, Sequence[Choice]]) -> dict[str, dict[str, nn.Module]]:
        """The layers of each set by their names."""
        result: dict[str, dict[str, nn.Module]] = {name: {} for name in jobs}
        total = sum(each.candidate.nbytes for job in jobs.values() for each in job)
        with ProgressBar("Quantizing", total, self.data_spec.progress, unit="bytes") as bar:
            for name, each in ((name, each) for name, job in jobs.items() for each in job):
                bar.update(text=each.candidate.name)
                weight = quantized_weight(each, self._method, self._calibration)
                result[name][each.candidate.name] = each.candidate.replacement(weight)
                bar.update(advance=each.candidate.nbytes)
        return result


def trial_report(loop: Report, title: str, table: Table, plot: Plot, note: str) -> Report:
    """The report of a pass with a table and a picture before how it was measured."""
    first = Section(title, (), (table,), (plot,), note=note)
    return replace(loop, title=title, sections=(first, Section("How it was measured", (), loop.sections[0].tables)))


def _groups(jobs: Mapping[str, Sequence[Choice]]) -> Iterator[list[str]]:
    """Names of sets, in order, as many together as may be held at once."""
    group: list[str] = []
    total = 0
    for name, job in jobs.items():
        size = sum(each.nbytes for each in job)
        if group and total + size > AT_ONCE:
            yield group
            group, total = [], 0
        group.append(name)
        total += size
    yield group
