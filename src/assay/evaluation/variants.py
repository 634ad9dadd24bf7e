"""Forms of one model (exported, in another precision, quantized): the same samples, compared with the first form."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import to_host
from assay.errors import ConfigError, describe
from assay.evaluation.evaluate_model import evaluate_with_options
from assay.evaluation.exported_models import as_model
from assay.evaluation.observers import Array, SampleRows, Tensors, as_bytes, from_bytes
from assay.evaluation.options import EvaluateOptions
from assay.evaluation.ranks import Ranks, process_group
from assay.report import Comparison, Report, compare

KEPT_BYTES = 1 << 30
"""Outputs of the first form that each process keeps; what is beyond is not compared, and that is said."""


@dataclass(frozen=True)
class Variant:
    """One form of a model.

    Args:
        model: what is called, an exported program or TorchScript among others.
        data: the samples as this form takes them, in another dtype for example; the same as for all unless given.
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
    """How far the outputs of a form are from those of the first.

    Attributes:
        form: the name of the form.
        samples: of how many samples the outputs were compared.
        alike: how many of them have the same values, to the bit.
        largest: the largest absolute difference of any output; infinite where one is NaN and the other is not.
        at: the sample that has it; None where all are alike.
        why: why outputs were not compared, or not all; empty where they were.
    """

    variant: str
    samples: int = 0
    alike: int = 0
    largest: float = 0.0
    at: int | str | None = None
    why: str = ""

    def __str__(self) -> str:
        if not self.samples:
            return f"Outputs of {self.variant} were not compared: {self.why or 'there are no samples'}."
        of = f"{self.alike:,} of {self.samples:,} samples have the same outputs to the bit"
        where = "" if self.at is None else f"; the largest difference is {self.largest:.4g}, at sample {self.at}"
        return f"Outputs of {self.variant}: {of}{where}.{f' Not all were compared: {self.why}.' if self.why else ''}"


@dataclass(frozen=True)
class VariantComparison:
    """What comparing forms found.

    Attributes:
        comparison: the metrics of each form beside those of the first, with intervals, p-values and flipped samples.
        reports: the report of each form, in their order.
        outputs: how far the outputs of each form but the first are from its.
    """

    comparison: Comparison
    reports: tuple[Report, ...]
    outputs: tuple[OutputDifference, ...]

    def show(self) -> None:
        """Print the comparison to the terminal."""
        self.comparison.show()

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write each report and the comparison, as JSON and as pages.

        Args:
            folder: where to; a form's report lies in a folder with its name.

        Returns:
            The files.
        """
        folder = Path(folder)
        written = []
        for run, report in zip(self.comparison.runs, self.reports, strict=True):
            of_form = folder / file_name(run.name)
            written += [report.save(of_form / "report.json"), report.to_html(of_form / "report.html")]
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
    """Measure forms of one model on the same samples, and compare them with the first.

    Args:
        forms: models, or `Form` values, by name; the first is what the others are compared with.
        data: see `assay.evaluate`; it is read once for each form.
        metrics: see there.
        confidence_level: of intervals, and of the comparison.
        correction: of p-values for how many there are: ``"holm"``, ``"bh"`` or ``"none"``.
        flips: how many samples to list for each way to flip.
        options: arguments of `assay.evaluate` for all forms. With `resume` each form has a folder of its own in it.

    Returns:
        The comparison, the reports, and how far outputs are apart.

    Raises:
        ConfigError: there are fewer than two forms, or the data can be read only once.

    Example:
        >>> torch.manual_seed(0)
        <torch...>
        >>> net = torch.nn.Linear(4, 3).eval()
        >>> data = torch.utils.data.TensorDataset(torch.randn(40, 4), torch.randint(3, (40,)))
        >>> forms = {"eager": net, "exported": torch.export.export(net, (torch.randn(8, 4),))}
        >>> from assay import Accuracy
        >>> found = compare_variants(forms, data, Accuracy(num_classes=3), device="cpu")
        >>> found.comparison.deltas[0].difference, found.outputs[0].samples
        (0.0, 40)
    """
    if len(variants) < 2:
        raise ConfigError(describe("forms", f"{len(variants)}", "two or more", "Give what is to be compared"))
    names = {file_name(name): name for name in variants}
    if len(names) < len(variants):
        raise ConfigError(describe("forms", ", ".join(variants), "names that tell folders apart", "Rename one"))
    if isinstance(data, Iterator):
        do = "Give a data set, a loader or a list of batches"
        raise ConfigError(describe("data", type(data).__name__, "data that can be read once for each form", do))
    parse_slices = [
        (name, _variant(variant), _options(name, _variant(variant), confidence_level, options))
        for name, variant in variants.items()
    ]
    kept = _Outputs()
    reports: list[Report] = []
    apart: list[OutputDifference] = []
    for name, variant, settings in parse_slices:
        observer = kept if not reports else _Beside(name, kept)
        given = data if variant.data is None else variant.data
        report = evaluate_with_options(as_model(variant.model), given, metrics, settings, {"outputs": observer})
        reports.append(replace(report, title=name))
        if isinstance(observer, _Beside):
            apart.append(_over_ranks(observer, settings))
    found = compare(
        *reports,
        confidence_level=confidence_level,
        correction=correction,
        seed=parse_slices[0][2].seed,
        flips=flips,
        names=list(variants),
    )
    found = replace(found, notes=(*found.notes, *(str(each) for each in apart)))
    return VariantComparison(found, tuple(reports), tuple(apart))


def file_name(name: str) -> str:
    """A name as that of a folder.

    Example:
        >>> file_name("nets:resnet precision=bfloat16")
        'nets-resnet-precision-bfloat16'
    """
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "form"


def _variant(variant: Any) -> Variant:
    return variant if isinstance(variant, Variant) else Variant(variant)


def _options(name: str, variant: Variant, confidence_level: float, options: Mapping[str, Any]) -> EvaluateOptions:
    given = {"confidence_level": confidence_level, "title": "Parity", **options, **variant.options}
    if given.get("resume") is not None:
        given["resume"] = Path(given["resume"]) / file_name(name)
    try:
        return EvaluateOptions(**given)
    except TypeError as error:
        raise ConfigError(
            describe("parity", str(error), "arguments of assay.evaluate", "See help(assay.evaluate) for their names")
        ) from error


class _Outputs:
    """The outputs of the first form, on the host, by the indices of the samples."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._left = most_bytes
        self._index: list[Array] = []
        self._preds: list[Tensor] = []
        self._order: tuple[Array, Array, Tensor] | None = None
        self.why = ""

    def count(self, rows: SampleRows) -> None:
        if rows.index is None:
            self.why = "the samples of a stream have no numbers"
            return
        self._left -= rows.preds.numel() * rows.preds.element_size()
        if self._left < 0:
            self.why = f"of the first form {KEPT_BYTES >> 20} MiB of outputs are kept"
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

    def saved(self) -> dict[str, Tensor]:
        """Nothing: outputs stay with the process that made them."""
        return {}

    def load(self, tensors: Tensors) -> None:
        """Nothing, see `saved`."""

    def empty(self) -> _Outputs:
        return _Outputs()


class _Beside:
    """How far outputs are from those of the first form."""

    def __init__(self, name: str, first: _Outputs) -> None:
        self._first = first
        self.found = OutputDifference(name)
        self.rows = 0

    def count(self, rows: SampleRows) -> None:
        self.rows += len(rows)
        known = None if rows.index is None else self._first.find(rows.index)
        if known is None:
            self._add(
                OutputDifference(
                    self.found.variant, why=self._first.why or "the first form was gone on from a checkpoint"
                )
            )
            return
        mask, first = known
        second = to_host(rows.preds)[torch.from_numpy(mask)]
        if first.shape[1:] != second.shape[1:]:
            shapes = f"{tuple(second.shape[1:])} a sample, and {tuple(first.shape[1:])} of the first form"
            self._add(OutputDifference(self.found.variant, why=f"their shapes differ: {shapes}"))
            return
        names = np.asarray(rows.ids if rows.ids is not None else rows.index, dtype=object)[mask]
        why = "" if mask.all() else self._first.why or "the first form did not count the others"
        self._add(_apart(self.found.variant, first, second, names, why))

    def _add(self, other: OutputDifference) -> None:
        mine = self.found
        ahead = _ahead(mine, other)
        self.found = OutputDifference(
            mine.variant,
            mine.samples + other.samples,
            mine.alike + other.alike,
            ahead.largest,
            ahead.at,
            mine.why or other.why,
        )

    def saved(self) -> dict[str, Tensor]:
        found = self.found
        largest = found.largest if math.isfinite(found.largest) else "infinite"
        plain = [found.samples, found.alike, largest, found.at, found.why, self.rows]
        return {"found": as_bytes(plain)}

    def load(self, tensors: Tensors) -> None:
        samples, alike, largest, at, why, rows = from_bytes(tensors["found"])
        self.rows += rows
        self._add(
            OutputDifference(
                self.found.variant, samples, alike, math.inf if largest == "infinite" else largest, at, why
            )
        )

    def empty(self) -> _Beside:
        return _Beside(self.found.variant, self._first)


def _apart(variant: str, first: Tensor, second: Tensor, names: Array, why: str) -> OutputDifference:
    if not len(first):
        return OutputDifference(variant, why=why)
    a, b = (each.to(torch.float64).reshape(len(each), -1) for each in (first, second))
    same = (a == b) | (a.isnan() & b.isnan())
    far = torch.where(same, 0.0, (a - b).abs()).nan_to_num(nan=math.inf, posinf=math.inf)
    by_sample = far.amax(1) if far.shape[1] else torch.zeros(len(far))
    alike = int(same.all(1).sum())
    if alike == len(first):
        return OutputDifference(variant, len(first), alike, why=why)
    largest = float(by_sample.max())
    at = min(names[k] for k in (by_sample == largest).nonzero().flatten().tolist())
    return OutputDifference(variant, len(first), alike, largest, at, why)


def _ahead(a: OutputDifference, b: OutputDifference) -> OutputDifference:
    """The one whose outputs are further apart; of equal ones that of the first sample, on any number of processes."""
    if a.at is None or b.at is None:
        return b if a.at is None else a
    if a.largest != b.largest:
        return a if a.largest > b.largest else b
    return a if a.at <= b.at else b  # type: ignore[operator]


def _over_ranks(beside: _Beside, options: EvaluateOptions) -> OutputDifference:
    """What all processes found."""
    with process_group(), Ranks(options.rank_timeout_s) as ranks:
        if ranks.alone:
            return beside.found
        together = beside.empty()
        for tensors in ranks.gather(beside.saved):
            together.load(tensors)
        return together.found
