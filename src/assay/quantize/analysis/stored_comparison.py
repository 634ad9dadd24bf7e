"""`compare_with_stored`: how far a language model's outputs are from logits that were stored before."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from assay.errors import ConfigError, describe
from assay.language import CausalModel, Tokenizer
from assay.language.causal import vocabulary_of
from assay.language.scoring import BATCH_SIZE, sentence_of, table_of
from assay.quantize.analysis import output_report
from assay.quantize.analysis.data_spec import DataSpec
from assay.quantize.analysis.output_comparison import compare_outputs
from assay.quantize.analysis.quantization_cost import AFTER, beginning
from assay.quantize.analysis.stored_outputs import StoredOutputs
from assay.report import Report, Section


def compare_with_stored(
    path: str | os.PathLike[str],
    model: Callable[..., Any],
    data: Any,
    *,
    tokenizer: Tokenizer | None = None,
    device: str | torch.device = "auto",
    batch_size: int = BATCH_SIZE,
    precision: str | None = None,
    confidence_level: float = 0.95,
    worst: int = 10,
    progress: bool | None = None,
    title: str = "Compared with stored outputs",
) -> Report:
    """How far a language model is from another one whose logits were stored: KL divergence, agreement, losses.

    It is the section "Outputs" of :func:`measure`, with the same numbers, while only one of the models is in memory.

    Args:
        path: the file that :func:`store_outputs` wrote.
        model: a module or a function that gives logits for token ids.
        data: the text, or the token ids, that were stored; windows are those of the file.
        tokenizer: makes tokens of a text; bytes by default.
        device: where to run; as in `assay.evaluate`, and so are the next two.
        batch_size: windows at once.
        precision: "bfloat16" or "float16" for autocast.
        confidence_level: of the intervals, which are over windows.
        worst: how many of the worst windows to list.
        progress: draw a bar; None: where there is a terminal.
        title: of the report.

    Returns:
        The report.

    Raises:
        ConfigError: another text, or a model of another vocabulary.
        StateError: the file cannot be read.

    Source: ``--kl-divergence-base`` of llama.cpp, tools/perplexity/README.md.
    """
    stored = StoredOutputs(path)
    windows = stored.windows(data, tokenizer)
    causal = CausalModel(model)
    vocabulary = vocabulary_of(causal.model)
    if vocabulary is not None and vocabulary != stored.described.vocabulary:
        got, expected = f"{vocabulary} tokens", f"{stored.described.vocabulary} as in {Path(path).name}"
        raise ConfigError(describe("vocabulary of the model", got, expected, "Compare models of one vocabulary"))
    spec = DataSpec(tokenizer=tokenizer, device=device, batch_size=batch_size, precision=precision, progress=progress)
    comparisons, loop = compare_outputs(stored, {AFTER: causal}, windows, spec, title)
    first = output_report.section(
        comparisons[AFTER],
        name="Outputs",
        confidence_level=confidence_level,
        worst=worst,
        sample_text=beginning(windows, tokenizer),
    )
    tables = (table_of(windows), *loop.sections[0].tables)
    before = f"Before: {stored.described.model}." if stored.described.model else ""
    first = replace(first, note=" ".join(filter(None, (sentence_of(windows), before))))
    return replace(loop, title=title, sections=(first, Section("How it was measured", (), tables)))
