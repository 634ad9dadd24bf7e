"""What ``assay quantize --eval`` measures: before and after, layer by layer, scheme by scheme, a recipe for a size."""

from __future__ import annotations

import copy
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from assay._atomic import write_text
from assay.cli._streams import write_then_show
from assay.cli.language import read_text, tokenizer_of
from assay.cli.loaders.datasets import open_data
from assay.cli.loaders.metrics import open_metrics
from assay.cli.loaders.models import Model, open_model
from assay.cli.loaders.options import Options as Named
from assay.cli.quantize import Options, check_floats, is_folder_of_shards, make_plan, print_path
from assay.errors import ConfigError, describe
from assay.quantize.analysis import DataSpec, measure, recipe_for_budget, sensitivity, sweep
from assay.quantize.analysis.budget import SCHEMES
from assay.quantize.files.file import save
from assay.quantize.files.stream import quantize_shards
from assay.quantize.planning.plan import Plan
from assay.report import Report

TEXTS = (".txt", ".md", ".rst", ".py", ".tex")
"""Files that are texts for language models; others are data as ``assay evaluate`` names them."""


@dataclass(frozen=True)
class Measuring:
    """What was asked for, besides the options of ``assay quantize``.

    Attributes:
        data: a text file for a language model, or data as ``assay evaluate`` names them.
        metrics: further metrics, as ``assay evaluate`` names them.
        sweep: schemes, with commas between.
        budget: a size, such as ``4.5bits`` or ``300MB``.
        layers: each layer alone.
        window: of a text, tokens at once.
        stride: of a text, how far windows are apart.
    """

    data: str
    metrics: tuple[str, ...] = ()
    sweep: str = ""
    budget: str = ""
    layers: bool = False
    window: int | None = None
    stride: int | None = None


def run(named: str, options: Options, asked: Measuring) -> None:
    """Measure what was asked for, print the report, and write it where a folder was named.

    Only before and after (neither a sweep, a budget nor layers) makes a quantized model, which is written, too.

    Args:
        named: the model.
        options: of ``assay quantize``.
        asked: what to measure, on what.

    Raises:
        ConfigError: a model, data or schemes that cannot be found or made.
    """
    _check(options, asked)
    sys.path.insert(0, os.getcwd())
    check_floats(Path(named))
    model = open_model(named, factory=options.factory, trust=options.trust, seed=options.seed)
    data, reading = _reading(model, asked, options)
    if asked.layers:
        report = _layers(model, data, reading, options)
    elif asked.budget:
        report = _budget(model, data, reading, options, asked)
    elif asked.sweep:
        found = sweep(_module(model), data, _listed(asked.sweep), data_spec=reading, **_how(options), title=model.name)
        report = found.report
    else:
        report = _before_after(model, data, reading, options, asked)
    _told(report, model, options, asked)


def _check(options: Options, asked: Measuring) -> None:
    if not asked.data:
        do = "Name a text file, or data as assay evaluate names them, with --eval"
        raise ConfigError(describe("--eval", "nothing to measure on", "data", do))
    kinds = [name for name in ("layers", "budget") if getattr(asked, name)]
    kinds += ["sweep"] if asked.sweep and not asked.budget else []
    if len(kinds) > 1:
        got = " and ".join(f"--{name}" for name in kinds)
        raise ConfigError(describe("assay quantize", got, "one of them", "Run them one after the other"))
    if kinds and asked.metrics:
        do = "Leave --metrics out, or measure before and after"
        raise ConfigError(describe("--metrics", f"metrics with --{kinds[0]}", "none: KL divergence ranks", do))
    if options.plan_only:
        raise ConfigError(describe("--plan", "--plan and --eval", "one of them", "Leave one out"))


def _before_after(model: Model, data: Any, reading: DataSpec, options: Options, asked: Measuring) -> Report:
    after = copy.deepcopy(_module(model))
    made = make_plan(after, options)
    if not options.as_json:
        made.show()
    made.apply(after)
    report = measure(
        model.model,
        after,
        data,
        open_metrics(asked.metrics) if asked.metrics else None,
        inputs=reading.inputs,
        target=reading.target,
        tokenizer=reading.tokenizer,
        window=reading.window,
        stride=reading.stride,
        device=reading.device,
        seed=options.seed,
        title=f"{model.name} after quantization",
    )
    if options.out is not None:
        _write(model, after, made, options, options.out)
    return report


def _write(model: Model, after: nn.Module, made: Plan, options: Options, out: Path) -> None:
    """Write the quantized model; of a folder as Hugging Face writes it a folder like it, with all that is beside."""
    if model.folder is None or not is_folder_of_shards(model.folder):
        print_path(save(after, out))
        return
    print_path(quantize_shards(model.folder, out, made).target)


def _layers(model: Model, data: Any, reading: DataSpec, options: Options) -> Report:
    scheme = options.recipe or options.scheme or "int4"
    title = f"{model.name}, layer by layer"
    return sensitivity(_module(model), data, scheme, data_spec=reading, **_how(options), title=title).report


def _budget(model: Model, data: Any, reading: DataSpec, options: Options, asked: Measuring) -> Report:
    schemes = _listed(asked.sweep) or SCHEMES
    title = f"{model.name} within {asked.budget}"
    found = recipe_for_budget(
        _module(model), data, asked.budget, schemes=schemes, data_spec=reading, **_how(options), title=title
    )
    if options.out is not None:
        folder = _folder(options.out)
        print(write_text(folder / "recipe.toml", found.recipe.to_toml()), file=sys.stderr)
    elif not options.as_json:
        print(found.recipe.to_toml(), end="")
    return found.report


def _how(options: Options) -> dict[str, Any]:
    return {
        "method": options.method or "nearest",
        "include": options.include,
        "exclude": options.exclude,
    }


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _module(model: Model) -> nn.Module:
    if not isinstance(model.model, nn.Module):
        do = "Name a module, or a function that makes one"
        raise ConfigError(describe("MODEL", model.what, "a module whose layers can be replaced", do))
    return model.model


def _reading(model: Model, asked: Measuring, options: Options) -> tuple[Any, DataSpec]:
    """The data, and how they are read: a text for a language model, or data as ``assay evaluate`` names them."""
    reading = DataSpec(window=asked.window, stride=asked.stride, device=options.device)
    if Path(asked.data).suffix in TEXTS:
        return read_text(Path(asked.data), "--eval"), replace(reading, tokenizer=tokenizer_of(model))
    if asked.window or asked.stride:
        expected = f"a text, a file that ends with {', '.join(TEXTS)}"
        raise ConfigError(describe("--eval", f"{asked.data} with --window or --stride", expected, "Leave them out"))
    named = Named(model=model.name, data=asked.data, metrics=asked.metrics, seed=options.seed)
    found = open_data(named, model, open_metrics(asked.metrics) if asked.metrics else {})
    return found.data, replace(reading, inputs=found.inputs, target=found.target)


def _folder(out: Path) -> Path:
    """The folder of the report: the one that was named, or that of the file."""
    folder = out.parent if out.suffix == ".safetensors" else out
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _told(report: Report, model: Model, options: Options, asked: Measuring) -> None:
    """Write a report with what it is of where a folder was named, and print it."""
    about = f"Model: {model.name} ({model.what}).", f"Data: {Path(asked.data).name}."
    report = replace(report, notes=(*report.notes, *about))
    write_then_show(lambda: _written(report, options.out), lambda: _show(report, options))


def _written(report: Report, out: Path | None) -> list[Path]:
    if out is None:
        return []
    folder = _folder(out)
    return [report.save(folder / "report.json"), report.to_html(folder / "report.html")]


def _show(report: Report, options: Options) -> None:
    if options.as_json:
        print(report.to_json(), end="")
    elif options.as_markdown:
        print(report.to_markdown(), end="")
    else:
        report.show()
