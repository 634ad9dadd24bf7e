"""Models that assay quantized: files and folders that `assay.quantize` wrote, and schemes to quantize by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torch import nn

from assay.cli.loaders.named_model import Model
from assay.cli.loaders.python_objects import construct_module
from assay.errors import ConfigError, describe
from assay.evaluation.model.exported_models import ExportedModel, ScriptedModel


def open_quantized(path: Path, factory: str, seed: int) -> Model:
    """A quantized model in a file or a folder."""
    from assay.quantize.files.file import load, load_folder

    if not factory and (path / "config.json").is_file():
        return Model(path.resolve().name, "quantized weights of a folder", load_folder(path), folder=path)
    if not factory:
        do = "Name the function that makes the unquantized model with --model-factory package.module:function"
        raise ConfigError(describe("MODEL", f"quantized weights in {path}", "a model to load them into", do))
    net = construct_module(factory, seed)
    return Model(path.name, f"quantized weights for {factory}", load(net, path))


def is_scheme(text: str) -> bool:
    """Whether a text is a scheme and nothing that is there under that name.

    Example:
        >>> is_scheme("int4:g64"), is_scheme("nets:net")
        (True, False)
    """
    from assay.quantize.scheme import Scheme

    if Path(text).exists():
        return False
    try:
        Scheme.parse(text)
    except ConfigError:
        return False
    return True


def quantize_model(model: Model, scheme: str, device: str) -> Model:
    """A model with its layers quantized; the one given is changed."""
    from assay.quantize import plan

    if not isinstance(model.model, nn.Module) or isinstance(model.model, ExportedModel | ScriptedModel):
        do = "Name the module that it was made of"
        raise ConfigError(describe("--variant", f"{scheme} of {model.what}", "a module to quantize", do))
    made_of = plan(model.model, scheme, device).apply(model.model)
    return replace(model, model=made_of, what=f"{model.what}, quantized by {scheme}")
