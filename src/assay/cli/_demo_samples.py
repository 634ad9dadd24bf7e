"""What the demo keeps of every sample, so that two of its reports can be compared sample by sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from assay.cli._demo_models import HeldOut
from assay.metrics import Metric
from assay.report import Samples, Value

COLUMNS = {
    "Accuracy": ("correct", ""),
    "Log loss": ("log loss", ""),
    "Sensitivity": ("true positives", "positives"),
    "Specificity": ("true negatives", "negatives"),
    "Brier score": ("squared distance", ""),
    "Mean absolute error": ("absolute error", ""),
}
"""Of the headline numbers that are means over samples: the column, and the one it is divided by."""

LOWER_IS_BETTER = ("Log loss", "Calibration error", "Brier score", "Root mean squared error", "Mean absolute error")


def values(headline: Mapping[str, Metric], found: Mapping[str, Any]) -> tuple[Value, ...]:
    """The headline numbers, each with the column that it is the mean of, where it is one."""
    return tuple(
        Value(name, found[name], better="lower" if name in LOWER_IS_BETTER else "higher", column=column, over=over)
        for name, (column, over) in ((name, COLUMNS.get(name, ("", ""))) for name in headline)
    )


def samples(held_out: HeldOut) -> Samples:
    """What each sample contributes, what was decided, and what is right."""
    preds, target = held_out.preds.double().numpy(), held_out.target.numpy()
    if not held_out.classes:
        return Samples.pack(
            held_out.ids, {"absolute error": np.abs(preds - target)}, target=target, data=held_out.title
        )
    if preds.ndim == 2:
        decision = preds.argmax(1)
        own = preds[np.arange(len(target)), target]
        columns = {"correct": decision == target, "log loss": -np.log(own)}
    else:
        decision = (preds > 0.5).astype(np.int64)
        columns = {
            "correct": decision == target,
            "true positives": (decision == 1) & (target == 1),
            "positives": target == 1,
            "true negatives": (decision == 0) & (target == 0),
            "negatives": target == 0,
            "squared distance": (preds - target) ** 2,
        }
    return Samples.pack(held_out.ids, columns, decision=decision, target=target, data=held_out.title)
