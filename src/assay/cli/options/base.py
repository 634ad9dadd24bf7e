"""What commands have in common. Needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay._atomic import Location
from assay.cli.declaration import DATA, MEASURED, MODEL, RUN, CommandOptions, argument, flag, option, several, string
from assay.errors import ConfigError, describe

LARGEST_SEED = 2**63 - 1


def seed_option(help: str, **more: Any) -> Any:
    """Where random numbers start."""
    return option(help, default=0, least=0, most=LARGEST_SEED, **more)


def window_option() -> Any:
    """How much of a text a language model is given."""
    return option("Give the model this many tokens of a text at once; at most 1024 by default.", panel=MEASURED)


def stride_option() -> Any:
    """How far the windows of a text are apart."""
    return option("Start windows of a text this many tokens apart.", panel=MEASURED)


class JsonOptions(CommandOptions):
    """The option of a command that prints text or JSON."""

    json: bool = flag("Print JSON for programs.")


class OutputOptions(JsonOptions):
    """The options of a command that prints one of three outputs."""

    markdown: bool = flag("Print Markdown for a pull request.")

    def __post_init__(self) -> None:
        """Raise where two outputs are asked for."""
        if self.json and self.markdown:
            raise ConfigError(describe("output", "--json and --markdown", "one of the two", "Leave one out"))


class ModelOptions(CommandOptions):
    """The options of a command that opens a model."""

    model: str = argument(
        "The model: package.module:factory, .pt2, TorchScript, weights, .gguf, a Hugging Face folder, or identity.",
        required="package.module:factory, a file or a folder",
        is_path=True,
    )
    model_factory: str = string(
        "Call package.module:function to make the model that a file of weights is for.", panel=MODEL
    )
    allow_code: bool = flag("Allow model files to run code: pickled models and TorchScript.", panel=MODEL)
    device: str = option("Run the model on this device: auto, cpu, cuda:1, mps, ...", default="auto", panel=MODEL)
    seed: int = seed_option("Seed random numbers, such as those of a factory, a sampler or a draw.", panel=RUN)


class ProcessOptions(CommandOptions):
    """How a command is told of processes that share a model."""

    mesh: str = string("Describe the mesh of processes that share a model: dp=2,tp=4, or x=fsdp,y=tp.", panel=RUN)


class ReportOutput(CommandOptions):
    """Where a command writes a report, and how it prints it."""

    out: Location | None = option("Write the report as JSON and as a page into this folder or URL.", panel=RUN)
    verbose: bool = flag("Print every table and plot of the report.", panel=RUN)
    json: bool = flag("Print JSON for programs.", panel=RUN)


class ReportCommand(ReportOutput):
    """The options of a command that makes a report."""

    confidence_level: float | None = option(
        "Compute intervals of this confidence level; 0.95 by default, 0 for none.", panel=MEASURED
    )
    config: Path | None = option(
        "Read options from this TOML file; those of the command line win over them.", panel=RUN
    )
    title: str = string("Give the report this title.", panel=RUN)


class SampleOptions(CommandOptions):
    """What a report says of samples and parts of them."""

    metrics: tuple[str, ...] = several(
        "Measure a metric: metric, metric:argument=value,..., or name=metric:...; may be repeated.",
        "--metrics",
        "-m",
        required="one or more, such as accuracy:num_classes=10",
    )
    num_classes: int | None = option("Pass the number of classes to every metric that has it.", least=2)
    num_labels: int | None = option("Pass the number of labels to every metric that has it.", least=2)
    logits: bool | None = option("Pass whether predictions are logits to every metric that has this argument.")
    slice: tuple[str, ...] = several(
        "Measure by columns: sex, or sex,age for two, sex*age for both crossed, age:bins=5 or age:edges=18,65 for "
        "ranges of numbers; may be repeated.",
        panel=MEASURED,
    )
    by: tuple[str, ...] = several(
        "Measure by a column of many values, such as users: the report has a table with a row for each value; may be "
        "repeated.",
        panel=MEASURED,
    )
    cluster: str = string(
        "Take samples as one cluster if they have one value in this part or column, such as the questions of a "
        "passage: samples of a cluster may depend on each other.",
        panel=MEASURED,
    )
    min_slice_size: int | None = option(
        "Never name slices of fewer samples as the worst; 20 by default.", panel=MEASURED
    )
    n_resamples: int | None = option("Resample this many times for the bootstrap; 400 by default.", panel=MEASURED)
    keep_samples: bool | None = option(
        "Keep the per-sample values of metrics, which assay compare pairs.", panel=MEASURED
    )
    max_kept_samples: int | None = option(
        "Keep per-sample values of at most this many samples; 2,000,000 by default.", panel=MEASURED, least=1
    )
    diagnostics: bool | None = option("Report the confusion matrix, curves, residuals, ...", panel=MEASURED)
    show: tuple[str, ...] = several(
        "Show these columns of the worst queries of a ranking metric and of their documents, with commas.",
        panel=MEASURED,
        separator=",",
    )

    @property
    def shared(self) -> dict[str, Any]:
        """The arguments that every metric gets that has them."""
        arguments = {"num_classes": self.num_classes, "num_labels": self.num_labels, "logits": self.logits}
        return {name: value for name, value in arguments.items() if value is not None}


class MeasurementOptions(ProcessOptions, ReportCommand, ModelOptions):
    """What `assay evaluate` and `assay perplexity` have in common."""

    precision: str = string("Compute in autocast with this dtype: bfloat16 or float16.", panel=MODEL)
    batch_size: int | None = option("Load this many samples a batch; 64 by default.", panel=DATA)
    resume: Location | None = option("Keep checkpoints in this folder or URL, and resume from those in it.", panel=RUN)
    run_id: str | None = option(
        "With --resume, name the run if the data have no digest, such as random data.", panel=RUN
    )
