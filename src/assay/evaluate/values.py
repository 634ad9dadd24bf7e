"""What metrics read, as the values, tables and plots of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from assay.report import ConfusionMatrix, Plot, Section, Table, Value

_MOST_CLASSES = 100


def section(name: str, found: Mapping[str, Any], kinds: Mapping[str, str], rows: int, tables: list[Table]) -> Section:
    """Lay out what was read.

    Args:
        name: the title.
        found: the values by the names of the metrics.
        kinds: the classes of the metrics by their names.
        rows: how many samples were counted.
        tables: tables that follow.
    """
    values: list[Value] = []
    details: list[Table] = []
    plots: list[Plot] = []
    left: list[str] = []
    for metric, value in found.items():
        if isinstance(value, Tensor) and value.ndim == 0:
            values.append(Value(metric, float(value), count=rows))
        elif isinstance(value, Tensor) and value.ndim == 1 and len(value) <= _MOST_CLASSES:
            per_class = tuple((str(k), each) for k, each in enumerate(value.double().tolist()))
            details.append(Table(metric, ("class or output", metric), per_class))
        elif kinds[metric] == "ConfusionMatrix" and value.ndim == 2 and not value.is_floating_point():
            plots.append(_matrix(metric, value))
        elif isinstance(value, tuple) and all(isinstance(each, Tensor) and each.ndim == 0 for each in value):
            names = getattr(value, "_fields", range(len(value)))
            values += [
                Value(f"{metric} {part}", float(each), count=rows) for part, each in zip(names, value, strict=True)
            ]
        elif hasattr(value, "rows"):
            columns = ("class", "precision", "recall", "F1", "support")
            classes = [str(k) for k in range(len(value.support))]
            details.append(Table(metric, columns, tuple(map(tuple, value.rows(classes)))))
        else:
            left.append(metric)
    note = f"{rows:,} samples." + (f" Not shown here: {', '.join(left)}." if left else "")
    return Section(name, tuple(values), (*details, *tables), tuple(plots), note=note)


def _matrix(name: str, counts: Tensor) -> ConfusionMatrix:
    labels = tuple(str(k) for k in range(len(counts)))
    return ConfusionMatrix(name, labels, tuple(map(tuple, counts.tolist())))
