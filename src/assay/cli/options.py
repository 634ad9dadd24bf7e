# ruff: noqa: RUF009 - `option` gives a field
"""Every option of every command, once: a dataclass a command, whose docstring is its help. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay._atomic import Location
from assay.cli.declaration import DATA, MEASURED, MODEL, RUN, argument, flag, option, several, string

LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class _Json:
    json: bool = flag("Print JSON for programs.")


@dataclass(frozen=True)
class OutputOptions(_Json):
    """The options of a command that prints one of three outputs."""

    markdown: bool = flag("Print Markdown for a pull request.")


@dataclass(frozen=True)
class ModelOptions:
    """The options of a command that opens a model."""

    model: str = argument(
        "The model: package.module:factory, a .pt2 program, TorchScript, weights, a Hugging Face folder, or identity.",
        required="package.module:factory, a file or a folder",
        is_path=True,
    )
    model_factory: str = string(
        "Call package.module:function to make the model that a file of weights is for.", panel=MODEL
    )
    allow_code: bool = flag("Allow model files to run code: pickled models and TorchScript.", panel=MODEL)
    device: str = option("Run the model on this device: auto, cpu, cuda:1, mps, ...", default="auto", panel=MODEL)
    seed: int = option(
        "Start random numbers from this seed, such as those of a factory, a sampler or a draw.",
        default=0,
        panel=RUN,
        least=0,
        most=LARGEST_SEED,
    )


@dataclass(frozen=True)
class DevicesCommand(_Json):
    """Show what is on this machine, what each kind of device can do, and why not."""

    prepare: bool = flag("Compile the engine of pretend devices now instead of at first use.")


@dataclass(frozen=True)
class DemoCommand:
    """Train small models on real data in a few seconds, and show a report of them."""

    out: Path = option("Write the report as JSON and as a page into this folder.", default=Path("assay-demo"))


@dataclass(frozen=True)
class AuditCommand(_Json):
    """Find device bugs without the device.

    Exit code 0: no finding. 1: findings. 2: the target could not be run.
    """

    target: str = argument("The target: a script, a module, module:Class, module:function, or a library of metrics.")
    device: tuple[str, ...] = option(
        "Audit for these devices; cuda:1 means two, of which cuda:0 is the default.",
        default=("mps", "cuda:1", "xpu"),
        separator=",",
    )
    usage: str = option("Use metrics in this way: moved, not-moved or both.", default="both")
    rules: tuple[str, ...] = several("Report these rules only.", separator=",")
    ignore: tuple[str, ...] = several("Leave out these rules.", separator=",")
    fail_on: str = option("Exit with 1 from this severity on: error, warning or note.", default="warning")
    timeout: float = option("Stop a script or a metric after this many seconds.", default=120.0)
    args: str = string("Pass these arguments to a script; {device} stands for the device.")
    input: tuple[str, ...] = several(
        "Call a module with an input of this shape and dtype: 8x3x32x32, 8x16:int64; may be repeated."
    )
    engine: str = option("Pretend devices with this engine: auto, native or python.", default="auto")
    sarif: Path | None = option("Write the findings as SARIF, which code hosts show.")
    notes: bool = flag("Print notes besides errors and warnings.")
    list_rules: bool = flag("Print all rules and exit.")
    parity: bool = flag("Compare values with those of the CPU, operator by operator, instead of auditing.")


@dataclass(frozen=True)
class CompareCommand(OutputOptions):
    """Compare runs with a baseline, slice by slice, and sample by sample where both kept their samples."""

    reports: tuple[Location, ...] = argument(
        "The reports as JSON, paths or URLs: the baseline first, then one or more runs.",
        (),
        required="the files of two reports",
    )
    confidence_level: float = option("Compute intervals of this confidence level.", default=0.95)
    correction: str = option("Correct p-values for how many there are: holm, bh or none.", default="holm")
    seed: int = option("Start random numbers from this seed.", default=0, least=0, most=LARGEST_SEED)
    flips: int = option("List this many samples for each way to flip.", default=10)
    slices: bool | None = option("Compare slices; by default those that both reports have.")
    between: tuple[str, ...] = several(
        "Compare slices of one report, the baseline first: --between 'sex = f' --between 'sex = m'.", metavar="SLICE"
    )
    html: Location | None = option("Write the comparison as a page that needs nothing else.")
    out: Location | None = option("Write the comparison as JSON.")


@dataclass(frozen=True)
class HistoryCommand(OutputOptions):
    """Show metrics over many runs, and which changes from run to run are more than noise.

    Each run is compared with the one before it on the same samples, sample by sample where both kept them.
    """

    reports: tuple[str, ...] = argument(
        "The reports as JSON: folders, in which all are found, files, patterns or URLs.",
        (),
        required="a folder or files",
    )
    metric: tuple[str, ...] = several("Show this metric only; may be repeated.")
    section: tuple[str, ...] = several("Show this section only; may be repeated.")
    slice: tuple[str, ...] = several("Show this slice, too, as in sex=f, or all of a name, as in sex; may be repeated.")
    last: int | None = option("Show this many of the last runs; all by default.", least=1)
    since: str = string("Show runs from this time on, as in 2026-11-20.")
    confidence_level: float = option("Compute intervals of changes of this confidence level.", default=0.95)
    correction: str = option("Correct the p-values of a run for how many there are: holm, bh or none.", default="holm")
    seed: int = option("Start random numbers from this seed.", default=0, least=0, most=LARGEST_SEED)
    html: Location | None = option("Write the history as a page that needs nothing else.")
    out: Location | None = option("Write the history as JSON.")


def _bounds(help: str) -> Any:
    return several(f"{help}; may be repeated.", metavar="METRIC=NUMBER", is_extended=True)


@dataclass(frozen=True)
class GateCommand(OutputOptions):
    """Judge a report by rules.

    Exit code 0: every rule holds. 1: one does not, or what it needs is missing or undefined. 2: cannot say.

    A rule holds where the whole interval is within its bound. 2 is not enough evidence (the bound is within the
    interval, or there is none), a file that cannot be read, or an invalid option. What is in doubt is never 0.

    Where several sections have a metric of one name, write section/metric. A metric of one slice is written
    accuracy[language = de], that of every slice that fits accuracy[language = *].
    """

    report: Location = argument("The report as JSON.", None, required="the file of a report")
    min: tuple[str, ...] = _bounds("Require that a metric is at least this number")
    max: tuple[str, ...] = _bounds("Require that a metric is at most this number")
    max_drop: tuple[str, ...] = _bounds("Require that a metric is lower than in the baseline by at most this number")
    max_rise: tuple[str, ...] = _bounds("Require that a metric is higher than in the baseline by at most this number")
    min_ratio: tuple[str, ...] = _bounds("Require that a metric is at least this many times that of the baseline")
    max_ratio: tuple[str, ...] = _bounds("Require that a metric is at most this many times that of the baseline")
    worst_slice: tuple[str, ...] = _bounds("Require that a metric is at least this number in every slice")
    worst_slice_max: tuple[str, ...] = _bounds("Require that a metric is at most this number in every slice")
    baseline: Location | None = option("Compare with this report, for rules of changes and ratios.")
    config: Path | None = option("Read options from this TOML file; rules of the command line win over its rules.")
    confidence_level: float = option("Judge by intervals of this confidence level.", default=0.95)
    point: bool | None = option(
        "Judge by the numbers alone, or strictly by intervals (the default).", "--point/--strict"
    )
    min_slice_size: int | None = option(
        "Leave out slices of fewer samples; by default those that the report leaves out."
    )


@dataclass(frozen=True)
class ImportCommand(_Json):
    """Make a report of the results of another tool, sample by sample, for assay compare and assay gate."""

    tool: str = argument("The tool that wrote the results: lm-eval.", required="lm-eval")
    path: Path = argument("The results_*.json, or the folder of one run.", None, required="a file or a folder")
    out: Location | None = option("Write the report as JSON.")
    title: str = string("Give the report this title instead of the name of the model.")


@dataclass(frozen=True)
class ReportOutput:
    """Where a command writes a report, and how it prints it."""

    out: Location | None = option("Write the report as JSON and as a page into this folder or URL.", panel=RUN)
    verbose: bool = flag("Print every table and plot of the report.", panel=RUN)
    json: bool = flag("Print JSON for programs.", panel=RUN)


@dataclass(frozen=True)
class ReportCommand(ReportOutput):
    """The options of a command that makes a report."""

    confidence_level: float | None = option(
        "Compute intervals of this confidence level; 0.95 by default, 0 for none.", panel=MEASURED
    )
    config: Path | None = option(
        "Read options from this TOML file; those of the command line win over them.", panel=RUN
    )
    title: str = string("Give the report this title.", panel=RUN)


@dataclass(frozen=True)
class SampleOptions:
    """What a report says of samples and parts of them."""

    metrics: tuple[str, ...] = several(
        "Measure a metric: metric, metric:argument=value,..., or name=metric:...; may be repeated.",
        "--metrics",
        "-m",
        required="one or more, such as accuracy:num_classes=10",
    )
    num_classes: int | None = option("Pass the number of classes to every metric that has it.", least=2)
    num_labels: int | None = option("Pass the number of labels to every metric that has it.", least=2)
    logits: bool | None = option("Say whether predictions are logits to every metric that has this argument.")
    slice: tuple[str, ...] = several(
        "Measure by columns: sex, or sex,age for two, sex*age for both crossed, age:bins=5; may be repeated.",
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

    @property
    def shared(self) -> dict[str, Any]:
        """The arguments that every metric gets that has them."""
        arguments = {"num_classes": self.num_classes, "num_labels": self.num_labels, "logits": self.logits}
        return {name: value for name, value in arguments.items() if value is not None}


@dataclass(frozen=True)
class MeasurementOptions(ReportCommand, ModelOptions):
    """What `assay evaluate` and `assay perplexity` have in common."""

    precision: str = string("Compute in autocast with this dtype: bfloat16 or float16.", panel=MODEL)
    batch_size: int | None = option("Load this many samples a batch; 64 by default.", panel=DATA)
    resume: Location | None = option("Keep checkpoints in this folder or URL, and resume from those in it.", panel=RUN)
    run_id: str | None = option(
        "With --resume, name the run where the data have no digest, such as random data.", panel=RUN
    )


@dataclass(frozen=True)
class EvaluateCommand(SampleOptions, MeasurementOptions):
    """Measure a model on data, every sample once; under torchrun on any number of processes.

    With --variant, other variants of the model are measured on the same samples and compared with it.
    """

    data: str = string(
        "Measure on this data: package.module:function, a folder of images, or .npz, .safetensors, .parquet, .csv, "
        ".tsv or .jsonl, also at a URL.",
        required="package.module:function, a file or a folder",
        is_path=True,
        may_be_url=True,
    )
    variant: tuple[str, ...] = several(
        "Compare with another variant: MODEL, precision=bfloat16, int8, ...; may be repeated.",
        panel=MODEL,
        is_path=True,
    )
    compile: bool = flag("Pass the model through torch.compile.", panel=MODEL)
    preds: str = string("Take the predictions from this part of the outputs: a name or a position.", panel=MODEL)
    num_workers: int = option("Load data in this many processes.", default=0, panel=DATA)
    sharded: bool | None = option("Say whether each process has data of its own, or all have the same.", panel=DATA)
    inputs: tuple[str, ...] = several(
        "Pass these parts of a sample to the model: names or positions, with commas.", panel=DATA, separator=","
    )
    target: str = string("Take the target from this part: a name, a position or module:function.", panel=DATA)
    weights: str = string(
        "Take the weights of samples from this part: a name, a position or module:function.", panel=DATA
    )
    ids: str = string("Take the ids of samples from this part: a name, a position or module:function.", panel=DATA)
    column: tuple[str, ...] = several(
        "Give metrics a named column from this part, as in indexes=query_id; may be repeated.",
        metavar="NAME=PART",
        panel=DATA,
    )
    features: tuple[str, ...] = several(
        "Make one float tensor of these columns; p* stands for all that begin with p.", panel=DATA, separator=","
    )
    text: tuple[str, ...] = several(
        "Pass these columns through the tokenizer of a Hugging Face folder.", panel=DATA, separator=","
    )
    classes: tuple[str, ...] = several(
        "Name the classes in the order of the model's outputs.", panel=DATA, separator=","
    )
    image_size: int = option("Take the square of this many pixels in the middle of an image.", default=0, panel=DATA)
    image_resize: int = option(
        "Resize the shorter side of an image to this many pixels; by default to --image-size.", default=0, panel=DATA
    )
    image_mode: str = option("Read images in this mode: RGB or L.", default="RGB", panel=DATA)
    mean: tuple[float, ...] = several(
        "Subtract these numbers from the channels of an image, as in 0.5,0.5,0.5.", panel=DATA, separator=","
    )
    std: tuple[float, ...] = several(
        "Divide the channels of an image by these numbers, as in 0.5,0.5,0.5.", panel=DATA, separator=","
    )
    checkpoint_every: float | None = option("Write a checkpoint after this many seconds; 30 by default.", panel=RUN)
    rank_timeout_s: float | None = option(
        "Take a silent process for lost after this many seconds; 60 by default.", panel=RUN
    )
    on_error: str = option("Handle batches that fail: raise, or skip.", default="raise", panel=RUN)


@dataclass(frozen=True)
class ScoreCommand(SampleOptions, ReportCommand):
    """Measure predictions that lie in a table: every row once, in constant memory.

    Exit code 0: every row was counted, or bad rows were skipped as asked. 2: something is invalid; with bad rows, the
    report of all others is written and printed before.
    """

    table: tuple[str, ...] = argument(
        "The table: files of Parquet, Arrow, CSV or JSON lines, a pattern, a folder, or a URL such as s3://.", ()
    )
    preds: str = string(
        "Take the predictions from this column, or from one for each class: p0..p9, or a,b.",
        panel=DATA,
        required="the column of the predictions",
    )
    target: str = string("Take the target from this column, or these.", panel=DATA)
    weights: str = string("Take the weights of rows from this column.", panel=DATA)
    ids: str = string("Take the ids of rows from this column; by default their place identifies them.", panel=DATA)
    column: tuple[str, ...] = several(
        "Give metrics a named column, as in indexes=query_id; may be repeated.", metavar="NAME=COLUMN", panel=DATA
    )
    labels: tuple[str, ...] = several(
        "Name the classes in the order of their numbers, where columns hold names.", panel=DATA, separator=","
    )
    classes: tuple[str, ...] = several(
        "Name the classes for the report; by default as --labels.", panel=DATA, separator=","
    )
    where: str = string("Count only rows for which this holds: \"country == 'de' and age >= 18\".", panel=DATA)
    sql: str = string("Read the rows of this query of DuckDB instead of a table.", panel=DATA)
    on_bad: str = option("Handle rows that cannot be counted: raise, or skip.", default="raise", panel=RUN)
    workers: int | None = option("Count with this many processes of this machine; 1 by default.", least=1, panel=RUN)
    engine: str = option("Count on this machine (local), or on a cluster of Ray (ray).", default="local", panel=RUN)
    part: str = string("Count one part of the fragments, as 3/8, into a file in --out for assay merge.", panel=RUN)
    seed: int = option(
        "Assign rows by this seed to the groups that intervals come from.",
        default=0,
        panel=RUN,
        least=0,
        most=LARGEST_SEED,
    )


def _window() -> Any:
    return option("Give the model this many tokens of a text at once; at most 1024 by default.", panel=MEASURED)


def _stride() -> Any:
    return option("Start windows of a text this many tokens apart.", panel=MEASURED)


@dataclass(frozen=True)
class PerplexityCommand(MeasurementOptions):
    """Measure the perplexity of a language model on a text, every token once."""

    data: str = string("Measure on the text in this file.", required="a file with text", is_path=True)
    batch_size: int | None = option("Compute this many windows at once; 8 by default.", panel=DATA)
    window: int | None = _window()
    stride: int | None = _stride()


@dataclass(frozen=True)
class LmEvalCommand(ReportOutput, ModelOptions):
    """Measure a language model on tasks of lm-eval, whose samples assay compare pairs before and after quantization.

    Nothing is downloaded unless HF_HUB_OFFLINE=0 is set: data are local, or stored by an earlier run.
    """

    tasks: tuple[str, ...] = several(
        "Measure on these tasks, as in arc_easy,hellaswag.", separator=",", required="names of tasks"
    )
    include_path: Path | None = option("Read tasks of your own as YAML from this folder.")
    num_fewshot: int | None = option("Put this many examples into each prompt; by default as the task says.", least=0)
    limit: int | None = option("Measure this many samples of each task only.", least=1)
    chat_template: bool = flag("Give each prompt the form of a conversation, by the chat template of the folder.")
    max_length: int | None = option("Give the model this many tokens at most; by default what it can hold.", least=2)
    batch_size: int = option("Compute this many requests at once.", default=8, least=1)
    resume: Path | None = option("Keep answers in this folder, and resume from those in it.", panel=RUN)
    run_id: str | None = option("With --resume, name the run where the model has no digest.", panel=RUN)
    title: str = string("Give the report this title.", panel=RUN)


@dataclass(frozen=True)
class SamplingOptions(ModelOptions):
    """How a language model continues a text."""

    max_new_tokens: int = option("Generate at most this many tokens.", "--max-new-tokens", "-n", default=50)
    temperature: float = option(
        "Divide logits by this number before drawing; 0 takes the most probable token.", default=0.0
    )
    top_k: int | None = option("Draw from this many most probable tokens only.")


@dataclass(frozen=True)
class GenerateCommand(SamplingOptions, _Json):
    """Let a language model continue a prompt, side by side with others: text, tokens a second, peak memory."""

    prompt: str = string("Continue this text.", required="a text")
    variant: tuple[str, ...] = several("Compare with another model, or with a scheme such as int4; may be repeated.")


@dataclass(frozen=True)
class ChatCommand(SamplingOptions):
    """Talk to a language model in the terminal, by the chat template of its folder.

    Ctrl-C stops an answer, /clear forgets the conversation, and Ctrl-D ends it.
    """

    max_new_tokens: int = option("Generate at most this many tokens an answer.", "--max-new-tokens", "-n", default=512)
    system: str = string("Tell the model this before the conversation.")


@dataclass(frozen=True)
class QuantizeCommand(ModelOptions, OutputOptions):
    """Make the weights of a model small integers: print what happens to each layer on a device, then do it."""

    model: str = argument("The model: package.module:factory, weights with --model-factory, or a Hugging Face folder.")
    device: str = option("Plan for this device, which need not be here: auto, cpu, cuda, mps, xpu.", default="auto")
    scheme: str = string("Quantize by this scheme: int4, int8, int3:g64, ...; of several, the first that fits a layer.")
    dtype: str = string("Compute activations in this dtype; by default in that of the weights.")
    recipe: str = string(
        "Read schemes by layer from this recipe: TOML, JSON, or a TorchChat --quantize JSON.", is_path=True
    )
    include: tuple[str, ...] = several("Quantize these layers only; may be repeated.")
    exclude: tuple[str, ...] = several("Skip these layers; may be repeated.")
    method: str = string("Round weights by this method: nearest, search, hqq, or gptq with --calibration.")
    calibration: str = string(
        "Round by GPTQ what this text sends through the layers; use another one for --eval.", is_path=True
    )
    release: str = string("Plan for an older torch, such as 2.4, with what it is known to have lacked.")
    plan: bool = flag("Print the plan and do nothing.")
    apply: Path | None = option("Apply the plan in this file, as --plan --json prints it.")
    out: Path | None = option("Write the model into this folder or .safetensors file.")
    eval: str = string(
        "Measure before and after on this data: a text file, or data as assay evaluate names them.",
        panel=MEASURED,
        is_path=True,
    )
    metrics: tuple[str, ...] = several(
        "With --eval, measure a further metric; may be repeated.", "--metrics", "-m", panel=MEASURED
    )
    sweep: tuple[str, ...] = several(
        "With --eval, compare these schemes, as in int8,int4,int3; no model is written.", panel=MEASURED, separator=","
    )
    budget: str = string(
        "With --eval, find a recipe of --sweep schemes for a size: 4.5bits a weight, or 300MB.", panel=MEASURED
    )
    layers: bool = flag("With --eval, measure each layer alone in --scheme, most important first.", panel=MEASURED)
    window: int | None = _window()
    stride: int | None = _stride()
    matrix: bool = flag("Print what works on which device, and exit.")
    tune: bool = flag("Measure which kernel is the fastest on this machine, keep that, and exit.")


@dataclass(frozen=True)
class MigrateCommand(_Json):
    """Change code of TorchMetrics, Ignite and TorchEval to assay, as a diff; what is not sure is a note.

    Exit code 0: nothing is left to do by hand. 1: something is. 2: a file could not be read or written.
    """

    path: Path = argument("A Python file, or a folder of them.", None, required="a file or a folder")
    write: bool = flag("Write the changed files, each whole or not at all.")
    num_classes: int | None = option("Write this number of classes where the code does not say one.", least=2)
    num_labels: int | None = option("Write this number of labels where the code does not say one.", least=2)
    num_outputs: int | None = option("Write this number of outputs where the code does not say one.", least=1)


@dataclass(frozen=True)
class CatalogueCommand(_Json):
    """List every metric class of TorchMetrics, Ignite and TorchEval with the metric of assay that takes its place."""

    library: tuple[str, ...] = several("List this library only: torchmetrics, ignite or torcheval; may be repeated.")


@dataclass(frozen=True)
class MergeCommand(ReportOutput):
    """Add up the parts that assay score --part wrote, and make the report of the whole table.

    Each fragment must be there once. Exit codes are those of assay score.
    """

    parts: tuple[Location, ...] = argument("The files of all parts.", (), required="the files of all parts")


COMMANDS: dict[str, tuple[type, str]] = {
    "devices": (DevicesCommand, "assay.cli.devices"),
    "demo": (DemoCommand, "assay.cli.demo"),
    "audit": (AuditCommand, "assay.cli.audit"),
    "compare": (CompareCommand, "assay.cli.compare"),
    "history": (HistoryCommand, "assay.cli.history"),
    "gate": (GateCommand, "assay.cli.gate"),
    "import": (ImportCommand, "assay.cli.foreign_results"),
    "score": (ScoreCommand, "assay.cli.score"),
    "merge": (MergeCommand, "assay.cli.merge"),
    "evaluate": (EvaluateCommand, "assay.cli.evaluate"),
    "perplexity": (PerplexityCommand, "assay.cli.perplexity"),
    "generate": (GenerateCommand, "assay.cli.generate"),
    "chat": (ChatCommand, "assay.cli.chat"),
    "lm-eval": (LmEvalCommand, "assay.cli.lm_eval"),
    "quantize": (QuantizeCommand, "assay.cli.quantize"),
    "migrate": (MigrateCommand, "assay.cli.migrate"),
    "catalogue": (CatalogueCommand, "assay.cli.catalogue"),
}
