"""Runs that were made up: yes or no, a loss, and a rank metric."""

from __future__ import annotations

import numpy as np

from assay.report import Report, Samples, Section, Value


def run(
    title: str,
    n: int = 200,
    seed: int = 0,
    *,
    share: float = 0.8,
    shift: float = 0.0,
    order: np.ndarray | None = None,
    target: bool = True,
    data: str = "",
    section: str = "test",
) -> Report:
    """A made-up run: yes or no with some share of yes, a loss, and a rank metric with an interval."""
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(99).integers(3, size=n)
    correct, loss = rng.random(n) < share, rng.exponential(1, n) + shift
    decision = np.where(correct, truth, (truth + 1) % 3)
    rows = np.arange(n) if order is None else order
    samples = Samples.pack(
        rows,
        {"correct": correct[rows], "loss": loss[rows]},
        decision=decision[rows],
        target=truth[rows] if target else None,
        data=data,
    )
    values = (
        Value("accuracy", correct[rows].mean(), numerator="correct", higher_is_better=True),
        Value("loss", loss[rows].mean(), numerator="loss", higher_is_better=False),
        Value(
            "AUROC",
            0.8 + shift / 10,
            0.75 + shift / 10,
            0.85 + shift / 10,
            confidence_level=0.95,
            higher_is_better=True,
        ),
    )
    return Report(title, [Section(section, values, samples=samples)])


def column(report: Report, name: str) -> np.ndarray:
    return report.sections[0].samples.column(name)
