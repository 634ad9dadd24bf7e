"""``assay perplexity``: a language model on a text in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from assay.cli.loaders.models import model_of
from assay.cli.loaders.texts import read_text, tokenizer_of
from assay.cli.measurement import arguments_of, measure_and_show
from assay.cli.options import PerplexityCommand
from assay.language import perplexity
from assay.report import Report


def run(options: PerplexityCommand) -> None:
    """Measure, write the report where a folder was named, and print it; of several processes the first one does."""
    measure_and_show(lambda: _measure(options), options)


def _measure(options: PerplexityCommand) -> Report:
    text = read_text(Path(options.data), "--data")
    model = model_of(options)
    tokenizer = tokenizer_of(model)
    arguments = arguments_of(perplexity, options, title=options.title or model.name, tokenizer=tokenizer)
    report = perplexity(model.model, text, **arguments)
    tokens = "Tokens are bytes." if tokenizer is None else "Tokens are those of the tokenizer in the model's folder."
    about = f"Model: {model.name} ({model.what}).", f"Data: {Path(options.data).name}.", tokens
    return replace(report, notes=(*report.notes, *about))
