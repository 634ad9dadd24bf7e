"""``assay quantize``: what quantization does to a model on a device, printed first; then done, and written."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

import torch
from torch import nn

from assay.cli.loaders.models import model_of
from assay.cli.options.quantization import QuantizeCommand
from assay.cli.output import print_as, print_path
from assay.cli.quantize_formats import check_plan, show_export, write_in_format
from assay.cli.quantize_plan import (
    calibration_of,
    check_calibration,
    check_calibration_text,
    check_floats,
    is_folder_of_shards,
    make_plan,
    module_of,
    stream,
    write_model,
)
from assay.devices.policies import default_device
from assay.errors import AssayWarning, ConfigError, describe
from assay.quantize.files.file import is_quantized
from assay.quantize.files.meta_models import from_config
from assay.quantize.formats.export import export
from assay.quantize.planning.matrix import markdown
from assay.quantize.streaming.tensor_source import TensorSource, from_names
from assay.quantize.tuning import DTYPES, SCHEMES, show, tune
from assay.quantize.tuning_records import file_for


def run(options: QuantizeCommand) -> None:
    """Print the plan for a model, and do it unless only the plan was asked for; or measure, tune or print the matrix.

    A folder as Hugging Face writes it is quantized tensor by tensor and need not fit into memory.
    """
    if options.matrix:
        print(markdown(), end="")
    elif options.tune:
        _tune(options)
    elif not options.model:
        do = "Name it, as in assay quantize nets:model"
        raise ConfigError(describe("MODEL", "none", "package.module:factory, a file or a folder", do))
    elif any((options.eval, options.sweep, options.budget, options.layers, options.metrics, options.stride)) or (
        options.window and not options.calibration
    ):
        from assay.cli.quantize_measured import run as run_measured

        run_measured(options)
    else:
        _quantize(options)


def _quantize(options: QuantizeCommand) -> None:
    if options.out is None and not options.plan:
        do = "Name --out FOLDER, or ask for --plan alone"
        raise ConfigError(describe("assay quantize", "no --out", "where to write the model", do))
    folder = Path(options.model)
    if options.format and options.out is not None and is_quantized(folder):
        show_export(export(folder, options.out, options.format))
        return
    check_floats(folder)
    if not options.plan:
        check_calibration_text(options)
    is_streamed = is_folder_of_shards(folder) and not options.calibration
    named = None if is_streamed else model_of(options)
    model = skeleton_of(folder) if named is None else module_of(named)
    plan = make_plan(model, options)
    check_plan(plan, model, folder if named is None else named.folder, options.format, options.out)
    print_as(plan, options)
    sys.stdout.flush()
    if options.plan:
        return
    assert options.out is not None
    check_calibration(plan.method, options)
    if named is None:
        write_in_format(options.out, options.format, partial(stream, folder, plan))
    else:
        plan.apply(model, calibration=calibration_of(named, options, plan))
        write_in_format(options.out, options.format, partial(write_model, model, named.folder))


def _tune(options: QuantizeCommand) -> None:
    """Measure the kernels of a device of this machine, keep the result, and print it."""
    where = str(default_device()) if options.device == "auto" else options.device
    named = [each.strip() for each in options.scheme.split(",")] if options.scheme else SCHEMES
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssayWarning)
        records = tune(where, schemes=named, dtypes=(options.dtype,) if options.dtype else DTYPES)
    print(show(records))
    for each in caught:
        print(each.message, file=sys.stderr)
    path = file_for(records.device)
    if path is None:
        print("there is no cache folder that can be written, so nothing was kept", file=sys.stderr)
    elif not caught:
        print_path(path)


def skeleton_of(folder: Path) -> nn.Module:
    """The model of a folder without its weights, but with their dtypes."""
    source = TensorSource(folder)
    model = from_config(folder) or from_names(source.tensors.values())
    usual = Counter(stored.dtype for stored in source.tensors.values()).most_common(1)[0][0]
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            stored = source.tensors.get(name)
            parameter.data = torch.empty_like(parameter, dtype=stored.dtype if stored else usual)
    return model
