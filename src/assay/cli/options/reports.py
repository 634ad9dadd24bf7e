"""Commands that read reports. Needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay._atomic import Location
from assay.cli.declaration import DATA, MODEL, CommandOptions, argument, flag, option, several, string
from assay.cli.options.base import JsonOptions, ModelOptions, OutputOptions, seed_option


def _cluster() -> Any:
    return string(
        "Take samples as one cluster if this regular expression, as in '^[^/]+', finds one text in their ids; by "
        "default the clusters that the reports know."
    )


class CompareCommand(OutputOptions):
    """Compare runs with a baseline, slice by slice, and sample by sample if both kept their samples."""

    reports: tuple[Location, ...] = argument(
        "The reports as JSON, paths or URLs: the baseline first, then one or more runs.",
        (),
    )
    runs: tuple[Location, ...] = several(
        "Compare a model by the reports of its training runs, with commas: --runs a1.json,a2.json --against b1.json,"
        "b2.json. Intervals are then for other runs and other samples.",
        metavar="REPORTS",
        separator=",",
        is_path=True,
        may_be_url=True,
    )
    against: tuple[Location, ...] = several(
        "With --runs, the reports of the training runs of the baseline.",
        metavar="REPORTS",
        separator=",",
        is_path=True,
        may_be_url=True,
    )
    confidence_level: float = option("Compute intervals of this confidence level.", default=0.95)
    correction: str = option("Correct p-values for the number of tests: holm, bh or none.", default="holm")
    seed: int = seed_option("Seed random numbers.")
    flips: int = option("List this many samples for each kind of flip.", default=10)
    slices: bool | None = option("Compare slices; by default those that both reports have.")
    between: tuple[str, ...] = several(
        "Compare slices of one report, the baseline first: --between 'sex = f' --between 'sex = m'.", metavar="SLICE"
    )
    cluster: str = _cluster()
    html: Location | None = option("Write the comparison as a self-contained page.")
    out: Location | None = option("Write the comparison as JSON.")


class HistoryCommand(OutputOptions):
    """Show metrics over many runs, and which changes from run to run are more than noise.

    Each run is compared with the one before it on the same samples, sample by sample if both kept them.
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
    correction: str = option("Correct the p-values of a run for the number of tests: holm, bh or none.", default="holm")
    sequential: bool | None = option(
        "Keep the level over all runs, however many will come: the p-values of the k-th change are k (k + 1) times as "
        "large.",
        "--sequential/--each-run",
    )
    seed: int = seed_option("Seed random numbers.")
    html: Location | None = option("Write the history as a self-contained page.")
    out: Location | None = option("Write the history as JSON.")


class ViewCommand(CommandOptions):
    """Write one page of many reports: every run, metrics over time, each report, and comparisons of any two.

    The page needs no server and no network. Reports that cannot be read are listed on it with the reason.
    """

    reports: tuple[str, ...] = argument(
        "The reports as JSON: folders, in which all are found, files, patterns or URLs.",
        (),
        required="a folder or files",
    )
    html: Location = option("Write the page to this file.", default=Path("assay-view.html"))
    comparisons: int = option("Compare at most this many pairs of runs, those of the last runs first.", default=30)
    slices: bool = flag("Compare slices, too, which takes longer.")
    confidence_level: float = option("Compute intervals of differences of this confidence level.", default=0.95)
    seed: int = seed_option("Seed random numbers.")


def _bounds(help: str) -> Any:
    return several(f"{help}; may be repeated.", metavar="METRIC=NUMBER", is_extended=True)


class GateCommand(OutputOptions):
    """Judge a report by rules.

    Exit code 0: every rule holds. 1: a rule fails, or a value that it needs is missing or undefined. 2: undecided.

    A rule holds if the whole interval is within its bound. Exit code 2 means not enough evidence (the
    bound is within the interval, or the value has no interval), an unreadable file, or an invalid option.

    If several sections have a metric of that name, write section/metric. A metric of one slice is written
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
    locked: Path | None = option(
        "Read all rules and options from this TOML file alone, and record its SHA-256 digest: rules that were fixed "
        "before the run."
    )
    confidence_level: float = option("Judge by intervals of this confidence level.", default=0.95)
    point: bool | None = option(
        "Judge by the numbers alone, or strictly by intervals (the default).", "--point/--strict"
    )
    min_slice_size: int | None = option(
        "Leave out slices of fewer samples; by default those that the report leaves out."
    )
    cluster: str = _cluster()
    sequential: bool | None = option(
        "Judge by intervals that hold at any number of looks: run the gate again whenever samples were added.",
        "--sequential/--once",
    )
    range: tuple[str, ...] = several(
        "With --sequential, say between which numbers each sample of a metric is: loss=0,10; may be repeated.",
        metavar="METRIC=LOW,HIGH",
    )


class VerifyCommand(OutputOptions):
    """Verify a report: against itself, with --data against its predictions, with --model against a second run.

    Exit code 0: all that could be checked holds, and every value was checked. 1: something contradicts the report.
    2: not enough evidence, an unreadable file, or an invalid option.

    Without options the file is checked: its schema and digest, the values against the counts, the per-sample values
    against both. What this cannot see is listed.
    """

    report: Location = argument(
        "The report as JSON, or the file of assay devices --check.", None, required="the file of a report"
    )
    data: Location | None = option("Count the predictions in this table again; with --model, measure on this data.")
    preds: str = string("Take the predictions from this column; by default from the recorded one.")
    target: str = string("Take the target from this column; by default from the recorded one.")
    weights: str = string("Take the weights from this column; by default from the recorded one.")
    ids: str = string("Take the ids of rows from this column; by default from the recorded one.")
    model: str = option("Measure this model again, on --data, as the report says.", default="", is_path=True)
    model_factory: str = string("Call package.module:function to make the model that a file of weights is for.")
    allow_code: bool = flag("Allow model files to run code, and options of the report to name functions.")
    device: str = option("Run the model on this device: auto, cpu, cuda:1, mps, ...", default="cpu")
    statement: Location | None = option("Write an in-toto Statement of a report that passed, to be signed.")
    evaluator: str = string("Name in the statement who ran the evaluation, by a URI.", metavar="URI")
    subject: Location | None = option("Make the statement about this file, such as weights; else about the report.")


class StableCommand(ModelOptions, OutputOptions):
    """Check whether the outputs of a model depend on batches, orders, repeats, padding, threads or dtypes.

    Exit code 0: nothing but rounding. 1: outputs depend on one of these, and the likely cause is named.
    2: not enough evidence, or an invalid option.

    Without --data, MODEL and --against are two files of predictions.
    """

    model: str = argument(
        "The model: package.module:factory, a .pt2 program, TorchScript, weights, or a Hugging Face folder; without "
        "--data a file of predictions.",
        required="package.module:factory, a file or a folder",
        is_path=True,
    )
    data: str = string(
        "Run the model on these samples: package.module:function, a file or a folder, as assay evaluate takes them.",
        panel=DATA,
        is_path=True,
        may_be_url=True,
    )
    samples: int = option("Use this many of the first samples.", default=64, least=2, panel=DATA)
    inputs: tuple[str, ...] = several(
        "Pass these parts of a sample to the model: names or positions, with commas.", panel=DATA, separator=","
    )
    target: str = string("Take this part of a sample as the target, which is no input.", panel=DATA)
    text: tuple[str, ...] = several(
        "Pass these columns through the tokenizer of a Hugging Face folder.", panel=DATA, separator=","
    )
    preds: str = string("Compare this part of the outputs, or this column of files.", panel=DATA)
    padding: int | None = option("Take this token as padding, for a model without a mask.", panel=DATA)
    as_is: bool = flag("Run the model in the mode in which it was made, not in evaluation mode.", panel=MODEL)
    compile: bool = flag("Compare with torch.compile, too.", panel=MODEL)
    against: tuple[str, ...] = several(
        "Compare with this other form of the model: a .pt2 program, TorchScript, an .onnx file, ...; may be repeated.",
        panel=MODEL,
        is_path=True,
    )
    out: Location | None = option("Write the result as JSON.")
    html: Location | None = option("Write the result as a self-contained page.")


class PowerCommand(OutputOptions):
    """Say how many samples a comparison needs to find a difference, and the smallest that a number of samples finds.

    The samples of an old report say how much values vary, those of two reports how much two models differ.
    """

    baseline: Location = argument("The report as JSON.", None, required="the file of a report")
    effect: tuple[str, ...] = several(
        "Find a difference of this size: accuracy=0.01; may be repeated.", metavar="METRIC=NUMBER"
    )
    run: Location | None = option(
        "Pair the baseline with this report of another model, which tells how much two models differ.", "--with"
    )
    n: tuple[float, ...] = several(
        "Say what these numbers of samples find, with commas.", metavar="NUMBERS", separator=","
    )
    power: float = option("Find the difference with this probability.", default=0.8)
    confidence_level: float = option("Compare at this confidence level.", default=0.95)
    cluster: str = _cluster()


class RankCommand(OutputOptions):
    """Rank runs by their metrics, with ties where they cannot be told apart.

    All pairs of runs are compared on the same samples, and corrected for their number. Runs of one group cannot be
    told apart; a place such as 2-4 says which places a run may have.
    """

    reports: tuple[Location, ...] = argument(
        "The reports as JSON, paths or URLs.", (), required="the files of two or more reports"
    )
    metric: tuple[str, ...] = several("Rank by this metric only; may be repeated.")
    section: tuple[str, ...] = several("Rank in this section only; may be repeated.")
    confidence_level: float = option("Compute places and intervals that hold together at this level.", default=0.95)
    seed: int = seed_option("Seed random numbers.")
    cluster: str = _cluster()
    html: Location | None = option("Write the ranking as a self-contained page.")
    out: Location | None = option("Write the ranking as JSON.")


class ImportCommand(JsonOptions):
    """Convert the results of another tool, sample by sample, to a report for assay compare and assay gate."""

    tool: str = argument(
        "The tool that wrote the results: inspect, lighteval or lm-eval.", required="inspect, lighteval or lm-eval"
    )
    path: Path = argument(
        "The results_*.json of lm-eval or lighteval, the .eval of Inspect, or the folder of one run.",
        None,
        required="a file or a folder",
    )
    out: Location | None = option("Write the report as JSON.")
    title: str = string("Give the report this title instead of the name of the model.")
