"""``assay perplexity``: a language model on a text in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from assay.cli.loaders.models import model_of
from assay.cli.loaders.named_model import Model
from assay.cli.loaders.texts import read_text, tokenizer_of
from assay.cli.measurement import arguments_of, measure_and_show
from assay.cli.options.language_models import PerplexityCommand
from assay.errors import ConfigError, describe
from assay.language import Tokenizer, perplexity
from assay.report import Report


def run(options: PerplexityCommand) -> None:
    """Measure, write the report where a folder was named, and print it; of several processes the first one does."""
    measure_and_show(lambda: _measure(options), options)


def _measure(options: PerplexityCommand) -> Report:
    text = read_text(Path(options.data), "--data")
    model = model_of(options)
    tokenizer = tokenizer_of(model)
    report = _report(model, text, tokenizer, options)
    tokens = "Tokens are bytes." if tokenizer is None else "Tokens are those of the tokenizer in the model's folder."
    about = f"Model: {model.name} ({model.what}).", f"Data: {Path(options.data).name}.", tokens
    return replace(report, notes=(*report.notes, *about))


def _report(model: Model, text: str, tokenizer: Tokenizer | None, options: PerplexityCommand) -> Report:
    """The perplexity, or how far the model is from stored logits."""
    if options.save_base is not None and options.base is not None:
        do = "Store the logits of the first model, then name the file with --base"
        raise ConfigError(describe("assay perplexity", "--save-base and --base", "one of them", do))
    title = options.title or model.name
    if options.base is not None:
        if options.window or options.stride:
            do = "Leave them out: windows are those of the file"
            raise ConfigError(describe("--base", "with --window or --stride", "the text alone", do))
        from assay.quantize.analysis import compare_with_stored

        arguments = arguments_of(compare_with_stored, options, title=title, tokenizer=tokenizer)
        return compare_with_stored(options.base, model.model, text, **arguments)
    if options.save_base is not None:
        from assay.quantize.analysis import store_outputs

        arguments = arguments_of(store_outputs, options, title=title, tokenizer=tokenizer)
        arguments.pop("confidence_level", None)
        store_outputs(model.model, text, options.save_base, **arguments)
    return perplexity(model.model, text, **arguments_of(perplexity, options, title=title, tokenizer=tokenizer))
