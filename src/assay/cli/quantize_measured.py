"""What ``assay quantize --eval`` measures: before and after, layer by layer, scheme by scheme, a recipe for a size."""

from __future__ import annotations

import copy
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from assay._atomic import write_text
from assay.cli.loaders.datasets import open_data
from assay.cli.loaders.models import model_of
from assay.cli.loaders.named_model import Model
from assay.cli.loaders.texts import read_text, tokenizer_of
from assay.cli.options.measurement import EvaluateCommand
from assay.cli.options.quantization import QuantizeCommand
from assay.cli.output import print_as, write_report, write_then_show
from assay.cli.quantize_formats import check_plan, write_in_format
from assay.cli.quantize_plan import (
    calibration_of,
    check_calibration,
    check_floats,
    is_folder_of_shards,
    make_plan,
    module_of,
    stream,
    write_model,
)
from assay.errors import ConfigError, describe
from assay.metrics.parsing import open_metrics
from assay.quantize.analysis import DataSpec, measure, recipe_for_budget, sensitivity, sweep
from assay.quantize.analysis.budget import SCHEMES
from assay.quantize.planning.apply import WITHOUT_INPUTS
from assay.quantize.planning.plan import Plan
from assay.report import Report

TEXTS = (".txt", ".md", ".rst", ".py", ".tex")
"""Files that are texts for language models; others are data as ``assay evaluate`` names them."""


def run(options: QuantizeCommand) -> None:
    """Measure, print the report, and write it where a folder was named.

    Only before and after (neither a sweep, a budget nor layers) makes a quantized model, which is written, too.
    """
    _check(options)
    check_floats(Path(options.model))
    model = model_of(options)
    data, reading = _reading(model, options)
    if options.layers:
        report = _layers(model, data, reading, options)
    elif options.budget:
        report = _budget(model, data, reading, options)
    elif options.sweep:
        points = sweep(
            module_of(model), data, options.sweep, data_spec=reading, **_how(model, options), title=model.name
        )
        report = points.report
    else:
        report = _before_after(model, data, reading, options)
    _output(report, model, options)


def _check(options: QuantizeCommand) -> None:
    if not options.eval:
        do = "Name a text file, or data as assay evaluate names them, with --eval"
        raise ConfigError(describe("--eval", "nothing to measure on", "data", do))
    kinds = [name for name in ("layers", "budget") if getattr(options, name)]
    kinds += ["sweep"] if options.sweep and not options.budget else []
    if len(kinds) > 1:
        got = " and ".join(f"--{name}" for name in kinds)
        raise ConfigError(describe("assay quantize", got, "one of them", "Run them one after the other"))
    if kinds and options.format:
        do = "Leave --format out, or measure before and after"
        raise ConfigError(describe("--format", f"a format with --{kinds[0]}", "none: no model is written", do))
    if kinds and options.metrics:
        do = "Leave --metrics out, or measure before and after"
        raise ConfigError(describe("--metrics", f"metrics with --{kinds[0]}", "none: KL divergence ranks", do))
    if options.plan:
        raise ConfigError(describe("--plan", "--plan and --eval", "one of them", "Leave one out"))


def _before_after(model: Model, data: Any, reading: DataSpec, options: QuantizeCommand) -> Report:
    after = copy.deepcopy(module_of(model))
    plan = make_plan(after, options)
    if not options.json:
        plan.show()
    check_plan(plan, after, model.folder, options.format, options.out)
    check_calibration(plan.method, options)
    plan.apply(after, calibration=calibration_of(model, options, plan))
    report = measure(
        model.model,
        after,
        data,
        open_metrics(options.metrics) if options.metrics else None,
        data_spec=reading,
        seed=options.seed,
        title=f"{model.name} after quantization",
    )
    if options.out is not None:
        _write(model, after, plan, options, options.out)
    return report


def _write(model: Model, after: nn.Module, plan: Plan, options: QuantizeCommand, out: Path) -> None:
    """Write the quantized model; of a folder as Hugging Face writes it a folder like it, with all that is beside."""
    if options.calibration or model.folder is None or not is_folder_of_shards(model.folder):
        write_in_format(out, options.format, partial(write_model, after, model.folder))
    else:
        write_in_format(out, options.format, partial(stream, model.folder, plan))


def _layers(model: Model, data: Any, reading: DataSpec, options: QuantizeCommand) -> Report:
    scheme = options.recipe or options.scheme or "int4"
    title = f"{model.name}, layer by layer"
    return sensitivity(module_of(model), data, scheme, data_spec=reading, **_how(model, options), title=title).report


def _budget(model: Model, data: Any, reading: DataSpec, options: QuantizeCommand) -> Report:
    schemes = options.sweep or SCHEMES
    title = f"{model.name} within {options.budget}"
    result = recipe_for_budget(
        module_of(model), data, options.budget, schemes=schemes, data_spec=reading, **_how(model, options), title=title
    )
    if options.out is not None:
        folder = _folder(options.out)
        print(write_text(folder / "recipe.toml", result.recipe.to_toml()), file=sys.stderr)
    elif not options.json:
        print(result.recipe.to_toml(), end="")
    return result.report


def _how(model: Model, options: QuantizeCommand) -> dict[str, Any]:
    check_calibration(options.method, options)
    return {
        "method": WITHOUT_INPUTS if options.calibration else options.method or "nearest",
        "calibration": calibration_of(model, options),
        "include": options.include,
        "exclude": options.exclude,
    }


def _reading(model: Model, options: QuantizeCommand) -> tuple[Any, DataSpec]:
    """The data, and how they are read: a text for a language model, or data as ``assay evaluate`` names them."""
    reading = DataSpec(window=options.window, stride=options.stride, device=options.device)
    if Path(options.eval).suffix in TEXTS:
        return read_text(Path(options.eval), "--eval"), replace(reading, tokenizer=tokenizer_of(model))
    if options.window or options.stride:
        expected = f"a text, a file that ends with {', '.join(TEXTS)}"
        raise ConfigError(describe("--eval", f"{options.eval} with --window or --stride", expected, "Leave them out"))
    named = EvaluateCommand(model=model.name, data=options.eval, metrics=options.metrics, seed=options.seed)
    data = open_data(named, model, open_metrics(options.metrics) if options.metrics else {})
    return data.data, replace(reading, inputs=data.inputs, target=data.target)


def _folder(out: Path) -> Path:
    """The folder of the report: the one that was named, or that of the file."""
    folder = out.parent if out.suffix in (".safetensors", ".gguf") else out
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _output(report: Report, model: Model, options: QuantizeCommand) -> None:
    """Write a report with what it is of where a folder was named, and print it."""
    about = f"Model: {model.name} ({model.what}).", f"Data: {Path(options.eval).name}."
    report = replace(report, notes=(*report.notes, *about))
    folder = None if options.out is None else _folder(options.out)
    write_then_show(lambda: write_report(report, folder), lambda: print_as(report, options))
