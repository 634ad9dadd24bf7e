"""What metrics read, as the values and tables of a report, and the interval that goes with each value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import Tensor

from assay.errors import ConfigError
from assay.evaluation.observe.bootstrap_groups import Resampled
from assay.evaluation.observe.observers import Array
from assay.meter.resampling.replicates import ConfidenceInterval
from assay.metrics.base import Metric, named_numbers
from assay.report import ConfusionPlot, Plot, Samples, Table, Value
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.tests_and_intervals import interval_of
from assay.report.per_sample.packed_array import PackedArray
from assay.stats.intervals import caution_of_end

MOST_CLASSES = 100
UNKNOWN = "neither per-sample values nor counts of groups of samples are kept of it"
"""Why a value has no interval: no source of one fits."""


@dataclass(frozen=True)
class IntervalSources:
    """What intervals of values are made from.

    Attributes:
        confidence_level: their level; None for none.
        samples: what each sample contributed.
        terms: by metric, its numerator and its denominator, as columns of the samples.
        members: which samples count; all by default.
        closed: closed-form intervals and those of resampled queries, or why a value has none, by value.
        drawn: intervals and replicates of the bootstrap.
    """

    confidence_level: float | None = None
    samples: Samples | None = None
    terms: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    members: Array | None = None
    closed: Mapping[str, ConfidenceInterval | str] = field(default_factory=dict)
    drawn: Resampled = field(default_factory=Resampled)

    def with_interval(self, value: Value, value_range: tuple[float, float]) -> Value:
        """A value with its column or its replicates, and its interval within a range, as far as there are any."""
        value = self._with_replicates(self._with_terms(value))
        if self.confidence_level is None or math.isnan(value.value):
            return value
        found = self.closed.get(value.name)
        interval = None if isinstance(found, str) else found
        if interval is None and value.numerator:
            interval = self._of_terms(value, self.confidence_level)
        if interval is None:
            interval = self.drawn.intervals.get(value.name)
        return value if interval is None else _between(value, interval.within(value_range))

    def refusal(self, value: Value, name: str, metric: Metric) -> str:
        """Why a value that `with_interval` gave has no interval.

        Args:
            value: the value.
            name: of its metric.
            metric: its metric.

        Returns:
            The reason; empty where it has an interval, is undefined, or intervals were turned off.
        """
        if self.confidence_level is None or value.lower is not None or math.isnan(value.value):
            return ""
        found = self.closed.get(value.name, "")
        reasons = [
            self._refusal_of_terms(value, self.confidence_level) if value.numerator else "",
            self.drawn.reasons.get(value.name, self.drawn.reasons.get(name, "")),
            found if isinstance(found, str) else "",
            metric.without_estimate,
        ]
        return next(filter(None, reasons), UNKNOWN)

    def _with_replicates(self, value: Value) -> Value:
        replicates = self.drawn.replicates.get(value.name)
        if value.numerator or replicates is None or not math.isfinite(value.value):
            return value
        return replace(value, replicates=PackedArray.of((replicates - value.value).astype(np.float32)))

    def _with_terms(self, value: Value) -> Value:
        if value.name not in self.terms or self.samples is None:
            return replace(value, scale="")
        numerator, denominator = self.terms[value.name]
        with_terms = replace(value, numerator=numerator, denominator=denominator)
        try:
            with_terms.check_terms(self.samples, self.members)
        except ConfigError:  # such as of a metric that leaves samples out
            return replace(value, scale="")
        return with_terms

    def _of_terms(self, value: Value, confidence_level: float) -> ConfidenceInterval | None:
        ends = interval_of(MeasuredValue(value, self.samples, self.members), confidence_level, safe=False)
        if ends.lower is None or ends.upper is None:
            return None
        caution = ends.note or caution_of_end(ends.risky)
        return ConfidenceInterval(ends.lower, ends.upper, confidence_level, ends.method, caution=caution)

    def _refusal_of_terms(self, value: Value, confidence_level: float) -> str:
        return interval_of(MeasuredValue(value, self.samples, self.members), confidence_level).note


def _between(value: Value, interval: ConfidenceInterval) -> Value:
    if math.isnan(interval.lower) or math.isnan(interval.upper):
        return value
    note = "; ".join(part for part in (value.note, interval.method, interval.caution) if part)
    with_ends = replace(value, lower=interval.lower, upper=interval.upper, note=note)
    if interval.safe is not None:
        with_ends = replace(with_ends, safe_lower=interval.safe[0], safe_upper=interval.safe[1])
    return replace(with_ends, confidence_level=interval.confidence_level)


def values_of(
    values: Mapping[str, Any], metrics: Mapping[str, Metric], rows: int, signatures: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Value]]:
    """The single numbers that metrics read, each with the name of its metric.

    Args:
        values: what they read.
        metrics: the metrics, by name.
        rows: how many samples were counted.
        signatures: by name, those of the metrics; none by default.
    """
    for name, value in values.items():
        is_tuple = isinstance(value, tuple)  # parts of a tuple are of several kinds
        higher_is_better = None if is_tuple else metrics[name].higher_is_better
        for part, each in named_numbers(name, value):
            scale = "" if is_tuple else metrics[name].scale
            line = (signatures or {}).get(name, "")
            yield (
                name,
                Value(
                    part,
                    each,
                    count=rows,
                    higher_is_better=higher_is_better,
                    scale=scale,
                    signature=line,
                    biased_upwards=metrics[name].biased_upwards,
                ),
            )


def rest_of(
    values: Mapping[str, Any], metrics: Mapping[str, Metric], classes: Sequence[str]
) -> tuple[list[Table], list[Plot], list[str]]:
    """What metrics read that is no single number: tables, plots, and the names of what is not shown."""
    tables: list[Table] = []
    plots: list[Plot] = []
    omitted: list[str] = []
    for name, value in values.items():
        names = _names(classes, len(value)) if hasattr(value, "__len__") and not _is_number(value) else ()
        if isinstance(value, Mapping) and (table := _per_class(name, value, classes)) is not None:
            tables.append(table)
            continue
        if not hasattr(value, "rows") and any(named_numbers(name, value)):
            continue
        if hasattr(value, "rows"):
            columns = ("class", "precision", "recall", "F1", "support")
            tables.append(Table(name, columns, tuple(map(tuple, value.rows(_names(classes, len(value.support)))))))
        elif isinstance(value, Tensor) and value.ndim == 1 and len(value) <= MOST_CLASSES:
            cells = tuple(zip(names, value.double().tolist(), strict=True))
            tables.append(Table(name, ("class or output", name), cells))
        elif _is_matrix(metrics[name], value):
            plots.append(ConfusionPlot(name, names, tuple(map(tuple, value.tolist()))))
        else:
            omitted.append(name)
    return tables, plots, omitted


def _per_class(name: str, value: Mapping[str, Any], classes: Sequence[str]) -> Table | None:
    """The vectors of a dictionary as columns, one row a class, where it says of which classes they are."""
    labels = value.get("classes")
    if not isinstance(labels, Tensor) or labels.ndim != 1 or len(labels) > MOST_CLASSES:
        return None
    columns = {
        part: each.double().tolist()
        for part, each in value.items()
        if part != "classes" and isinstance(each, Tensor) and each.shape == labels.shape
    }
    numbers = [int(label) for label in labels.tolist()]
    named = bool(classes) and all(0 <= label < len(classes) for label in numbers)
    names = [classes[label] if named else str(label) for label in numbers]
    return Table(f"{name} per class", ("class", *columns), tuple(zip(names, *columns.values(), strict=True)))


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 0


def _is_matrix(metric: Metric, value: Any) -> bool:
    return metric.picture == "matrix" and value.ndim == 2 and not value.is_floating_point()


def _names(classes: Sequence[str], count: int) -> tuple[str, ...]:
    return tuple(classes) if len(classes) == count else tuple(map(str, range(count)))
