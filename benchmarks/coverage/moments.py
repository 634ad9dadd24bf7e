"""Intervals of values that are read from moments of pairs, by the bootstrap of groups.

The state of such a metric is the sums over its samples, so that a replicate is read from sums of those of groups. This
is what `assay.meter.resampling.intervals.bootstrap` does, without its meters: hundreds of sets a second instead of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from assay.meter.resampling.replicates import replicate_interval
from assay.stats.bootstrap import poisson_draws
from assay.stats.intervals import Array
from assay.stats.sampling import groups_of
from benchmarks.coverage.rows import Found, Random, Row
from benchmarks.coverage.scores import pairs

GROWING = "errors that grow with the target, with heavy tails: few of them make the variance"
SKEWED = "long tail: few samples make the variance"


def sums_of(preds: Array, target: Array) -> Array:
    return np.stack([np.ones(len(preds)), preds, target, preds**2, target**2, preds * target, (preds - target) ** 2])


def values_of(sums: Array) -> dict[str, Array]:
    n, x, y, xx, yy, xy, squares = sums
    with np.errstate(all="ignore"):  # of a replicate of equal samples
        x, y, covariance = x / n, y / n, xy / n - x * y / n**2
        a, b = xx / n - x**2, yy / n - y**2
        return {
            "R2Score": 1 - squares / n / b,
            "PearsonCorrCoef": covariance / np.sqrt(a * b),
            "ConcordanceCorrCoef": 2 * covariance / (a + b + (x - y) ** 2),
        }


def of_normal(random: Random, n: int) -> tuple[Array, Array]:
    target = random.normal(size=n)
    return 0.8 * target + 0.5 * random.normal(size=n), target


def in_proportion(random: Random, n: int) -> tuple[Array, Array]:
    target = random.lognormal(size=n)
    return target * np.exp(0.4 * random.normal(size=n)), target


def growing(random: Random, n: int) -> tuple[Array, Array]:
    target = random.normal(size=n)
    return target + 0.4 * np.abs(target) * random.standard_t(5, n), target


def resampled(draw: Callable[[Random, int], tuple[Array, ...]], random: Random, n: int) -> Found:
    """The intervals of 400 resamples of 128 groups."""
    sums = sums_of(*draw(random, n))
    _, codes = np.unique(groups_of(np.arange(n), int(random.integers(1 << 30)), 128), return_inverse=True)
    count = int(codes.max()) + 1
    groups = np.stack([np.bincount(codes, each, count) for each in sums])
    draws = np.concatenate([np.ones((1, count), int), poisson_draws(400, count, int(random.integers(1 << 30)))])
    found = {}
    for name, (value, *others) in values_of(groups @ draws.T).items():
        interval = replicate_interval(float(value), others, 0.95, count)
        found[name] = None if isinstance(interval, str) else (interval.lower, interval.upper)
    return found


def rows() -> Iterator[Row]:
    sources: tuple[tuple[str, Callable[[Random, int], tuple[Array, ...]], str], ...] = (
        ("normal, resampled", of_normal, ""),
        ("t(5), correlation 0.9, resampled", partial(pairs, 0.9, "t(5)"), ""),
        ("lognormal, correlation 0.9, resampled", partial(pairs, 0.9, "lognormal"), SKEWED),
        ("lognormal, errors in proportion, resampled", in_proportion, SKEWED),
        ("normal, errors of t(5) in proportion, resampled", growing, GROWING),
    )
    for about, draw, reason in sources:
        sums = sum(sums_of(*draw(np.random.default_rng(seed), 1_000_000)).sum(1) for seed in range(4))
        truth = {name: float(value) for name, value in values_of(np.asarray(sums)).items()}
        assert not any(map(math.isnan, truth.values()))
        yield Row(about, partial(resampled, draw), truth, (20, 100, 1_000, 10_000), 2.5, reason)
