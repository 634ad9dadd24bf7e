"""What a report says of outputs that were compared: numbers, intervals, the worst samples, a picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from assay._records import CellValue
from assay.language.scoring import derived_value, exp_or_inf
from assay.quantize.analysis.divergence import AGREES, CHANGE, ERROR, KL, LOSS_AFTER, LOSS_BEFORE, SIZE
from assay.quantize.analysis.output_comparison import Floats, OutputComparison
from assay.report import Distribution, Plot, Samples, Section, Table, Value
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.tests_and_intervals import interval_of

AGREEMENT, LOSS_CHANGE, PREDICTIONS = "top-1 agreement", "loss change", "predictions"
RELATIVE_ERROR = "relative squared error"
_PERPLEXITY = {LOSS_BEFORE: "perplexity before", LOSS_AFTER: "perplexity after", LOSS_CHANGE: "perplexity ratio"}
_QUANTILES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)


def section(
    outcome: OutputComparison,
    *,
    name: str,
    confidence_level: float,
    worst: int,
    sample_text: Callable[[int], str] | None = None,
) -> Section:
    """What was measured as a section of a report, with `worst` samples, in words where `sample_text` gives them."""
    samples = _samples(outcome)
    values = [_with_interval(value, samples, confidence_level) for value in _values(outcome)]
    tables = [*_spreads(outcome), _worst(outcome, worst, sample_text)]
    note = f"{int(outcome.counts.sum()):,} predictions of {len(outcome.ids):,} samples."
    if not (outcome.counts == 1).all():  # else a sample is a text, or this is no language model
        losses = [each for each in values if each.name in _PERPLEXITY]
        values += [derived_value(each, _PERPLEXITY[each.name], exp_or_inf) for each in losses]
    return Section(name, tuple(values), tuple(tables), _plots(outcome), note=note, samples=samples)


def distance_name(outcome: OutputComparison) -> str:
    """What the number is that ranks."""
    return KL if KL in outcome.columns else RELATIVE_ERROR


def headline(outcome: OutputComparison, confidence_level: float) -> Value:
    """The number that ranks, with its interval."""
    return _with_interval(_values(outcome)[0], _samples(outcome), confidence_level)


def _samples(outcome: OutputComparison) -> Samples:
    columns = dict(outcome.columns)
    if LOSS_BEFORE in columns:
        columns[LOSS_CHANGE] = _changes(outcome)
    if AGREES in columns and (outcome.counts == 1).all():
        columns[AGREES] = columns[AGREES] == 1  # a share of samples, which has an interval of its own
    return Samples.pack(outcome.ids, {**columns, PREDICTIONS: outcome.counts})


def _changes(outcome: OutputComparison) -> Floats:
    """What each sample's loss changed by; NaN where both models call its target impossible."""
    with np.errstate(invalid="ignore"):
        changes: Floats = outcome.columns[LOSS_AFTER] - outcome.columns[LOSS_BEFORE]
    return changes


def _values(outcome: OutputComparison) -> list[Value]:
    count = int(outcome.counts.sum())
    single = bool((outcome.counts == 1).all())
    if ERROR in outcome.columns:
        value = Value(RELATIVE_ERROR, outcome.distance, count=count, higher_is_better=False)
        return [replace(value, numerator=ERROR, denominator=SIZE)]
    means = {name: outcome.mean(name) for name in (KL, LOSS_BEFORE, LOSS_AFTER) if name in outcome.columns}
    if LOSS_BEFORE in means:
        changes = _changes(outcome)
        with np.errstate(invalid="ignore"):  # infinities of both signs give NaN
            total = math.fsum(changes) if np.isfinite(changes).all() else float(changes.sum())
        means[LOSS_CHANGE] = total / math.fsum(outcome.counts)
    values = [
        Value(name, mean, count=count, higher_is_better=False, numerator=name, denominator=PREDICTIONS)
        for name, mean in means.items()
    ]
    agreement = Value(AGREEMENT, outcome.mean(AGREES), count=count, higher_is_better=True, numerator=AGREES)
    agreement = replace(agreement, denominator="" if single else PREDICTIONS)
    return [values[0], agreement, *values[1:]]


def _with_interval(value: Value, samples: Samples, confidence_level: float) -> Value:
    result = interval_of(MeasuredValue(value, samples), confidence_level)
    if result.lower is None or result.upper is None:
        return replace(value, note=result.note)
    note = "paired: both models on the same samples" if value.name == LOSS_CHANGE else ""
    return replace(value, lower=result.lower, upper=result.upper, confidence_level=confidence_level, note=note)


def _spreads(outcome: OutputComparison) -> list[Table]:
    """Quantiles over predictions: a mean may hide a few that went wrong."""
    what = KL if KL in outcome.columns else ERROR
    tables = [Table(f"{what} of single predictions", ("predictions", what), tuple(_quantiles(outcome.by_prediction)))]
    if outcome.changes is not None and np.isfinite(outcome.changes).all():
        root = math.sqrt(math.fsum(outcome.changes**2) / len(outcome.changes))
        rows = (*_quantiles(outcome.changes), ("root mean square", root))
        note = "The probability of the right class after, minus that before."
        tables.append(Table(f"{CHANGE} of single predictions", ("predictions", CHANGE), rows, note=note))
    return tables


def _quantiles(numbers: Floats) -> list[tuple[str, float]]:
    """The smallest, the quantiles that have a number below and above them, and the largest."""
    levels = [quantile for quantile in _QUANTILES if len(numbers) * min(quantile, 1 - quantile) >= 1]
    with np.errstate(invalid="ignore"):  # between two infinities
        rows = [(f"{100 * quantile:g} % are below", float(np.quantile(numbers, quantile))) for quantile in levels]
    return [("smallest", float(numbers.min())), *rows, ("largest", float(numbers.max()))]


def _worst(outcome: OutputComparison, count: int, sample_text: Callable[[int], str] | None) -> Table:
    what = KL if KL in outcome.columns else ERROR
    with np.errstate(all="ignore"):
        each = {name: sums / outcome.counts for name, sums in outcome.columns.items()}
    order = np.argsort(-np.nan_to_num(each[what], nan=-np.inf), kind="stable")[: max(0, count)]
    columns = [name for name in (KL, ERROR, AGREES, LOSS_BEFORE, LOSS_AFTER) if name in each]
    rows: list[tuple[CellValue, ...]] = []
    for k in order:
        number = int(outcome.ids[k])
        begins = [sample_text(number)] if sample_text else []
        rows.append((number, *(float(each[name][k]) for name in columns), *begins))
    heads = ("sample", *columns, *(["begins"] if sample_text else []))
    note = f"Means over the predictions of a sample; largest {what} first."
    return Table("Worst samples", heads, tuple(rows), note=note)


def _plots(outcome: OutputComparison) -> tuple[Plot, ...]:
    result = outcome.by_prediction[outcome.by_prediction > 0]
    if KL not in outcome.columns or not len(result):
        return ()
    title = "How far predictions moved"
    return (Distribution.of(title, {"predictions": np.log10(result)}, bins=30, axis="log10 of the KL divergence"),)
