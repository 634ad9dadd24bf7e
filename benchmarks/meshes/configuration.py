"""One row of the table: a model on some processes, the samples it is given, and what is right."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import Accuracy, evaluate
from assay.language import perplexity
from assay.report import Report
from benchmarks.meshes.models import BATCH, CLASSES, WINDOW, right, right_perplexity, samples, tokens

TIMEOUT_S = 3.0
Give = Callable[[int, Path], Any]


@dataclass(frozen=True)
class Configuration:
    """One row of the table.

    Attributes:
        name: which model on which processes, and how many samples in which batches.
        size: how many processes there are.
        act: what assay gives on a process.
        right: the value; or a part of the error that says why there is none.
        dies: the processes that do not come to the end.
        fails: its processes have no group afterwards that can be used.
        after: the configuration that it resumes.
        model: makes the model, for other libraries; None where they are not run.
        count: of the samples, for other libraries.
        batch: of the samples, for other libraries.
    """

    name: str
    size: int
    act: Give
    right: float | str
    dies: tuple[int, ...] = ()
    fails: bool = False
    after: str = ""
    model: Callable[[], Any] | None = None
    count: int = 0
    batch: int = BATCH


def evaluated(model: Any, data: Any, **options: Any) -> Any:
    """The value, and a digest of all that the report says of the samples."""
    how = {"device": "cpu", "batch_size": BATCH, "rank_timeout_s": TIMEOUT_S, "n_resamples": 25, **options}
    return told(lambda: evaluate(model, data, Accuracy(num_classes=CLASSES), **how))


def measured(model: Any, **options: Any) -> Any:
    """The perplexity of the text."""
    how = {"window": WINDOW, "stride": WINDOW, "rank_timeout_s": TIMEOUT_S, "device": "cpu", "batch_size": 4, **options}
    return told(lambda: perplexity(model, tokens(), **how))


def told(act: Callable[[], Report]) -> Any:
    report = act()
    (section,) = report.sections
    tables = [each for each in section.tables if each.name not in ("Every sample once", "Decisions", "Run")]
    text = Report("", [dataclasses.replace(section, tables=tables)], created="", environment={}).to_json()
    return [section.values[0].value, hashlib.sha256(text.encode()).hexdigest()[:8], report.notes[0]]


def simple(name: str, size: int, model: Callable[[], Any], count: int, batch: int = BATCH, **options: Any):
    """A configuration of one model and a data set with indices."""

    def act(rank: int, folder: Path) -> Any:
        return evaluated(model(), samples(count), batch_size=batch, **options)

    return Configuration(f"{name}, {count}/{batch}", size, act, right(count), model=model, count=count, batch=batch)


def of_words(name: str, size: int, model: Callable[[], Any], **options: Any):
    """A configuration of a language model."""
    return Configuration(
        f"perplexity, {name}", size, lambda rank, folder: measured(model(), **options), right_perplexity()
    )


def label(each: Configuration) -> str:
    """What a configuration is called."""
    return f"{each.size}: {each.name}"
