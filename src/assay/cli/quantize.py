"""``assay quantize``: what quantization does to a model on a device, printed first; then done, and written."""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from assay.cli.loaders.models import open_model
from assay.devices.policies import default_device
from assay.errors import AssayWarning, ConfigError, describe
from assay.quantize.files.file import is_quantized, save
from assay.quantize.files.meta_models import from_config, from_names
from assay.quantize.files.source import CONFIG, FILE, INDEX, TensorSource, config_of
from assay.quantize.files.stream import quantize_shards
from assay.quantize.planning.matrix import markdown, matrix
from assay.quantize.planning.plan import Plan, plan
from assay.quantize.tuning.measure import DTYPES, SCHEMES, show, tune
from assay.quantize.tuning.table import file_for


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line.

    Attributes:
        scheme: a scheme, or several in order of preference; empty where a recipe was named, or none.
        recipe: a file, or JSON.
        plan_only: print the plan and do nothing.
        apply: a file with a plan, as ``--plan --json`` prints it, to be done instead of a new one.
        out: the folder or file to write.
        factory: what makes the model that weights are for.
        trust: whether the model's file may run code.
    """

    scheme: str = ""
    device: str = "auto"
    dtype: str = ""
    recipe: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    method: str = ""
    release: str = ""
    plan_only: bool = False
    apply: Path | None = None
    out: Path | None = None
    factory: str = ""
    trust: bool = False
    seed: int = 0
    as_json: bool = False
    as_markdown: bool = False


def run(named: str, options: Options) -> None:
    """Print the plan for a model, and do it unless only the plan was asked for.

    A folder as Hugging Face writes it is quantized tensor by tensor and need not fit into memory.

    Args:
        named: the model.
        options: everything else.

    Raises:
        ConfigError: a model that cannot be found or made, a plan that cannot be, or nowhere to write to.
    """
    if options.out is None and not options.plan_only:
        do = "Name --out FOLDER, or ask for --plan alone"
        raise ConfigError(describe("assay quantize", "no --out", "where to write the model", do))
    sys.path.insert(0, os.getcwd())  # a command of its own has only its folder there
    folder = Path(named)
    check_floats(folder)
    if is_folder_of_shards(folder):
        made = _printed(skeleton_of(folder), options)
        if not options.plan_only:
            _write_shards(folder, made, options)
        return
    model = open_model(named, factory=options.factory, trust=options.trust, seed=options.seed).model
    if not isinstance(model, nn.Module):
        do = "Name a function that gives a torch.nn.Module"
        raise ConfigError(describe("MODEL", type(model).__name__, "a module, whose layers can be replaced", do))
    made = _printed(model, options)
    if not options.plan_only:
        assert options.out is not None
        made.apply(model)
        print_path(save(model, options.out))


def print_matrix() -> None:
    """Print what works on which device, as Markdown."""
    print(markdown(matrix()), end="")


def tune_here(device: str, schemes: str, dtype: str) -> None:
    """Measure the kernels of a device of this machine, keep what was found, and print it."""
    where = str(default_device()) if device == "auto" else device
    named = [each.strip() for each in schemes.split(",")] if schemes else SCHEMES
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssayWarning)
        found = tune(where, schemes=named, dtypes=(dtype,) if dtype else DTYPES)
    print(show(found))
    for each in caught:
        print(each.message, file=sys.stderr)
    path = file_for(found.device)
    if path is None:
        print("there is no cache folder that can be written, so nothing was kept", file=sys.stderr)
    elif not caught:
        print_path(path)


def make_plan(model: nn.Module, options: Options) -> Plan:
    """The plan that was asked for on the command line.

    Raises:
        ConfigError: a plan in a file and options that would change it, or a plan that cannot be.
        StateError: the file holds no plan.
        OSError: it cannot be read.
    """
    if options.apply is not None:
        changing = ("scheme", "recipe", "include", "exclude", "method", "dtype", "release")
        if given := [name for name in changing if getattr(options, name)]:
            do = "Leave them out, or make a new plan with --plan --json"
            got = f"--apply with {', '.join(f'--{name}' for name in given)}"
            raise ConfigError(describe("assay quantize", got, "the plan as it is in the file", do))
        return Plan.from_json(options.apply.read_text("utf-8"), str(options.apply))
    return plan(
        model,
        options.scheme or None,
        options.device,
        recipe=options.recipe or None,
        dtype=options.dtype or None,
        include=options.include,
        exclude=options.exclude,
        method=options.method or None,
        release=options.release or None,
    )


def _printed(model: nn.Module, options: Options) -> Plan:
    made = make_plan(model, options)
    if options.as_json:
        print(made.to_json(), end="")
    elif options.as_markdown:
        print(made.to_markdown(), end="")
    else:
        made.show()
    sys.stdout.flush()
    return made


def check_floats(path: Path) -> None:
    """Raise where a file or a folder holds a quantized model.

    Raises:
        ConfigError: it does.
        StateError: its configuration cannot be read.
    """
    config_of(path if path.is_dir() else None)
    if is_quantized(path):
        do = "Name the model that it was made from"
        raise ConfigError(describe(str(path), "a model that is quantized already", "one of floats", do))


def is_folder_of_shards(path: Path) -> bool:
    """Whether it is a folder with safetensors as Hugging Face writes it."""
    return path.is_dir() and (path / CONFIG).is_file() and any((path / name).is_file() for name in (FILE, INDEX))


def skeleton_of(folder: Path) -> nn.Module:
    """The model of a folder without its weights, but with their dtypes."""
    source = TensorSource(folder)
    model = from_config(folder) or from_names(source.tensors.values())
    usual = Counter(stored.dtype for stored in source.tensors.values()).most_common(1)[0][0]
    for name, held in model.named_parameters():
        if held.is_meta:
            stored = source.tensors.get(name)
            held.data = torch.empty_like(held, dtype=stored.dtype if stored else usual)
    return model


def _write_shards(folder: Path, made: Plan, options: Options) -> None:
    assert options.out is not None
    print_path(quantize_shards(folder, options.out, made).target)


def print_path(path: Path) -> None:
    """Say on the error stream what was written."""
    print(path, file=sys.stderr)
