"""The command line: each command turns its arguments into one call. ``--help`` imports neither torch nor a metric."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay import __version__

app = typer.Typer(
    name="assay",
    help="Measures PyTorch models and gives the same, right number on every device.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _local(path: str | Path) -> Path:
    """A path to write to; an address such as s3://bucket/run would become a folder called s3:."""
    if "://" in str(path):
        raise typer.BadParameter(f"got {path}, expected a path on this machine: write there, and copy it afterwards")
    return Path(path)


def main() -> None:
    """Run the command line; what assay raises on purpose, and what the system refuses, is one line and exit code 2."""
    import sys

    from assay.cli._streams import finish_output, prepare_streams
    from assay.errors import AssayError

    prepare_streams()
    try:
        try:
            app()
        finally:
            finish_output()
    except (AssayError, OSError) as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(2)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"assay {__version__}")
        raise typer.Exit


@app.callback()
def _assay(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command("devices")
def _devices(
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of tables.")] = False,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Compile the engine of pretend devices now instead of at first use.")
    ] = False,
) -> None:
    """What is on this machine, what each kind of device can do, and why not."""
    from assay.cli.devices import prepare_pretend, show

    if prepare:
        prepare_pretend()
        return
    show(as_json=json)


@app.command("demo")
def _demo(
    out: Annotated[Path, typer.Option("--out", parser=_local, help="Folder for the report as JSON and HTML.")] = Path(
        "assay-demo"
    ),
) -> None:
    """Real data, a few seconds, a report to look at."""
    from assay.cli.demo import run

    run(out)


@app.command("audit")
def _audit(
    target: Annotated[
        str,
        typer.Argument(help="A script, a module, module:Class, module:function, or a library of metrics."),
    ] = "",
    on: Annotated[str, typer.Option("--on", help="Devices; cuda:1 means two, with cuda:0 the default.")] = (
        "mps,cuda:1,xpu"
    ),
    usage: Annotated[str, typer.Option("--usage", help="Of metrics: moved, not-moved or both.")] = "both",
    only: Annotated[str, typer.Option("--rules", help="Report these rules only.")] = "",
    without: Annotated[str, typer.Option("--ignore", help="Do not report these rules.")] = "",
    fail_on: Annotated[str, typer.Option("--fail-on", help="Exit with 1 from this severity on.")] = "warning",
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds that a script or one metric may take.")] = 120.0,
    arguments: Annotated[str, typer.Option("--args", help="Arguments of a script; {device} is the device.")] = "",
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="Shape and dtype of what a module takes: 8x3x32x32, 8x16:int64. One for each."),
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="Of pretend devices: auto, native or python.")] = "auto",
    sarif: Annotated[Path | None, typer.Option("--sarif", parser=_local, help="Write SARIF for a code host.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    notes: Annotated[bool, typer.Option("--notes", help="Print notes, too.")] = False,
    rules: Annotated[bool, typer.Option("--list-rules", help="Show the rules and exit.")] = False,
    parity: Annotated[
        bool, typer.Option("--parity", help="Instead, hold values against the CPU's, operator by operator.")
    ] = False,
) -> None:
    """Find device bugs without the device: exit code 0 none, 1 findings, 2 could not be run."""
    if rules:
        from assay.cli.audit import print_rules

        print_rules()
        return
    if not target:
        raise typer.BadParameter("name a target", param_hint="TARGET")
    if parity:
        from assay.audit.parity.command import run as compare
        from assay.cli.audit import listed

        raise typer.Exit(compare(target, listed(on), engine=engine, as_json=json))  # type: ignore[arg-type]
    from assay.cli.audit import Options, run

    asked = tuple(inputs or ())
    run(target, Options(on, usage, engine, timeout, only, without, arguments, fail_on, json, sarif, notes, asked))


@app.command("compare")
def _compare(
    reports: Annotated[list[Path], typer.Argument(help="Reports as JSON: the baseline first, then one run or more.")],
    level: Annotated[float, typer.Option("--level", help="Confidence level of the intervals.")] = 0.95,
    correction: Annotated[
        str, typer.Option("--correction", help="Of p-values for how many there are: holm, bh or none.")
    ] = "holm",
    seed: Annotated[int, typer.Option("--seed", help="Where random numbers start.")] = 0,
    flips: Annotated[int, typer.Option("--flips", help="Samples to list for each way to flip.")] = 10,
    slices: Annotated[
        bool | None,
        typer.Option("--slices/--no-slices", help="Compare slices, too; those that both have, unless said."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", parser=_local, help="Write a page that needs nothing else.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", parser=_local, help="Write the comparison as JSON.")] = None,
) -> None:
    """Compare runs with a baseline, slice by slice, and sample by sample where both kept their samples."""
    from assay.cli.compare import Options, run

    run(reports, Options(level, correction, seed, flips, slices, json, markdown, html, out))


_BOUNDS = "METRIC=NUMBER"


@app.command("gate")
def _gate(
    report: Annotated[Path, typer.Argument(help="The report as JSON.")],
    least: Annotated[list[str] | None, typer.Option("--min", metavar=_BOUNDS, help="At least.")] = None,
    most: Annotated[list[str] | None, typer.Option("--max", metavar=_BOUNDS, help="At most.")] = None,
    max_drop: Annotated[
        list[str] | None, typer.Option("--max-drop", metavar=_BOUNDS, help="Lower than in the baseline by at most.")
    ] = None,
    max_rise: Annotated[
        list[str] | None, typer.Option("--max-rise", metavar=_BOUNDS, help="Higher than in the baseline by at most.")
    ] = None,
    worst_slice: Annotated[
        list[str] | None, typer.Option("--worst-slice", metavar=_BOUNDS, help="At least, in every slice.")
    ] = None,
    worst_slice_max: Annotated[
        list[str] | None, typer.Option("--worst-slice-max", metavar=_BOUNDS, help="At most, in every slice.")
    ] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="The report that drops are counted from.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="TOML with the same options.")] = None,
    level: Annotated[float | None, typer.Option("--level", help="Confidence level; 0.95 unless said.")] = None,
    point: Annotated[
        bool | None, typer.Option("--point/--strict", help="Judge by the numbers alone, or by intervals (default).")
    ] = None,
    min_slice_size: Annotated[
        int | None,
        typer.Option("--min-slice-size", help="Leave out slices of fewer samples; what the report says unless given."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
) -> None:
    """Exit code 0: every rule holds. 1: one does not, or what it needs is missing or undefined. 2: cannot say.

    A rule holds where the whole interval is within its bound. 2 is not enough evidence (the bound is within the
    interval, or there is none), a file that cannot be read, or an option that cannot be. What is in doubt is never 0.
    Where several sections have a metric of one name, write section/metric. A metric of one slice is written
    accuracy\\[language = de], that of every slice that fits accuracy\\[language = *].
    """
    from assay.cli.gate import Options, run

    rules = {
        "min": least,
        "max": most,
        "max-drop": max_drop,
        "max-rise": max_rise,
        "worst-slice": worst_slice,
        "worst-slice-max": worst_slice_max,
    }
    given = {kind: written or [] for kind, written in rules.items()}
    run(report, Options(given, baseline, config, level, point, min_slice_size, json, markdown))


@app.command("import")
def _import(
    tool: Annotated[str, typer.Argument(help="What wrote it: lm-eval.")],
    path: Annotated[Path, typer.Argument(help="Its results_*.json, or the folder of one run.")],
    out: Annotated[Path | None, typer.Option("--out", parser=_local, help="Write the report as JSON.")] = None,
    title: Annotated[str, typer.Option("--title", help="Of the report; the model's name unless said.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Make a report of what another tool measured, sample by sample, for assay compare and assay gate."""
    from assay.cli.foreign_results import run

    run(tool, path, out, title, json)


_MODEL, _DATA, _WHAT, _RUN = "Model", "Data", "What is measured", "Run and report"  # groups of the help


@app.command("evaluate")
def _evaluate(
    model: Annotated[
        str | None, typer.Argument(help="package.module:factory, .pt2, TorchScript, weights, or a Hugging Face folder.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", help="package.module:function, .npz, .safetensors, .parquet, .csv, .jsonl, or images."),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metrics", "-m", help="metric, metric:argument=value,..., or name=metric:...; may be repeated."),
    ] = None,
    num_classes: Annotated[
        int | None, typer.Option("--num-classes", min=2, help="The number of classes, for every metric that has it.")
    ] = None,
    num_labels: Annotated[
        int | None, typer.Option("--num-labels", min=2, help="The number of labels, for every metric that has it.")
    ] = None,
    logits: Annotated[
        bool | None,
        typer.Option("--logits/--no-logits", help="Predictions are logits, for every metric that has this argument."),
    ] = None,
    versus: Annotated[
        list[str] | None,
        typer.Option(
            "--versus",
            help="Another form: MODEL, precision=bfloat16, int8, ...; may be repeated.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    factory: Annotated[
        str | None, typer.Option("--factory", help="What makes the model that weights are for.", rich_help_panel=_MODEL)
    ] = None,
    trust: Annotated[
        bool | None,
        typer.Option("--trust", help="Let model files run code: pickled models, TorchScript.", rich_help_panel=_MODEL),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="auto (default), cpu, cuda:1, mps, ...", rich_help_panel=_MODEL)
    ] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="bfloat16 or float16 for autocast.", rich_help_panel=_MODEL)
    ] = None,
    compile: Annotated[
        bool | None, typer.Option("--compile", help="Pass the model through torch.compile.", rich_help_panel=_MODEL)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", help="Samples a batch; 64.", rich_help_panel=_DATA, show_default=False)
    ] = (None),
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes that load data; 0.", rich_help_panel=_DATA)
    ] = None,
    shards: Annotated[
        bool | None,
        typer.Option(
            "--shards/--no-shards", help="Each process has data of its own, or all the same.", rich_help_panel=_DATA
        ),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option("--inputs", help="What the model gets: names or positions.", rich_help_panel=_DATA)
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="A name, a position or module:function.", rich_help_panel=_DATA)
    ] = None,
    preds: Annotated[
        str | None,
        typer.Option("--preds", help="Which part of the outputs the predictions are.", rich_help_panel=_MODEL),
    ] = None,
    weights: Annotated[
        str | None, typer.Option("--weights", help="The same, of the samples' weights.", rich_help_panel=_DATA)
    ] = None,
    ids: Annotated[
        str | None, typer.Option("--ids", help="The same, of the samples' ids.", rich_help_panel=_DATA)
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            help="Columns that become one float tensor; p* for all that begin with p.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", help="Columns for the tokenizer of a Hugging Face folder.", rich_help_panel=_DATA),
    ] = (None),
    classes: Annotated[
        str | None, typer.Option("--classes", help="Names of classes, in the model's order.", rich_help_panel=_DATA)
    ] = None,
    image_size: Annotated[
        int | None, typer.Option("--image-size", help="Pixels of the square in the middle.", rich_help_panel=_DATA)
    ] = None,
    image_resize: Annotated[
        int | None, typer.Option("--image-resize", help="Of the shorter side, before that.", rich_help_panel=_DATA)
    ] = (None),
    image_mode: Annotated[
        str | None, typer.Option("--image-mode", help="RGB (default) or L.", rich_help_panel=_DATA)
    ] = None,
    mean: Annotated[
        str | None, typer.Option("--mean", help="Of each channel, as in 0.5,0.5,0.5.", rich_help_panel=_DATA)
    ] = None,
    std: Annotated[
        str | None, typer.Option("--std", help="The same, by which is divided.", rich_help_panel=_DATA)
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task", help="lm: the perplexity of a text file that --data names; no --metrics.", rich_help_panel=_WHAT
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option("--window", help="Of a text: tokens at once; 1024 at most.", rich_help_panel=_WHAT)
    ] = None,
    stride: Annotated[
        int | None, typer.Option("--stride", help="Of a text: how far windows are apart.", rich_help_panel=_WHAT)
    ] = None,
    slice: Annotated[
        list[str] | None,
        typer.Option(
            "--slice",
            help="Measure by a column: sex, or sex,age, or age:bins=5; may be repeated.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    min_slice: Annotated[
        int | None, typer.Option("--min-slice", help="Smaller slices are never the worst.", rich_help_panel=_WHAT)
    ] = None,
    level: Annotated[
        float | None, typer.Option("--level", help="Of intervals; 0.95; 0 for none.", rich_help_panel=_WHAT)
    ] = None,
    replicates: Annotated[
        int | None, typer.Option("--replicates", help="How often the bootstrap draws.", rich_help_panel=_WHAT)
    ] = None,
    samples: Annotated[
        bool | None,
        typer.Option(
            "--samples/--no-samples", help="Keep each sample's share, for assay compare.", rich_help_panel=_WHAT
        ),
    ] = None,
    details: Annotated[
        bool | None,
        typer.Option("--details/--no-details", help="Confusion matrix, curves, residuals, ...", rich_help_panel=_WHAT),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="TOML with these options; what is said here wins.", rich_help_panel=_RUN),
    ] = (None),
    out: Annotated[
        Path | None,
        typer.Option("--out", parser=_local, help="Folder for reports as JSON and HTML.", rich_help_panel=_RUN),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", parser=_local, help="Folder for checkpoints to go on from.", rich_help_panel=_RUN),
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id", help="With --resume: a name for what has no digest, such as random data.", rich_help_panel=_RUN
        ),
    ] = None,
    checkpoint_s: Annotated[
        float | None,
        typer.Option("--checkpoint-s", help="Seconds between checkpoints; 30 unless said.", rich_help_panel=_RUN),
    ] = None,
    rank_timeout_s: Annotated[
        float | None,
        typer.Option(
            "--rank-timeout-s",
            help="Seconds until a silent process counts as lost; 60 by default.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    on_error: Annotated[
        str | None, typer.Option("--on-error", help="raise, or skip batches that fail.", rich_help_panel=_RUN)
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of random numbers, such as a sampler's.", rich_help_panel=_RUN)
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="The title of the report.", rich_help_panel=_RUN)] = None,
    verbose: Annotated[
        bool | None,
        typer.Option("--verbose", help="Print every table and plot of the report, too.", rich_help_panel=_RUN),
    ] = None,
    json: Annotated[bool | None, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=_RUN)] = None,
) -> None:
    """Measure a model on data, every sample once; under torchrun on any number of processes.

    With --versus, other forms of the model are measured on the same samples and compared with it.
    """
    given = {name: value for name, value in locals().items() if name != "config"}
    from assay.cli.loaders.options import settled

    options = settled(given, config)
    from assay.cli.evaluate import run

    run(options)


@app.command("generate")
def _generate(
    model: Annotated[str, typer.Argument(help="A Hugging Face folder, package.module:factory, .pt2, or weights.")],
    prompt: Annotated[str, typer.Option("--prompt", help="The text to go on with.")],
    versus: Annotated[
        list[str] | None,
        typer.Option("--versus", help="Another model, or a scheme such as int4; may be repeated."),
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", "-n", help="How many new ones at most.")] = 50,
    temperature: Annotated[
        float, typer.Option("--temperature", help="0 for the most probable token each time, else drawn.")
    ] = 0.0,
    top_k: Annotated[int | None, typer.Option("--top-k", help="Draw from so many tokens only.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws.")] = 0,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda:1, mps, ...")] = "auto",
    factory: Annotated[str, typer.Option("--factory", help="What makes the model that weights are for.")] = "",
    trust: Annotated[bool, typer.Option("--trust", help="Let model files run code.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Let a language model go on with a prompt, side by side with others: text, tokens a second, peak memory."""
    from assay.cli.language import Prompt, run_generate

    asked = Prompt(prompt, tuple(versus or ()), tokens, temperature, top_k, seed, device, factory, trust, json)
    run_generate(model, asked)


@app.command("quantize")
def _quantize(
    model: Annotated[
        str, typer.Argument(help="package.module:factory, a file of weights with --factory, or a Hugging Face folder.")
    ] = "",
    scheme: Annotated[
        str, typer.Option("--scheme", help="int4, int8, int3:g64, ...; several: the first that fits a layer.")
    ] = "",
    device: Annotated[str, typer.Option("--device", help="Where it shall run; it need not be here.")] = "auto",
    dtype: Annotated[str, typer.Option("--dtype", help="Of its activations; that of its weights unless said.")] = "",
    recipe: Annotated[
        str, typer.Option("--recipe", help="Schemes by layer: TOML, JSON, or a TorchChat --quantize JSON.")
    ] = "",
    include: Annotated[list[str] | None, typer.Option("--include", help="These layers only; may be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", help="Not these layers; may be repeated.")] = None,
    evaluate: Annotated[
        str, typer.Option("--eval", help="Measure before and after: a text file, or data as assay evaluate names them.")
    ] = "",
    metrics: Annotated[
        list[str] | None, typer.Option("--metrics", "-m", help="With --eval: further metrics; may be repeated.")
    ] = None,
    sweep: Annotated[
        str, typer.Option("--sweep", help="With --eval: schemes beside each other, as in int8,int4,int3; none is made.")
    ] = "",
    budget: Annotated[
        str, typer.Option("--budget", help="With --eval: a recipe for 4.5bits a weight, or 300MB; --sweep its schemes.")
    ] = "",
    layers: Annotated[
        bool, typer.Option("--layers", help="With --eval: each layer alone in --scheme, those that matter most first.")
    ] = False,
    window: Annotated[int | None, typer.Option("--window", help="Of a text: tokens at once.")] = None,
    stride: Annotated[int | None, typer.Option("--stride", help="Of a text: how far windows are apart.")] = None,
    method: Annotated[str, typer.Option("--method", help="How weights are rounded: nearest, search or hqq.")] = "",
    release: Annotated[
        str, typer.Option("--release", help="An older torch, such as 2.4: plan with what it is known to have lacked.")
    ] = "",
    only_plan: Annotated[bool, typer.Option("--plan", help="Print the plan and do nothing.")] = False,
    apply: Annotated[Path | None, typer.Option("--apply", help="Apply the plan that --plan --json printed.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", parser=_local, help="Folder, or .safetensors file, to write.")
    ] = None,
    factory: Annotated[str, typer.Option("--factory", help="What makes the model that weights are for.")] = "",
    trust: Annotated[bool, typer.Option("--trust", help="Let model files run code.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of random numbers, where a factory makes weights.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown for a pull request.")] = False,
    matrix: Annotated[bool, typer.Option("--matrix", help="Print what works on which device, and exit.")] = False,
    tune: Annotated[
        bool, typer.Option("--tune", help="Measure which path is the fastest on this machine, keep it, and exit.")
    ] = False,
) -> None:
    """Make the weights of a model small integers: print what happens to each layer on a device, then do it."""
    if matrix:
        from assay.cli.quantize import print_matrix

        print_matrix()
        return
    if tune:
        from assay.cli.quantize import tune_here

        tune_here(device, scheme, dtype)
        return
    if not model:
        raise typer.BadParameter("name a model", param_hint="MODEL")
    from assay.cli.quantize import Options, run

    options = Options(
        scheme=scheme,
        device=device,
        dtype=dtype,
        recipe=recipe,
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        method=method,
        release=release,
        plan_only=only_plan,
        apply=apply,
        out=out,
        factory=factory,
        trust=trust,
        seed=seed,
        as_json=json,
        as_markdown=markdown,
    )
    if evaluate or sweep or budget or layers or metrics or window or stride:
        from assay.cli.quantize_measured import Measuring
        from assay.cli.quantize_measured import run as run_measured

        run_measured(model, options, Measuring(evaluate, tuple(metrics or ()), sweep, budget, layers, window, stride))
        return
    run(model, options)


@app.command("migrate")
def _migrate(
    path: Annotated[Path, typer.Argument(help="A Python file, or a folder of them.")],
    write: Annotated[bool, typer.Option("--write", help="Write the changes; each file whole or not at all.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    num_classes: Annotated[
        int | None, typer.Option("--num-classes", min=2, help="What all metrics of classes have, where it is unsaid.")
    ] = None,
    num_labels: Annotated[int | None, typer.Option("--num-labels", min=2, help="The same, of several labels.")] = None,
    num_outputs: Annotated[int | None, typer.Option("--num-outputs", min=1, help="The same, of regression.")] = None,
) -> None:
    """Change TorchMetrics, Ignite and TorchEval to assay, as a diff; what is not sure is a note.

    Exit code 0: nothing is left to do by hand. 1: something is. 2: a file could not be read or written.
    """
    from assay.cli.migrate import run

    known = {"num_classes": num_classes, "num_labels": num_labels, "num_outputs": num_outputs}
    run(path, {name: value for name, value in known.items() if value is not None}, write, json)
