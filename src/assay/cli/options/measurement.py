"""Commands that make a report of a model, or of stored predictions. Needs no torch."""

from __future__ import annotations

from assay._atomic import Location
from assay.cli.declaration import DATA, MODEL, RUN, argument, flag, option, several, string
from assay.cli.options.base import MeasurementOptions, ReportCommand, ReportOutput, SampleOptions, seed_option


class EvaluateCommand(SampleOptions, MeasurementOptions):
    """Measure a model on data, every sample once; under torchrun on any number of processes.

    With --variant, measure other variants of the model on the same samples, and compare them with it.
    """

    data: str = string(
        "Measure on this data: package.module:function, a folder of images, or .npz, .safetensors, .pt, .parquet, "
        ".csv, .tsv or .jsonl, also at a URL.",
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
    verify: int | None = option(
        "Predict this many random samples again on the CPU, and say what the difference is worth.", panel=MODEL, least=1
    )
    verify_dtype: str = string("With --verify, predict again in this dtype: float32 or float64.", panel=MODEL)
    preds: str = string("Take the predictions from this part of the outputs: a name or a position.", panel=MODEL)
    num_workers: int = option("Load data in this many processes.", default=0, panel=DATA)
    sharded: bool | None = option("State whether each process has its own data, or all have the same.", panel=DATA)
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
        "Make one float tensor of these columns; p* means all columns that begin with p.", panel=DATA, separator=","
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
        "Give up on a silent process after this many seconds; 60 by default.", panel=RUN
    )
    on_error: str = option("Handle batches that fail: raise, or skip.", default="raise", panel=RUN)
    recount: str | None = option(
        "Count batches of a device once more on the CPU: sampled, all, or off; sampled by default.", panel=RUN
    )


class ScoreCommand(SampleOptions, ReportCommand):
    """Compute metrics of predictions in a table: every row once, in constant memory.

    Exit code 0: every row was counted, or bad rows were skipped as asked. 2: something is invalid; the
    report of all rows that are not bad is written and printed first.
    """

    table: tuple[str, ...] = argument(
        "The table: files of Parquet, Arrow, CSV or JSON lines, a pattern, a folder, or a URL such as s3://.", ()
    )
    preds: str = string(
        "Take the predictions from this column, or from one for each class: p0..p9, or a,b; of boxes also from one for "
        "each field: boxes=pb,scores=ps,labels=pl.",
        panel=DATA,
        required="the column of the predictions",
    )
    target: str = string("Take the target from this column, or these, as the predictions.", panel=DATA)
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
    seed: int = seed_option("Assign rows by this seed to the groups that intervals come from.", panel=RUN)


class MergeCommand(ReportOutput):
    """Add up the parts that assay score --part wrote, and make the report of the whole table.

    Each fragment must be present once. Exit codes are those of assay score.
    """

    parts: tuple[Location, ...] = argument("The files of all parts.", (), required="the files of all parts")
