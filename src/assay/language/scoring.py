"""`perplexity`: how well a language model predicts a text, every token once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from assay.evaluation import evaluate
from assay.evaluation.model.pipelines import PipelineModel, as_pipeline
from assay.evaluation.processes.ranks import TIMEOUT_S
from assay.evaluation.resume.stable_digest import stable_digest
from assay.language.causal import CausalModel, vocabulary_of
from assay.language.losses import MeanLoss, TokenLosses, check_vocabulary
from assay.language.strips import token_strips
from assay.language.tokens import ByteTokenizer, Tokenizer, Tokens, tokens_of
from assay.language.windows import Windows, sizes
from assay.report import Report, Section, Table, Value

NATS = "nats per token"
LEVEL = 0.95
BATCH_SIZE = 8
"""Windows at once: the logits of one of 1,024 tokens and 128,000 words are half a gigabyte in float32."""


def perplexity(
    model: Callable[..., Any],
    data: str | Tensor | Sequence[int] | Tokens,
    *,
    tokenizer: Tokenizer | None = None,
    window: int | None = None,
    stride: int | None = None,
    device: str | torch.device = "auto",
    batch_size: int = BATCH_SIZE,
    precision: str | None = None,
    confidence_level: float | None = LEVEL,
    seed: int = 0,
    resume: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    progress: bool | None = None,
    mesh: Any = None,
    data_group: Any = None,
    rank_timeout_s: float = TIMEOUT_S,
    title: str = "Perplexity",
) -> Report:
    r"""How well a causal language model predicts a text.

    $$ \exp\left(-\frac1T \sum_{i=1}^{T} \log p(x_i \mid \text{the tokens before it in its window})\right) $$

    The text is cut into windows that overlap (`Windows`). Each token but the very first is predicted once, by the
    window that gives it the most context, so the number depends on `window` and `stride` and on nothing else: not on
    the size of batches, nor on how many processes share the work. Log probabilities are computed in float32 and
    added up exactly.

    Args:
        model: a module or function that gives logits `(B, T, V)` for token ids `(B, T)`; those of Hugging Face, too.
        data: a text, or its token ids.
        tokenizer: makes tokens of a text; bytes by default.
        window: how many tokens the model is given at once; by default what it can hold, at most 1,024.
        stride: how far apart windows begin; half a window by default. A smaller one gives more context and costs
            more: a text is read `window / stride` times.
        device: where to run; as in `assay.evaluate`, and so are the following.
        batch_size: windows at once.
        precision: "bfloat16" or "float16" for autocast.
        confidence_level: of the intervals, which are over windows; None for none.
        seed: where the random numbers of the intervals start.
        resume: a folder for checkpoints.
        run_id: with `resume`, a name for parts of the model that have no digest; as in `assay.evaluate`.
        progress: draw a bar; None: where there is a terminal.
        mesh: of a model that is shared among processes; as in `assay.evaluate`, and so are the following two.
        data_group: the processes with other windows.
        rank_timeout_s: how long to wait for a process.
        title: of the report.

    Returns:
        The report: perplexity, nats per token, and, where the bytes of the text are known, bits per byte, which also
        compares models of different tokens; how it was measured, and the proof that every window was counted once. Its
        samples are the windows: `assay.compare` pairs those of two models. Of the worst windows it holds
        the text with the loss of each token, which pages shade.

    Raises:
        ConfigError: fewer than two tokens, a stride above the window, a window above what the model can hold, or a
            token that the model does not have.
        ShapeError: the model gives no logits per token.

    Example:
        >>> report = perplexity(torch.nn.Embedding(256, 256).requires_grad_(False), "abracadabra", device="cpu")
        >>> [value.name for value in report.sections[0].values]
        ['perplexity', 'nats per token', 'bits per byte']

    Source: Jelinek, Mercer, Bahl, Baker, Journal of the Acoustical Society of America 62 (1977), S63. Bits per byte:
    Gao et al., The Pile, arXiv:2101.00027, section 3.1.
    """
    causal = model if isinstance(model, CausalModel) else CausalModel(as_pipeline(model))
    tokens = tokens_of(data, tokenizer)
    largest = int(tokens.ids.max())
    check_vocabulary(largest, vocabulary_of(causal.model) or largest + 1)  # an accelerator would not survive it
    windows = Windows(tokens, *sizes(window, stride, causal.positions))
    if resume is not None:
        windows.content_digest = stable_digest([tokens.ids, windows.window, windows.stride], "data")
    losses = TokenLosses(causal, largest)
    report = evaluate(
        losses,
        windows,
        {NATS: MeanLoss()},
        inputs=("input_ids", "labels"),
        target="labels",
        confidence_level=confidence_level,
        seed=seed,
        diagnostics=False,
        device=device,
        batch_size=batch_size,
        precision=precision,
        resume=resume,
        run_id=run_id,
        progress=progress,
        mesh=mesh,
        data_group=data_group,
        rank_timeout_s=rank_timeout_s,
        title=title,
    )
    (section,) = report.sections
    text = tokenizer or (ByteTokenizer() if isinstance(data, str) else None)
    if isinstance(causal.model, PipelineModel):
        text = None  # strips need the losses on every process
    if section.samples is not None and text is not None:
        (nats,) = section.values
        columns = nats.numerator, nats.denominator
        strips = token_strips(losses, windows, section.samples, columns, text, device)
        section = replace(section, samples=replace(section.samples, strips=strips))
    return replace(report, sections=(_with_perplexity(section, windows),))


def _with_perplexity(section: Section, windows: Windows) -> Section:
    """The section with what follows from perplexity, and with how it was measured."""
    (nats,) = (replace(value, count=windows.scored) for value in section.values if value.name == NATS)
    values = [derived_value(nats, "perplexity", exp_or_inf), nats]
    size = windows.tokens.num_bytes
    if size:
        scale = windows.scored / math.log(2) / size
        values.append(derived_value(nats, "bits per byte", lambda loss: loss * scale, windows.tokens.note))
    tables = table_of(windows), *section.tables
    return replace(section, values=tuple(values), tables=tables, note=sentence_of(windows))


def derived_value(nats: Value, name: str, of: Callable[[float], float], note: str = "") -> Value:
    """A number that grows with the mean loss, and its interval, from the loss and its interval."""
    ends = {end: getattr(nats, end) for end in ("lower", "upper", "safe_lower", "safe_upper")}
    ends = {end: None if number is None else of(number) for end, number in ends.items()}
    note = "; ".join(each for each in (nats.note, note) if each)
    return replace(nats, name=name, value=of(nats.value), numerator="", denominator="", note=note, **ends)


def exp_or_inf(loss: float) -> float:
    """The exponential, infinite where a float cannot hold it."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def sentence_of(windows: Windows) -> str:
    """How a text was cut, in a sentence."""
    return (
        f"{windows.scored:,} tokens predicted once each, in {len(windows):,} windows of {windows.window:,} that begin "
        f"{windows.stride:,} apart."
    )


def table_of(windows: Windows) -> Table:
    """How a text was cut, as a table."""
    rows: list[tuple[str, int | None]] = [
        ("tokens predicted", windows.scored),
        ("bytes that they stand for", windows.tokens.num_bytes),
        ("window", windows.window),
        ("stride", windows.stride),
        ("least context after the first window", windows.window - windows.stride if len(windows) > 1 else None),
        ("windows", len(windows)),
    ]
    note = "The first token of the text has nothing before it and is not predicted."
    return Table("How it was measured", ("what", "count"), tuple(rows), note=note)
