"""``assay evaluate --task lm`` and ``assay generate``: language models that are named, on texts and prompts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from assay.cli.loaders.models import Model, open_model
from assay.cli.loaders.options import Options as EvaluateOptions
from assay.cli.loaders.quantized_models import is_scheme, quantize_model
from assay.errors import ConfigError, StateError, describe
from assay.huggingface import open_tokenizer
from assay.language import Generation, Tokenizer, generate, perplexity
from assay.language.scoring import BATCH_SIZE, LEVEL
from assay.quantize.files.file import is_quantized
from assay.report import Report

_FITTING = (
    "model",
    "data",
    "task",
    "window",
    "stride",
    "factory",
    "trust",
    "device",
    "precision",
    "batch_size",
    "level",
    "out",
    "resume",
    "run_id",
    "seed",
    "title",
    "json",
    "verbose",
)


def evaluated(options: EvaluateOptions) -> Report:
    """The report of ``assay evaluate --task lm``: perplexity of a text in a file.

    Args:
        options: what was asked for.

    Raises:
        ConfigError: a file that is not there, or options that say nothing of a text.
        StateError: the file is no text.
    """
    plain = EvaluateOptions()
    unfit = [
        each.name
        for each in fields(EvaluateOptions)
        if each.name not in _FITTING and getattr(options, each.name) != getattr(plain, each.name)
    ]
    if unfit:
        got = ", ".join(f"--{name.replace('_', '-')}" for name in unfit)
        expected = "options of a text: --window, --stride, --batch-size, --level, --device, --precision"
        raise ConfigError(describe("--task lm", got, expected, "Leave the others out"))
    text = read_text(Path(options.data), "--data")
    model = open_model(options.model, factory=options.factory, trust=options.trust, seed=options.seed)
    report = perplexity(
        model.model,
        text,
        tokenizer=tokenizer_of(model),
        window=options.window,
        stride=options.stride,
        device=options.device,
        batch_size=BATCH_SIZE if options.batch_size is None else options.batch_size,
        confidence_level=LEVEL if options.level is None else options.level or None,  # 0 is for no intervals
        precision=options.precision or None,
        resume=options.resume,
        run_id=options.run_id,
        title=options.title or model.name,
    )
    about = f"Model: {model.name} ({model.what}).", f"Data: {Path(options.data).name}.", _tokens(model)
    return replace(report, notes=(*report.notes, *about))


def read_text(path: Path, option: str) -> str:
    """A text as it stands in a file, with its line ends.

    Raises:
        ConfigError: no such file.
        StateError: it is not UTF-8.
    """
    if not path.is_file():
        raise ConfigError(describe(option, f"{path}, which is no file", "a file with text", "Check the path"))
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise StateError(describe(str(path), f"bytes that are no UTF-8 ({error})", "text", "Convert it")) from error


def tokenizer_of(model: Model) -> Tokenizer | None:
    """The tokenizer in a model's folder; None for bytes."""
    return None if model.folder is None else open_tokenizer(model.folder)


def _tokens(model: Model) -> str:
    found = tokenizer_of(model)
    return "Tokens are bytes." if found is None else "Tokens are those of the tokenizer in the model's folder."


@dataclass(frozen=True)
class Prompt:
    """What was asked for of ``assay generate``."""

    prompt: str
    versus: tuple[str, ...] = ()
    max_new_tokens: int = 50
    temperature: float = 0.0
    top_k: int | None = None
    seed: int = 0
    device: str = "auto"
    factory: str = ""
    trust: bool = False
    as_json: bool = False


def run_generate(named: str, options: Prompt) -> None:
    """Let a model, and others, go on with a prompt; print what they say, how fast, and in how much memory.

    Args:
        named: the model.
        options: everything else.

    Raises:
        ConfigError: a model that cannot be found, or a prompt that cannot be gone on with.
    """
    from assay.cli.language_shown import beside, to_json

    sys.path.insert(0, os.getcwd())
    found: dict[str, Generation] = {}
    with beside() as screen:
        for name in (named, *options.versus):
            model, tokenizer = _form(name, named, options)
            found[name] = generate(
                model,
                options.prompt,
                options.max_new_tokens,
                tokenizer=tokenizer,
                temperature=options.temperature,
                top_k=options.top_k,
                seed=options.seed,
                device=options.device,
                watch=screen.watcher(name, options.prompt),
            )
    if options.as_json:
        print(to_json(found))
    else:
        screen.show(found)


def _form(name: str, first: str, options: Prompt) -> tuple[Callable[..., Any], Tokenizer | None]:
    """A model that was named; or the first one in a scheme, or with the quantized weights of a file or folder."""

    def opened(named: str) -> Model:
        return open_model(named, factory=options.factory, trust=options.trust, seed=options.seed)

    if name == first or not (is_scheme(name) or is_quantized(Path(name))):
        found = opened(name)
    elif is_scheme(name):
        found = quantize_model(opened(first), name, options.device)
    else:
        found = _filled(opened(first), name)
    return found.model, tokenizer_of(found)


def _filled(model: Model, path: str) -> Model:
    """The model with the quantized weights of a file or folder."""
    from assay.quantize.files.file import load

    if not isinstance(model.model, nn.Module):
        do = "Name the module that it was made of"
        raise ConfigError(describe("--versus", f"{path} for {model.what}", "a module to load them into", do))
    return replace(model, model=load(model.model, path))
