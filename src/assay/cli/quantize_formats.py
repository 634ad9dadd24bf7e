"""What ``assay quantize --format`` writes: the quantized model, in the form of assay or in that of another library."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from assay.cli.output import print_path
from assay.errors import ConfigError, describe
from assay.quantize.candidates import by_weight
from assay.quantize.files.description import WeightDescription
from assay.quantize.formats.export import ExportResult, check_format, export
from assay.quantize.planning.plan import Plan


def write_in_format(out: Path, format: str, write: Callable[[Path], Path]) -> None:
    """Write a quantized model by a function that writes assay's form, and convert that where a format is named.

    What was written before the conversion lies beside the target, so that after a kill the same command resumes.
    """
    if not format:
        print_path(write(out))
        return
    work = out.with_name(f".{out.name}.quantized")
    write(work)
    show_export(export(work, out, format))
    shutil.rmtree(work)


def show_export(result: ExportResult) -> None:
    """Print where an export is, and its notes on standard error."""
    for note in result.notes:
        print(note, file=sys.stderr)
    print_path(result.target)


def check_plan(plan: Plan, model: nn.Module, folder: Path | None, format: str, out: Path | None) -> None:
    """Raise where a format cannot express what a plan makes of a model."""
    if not format:
        return
    if folder is None or not (folder / "config.json").is_file():
        do = "Name such a folder, or leave --format out"
        raise ConfigError(describe("--format", "a model of Python code", "a Hugging Face folder", do))
    weights = {
        f"{layer.name}.weight": WeightDescription(layer.kind, layer.scheme, layer.shape, getattr(torch, layer.dtype))
        for layer in plan.layers
        if layer.scheme is not None
    }
    check_format(format, weights, by_weight(model), out)
