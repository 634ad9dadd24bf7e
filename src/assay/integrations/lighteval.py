"""lighteval: results and details that it wrote become a report, with its samples, so that runs are compared in pairs.

Only files are read: lighteval need not be installed, and no torch is needed.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assay.errors import StateError, describe
from assay.integrations.result_files import digest_of_data, results_file, task_results
from assay.integrations.sample_means import is_mean, with_interval
from assay.report import Report, Samples, Section, Value
from assay.report.per_sample.packed_array import Array

_AGAIN = "Run lighteval again with --save-details, or name the results of one run"
YES_OR_NO = frozenset({"acc", "acc_norm", "em", "pem", "qem", "exact_match", "extractive_match", "loglikelihood_acc"})
"""Metrics to which a sample contributes 0 or 1; others are numbers even where all happen to be 0 or 1."""

_AVERAGES = "all"
"""The name under which lighteval has averages over tasks."""


def read_lighteval(path: str | os.PathLike[str], title: str = "") -> Report:
    """What `lighteval ... --output-dir ... --save-details` wrote, as a report: a section a task, with its samples.

    A metric that is the mean over samples has a column of what each contributed, so `compare` pairs two runs sample by
    sample and `gate` finds intervals. Metrics of the whole corpus, and averages over tasks, have the number alone.

    Args:
        path: a `results_*.json`, or the folder of one run. Details are looked for in the folder `details` beside
            `results`.
        title: of the report; the name of the model by default.

    Raises:
        ConfigError: there is no such file, or there are several.
        StateError: a file was cut short, is no result of lighteval, or the details are not those of the results.

    Source: `logging/evaluation_tracker.py` and `logging/info_loggers.py` of lighteval.
    """
    file = results_file(Path(path), "results_*.json", "the results of one run of lighteval", _AGAIN)
    content = task_results(file, "lighteval", ["config_general"], _AGAIN)
    details = _details(file)
    sections = [_section(task, values, details.get(task)) for task, values in content["results"].items()]
    shown = tuple(section for section in sections if section.values)
    if not shown:
        raise StateError(describe(str(file), "no value of any task", "results of lighteval", _AGAIN))
    general = content.get("config_general")
    name = general.get("model_name") if isinstance(general, dict) else None
    without = [section.name for section in shown if section.samples is None and section.name != _AVERAGES]
    notes = [f"No samples were kept of: {', '.join(without)}. Run lighteval with --save-details."] if without else []
    return Report(title or str(name or file.parent.name), shown, notes=tuple(notes))


def _details(file: Path) -> dict[str, Path]:
    """The details of each task, of the run of the same time as the results."""
    when = file.stem.removeprefix("results_")
    root = next((parent.parent for parent in file.parents if parent.name == "results"), file.parent)
    found = root.rglob(f"details_*_{when}.parquet")
    return {each.stem.removeprefix("details_").removesuffix(f"_{when}"): each for each in sorted(found)}


def _section(task: str, values: Mapping[str, Any], file: Path | None) -> Section:
    rows = [] if file is None else _rows(file)
    columns: dict[str, Array] = {}
    shown = []
    for metric, number in values.items():
        if metric.endswith("_stderr") or isinstance(number, bool) or not isinstance(number, int | float):
            continue
        terms = _terms(rows, metric)
        value = Value(metric, float(number), count=len(rows) or None)
        if terms is not None and is_mean(terms, float(number)):
            is_yes_or_no = metric.partition(":")[0] in YES_OR_NO and bool(np.isin(terms, (0, 1)).all())
            columns[metric] = terms.astype(bool) if is_yes_or_no else terms
            value = Value(metric, float(number), count=len(rows), numerator=metric)
        shown.append(value)
    if rows and shown and not columns:
        got = f"samples whose means are none of the values of {task!r}"
        raise StateError(describe(str(file), got, "the details of these results", _AGAIN))
    samples = Samples.pack(range(len(rows)), columns, data=digest_of_data(map(_identity, rows))) if columns else None
    return Section(task, tuple(with_interval(value, samples) for value in shown), samples=samples)


def _rows(file: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file)
    except (pa.ArrowException, OSError) as error:
        raise StateError(describe(str(file), "a file that is cut short or no Parquet", "details", _AGAIN)) from error
    name = next((each for each in ("metric", "metrics") if each in table.column_names), None)
    if name is None or not table.num_rows:
        got = "no rows" if name else "Parquet without a column metric"
        raise StateError(describe(str(file), got, "details of lighteval", _AGAIN))
    return [{"metric": _plain(row.pop(name)), "about": row} for row in table.to_pylist()]


def _plain(metric: Any) -> Mapping[str, Any]:
    """The numbers of a sample; where lighteval could not store them as such, it wrote them as text."""
    if isinstance(metric, str):
        try:
            metric = ast.literal_eval(metric)
        except (ValueError, SyntaxError):
            return {}
    return metric if isinstance(metric, dict) else {}


def _terms(rows: Sequence[Mapping[str, Any]], metric: str) -> Array | None:
    numbers = [row["metric"].get(metric) for row in rows]
    if not numbers or not all(isinstance(number, bool | int | float) for number in numbers):
        return None
    return np.array(numbers, np.float64)


def _identity(row: Mapping[str, Any]) -> list[Any]:
    """What tells a question and its right answers from others: not what a model said."""
    about = row["about"]
    doc = about.get("doc")
    of = doc if isinstance(doc, dict) else about
    return [of.get(name) for name in ("query", "example", "choices", "gold_index", "gold")]
