"""One pass over the data: a model, and others that are compared with it on the same batches."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from assay.devices.modules import locations
from assay.devices.placement import to_host
from assay.errors import ConfigError, InvalidValuesError, describe
from assay.evaluation import evaluate
from assay.evaluation.data.batch import Reader
from assay.language import CausalModel, Tokens, Windows, tokens_of
from assay.language.scoring import BATCH_SIZE
from assay.language.windows import sizes
from assay.metrics import Mean
from assay.quantize.analysis.data_spec import DataSpec
from assay.quantize.analysis.divergence import AGREES, CHANGE, ERROR, KL, SIZE, divergence
from assay.quantize.analysis.indexed_batches import BATCH, NUMBER, indexed_batches
from assay.quantize.analysis.stored_outputs import StoredOutputs
from assay.report import Report

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OutputComparison:
    """How far one model was from the one it was compared with.

    Attributes:
        ids: of the N samples, in order.
        counts: how many predictions each had.
        columns: what each added up to, in float64, by name.
        by_prediction: the KL divergence of each prediction, or its squared error.
        changes: of each prediction, how much more probable the right class became; None without right classes.
    """

    ids: NDArray[np.int64]
    counts: Floats
    columns: dict[str, Floats]
    by_prediction: Floats
    changes: Floats | None = None

    def mean(self, name: str) -> float:
        """The mean over all predictions: sums in float64, rounded once."""
        return math.fsum(self.columns[name]) / math.fsum(self.counts)

    @property
    def distance(self) -> float:
        """One number that ranks: the mean KL divergence, or the relative squared error of numbers."""
        if KL in self.columns:
            return self.mean(KL)
        return math.fsum(self.columns[ERROR]) / max(math.fsum(self.columns[SIZE]), 5e-324)

    @property
    def agreement(self) -> float | None:
        """The share of predictions with the same first choice; None for numbers."""
        return self.mean(AGREES) if AGREES in self.columns else None


class SwappedModel(nn.Module):
    """A model with some of its layers replaced while it runs, and only then.

    Args:
        runs: what is called: the model, or what wraps it.
        model: the module that holds the layers.
        replacements: new layers by the names of the old ones.
    """

    def __init__(self, runs: Callable[..., Any], model: nn.Module, replacements: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self._runs = (runs,)  # in a tuple, so that it is not registered as a submodule
        old = {model.get_submodule(name): new for name, new in replacements.items()}
        self._places = [
            (parent, name, child, old[child])
            for parent in model.modules()
            for name, child in parent._modules.items()
            if child is not None and child in old
        ]
        self.replacements = nn.ModuleList(replacements.values())

    def forward(self, *args: Any, **options: Any) -> Any:
        with self.installed():
            return self._runs[0](*args, **options)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within the block the model has the new layers; afterwards the old ones, the same objects in their places."""
        try:
            for parent, name, _, new in self._places:
                parent._modules[name] = new
            yield
        finally:
            for parent, name, old, _ in self._places:
                parent._modules[name] = old


class _SideBySide(nn.Module):
    """Runs all models on a batch and keeps what their outputs differ by, on the device."""

    def __init__(
        self, before: Callable[..., Any], others: Mapping[str, Callable[..., Any]], data_spec: DataSpec
    ) -> None:
        super().__init__()
        self.before, self.others, self.data_spec = before, others, data_spec
        self.submodules = nn.ModuleList(each for each in others.values() if isinstance(each, nn.Module))
        self.reader = Reader(before, inputs=data_spec.inputs, target=data_spec.target, preds=data_spec.preds)
        self.records: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {name: [] for name in others}
        self.names: tuple[str, ...] = ()

    def forward(self, number: Tensor, batch: Any) -> Tensor:
        (args, options), target, _ = self.reader.read(batch)
        stored = isinstance(self.before, StoredOutputs)
        outputs = self.before.of(number, target) if stored else self.before(*args, **options)  # type: ignore[attr-defined]
        before = self.reader.preds(outputs)
        classes = target if isinstance(target, Tensor) else None
        result: dict[str, tuple[Tensor, Tensor]] = {}
        for name, other in self.others.items():
            after = self.reader.preds(other(*args, **options))
            self.names, *result[name] = divergence(before, after, classes, self.data_spec)  # type: ignore[assignment]
        for name, (rows, counted) in result.items():  # only when all of them worked
            self.records[name].append((number, rows, counted))
        rows, counted = next(iter(result.values()))
        mean = torch.where(counted, rows[..., 0], 0).sum(1) / counted.sum(1).clamp(min=1)
        return mean.nan_to_num(0.0, math.inf)  # for the bar; NaN raises at the end

    def comparison(self, name: str) -> OutputComparison:
        """What was kept of one model, on the CPU and in the order of the samples."""
        if not self.records[name]:
            raise ConfigError(describe("data", "no sample", "at least one", "See what the data give"))
        numbers, rows, counted = zip(*self.records[name], strict=True)
        values_BPK, counted_BP = _concatenate(rows).double().numpy(), _concatenate(counted).bool().numpy()
        ids = torch.cat([to_host(each) for each in numbers]).numpy().astype(np.int64)
        order = np.argsort(ids, kind="stable")
        sums_BK = np.where(counted_BP[..., None], values_BPK, 0).sum(1)[order]
        columns = {column: sums_BK[:, k] for k, column in enumerate(self.names)}
        _check_values(columns, name)
        counts = counted_BP.sum(1)[order].astype(np.float64)
        changes = values_BPK[..., self.names.index(CHANGE)][counted_BP] if CHANGE in self.names else None
        return OutputComparison(ids[order], counts, columns, values_BPK[..., 0][counted_BP], changes)


def compare_outputs(
    before: Callable[..., Any], others: Mapping[str, Callable[..., Any]], data: Any, data_spec: DataSpec, title: str
) -> tuple[dict[str, OutputComparison], Report]:
    """Run a model and others on the same data, each sample once.

    The loop is that of `assay.evaluate`: its report proves that every sample was counted once.

    Returns:
        The comparisons of the others with `before`, by their names, and the report of the loop.

    Raises:
        ConfigError: several processes, data that cannot be read.
        ShapeError: outputs that cannot be compared.
        InvalidValuesError: outputs that are NaN, or targets that are no class.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        do = "Run it without torchrun"
        raise ConfigError(describe("processes", os.environ["WORLD_SIZE"], "one: models are compared in one", do))
    every = _SideBySide(before, others, data_spec)
    report = evaluate(
        every,
        indexed_batches(data, data_spec.batch_size or 64),
        {"distance": Mean()},
        device=data_spec.device,
        inputs=lambda batch: {NUMBER: batch[NUMBER], BATCH: batch[BATCH]},
        precision=data_spec.precision,
        progress=data_spec.progress,
        title=title,
        confidence_level=None,
        keep_samples=False,
        diagnostics=False,
    )
    return {name: every.comparison(name) for name in others}, report


def prepare(model: Callable[..., Any], data: Any, data_spec: DataSpec) -> tuple[Callable[..., Any], Any, DataSpec]:
    """A model and data as they are run: of a text or of tokens windows, and a model that gives logits for them."""
    is_series = isinstance(data, Tensor) and data.ndim == 1 and not data.is_floating_point()
    if isinstance(data, str | Tokens) or is_series:
        tokens = tokens_of(data, data_spec.tokenizer)
        data = Windows(tokens, *sizes(data_spec.window, data_spec.stride, CausalModel(model).positions))
    if not isinstance(data, Windows):
        return model, data, data_spec
    return CausalModel(model), data, replace(data_spec, batch_size=data_spec.batch_size or BATCH_SIZE)


def _concatenate(parts: Sequence[Tensor]) -> Tensor:
    """Batches in one; those with fewer predictions a sample are filled up with what does not count."""
    most = max(part.shape[1] for part in parts)
    filled = [torch.cat([part, part.new_zeros(len(part), most - part.shape[1], *part.shape[2:])], 1) for part in parts]
    return torch.cat([to_host(each) for each in filled])


def check_pair(before: Callable[..., Any], after: Callable[..., Any]) -> None:
    """Raise where two models are one, or in two places.

    Raises:
        ConfigError: they cannot be run on the same batches.
    """
    if after is before:
        do = "Quantize a copy, copy.deepcopy(model), and pass both"
        raise ConfigError(describe("after", "the same model as before", "another", do))
    homes = locations(before), locations(after)
    if homes[0] and homes[1] and homes[0] != homes[1]:
        got = " and ".join(", ".join(sorted(map(str, each))) for each in homes)
        raise ConfigError(describe("models", f"weights on {got}", "both in one place", "Move one of them"))


def _check_values(columns: dict[str, Floats], name: str) -> None:
    for column, values in columns.items():
        bad = int(np.isnan(values).sum())
        if not bad:
            continue
        if column in (KL, ERROR):
            got, do = f"NaN in {bad:,} of {len(values):,} samples", "Look at the weights, or at the dtype"
            raise InvalidValuesError(describe(f"outputs of the model before or of {name}", got, "numbers", do))
        got = f"classes that the model does not have, in {bad:,} of {len(values):,} samples"
        do = "Pass ignore_index= for targets to leave out"
        raise InvalidValuesError(describe("target", got, "indices of classes", do))
