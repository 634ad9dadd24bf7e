"""Stored predictions of the same samples, compared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay._atomic import reading
from assay.data.files import open_path
from assay.data.options import DataOptions, ModelNeeds
from assay.errors import ConfigError, describe
from assay.evaluation.model.output_gap import gap_between, spacing
from assay.stability.result import Stability, StabilityCheck
from assay.stability.verdict import verdict_of


def compare_predictions(first: Any, second: Any, *, preds: str = "", title: str = "") -> Stability:
    """Whether two sets of predictions of the same samples differ by more than rounding.

    A difference of up to 64 ulps is rounding. Float64 values that are all numbers of float32 are judged as float32.

    Args:
        first: predictions, a row a sample: a tensor, or a file of them, such as .npy, .npz, .safetensors or .parquet.
        second: the same of another run.
        preds: the name of the array or column in files.
        title: of the result.

    Returns:
        One row: the largest difference, how many decisions differ, and the verdict.

    Raises:
        ConfigError: a file or column is not there, or there are other samples.

    Example:
        >>> from assay.stability import compare_predictions
        >>> compare_predictions(torch.tensor([[0.1, 0.9]]), torch.tensor([[0.1, 0.8]])).outcome
        'depends'
    """
    one, other = _values(first, preds), _values(second, preds)
    if one.shape != other.shape:
        do = "Compare predictions of the same samples, in the same order"
        raise ConfigError(describe("predictions", str(tuple(other.shape)), f"{tuple(one.shape)}, as the first", do))
    gap = gap_between(one, other, max(map(_spacing, (one, other))))
    verdict = verdict_of(gap, None)
    cause = "the second differs from the first by more than rounding" if verdict == "depends" else ""
    about = gap.largest, gap.ulps, gap.rows, gap.flips, gap.sample
    row = StabilityCheck("predictions", "the second file with the first", verdict, *about, cause=cause)
    return Stability.of(title or "Stored predictions", [row], ["Rounding: up to 64 ulps of the dtype."])


def _values(given: Any, preds: str) -> Tensor:
    if not isinstance(given, str | os.PathLike):
        return torch.as_tensor(given, device="cpu")
    if os.fspath(given).endswith(".npy"):
        with reading(Path(given), "an array that NumPy saved"):
            return torch.as_tensor(np.load(given, allow_pickle=False), device="cpu")
    options = DataOptions(inputs=(preds,) if preds else (), target="")
    data = open_path(given, options, ModelNeeds(dtype=None, is_identity=True))
    batches = [_only(each, data.inputs, given) for each in data.data]
    return torch.cat(batches)


def _only(batch: Any, inputs: Any, file: Any) -> Tensor:
    names = [inputs] if isinstance(inputs, str) else list(inputs or batch)
    if len(names) != 1 or not isinstance(batch[names[0]], Tensor):
        got = f"{len(names)} columns in {os.fspath(file)}"
        raise ConfigError(describe("preds", got, "one array of predictions", "Name it with preds="))
    found: Tensor = batch[names[0]]
    return found


def _spacing(values: Tensor) -> float:
    if values.dtype == torch.float64 and bool((values == values.to(torch.float32)).all()):
        return spacing(torch.float32)
    return spacing(values.dtype)
