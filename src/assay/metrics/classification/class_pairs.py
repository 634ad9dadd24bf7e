"""Areas under ROC curves of each pair of classes, which only the samples of these two decide (Hand and Till)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from assay.errors import ConfigError, NoDataWarning, describe, warn
from assay.tally.scores import curves
from assay.tally.scores.curves import Ranking


def check_pairs(metric: Any) -> None:
    """Raise where the arguments of `AUROC` contradict a mean over pairs of classes."""
    contradicts = {
        "num_classes": metric.num_classes is None,
        "average": metric.average not in ("macro", "weighted"),
        "thresholds": metric.thresholds is not None,
        "bounds": metric.bounds,
    }
    for name in (name for name, does in contradicts.items() if does):
        got, expected = f"{name}={getattr(metric, name)!r}", "the mean over pairs of num_classes classes, of all scores"
        do = "Pass num_classes and average='macro' or 'weighted', without thresholds and bounds"
        raise ConfigError(describe("multi_class='ovo'", got, expected, do))


def warn_of_classes(metric: Any, missing: str, is_undefined: bool) -> None:
    """Warn of classes without samples, which `missing` names, as " of class 1"."""
    left = "the value is NaN" if is_undefined else "the average leaves out their pairs"
    do = f"Add samples of them; {left}"
    warn(describe(type(metric).__name__, f"no sample{missing}", "samples of each class", do), NoDataWarning)


def mean_area_of_pairs(rankings: Sequence[Ranking], weighted: bool) -> float:
    """The mean area of the pairs of classes that have samples, rounded once; NaN without any pair.

    The area of a pair is the mean of two: that of the scores of the one class, and of the other.

    Args:
        rankings: of each class against the rest, in the order of the classes, whose samples are kept.
        weighted: whether a pair weighs as many as its samples, or 1.
    """
    columns = [ranking.samples() for ranking in rankings if ranking.samples is not None]
    rows = [np.flatnonzero(labels == 1) for _, labels in columns]
    total, weights = Fraction(), 0
    for pair in combinations([k for k, each in enumerate(rows) if len(each)], 2):
        both = np.concatenate([rows[k] for k in pair])
        is_first = np.arange(len(both)) < len(rows[pair[0]])
        areas = [
            Fraction(curves.auroc(curves.of_samples(columns[k][0][both], positive)).value)
            for k, positive in zip(pair, (is_first, ~is_first), strict=True)
        ]
        weight = len(both) if weighted else 1
        total, weights = total + weight * sum(areas, Fraction()) / 2, weights + weight
    return float(total / weights) if weights else math.nan
