"""The slices of a section as a reader sees them: which is the worst of each metric, which are too small to say."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.render.plots import Dot, Dots
from assay.render.text import first_names
from assay.report.section import Section
from assay.report.slices import Slice
from assay.report.value import Value
from assay.stats.distributions import normal_quantile

MOST = 30
"""Slices in one plot; of more, the worst are shown."""


@dataclass(frozen=True)
class SliceRow:
    """One slice: its values in the order of the metrics, and of which of them it is the worst."""

    name: str
    count: int
    is_small: bool
    values: tuple[Value | None, ...]
    is_worst: tuple[bool, ...]


@dataclass(frozen=True)
class Slices:
    """All slices of a section.

    Args:
        metrics: the names of the metrics, those of the section first.
        rows: the slices, in their order.
        least: slices of fewer samples are too small to be called the worst.
    """

    metrics: tuple[str, ...]
    rows: tuple[SliceRow, ...]
    least: int

    def values(self) -> tuple[Value, ...]:
        """All values that there are."""
        return tuple(value for row in self.rows for value in row.values if value is not None)

    def note(self) -> str:
        """What the marks mean, and why slices or metrics have none."""
        marked = any(any(row.is_worst) for row in self.rows)
        large = [row for row in self.rows if not row.is_small]
        without = [
            metric
            for k, metric in enumerate(self.metrics)
            if len(large) > 1 and all((value := row.values[k]) is None or value.lower is None for row in large)
        ]
        parts = []
        if marked:
            meaning = "its interval, widened for how many slices there are, leaves out the value of all samples"
            parts.append(f"“worst” marks the worst slice of a metric where it is worse beyond chance: {meaning}.")
        elif len(large) > 1 and len(without) < len(self.metrics):
            parts.append("No slice is worse than all samples beyond chance.")
        if without:
            parts.append(f"{', '.join(without)}: slices have no interval, so none is marked.")
        if any(row.is_small for row in self.rows):
            parts.append(f"Slices of fewer than {self.least:,} samples are not compared.")
        return " ".join([*parts, *self.notes_of_missing_classes()])

    def notes_of_missing_classes(self) -> list[str]:
        """For each metric that is a mean over classes, the slices that are not compared because they lack some."""
        notes = []
        for k, metric in enumerate(self.metrics):
            values = [(row.name, row.values[k]) for row in self.rows if not row.is_small]
            lacking = [f"{name} ({value.not_compared})" for name, value in values if value and value.not_compared]
            if lacking:
                why = "a class without samples counts as 0 in the mean over classes once it is predicted"
                notes.append(f"{metric} of slices that lack classes is not compared: {first_names(lacking)}; {why}.")
        return notes


def slices_of(section: Section) -> Slices | None:
    """The slices of a section with the worst of each metric marked; None where there are none.

    Example:
        >>> def accuracy(value):
        ...     ends = {"lower": value - 0.05, "upper": value + 0.05, "confidence_level": 0.95}
        ...     return Value("accuracy", value, **ends, higher_is_better=True)
        >>> parts = [Slice(name, 50, [accuracy(value)]) for name, value in (("de", 0.7), ("en", 0.9))]
        >>> [(row.name, row.is_worst) for row in slices_of(Section("test", [accuracy(0.8)], slices=parts)).rows]
        [('de', (True,)), ('en', (False,))]
    """
    if not section.slices:
        return None
    names = [value.name for value in section.values]
    there = dict.fromkeys(value.name for part in section.slices for value in part.values)
    metrics = tuple(sorted(there, key=lambda name: names.index(name) if name in names else len(names)))
    worst = {name: _worst(section, name) for name in metrics}
    rows = tuple(
        SliceRow(
            part.name,
            part.count,
            part.count < section.min_slice_size,
            tuple(_value(part, name) for name in metrics),
            tuple(worst[name] == part.name for name in metrics),
        )
        for part in section.slices
    )
    return Slices(metrics, rows, section.min_slice_size)


def dots_of(section: Section) -> tuple[Dots, ...]:
    """One plot for each headline metric that at least two slices have as a finite number."""
    slices = slices_of(section)
    if slices is None:
        return ()
    overall = {value.name: value.value for value in section.values}
    plots = []
    for i, name in enumerate(slices.metrics):
        dots = [_dot(row, i) for row in slices.rows if (value := row.values[i]) and math.isfinite(value.value)]
        if name in overall and len(dots) > 1:
            line = overall[name] if math.isfinite(overall[name]) else None
            plots.append(Dots(name, tuple(_first(dots, higher_is_better(section, name))), line, len(dots)))
    return tuple(plots)


def _dot(row: SliceRow, i: int) -> Dot:
    value = row.values[i]
    assert value is not None, row.name
    ink = "faint" if row.is_small or value.not_compared else "warm" if row.is_worst[i] else "heat"
    return Dot(row.name, row.count, value.value, value.lower, value.upper, ink)


def higher_is_better(section: Section, metric: str) -> bool | None:
    """Whether higher values are better, as the section or one of its slices says it."""
    values = [value for value in section.values if value.name == metric]
    values += [value for part in section.slices for value in part.values if value.name == metric]
    return next((value.higher_is_better for value in values if value.higher_is_better is not None), None)


def _first(dots: list[Dot], is_higher_better: bool | None) -> list[Dot]:
    """All of a few, in their order; the worst of many, the worst first."""
    if len(dots) <= MOST:
        return dots
    sign = -1.0 if is_higher_better is False else 1.0
    return sorted(dots, key=lambda dot: (dot.ink == "faint", sign * dot.value))[:MOST]


def _worst(section: Section, metric: str) -> str | None:
    """The name of the slice with the worst value, where it is worse than all samples beyond chance.

    The interval of the slice, widened by Bonferroni's correction for as many slices as are compared, must leave out the
    value of all samples. None where it does not, where the slice has no interval, or where nothing says which way is
    better. Values that say why they are not compared are left out.
    """
    is_higher_better = higher_is_better(section, metric)
    overall = next((value.value for value in section.values if value.name == metric), math.nan)
    large = [part for part in section.slices if part.count >= section.min_slice_size]
    there = [(value, part.name) for part in large if (value := _value(part, metric)) is not None]
    known = [(value, name) for value, name in there if math.isfinite(value.value) and not value.not_compared]
    if is_higher_better is None or len(there) < 2 or not known or not math.isfinite(overall):
        return None
    sign = 1.0 if is_higher_better else -1.0
    value, name = min(known, key=lambda each: sign * each[0].value)
    return name if sign * _widened(value, is_higher_better, len(known)) < sign * overall else None


def _widened(value: Value, is_higher_better: bool, compared: int) -> float:
    """The end of a slice's interval on the better side, at the level that holds for several slices at once."""
    end = value.upper if is_higher_better else value.lower
    if end is None or value.confidence_level is None:
        return math.inf if is_higher_better else -math.inf
    tail = (1 - value.confidence_level) / 2
    return value.value + (end - value.value) * normal_quantile(tail / compared) / normal_quantile(tail)


def _value(part: Slice, metric: str) -> Value | None:
    return next((value for value in part.values if value.name == metric), None)
