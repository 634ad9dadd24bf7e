"""The samples that lm-eval logged: read whole or refused, and what each contributes to a metric."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.errors import InvalidValuesError, StateError, describe
from assay.integrations.result_files import digest_of_data
from assay.report import Value
from assay.report.per_sample.packed_array import Array

CLOSE = 1e-6
"""How near a mean must be to the value in the results, relative to its size: both are sums of the same float64."""

YES_OR_NO = frozenset({"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "pass@1"})
"""Metrics to which a sample contributes 0 or 1; others are numbers even where all happen to be 0 or 1."""

_AGAIN = "Run lm_eval again, into a new folder"


@dataclass(frozen=True)
class LoggedSamples:
    """The samples of a task after one filter, by their ids.

    Attributes:
        filter: its name.
        ids: `doc_id` of each.
        metrics: what each has of each metric.
        digest: what tells the documents and targets from others.
        not_finite: how many have a log likelihood that is NaN or infinite.
        chosen: how many have several choices, of which one is taken.
        tied: of how many of these the best two have equal log likelihoods.
    """

    filter: str
    ids: list[int]
    metrics: dict[str, list[Any]]
    digest: str
    not_finite: int = 0
    chosen: int = 0
    tied: int = 0


@dataclass(frozen=True)
class Terms:
    """A metric, and others that follow from the same samples, with the columns that they are the means of."""

    values: tuple[Value, ...]
    columns: Mapping[str, Array] = field(default_factory=dict)


def read_samples(results: Path, task: str, expected: int | None) -> tuple[LoggedSamples, ...]:
    """The samples of a task, one entry a filter; none where none were logged.

    Args:
        results: the file of the results; the samples have the same time in their name.
        task: its name.
        expected: how many samples the results say there are.

    Raises:
        StateError: the file was cut short, is of something else, or has other samples than the results.
    """
    when = results.stem.removeprefix("results_")
    file = results.with_name(f"samples_{task}_{when}.jsonl")
    if not file.is_file():
        return ()
    rows: dict[str, dict[int, dict[str, Any]]] = {}
    for row in _rows(file):
        of_filter = rows.setdefault(str(row.get("filter", "none")), {})
        if row["doc_id"] in of_filter:
            raise StateError(describe(str(file), f"doc_id {row['doc_id']} twice", "each sample once", _AGAIN))
        of_filter[row["doc_id"]] = row
    for name, samples in rows.items():
        if expected is not None and len(samples) != expected:
            got = f"{len(samples):,} samples of filter {name!r}"
            raise StateError(describe(str(file), got, f"{expected:,}, as {results.name} says", _AGAIN))
    if expected and not rows:
        raise StateError(describe(str(file), "no samples", f"{expected:,}, as {results.name} says", _AGAIN))
    logged = tuple(_logged(name, samples) for name, samples in rows.items())
    if any(each.ids != logged[0].ids for each in logged):
        raise StateError(describe(str(file), "filters with other samples", "the same for each", _AGAIN))
    return logged


def _rows(file: Path) -> list[dict[str, Any]]:
    rows = []
    with open(file, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8"))
            except (ValueError, RecursionError) as error:
                got = f"line {number:,} that is cut short or no JSON"
                raise StateError(describe(str(file), got, "a sample a line", _AGAIN)) from error
            if not isinstance(row, dict) or not isinstance(row.get("doc_id"), int):
                got = f"line {number:,} without doc_id"
                raise StateError(describe(str(file), got, "samples that lm-eval logged", _AGAIN))
            rows.append(row)
    return rows


def _logged(name: str, rows: Mapping[int, Mapping[str, Any]]) -> LoggedSamples:
    ids = sorted(rows)
    ordered = [rows[each] for each in ids]
    metrics = {key: None for row in ordered for key in row.get("metrics", ())}
    about = ([row.get("doc_hash") or row.get("doc"), row.get("target_hash") or row.get("target")] for row in ordered)
    columns = {key: [row.get(key) for row in ordered] for key in metrics}
    likelihoods = [_likelihoods(row) for row in ordered]
    choices = [sorted(_choices(row, each), reverse=True) for row, each in zip(ordered, likelihoods, strict=True)]
    return LoggedSamples(
        name,
        ids,
        columns,
        digest_of_data(about),
        not_finite=sum(not all(map(math.isfinite, each)) for each in likelihoods),
        chosen=sum(len(each) > 1 for each in choices),
        tied=sum(len(each) > 1 and each[0] == each[1] for each in choices),
    )


def _likelihoods(row: Mapping[str, Any]) -> list[float]:
    """The log likelihoods of a sample, one a request; none where texts were generated.

    A response is a pair of a log likelihood and whether the text is the most probable one; of a whole text, whose
    request has no continuation, it is the log likelihood alone. lm-eval writes them as strings.
    """
    arguments, responses = row.get("arguments"), row.get("resps")
    requests = arguments.values() if isinstance(arguments, dict) else []
    whole = [isinstance(each, dict) and "arg_1" not in each for each in requests]
    found = []
    for number, repeats in enumerate(responses if isinstance(responses, list) else []):
        for each in repeats if isinstance(repeats, list) else []:
            is_pair = isinstance(each, list) and len(each) == 2 and str(each[1]) in ("True", "False")
            value = each[0] if is_pair else each if number < len(whole) and whole[number] else None
            if (likelihood := _float(value)) is not None:
                found.append(likelihood)
    return found


def _choices(row: Mapping[str, Any], likelihoods: list[float]) -> list[float]:
    """The log likelihoods of the choices; mutual information also asks for each choice without its question."""
    return likelihoods[: len(likelihoods) // 2] if "acc_mutual_info" in row.get("metrics", ()) else likelihoods


def _float(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None


def check_finite(counts: Mapping[str, tuple[int, int]], what: str) -> None:
    """Raise where log likelihoods are NaN or infinite: the best of such choices is the first, which measures nothing.

    Args:
        counts: by task, how many are not finite, and of how many.
        what: what is counted.

    Raises:
        InvalidValuesError: there are some.

    Example:
        >>> check_finite({"copa": (0, 20)}, "samples")
    """
    bad = {task: each for task, each in counts.items() if each[0]}
    if not bad:
        return
    named = ", ".join(f"{task}: {count:,} of {total:,} {what}" for task, (count, total) in bad.items())
    total = f"; in all {sum(each[0] for each in bad.values()):,}" if len(bad) > 1 else ""
    do = "Look at the logits of the model: weights may be damaged, a quantization too coarse, or the dtype too narrow"
    raise InvalidValuesError(describe("log likelihoods", f"NaN or infinity ({named}{total})", "finite numbers", do))


def of_task(
    logged: Sequence[LoggedSamples], metric: str, filter_: str, value: Value, aggregation: str, task: str
) -> Terms:
    """What the samples say of one metric: the value with its column where it is a mean or a quotient of sums.

    Args:
        logged: the samples.
        metric: its name.
        filter_: of which filter.
        value: the value, as the results have it.
        aggregation: how lm-eval made it of the samples, where the results say so.
        task: the name of the task, for messages.

    Raises:
        StateError: the value is a mean, and that of the samples is another.

    Example:
        >>> logged = LoggedSamples("none", [0, 1], {"acc": [1.0, 0.0]}, "")
        >>> of_task([logged], "acc", "none", Value("acc", 0.5), "mean", "copa").values[0].numerator
        'acc'
    """
    raw = next((each.metrics.get(metric) for each in logged if each.filter == filter_), None)
    if not raw:
        return Terms((value,))
    if all(isinstance(each, bool | int | float) for each in raw):
        return _mean(np.array(raw, np.float64), metric, value, aggregation, task)
    if all(_is_pair(each) for each in raw):
        return _quotient(np.array(raw, np.float64), value)
    return Terms((value,))


def _is_pair(each: Any) -> bool:
    return isinstance(each, list) and len(each) == 2 and all(isinstance(part, int | float) for part in each)


def _mean(terms: Array, metric: str, value: Value, aggregation: str, task: str) -> Terms:
    mean = float(terms.mean())
    if not math.isfinite(mean) and not math.isfinite(value.value):
        return Terms((value,))
    if _close(mean, value.value):
        is_yes_or_no = metric in YES_OR_NO and bool(np.isin(terms, (0.0, 1.0)).all())
        column = terms.astype(bool) if is_yes_or_no else terms
        return Terms((replace(value, numerator=value.name),), {value.name: column})
    if aggregation == "mean":
        got = f"{value.value!r} in the results, {mean!r} in the samples"
        raise StateError(describe(f"{task}: {value.name}", got, "the mean of the samples", _AGAIN))
    if aggregation == "perplexity" or _close(exp(-mean), value.value):
        name = f"log {value.name}"
        return Terms((value, replace(value, name=name, value=-mean, numerator=name)), {name: -terms})
    return Terms((value,))


def _quotient(pairs: Array, value: Value) -> Terms:
    """Log likelihoods and how many words or bytes they are of: bits a byte, or the logarithm of a perplexity."""
    nats, sizes = -pairs[:, 0], pairs[:, 1]
    total = float(sizes.sum())
    loss = float(nats.sum()) / total if total else math.nan
    denominator = f"{value.name}: size"
    if _close(loss / math.log(2), value.value):
        numerator, terms = f"{value.name}: bits", nats / math.log(2)
        named = replace(value, numerator=numerator, denominator=denominator)
        return Terms((named,), {numerator: terms, denominator: sizes})
    if _close(exp(loss), value.value):
        name = f"log {value.name}"
        logarithm = replace(value, name=name, value=loss, numerator=name, denominator=denominator)
        return Terms((value, logarithm), {name: nats, denominator: sizes})
    return Terms((value,))


def exp(number: float) -> float:
    """e to the power of a number; infinite where that is too large."""
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def _close(a: float, b: float) -> bool:
    return a == b or math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-12)
