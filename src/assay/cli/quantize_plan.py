"""What ``assay quantize`` plans and refuses, whether it measures or not."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from assay.cli.declaration import same_named
from assay.cli.loaders.named_model import Model
from assay.cli.loaders.texts import read_text, tokenizer_of
from assay.cli.options.quantization import QuantizeCommand
from assay.errors import ConfigError, describe
from assay.quantize.calibration import calibrate
from assay.quantize.files.file import is_quantized, save
from assay.quantize.planning.apply import GPTQ
from assay.quantize.planning.plan import Plan
from assay.quantize.planning.plan_builder import plan
from assay.quantize.rounding import Calibration
from assay.quantize.streaming.job import copy_beside, quantize_shards
from assay.quantize.streaming.tensor_source import CONFIG, FILE, INDEX, TensorSource, config_of


def make_plan(model: nn.Module, options: QuantizeCommand) -> Plan:
    """The plan that was asked for on the command line."""
    if options.apply is not None:
        changing = ("scheme", "recipe", "include", "exclude", "method", "dtype", "release")
        if conflicting := [name for name in changing if getattr(options, name)]:
            do = "Leave them out, or make a new plan with --plan --json"
            got = f"--apply with {', '.join(f'--{name}' for name in conflicting)}"
            raise ConfigError(describe("assay quantize", got, "the plan without other options", do))
        return Plan.from_json(options.apply.read_text("utf-8"), str(options.apply))
    return plan(model, **same_named(plan, options))


def module_of(model: Model) -> nn.Module:
    """The module of a model."""
    if not isinstance(model.model, nn.Module):
        do = "Name a module, or a function that makes one"
        raise ConfigError(describe("MODEL", model.what, "a module whose layers can be replaced", do))
    return model.model


def check_floats(path: Path) -> None:
    """Raise where a file or a folder holds a quantized model."""
    config_of(path if path.is_dir() else None)
    if is_quantized(path):
        do = "Name the model that it was made from"
        raise ConfigError(describe(str(path), "a model that is quantized already", "one of floats", do))


def is_folder_of_shards(path: Path) -> bool:
    """Whether it is a folder with safetensors as Hugging Face writes it."""
    return path.is_dir() and (path / CONFIG).is_file() and any((path / name).is_file() for name in (FILE, INDEX))


def check_calibration(method: str, options: QuantizeCommand) -> None:
    """Raise where a method lacks its text, or has one that it does not take."""
    if method == GPTQ and not options.calibration:
        do = "Name --calibration FILE, some hundred thousand characters as the model will read them"
        raise ConfigError(describe("--calibration", "none", f"a file with text for --method {GPTQ}", do))
    if method != GPTQ and options.calibration:
        do = f"Add --method {GPTQ}, or leave --calibration out"
        raise ConfigError(describe("--calibration", f"a text for the method {method or 'nearest'}", "none", do))


def check_calibration_text(options: QuantizeCommand) -> None:
    """Raise where GPTQ was asked for without a text, or the text cannot be read; a plan of a large model takes long."""
    if options.method == GPTQ:
        check_calibration(GPTQ, options)
    if options.calibration:
        read_text(Path(options.calibration), "--calibration")


def calibration_of(model: Model, options: QuantizeCommand, plan: Plan | None = None) -> Calibration | None:
    """What the text of --calibration sends through the layers of a plan, or through all; None without a text."""
    if not options.calibration:
        return None
    module = module_of(model)
    linear = [name for name, each in module.named_modules() if isinstance(each, nn.Linear)]
    names = linear if plan is None else [each.name for each in plan.layers if each.scheme and each.name in linear]
    text = read_text(Path(options.calibration), "--calibration")
    return calibrate(module, text, names, tokenizer=tokenizer_of(model), window=options.window)


def stream(folder: Path, plan: Plan, out: Path) -> Path:
    """Quantize a Hugging Face folder tensor by tensor; returns where the result is."""
    return quantize_shards(folder, out, plan).target


def write_model(model: nn.Module, folder: Path | None, out: Path) -> Path:
    """Write a quantized model; one of a Hugging Face folder as a folder like it, with all that is beside."""
    save(model, out)
    if folder is not None and is_folder_of_shards(folder) and out.is_dir():
        copy_beside(TensorSource(folder), out)
    return out
