"""``assay demo``: small models, a report with their worst errors, and the same bits however samples are fed."""

from __future__ import annotations

import time
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from assay.cli.demonstration.bits import same_bits, where_float32_ends
from assay.cli.demonstration.models import Example, one_thread, tasks
from assay.cli.demonstration.scenes import SceneExample
from assay.cli.demonstration.spelling import SpellingExample
from assay.cli.options.tools import DemoCommand
from assay.cli.output import write_report
from assay.evaluation import evaluate
from assay.render.terminal import show
from assay.report import Report


def run(options: DemoCommand, max_epochs: int | None = None) -> Report:
    """Train, evaluate, write the report as JSON and as a page, and print it.

    Returns:
        The report.
    """
    options.out.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    start = time.perf_counter()
    rows = tasks()
    examples = (*rows, SceneExample(), SpellingExample())
    with one_thread(), _progress(console) as progress:
        for example in examples:
            epochs = min(example.epochs, max_epochs or example.epochs)
            for _ in progress.track(example.train(epochs), epochs, description=f"Training: {example.title}"):
                pass
        reports = [measure(each) for each in progress.track(examples, description="Measuring")]
        sections = [section for each in reports for section in each.sections]
        for build in progress.track((same_bits, where_float32_ends), description="Feeding the same samples again"):
            sections.append(build(*rows[-1].predictions()))
    report = Report(
        "assay demo",
        tuple(sections),
        device="cpu",
        notes=(
            "Small models on data that ships with scikit-learn, on drawn scenes, and on the documentation of Python's "
            "standard library; what is measured was held out.",
            *(f"{each.title}: {note}" for each in reports for note in each.notes),
        ),
        duration_s=time.perf_counter() - start,
    )
    try:
        with console.status("Writing the report"):
            written = write_report(report, options.out)
    finally:
        show(report.to_document(), console)
    console.print(f"\nWritten in {time.perf_counter() - start:.0f} s:")
    for path in written:
        console.print(f"  {path}", markup=False, soft_wrap=True)
    return report


def measure(example: Example) -> Report:
    """Measure a trained model on the samples that it never saw; the section has the name of the example."""
    report = evaluate(
        example.model,
        example.held_out,
        example.metrics,
        device="cpu",
        inputs=0,
        target=1,
        ids=2,
        progress=False,
        title=example.title,
        **example.options,
    )
    (section,) = report.sections
    return replace(report, sections=(replace(section, name=example.title, tables=example.tables() + section.tables),))


def _progress(console: Console) -> Progress:
    return Progress(TextColumn("{task.description:32}"), BarColumn(), TimeElapsedColumn(), console=console)
