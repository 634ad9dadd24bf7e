"""Commands for language models. Needs no torch."""

from __future__ import annotations

from pathlib import Path

from assay.cli.declaration import DATA, MEASURED, RUN, flag, option, several, string
from assay.cli.options.base import (
    JsonOptions,
    MeasurementOptions,
    ModelOptions,
    ProcessOptions,
    ReportOutput,
    stride_option,
    window_option,
)


class PerplexityCommand(MeasurementOptions):
    """Measure the perplexity of a language model on a text, every token once."""

    data: str = string("Measure on the text in this file.", required="a file with text", is_path=True)
    batch_size: int | None = option("Compute this many windows at once; 8 by default.", panel=DATA)
    window: int | None = window_option()
    stride: int | None = stride_option()
    save_base: Path | None = option("Store the logits in this file, for --base with other models.", panel=RUN)
    base: Path | None = option(
        "Compare with the logits that --save-base stored: KL divergence with percentiles, top-1 agreement.",
        panel=MEASURED,
    )


class LmEvalCommand(ProcessOptions, ReportOutput, ModelOptions):
    """Measure a language model on tasks of lm-eval, whose samples assay compare pairs before and after quantization.

    Under torchrun processes share out the requests. Nothing is downloaded unless HF_HUB_OFFLINE=0 is set: data are
    local, or stored by an earlier run.
    """

    tasks: tuple[str, ...] = several(
        "Measure on these tasks, as in arc_easy,hellaswag.", separator=",", required="names of tasks"
    )
    include_path: Path | None = option("Read tasks of your own as YAML from this folder.")
    num_fewshot: int | None = option("Put this many examples into each prompt; by default the task's number.", least=0)
    limit: int | None = option("Measure this many samples of each task only.", least=1)
    chat_template: bool = flag("Format each prompt as a conversation, with the chat template of the folder.")
    max_length: int | None = option("Give the model this many tokens at most; by default its maximum.", least=2)
    batch_size: int = option("Compute this many requests at once.", default=8, least=1)
    resume: Path | None = option("Keep answers in this folder, and resume from those in it.", panel=RUN)
    run_id: str | None = option("With --resume, name the run if the model has no digest.", panel=RUN)
    title: str = string("Give the report this title.", panel=RUN)


class SamplingOptions(ModelOptions):
    """How a language model continues a text."""

    max_new_tokens: int = option("Generate at most this many tokens.", "--max-new-tokens", "-n", default=50, least=1)
    temperature: float = option(
        "Divide logits by this number before drawing; 0 takes the most probable token.", default=0.0, least=0
    )
    top_k: int | None = option("Draw from this many most probable tokens only.", least=1)


class GenerateCommand(SamplingOptions, JsonOptions):
    """Let a language model continue a prompt, side by side with others: text, tokens a second, peak memory."""

    prompt: str = string("Continue this text.", required="a text")
    variant: tuple[str, ...] = several("Compare with another model, or with a scheme such as int4; may be repeated.")


class ChatCommand(SamplingOptions):
    """Talk to a language model in the terminal, by the chat template of its folder.

    Ctrl-C stops an answer, /clear forgets the conversation, and Ctrl-D ends it.
    """

    max_new_tokens: int = option(
        "Generate at most this many tokens an answer.", "--max-new-tokens", "-n", default=512, least=1
    )
    system: str = string("Tell the model this before the conversation.")
