"""A report with all that trackers keep of one."""

from __future__ import annotations

import math

from assay.report import Report, Section, Slice, Table, Value


def report():
    classes = Table("per class", ("class", "recall", "count"), [("cat", 0.75, 4), ("dog", None, 0)])
    accuracy = Value("accuracy", 0.9375, lower=0.9, upper=0.96, confidence_level=0.95, count=450, higher_is_better=True)
    held_out = Section(
        "held out",
        [accuracy, Value("F1 (macro)", 0.5), Value("undefined", math.nan)],
        tables=[classes, classes],
        slices=[Slice("night", 12, [Value("accuracy", 0.25)])],
    )
    return Report("pets", [held_out], created="2026-11-20T12:00:00+00:00")


def reports():
    """The same in two sections."""
    return Report("pets", [report().sections[0], Section("train", [Value("accuracy", 1.0)])])
