"""Variants of one model (exported, in another precision, quantized): compared with the first on the same samples."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay._atomic import Location, location
from assay.devices.placement import to_host
from assay.errors import ConfigError, describe
from assay.evaluation.arguments.options import EvaluateOptions
from assay.evaluation.evaluate_model import evaluate_with_options
from assay.evaluation.observe.observers import Array, SampleRows, Tensors, as_bytes, from_bytes
from assay.evaluation.processes.ranks import Ranks, process_group
from assay.report import Comparison, Report, compare

KEPT_BYTES = 1 << 30
"""Outputs of the first variant that each process keeps; what is beyond is not compared, and that is said."""


@dataclass(frozen=True)
class Variant:
    """One variant of a model.

    Args:
        model: what is called, an exported program or TorchScript among others.
        data: the samples as this variant takes them, in another dtype for example; the same as for all by default.
        options: arguments of `assay.evaluate` of its own, such as ``{"precision": "bfloat16"}``.

    Example:
        >>> Variant(torch.nn.Identity(), options={"precision": "bfloat16"}).options["precision"]
        'bfloat16'
    """

    model: Any
    data: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OutputDifference:
    """How far the outputs of a variant are from those of the first.

    Attributes:
        variant: its name.
        samples: of how many samples the outputs were compared.
        equal: how many of them have the same values, to the bit.
        largest: the largest absolute difference of any output; infinite where one is NaN and the other is not.
        sample: the one that has it; None where all are equal.
        reason: why outputs were not compared, or not all; empty where they were.
    """

    variant: str
    samples: int = 0
    equal: int = 0
    largest: float = 0.0
    sample: int | str | None = None
    reason: str = ""

    def __str__(self) -> str:
        if not self.samples:
            return f"Outputs of {self.variant} were not compared: {self.reason or 'there are no samples'}."
        of = f"{self.equal:,} of {self.samples:,} samples have the same outputs to the bit"
        where = (
            "" if self.sample is None else f"; the largest difference is {self.largest:.4g}, at sample {self.sample}"
        )
        return (
            f"Outputs of {self.variant}: {of}{where}.{f' Not all were compared: {self.reason}.' if self.reason else ''}"
        )


@dataclass(frozen=True)
class VariantComparison:
    """The comparison of variants.

    Attributes:
        comparison: the metrics of each variant beside those of the first, with intervals, p-values and flips.
        reports: the report of each variant, in their order.
        outputs: how far the outputs of each variant but the first are from its.
    """

    comparison: Comparison
    reports: tuple[Report, ...]
    outputs: tuple[OutputDifference, ...]

    def show(self) -> None:
        """Print the comparison to the terminal."""
        self.comparison.show()

    def save(self, folder: str | os.PathLike[str]) -> list[Location]:
        """Write each report and the comparison, as JSON and as pages.

        Args:
            folder: where to, a path or a URL; a variant's report lies in a folder with its name.

        Returns:
            The files.
        """
        folder = location("folder", folder)
        written = []
        for run, report in zip(self.comparison.runs, self.reports, strict=True):
            subfolder = folder / file_name(run.name)
            written += [report.save(subfolder / "report.json"), report.to_html(subfolder / "report.html")]
        written += [self.comparison.save(folder / "comparison.json")]
        return [*written, self.comparison.to_html(folder / "comparison.html")]


def compare_variants(
    variants: Mapping[str, Any],
    data: Any,
    metrics: Any,
    *,
    confidence_level: float = 0.95,
    correction: str = "holm",
    flips: int = 10,
    **options: Any,
) -> VariantComparison:
    """Evaluate variants of one model on the same samples, and compare them with the first.

    Args:
        variants: models, or `Variant` values, by name; the first is what the others are compared with.
        data: see `assay.evaluate`; it is read once for each variant.
        metrics: see there.
        confidence_level: of intervals, and of the comparison.
        correction: of p-values for how many there are: ``"holm"``, ``"bh"`` or ``"none"``.
        flips: how many samples to list for each way to flip.
        options: arguments of `assay.evaluate` for all variants. With `resume` each variant has a subfolder.

    Returns:
        The comparison, the reports, and how far outputs are apart.

    Raises:
        ConfigError: there are fewer than two variants, or the data can be read only once.

    Example:
        >>> torch.manual_seed(0)
        <torch...>
        >>> net = torch.nn.Linear(4, 3).eval()
        >>> data = torch.utils.data.TensorDataset(torch.randn(40, 4), torch.randint(3, (40,)))
        >>> variants = {"eager": net, "exported": torch.export.export(net, (torch.randn(8, 4),))}
        >>> from assay import Accuracy
        >>> found = compare_variants(variants, data, Accuracy(num_classes=3), device="cpu")
        >>> found.comparison.deltas[0].difference, found.outputs[0].samples
        (0.0, 40)
    """
    if len(variants) < 2:
        raise ConfigError(describe("variants", f"{len(variants)}", "two or more", "Give what is to be compared"))
    names = {file_name(name): name for name in variants}
    if len(names) < len(variants):
        raise ConfigError(describe("variants", ", ".join(variants), "names that tell folders apart", "Rename one"))
    if isinstance(data, Iterator):
        do = "Give a data set, a loader or a list of batches"
        raise ConfigError(describe("data", type(data).__name__, "data that can be read once for each variant", do))
    jobs = [(name, each if isinstance(each, Variant) else Variant(each)) for name, each in variants.items()]
    settings = [_options(name, variant, confidence_level, options) for name, variant in jobs]
    first = _FirstOutputs()
    reports: list[Report] = []
    differences: list[OutputDifference] = []
    for (name, variant), of_variant in zip(jobs, settings, strict=True):
        observer = first if not reports else _OutputComparer(name, first)
        of_data = data if variant.data is None else variant.data
        report = evaluate_with_options(variant.model, of_data, metrics, of_variant, {"outputs": observer})
        reports.append(replace(report, title=name))
        if isinstance(observer, _OutputComparer):
            differences.append(_over_ranks(observer, of_variant))
    comparison = compare(
        *reports,
        confidence_level=confidence_level,
        correction=correction,
        seed=settings[0].seed,
        flips=flips,
        names=list(variants),
    )
    comparison = replace(comparison, notes=(*comparison.notes, *map(str, differences)))
    return VariantComparison(comparison, tuple(reports), tuple(differences))


def file_name(name: str) -> str:
    """A name as that of a folder.

    Example:
        >>> file_name("nets:resnet precision=bfloat16")
        'nets-resnet-precision-bfloat16'
    """
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "variant"


def _options(name: str, variant: Variant, confidence_level: float, options: Mapping[str, Any]) -> EvaluateOptions:
    arguments = {"confidence_level": confidence_level, "title": "Variants", **options, **variant.options}
    if arguments.get("resume") is not None:
        arguments["resume"] = location("resume", arguments["resume"]) / file_name(name)
    try:
        return EvaluateOptions(**arguments)
    except TypeError as error:
        do = "See help(assay.evaluate) for their names"
        raise ConfigError(describe("compare_variants", str(error), "arguments of assay.evaluate", do)) from error


class _FirstOutputs:
    """The outputs of the first variant, on the CPU, by the indices of the samples."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._left = most_bytes
        self._index: list[Array] = []
        self._preds: list[Tensor] = []
        self._order: tuple[Array, Array, Tensor] | None = None
        self.reason = ""

    def count(self, rows: SampleRows) -> None:
        if rows.raw is not None or not math.prod(rows.preds.shape[1:]):
            self.reason = (
                "outputs that are no tensors, or that only functions take, are compared by their metrics alone"
            )
            return
        if rows.index is None:
            self.reason = "the samples of a stream have no numbers"
            return
        self._left -= rows.preds.numel() * rows.preds.element_size()
        if self._left < 0:
            self.reason = f"of the first variant {KEPT_BYTES >> 20} MiB of outputs are kept"
            return
        self._index.append(np.array(rows.index))
        self._preds.append(to_host(rows.preds).clone())

    def find(self, index: Array) -> tuple[Array, Tensor] | None:
        """Which of the samples are known, as a mask, and their outputs."""
        if not self._index:
            return None
        if self._order is None:
            known = np.concatenate(self._index)
            order = np.argsort(known, kind="stable")
            self._order = known[order], order, torch.cat(self._preds)
        known, order, preds = self._order
        place = np.minimum(np.searchsorted(known, index), len(known) - 1)
        is_known = known[place] == index
        return is_known, preds[torch.from_numpy(order[place[is_known]])]

    def state(self) -> dict[str, Tensor]:
        """Nothing: outputs stay with the process that made them."""
        return {}

    def add_state(self, tensors: Tensors) -> None:
        """Nothing, see `state`."""

    def empty(self) -> _FirstOutputs:
        return _FirstOutputs()


class _OutputComparer:
    """How far outputs are from those of the first variant."""

    def __init__(self, name: str, first: _FirstOutputs) -> None:
        self._name, self._first = name, first
        self.difference = OutputDifference(name)

    def count(self, rows: SampleRows) -> None:
        self._add(self._compare(rows))

    def _compare(self, rows: SampleRows) -> OutputDifference:
        known = None if rows.index is None else self._first.find(rows.index)
        if known is None:
            reason = self._first.reason or "the first variant was resumed from a checkpoint"
            return OutputDifference(self._name, reason=reason)
        mask, first = known
        second = to_host(rows.preds)[torch.from_numpy(mask)]
        if first.shape[1:] != second.shape[1:]:
            shapes = f"{tuple(second.shape[1:])} a sample, and {tuple(first.shape[1:])} of the first variant"
            return OutputDifference(self._name, reason=f"their shapes differ: {shapes}")
        names = np.asarray(rows.ids if rows.ids is not None else rows.index, dtype=object)[mask]
        reason = "" if mask.all() else self._first.reason or "the first variant did not count the others"
        return _difference(self._name, first, second, names, reason)

    def _add(self, other: OutputDifference) -> None:
        mine, larger = self.difference, _larger(self.difference, other)
        samples, equal = mine.samples + other.samples, mine.equal + other.equal
        reason = mine.reason or other.reason
        self.difference = OutputDifference(self._name, samples, equal, larger.largest, larger.sample, reason)

    def state(self) -> dict[str, Tensor]:
        return {"difference": as_bytes(astuple(self.difference))}

    def add_state(self, tensors: Tensors) -> None:
        self._add(OutputDifference(*from_bytes(tensors["difference"])))

    def empty(self) -> _OutputComparer:
        return _OutputComparer(self._name, self._first)


def _difference(variant: str, first: Tensor, second: Tensor, names: Array, reason: str) -> OutputDifference:
    if not len(first):
        return OutputDifference(variant, reason=reason)
    a, b = (each.to(torch.float64).reshape(len(each), -1) for each in (first, second))
    same = (a == b) | (a.isnan() & b.isnan())
    far = torch.where(same, 0.0, (a - b).abs()).nan_to_num(nan=math.inf, posinf=math.inf)
    by_sample = far.amax(1) if far.shape[1] else torch.zeros(len(far), device="cpu")
    equal = int(same.all(1).sum())
    if equal == len(first):
        return OutputDifference(variant, equal, equal, reason=reason)
    largest = float(by_sample.max())
    sample = min(names[k] for k in (by_sample == largest).nonzero().flatten().tolist())
    return OutputDifference(variant, len(first), equal, largest, sample, reason)


def _larger(a: OutputDifference, b: OutputDifference) -> OutputDifference:
    """The one whose outputs are further apart; of equal ones that of the first sample, on any number of processes."""
    if a.sample is None or b.sample is None:
        return b if a.sample is None else a
    if a.largest != b.largest:
        return a if a.largest > b.largest else b
    return a if a.sample <= b.sample else b  # type: ignore[operator]


def _over_ranks(comparer: _OutputComparer, options: EvaluateOptions) -> OutputDifference:
    """The difference over all processes."""
    with process_group(), Ranks(options.rank_timeout_s) as ranks:
        if ranks.alone:
            return comparer.difference
        together = comparer.empty()
        for tensors in ranks.gather(comparer.state):
            together.add_state(tensors)
        return together.difference
