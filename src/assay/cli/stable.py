"""``assay stable``: whether a model gives the same outputs when what should not matter changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import typer

from assay.cli.declaration import same_named
from assay.cli.loaders.batch_parts import parse_part, parse_parts
from assay.cli.loaders.datasets import open_data
from assay.cli.loaders.models import model_of
from assay.cli.loaders.onnx_programs import OnnxProgram
from assay.cli.options.measurement import EvaluateCommand
from assay.cli.options.reports import StableCommand
from assay.cli.output import write_and_print
from assay.errors import ConfigError, describe
from assay.stability import Stability, check_stability, compare_predictions


def run(options: StableCommand) -> None:
    """Check a model or two files, print the result, and exit with 0 (stable), 1 (depends) or 2 (not known)."""
    result = _of_model(options) if options.data else _of_files(options)
    write_and_print(result, options)
    raise typer.Exit(result.exit_code)


def _of_files(options: StableCommand) -> Stability:
    if len(options.against) != 1:
        do = "Name data with --data, or a second file of predictions with --against"
        raise ConfigError(describe("--data", "no data", "samples for the model", do))
    second = options.against[0]
    title = f"{Path(options.model).name} and {Path(second).name}"
    return compare_predictions(options.model, second, preds=options.preds, title=title)


def _of_model(options: StableCommand) -> Stability:
    torch.manual_seed(options.seed)
    model = model_of(options)
    same = {name: getattr(options, name) for name in ("model", "data", "inputs", "target", "text", "seed")}
    data = open_data(EvaluateCommand(**same, metrics=(), batch_size=options.samples), model, {}, needs_target=False)
    arguments = same_named(
        check_stability,
        options,
        mode="as is" if options.as_is else "eval",
        inputs=parse_parts(options.inputs),
        target=parse_part(options.target),
        preds=parse_part(options.preds),
        against={Path(named).name: _other(options, named) for named in options.against},
        title=model.name,
    )
    return check_stability(model.model, data, **arguments)


def _other(options: StableCommand, named: str) -> Callable[..., Any]:
    return OnnxProgram(named) if named.endswith(".onnx") else model_of(options, named).model
