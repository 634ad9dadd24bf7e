"""``assay demo``: real data, small models, a report, and the same bits however the samples are fed."""

from __future__ import annotations

import time
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from assay.cli.demo_bits import same_bits, where_float32_ends
from assay.cli.demo_models import EPOCHS, Task, one_thread, tasks
from assay.cli.loaders.metrics import open_metrics
from assay.cli.options import DemoCommand
from assay.cli.output import write_report
from assay.evaluation import evaluate
from assay.metrics.base import Metric
from assay.render.terminal import show
from assay.report import Report


def run(options: DemoCommand, epochs: int = EPOCHS) -> Report:
    """Train, evaluate, write the report as JSON and as a page, and print it.

    Returns:
        The report.
    """
    options.out.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    start = time.perf_counter()
    with one_thread(), _progress(console) as progress:
        trained = _train(progress, epochs)
        reports = [measure(each) for each in progress.track(trained, description="Measuring")]
        sections = [section for each in reports for section in each.sections]
        for build in progress.track((same_bits, where_float32_ends), description="Feeding the same samples again"):
            sections.append(build(*trained[-1].predictions()))
    report = Report(
        "assay demo",
        tuple(sections),
        device="cpu",
        notes=(
            "Small models on data that ships with scikit-learn; half of each data set was held out and measured.",
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


def measure(task: Task) -> Report:
    """Measure a trained model on the samples that it never saw; the section has the name of the task."""
    report = evaluate(
        task.model,
        task.held_out,
        metrics_of(task),
        device="cpu",
        inputs=0,
        target=1,
        ids=2,
        slices=task.slices,
        classes=task.classes,
        batch_size=128,
        progress=False,
        title=task.title,
    )
    return replace(report, sections=tuple(replace(section, name=task.title) for section in report.sections))


_METRICS = "Accuracy=acc; F1, macro=f1:average=macro; Matthews correlation=mcc; AUROC, macro=auroc; Log loss=nll"
_TWO = "Accuracy=acc; Sensitivity=recall; Specificity=specificity; AUROC=auroc; Average precision=ap; Brier score=brier"
_NUMBERS = "R²=r2; Root mean squared error=rmse; Mean absolute error=mae; Pearson correlation=pearson; Concordance=ccc"


def metrics_of(task: Task) -> dict[str, Metric]:
    """The usual metrics, as they are written on the command line."""
    if not task.classes:
        return open_metrics(_NUMBERS.split("; "))
    shared = {"num_classes": len(task.classes)} if len(task.classes) > 2 else {}
    texts = (_METRICS if shared else _TWO).split("; ")
    return open_metrics([*texts, "Calibration error=ece"], shared)


def _progress(console: Console) -> Progress:
    return Progress(TextColumn("{task.description:32}"), BarColumn(), TimeElapsedColumn(), console=console)


def _train(progress: Progress, epochs: int) -> list[Task]:
    trained = []
    for task in tasks():
        for _ in progress.track(task.train(epochs), total=epochs, description=f"Training: {task.title}"):
            pass
        trained.append(task)
    return trained
