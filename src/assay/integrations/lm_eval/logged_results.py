"""lm-eval: what its command line wrote becomes a report, with its samples, so that runs are compared in pairs.

Only files are read: lm-eval need not be installed, and no torch is needed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.errors import StateError, describe
from assay.integrations.lm_eval.samples import LoggedSamples, check_finite, exp, of_task, read_samples
from assay.integrations.result_files import results_file, task_results
from assay.integrations.sample_means import LEVEL, with_interval
from assay.report import Report, Samples, Section, Table, Value
from assay.stats.distributions import normal_quantile

_AGAIN = "Run lm_eval again with --output_path and --log_samples, or name the files of one run"


def read_lm_eval(path: str | os.PathLike[str], title: str = "") -> Report:
    """What `lm_eval --output_path ... --log_samples` wrote, as a report: a section a task, with its samples.

    A metric that is a mean over samples has a column of what each contributed, so `compare` pairs two runs sample by
    sample and `gate` finds intervals. Perplexities and bits a byte are functions of a quotient of sums: bits a byte and
    the logarithms of perplexities have columns. Other metrics, and groups of tasks, have the number and the interval
    that follows from lm-eval's standard error. Where a task has several filters, metrics are `metric,filter`.

    Args:
        path: a `results_*.json`, or a folder with one in it or in the folders below. Samples are looked for beside it.
        title: of the report; the name of the model by default.

    Raises:
        ConfigError: there is no such file, or there are several.
        StateError: a file was cut short, is no result of lm-eval, or the samples are not those of the results.
        InvalidValuesError: log likelihoods of samples are NaN or infinite.

    Source: `loggers/evaluation_tracker.py` and `api/metrics.py` of lm-eval 0.4.13.
    """
    file = results_file(Path(path), "results_*.json", "what lm_eval --output_path wrote", _AGAIN)
    results = task_results(file, "lm-eval", ("configs", "versions", "n-shot"), _AGAIN)
    sections, ties = [], []
    counts: dict[str, tuple[int, int]] = {}
    for task, values in results["results"].items():
        logged = read_samples(file, task, _effective(results, task))
        if logged:
            counts[task] = logged[0].not_finite, len(logged[0].ids)
            ties += [f"{task}: {logged[0].tied:,} of {logged[0].chosen:,}"] if logged[0].tied else []
        if (section := _section(results, task, values, logged)) is not None:
            sections.append(section)
    check_finite(counts, "samples")
    if not sections:
        raise StateError(describe(str(file), "no value of any task", "results of lm-eval", _AGAIN))
    return Report(
        title or str(results.get("model_name") or file.parent.name),
        tuple(sections),
        device=str(_config(results).get("device") or ""),
        notes=_notes(results, sections, ties),
        duration_s=_number(results.get("total_evaluation_time_seconds")),
        created=_created(results),
        environment=_environment(results),
    )


def _part(results: Mapping[str, Any], key: str, task: str) -> Any:
    """What the results say of one task under a key; None where they do not."""
    parts = results.get(key)
    return parts.get(task) if isinstance(parts, dict) else None


def _config(results: Mapping[str, Any]) -> dict[str, Any]:
    config = results.get("config")
    return config if isinstance(config, dict) else {}


def _effective(results: Mapping[str, Any], task: str) -> int | None:
    counts = _part(results, "n-samples", task)
    count = counts.get("effective") if isinstance(counts, dict) else None
    return count if isinstance(count, int) else None


@dataclass(frozen=True)
class _MetricResult:
    """A metric of a task, as the results have it."""

    key: str
    metric: str
    filter: str
    value: float
    error: float | None
    higher_is_better: bool | None
    aggregation: str


def _metrics(results: Mapping[str, Any], task: str, values: Mapping[str, Any]) -> list[_MetricResult]:
    higher = _part(results, "higher_is_better", task)
    config = _part(results, "configs", task)
    listed = config.get("metric_list") if isinstance(config, dict) else None
    settings = {each.get("metric"): each for each in listed or () if isinstance(each, dict)}
    read = []
    for key, number in values.items():
        metric, comma, filter_ = key.partition(",")
        value = _number(number)
        if not comma or metric.endswith("_stderr") or value is None or isinstance(number, str):
            continue
        direction = higher.get(metric) if isinstance(higher, dict) else None
        higher_is_better = direction if isinstance(direction, bool) else None
        error = _number(values.get(f"{metric}_stderr,{filter_}"))
        aggregation = str(settings.get(metric, {}).get("aggregation", ""))
        read.append(_MetricResult(key, metric, filter_, value, error, higher_is_better, aggregation))
    return read


def _section(
    results: Mapping[str, Any], task: str, values: Mapping[str, Any], logged: Sequence[LoggedSamples]
) -> Section | None:
    metrics = _metrics(results, task, values)
    if not metrics:
        return None
    has_filters = len({each.filter for each in metrics}) > 1
    count = _effective(results, task)
    columns: dict[str, Any] = {}
    shown: list[Value] = []
    for each in metrics:
        plain = Value(
            each.key if has_filters else each.metric,
            each.value,
            count=count if count is not None else len(logged[0].ids) if logged else None,
            higher_is_better=each.higher_is_better,
        )
        terms = of_task(logged, each.metric, each.filter, plain, each.aggregation, task)
        columns |= terms.columns
        shown += [_with_error(value, each.error) if not value.numerator else value for value in terms.values]
    samples = _samples(logged, columns)
    shown = [with_interval(value, samples) for value in shown]
    return Section(task, tuple(_exponentials(shown)), (_how(results, task),), samples=samples)


def _samples(logged: Sequence[LoggedSamples], columns: Mapping[str, Any]) -> Samples | None:
    if not logged or not columns:
        return None
    return Samples.pack(logged[0].ids, columns, data=logged[0].digest)


def _exponentials(values: Sequence[Value]) -> list[Value]:
    """The values, a perplexity with the interval that follows from that of its logarithm."""
    logs = {value.name: value for value in values}
    return [_exponential(value, logs.get(f"log {value.name}")) for value in values]


def _exponential(value: Value, log: Value | None) -> Value:
    if log is None or log.lower is None or log.upper is None:
        return value
    lower, upper = (exp(end) for end in (log.lower, log.upper))
    return replace(value, lower=lower, upper=upper, confidence_level=log.confidence_level, note=log.note)


def _with_error(value: Value, error: float | None) -> Value:
    """The normal interval of a standard error; none where lm-eval gives none, or where it is zero and says nothing."""
    if not error or not math.isfinite(error):
        return value
    half = normal_quantile((1 + LEVEL) / 2) * error
    note = "normal, from the standard error of lm-eval"
    return replace(value, lower=value.value - half, upper=value.value + half, confidence_level=LEVEL, note=note)


def _how(results: Mapping[str, Any], task: str) -> Table:
    config = _part(results, "configs", task)
    config = config if isinstance(config, dict) else {}
    counts = _part(results, "n-samples", task) or {}
    rows = {
        "version of the task": _part(results, "versions", task),
        "shots": _part(results, "n-shot", task),
        "kind": config.get("output_type"),
        "samples": counts.get("effective") if isinstance(counts, dict) else None,
        "samples of the data set": counts.get("original") if isinstance(counts, dict) else None,
        "of the group": ", ".join(_part(results, "group_subtasks", task) or ()) or None,
    }
    return Table("Task", ("what", "value"), tuple((name, str(each)) for name, each in rows.items() if each is not None))


def _notes(results: Mapping[str, Any], sections: Sequence[Section], ties: Sequence[str]) -> tuple[str, ...]:
    groups = results.get("group_subtasks")
    groups = {name for name, tasks in groups.items() if tasks} if isinstance(groups, dict) else set()
    notes = [f"Measured by lm-eval {results.get('lm_eval_version') or 'of an unknown version'}."]
    if limit := _config(results).get("limit"):
        notes.append(f"Only some samples of each task were measured: limit {limit}.")
    if without := [each.name for each in sections if each.samples is None and each.name not in groups]:
        notes.append(
            f"No samples were kept of: {', '.join(without)}. Run lm_eval with --log_samples to compare in pairs."
        )
    if ties:
        notes.append(
            f"Samples whose best two choices are equally probable, of which the first counts: {', '.join(ties)}."
        )
    if results.get("chat_template_sha"):
        notes.append(f"With a chat template, SHA-256 {results['chat_template_sha']}.")
    return tuple(notes)


def _environment(results: Mapping[str, Any]) -> dict[str, str]:
    versions = {"lm_eval": results.get("lm_eval_version"), "transformers": results.get("transformers_version")}
    config = _config(results)
    about = {
        "model": results.get("model_source"),
        "revision": config.get("model_sha"),
        "dtype": config.get("model_dtype"),
    }
    return {name: str(each) for name, each in (versions | about).items() if each}


def _created(results: Mapping[str, Any]) -> str:
    seconds = _number(results.get("date"))
    try:
        when = datetime.fromtimestamp(seconds or 0, UTC)
    except (OverflowError, OSError, ValueError):
        return ""
    return "" if seconds is None else when.isoformat(timespec="seconds")


def _number(value: Any) -> float | None:
    """A number, also one that lm-eval wrote as text; None for anything else, such as its `N/A`."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
