"""``assay generate``: language models continue a prompt, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from assay.cli.declaration import same_named
from assay.cli.loaders.models import model_of
from assay.cli.loaders.named_model import Model
from assay.cli.loaders.quantized_models import is_scheme, quantize_model
from assay.cli.loaders.texts import tokenizer_of
from assay.cli.options.language_models import GenerateCommand
from assay.errors import ConfigError, describe
from assay.language import Generation, Tokenizer, generate
from assay.quantize.files.file import is_quantized


def run(options: GenerateCommand) -> None:
    """Let models continue a prompt; print their texts, how fast they come, and in how much memory."""
    from assay.cli.language_shown import beside, to_json

    generations: dict[str, Generation] = {}
    with beside() as screen:
        for name in (options.model, *options.variant):
            model, tokenizer = _open(name, options)
            more = {"tokenizer": tokenizer, "watch": screen.watcher(name, options.prompt)}
            generations[name] = generate(model, options.prompt, **same_named(generate, options, **more))
    if options.json:
        print(to_json(generations))
    else:
        screen.show(generations)


def _open(name: str, options: GenerateCommand) -> tuple[Callable[..., Any], Tokenizer | None]:
    """A model that is named; or the first one in a scheme, or with the quantized weights of a file or folder."""
    if name != options.model and is_scheme(name):
        model = quantize_model(model_of(options), name, options.device)
    elif name != options.model and is_quantized(Path(name)):
        model = _filled(model_of(options), name)
    elif name != options.model and ":" not in name and not Path(name).exists():
        expected = "a model, a scheme such as int4:g64, or a file with quantized weights"
        do = "Check the path; a function in the file module.py of this folder is module:function"
        raise ConfigError(describe("--variant", repr(name), expected, do))
    else:
        model = model_of(options, name)
    return model.model, tokenizer_of(model)


def _filled(model: Model, path: str) -> Model:
    """The model with the quantized weights of a file or folder."""
    from assay.quantize.files.file import load

    if not isinstance(model.model, nn.Module):
        do = "Name the module that it was made of"
        raise ConfigError(describe("--variant", f"{path} for {model.what}", "a module to load them into", do))
    return replace(model, model=load(model.model, path))
