"""Intervals of the average precision of nearly perfect rankings, with and without a least variance: docs/intervals.md.

Run: ``python -m benchmarks.near_perfect_rankings`` (three minutes of one core; ``--draws`` says how many sets). Three
forms, all symmetric on the logit scale: the report's, whose variance is at least that of a share of the positives; that
of influence values alone; and the same with Student's quantile of as many degrees of freedom as samples make the
variance, less one, where that is narrower than the report's.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from assay.stats.distributions import student_quantile
from assay.stats.intervals import Array, Ends, on_logit_scale, two_sided_z
from assay.stats.rankings import binomial_variance, counts_by_score, precision_interval, precision_slopes

Random = np.random.Generator
Draw = Callable[[Random, int], tuple[Array, Array]]
SIZES = (300, 3_000, 20_000)
TRUTH = 1_000_000
LEVEL = 0.95


def normal(shift: float, share: float, random: Random, n: int, *, spread: float = 1.0) -> tuple[Array, Array]:
    """Normal scores; those of positives are higher, and spread by some factor."""
    labels = random.random(n) < share
    return np.where(labels, shift + spread * random.normal(size=n), random.normal(size=n)), labels


def heavy(shift: float, share: float, random: Random, n: int) -> tuple[Array, Array]:
    """Scores of Student's distribution with three degrees of freedom: few negatives are above most positives."""
    labels = random.random(n) < share
    return random.standard_t(3, size=n) + shift * labels, labels


def on_top(shift: float, share: float, rate: float, random: Random, n: int) -> tuple[Array, Array]:
    """Normal scores, but that a few negatives are above all positives."""
    scores, labels = normal(shift, share, random, n)
    return np.where(~labels & (random.random(n) < rate), shift + 6, scores), labels


def lost(shift: float, share: float, rate: float, random: Random, n: int) -> tuple[Array, Array]:
    """Normal scores, but that a few positives are like negatives."""
    scores, labels = normal(shift, share, random, n)
    return np.where(labels & (random.random(n) < rate), random.normal(size=n), scores), labels


def settings(n: int) -> dict[str, Draw]:
    """What is drawn, by its description."""
    return {
        "30 % positives": partial(normal, 3.2, 0.3),
        "30 % positives, better": partial(normal, 4.0, 0.3),
        "5 % positives": partial(normal, 4.0, 0.05),
        "90 % positives": partial(normal, 3.0, 0.9),
        "positives spread half as far": partial(normal, 4.0, 0.3, spread=0.5),
        "heavy tails": partial(heavy, 8.0, 0.1),
        "1 % of the positives are lost": partial(lost, 5.0, 0.3, 0.01),
        "one negative on top on average": partial(on_top, 3.2, 0.3, 1 / (0.7 * n)),
        "the same, 5 % positives": partial(on_top, 4.0, 0.05, 1 / (0.95 * n)),
    }


def counts(scores: Array, labels: Array) -> tuple[Array, Array]:
    return counts_by_score(scores, labels.astype(int))[:2]


def forms(positives: Array, negatives: Array) -> list[Ends] | None:
    """The intervals of the three forms; None where only the first exists."""
    value, a, b = precision_slopes(positives, negatives)
    p, n = float(positives.sum()), float(negatives.sum())
    parts = float(positives @ a**2) * p / (p - 1), float(negatives @ b**2) * n / (n - 1)
    error = math.sqrt(sum(parts))
    if not error:
        return None
    contributing = sum(parts) ** 2 / float(positives @ a**4 + negatives @ b**4)
    freedoms = sum(parts) ** 2 / (parts[0] ** 2 / (p - 1) + parts[1] ** 2 / (n - 1)), max(contributing - 1, 0.1)
    of_slopes, of_few = (error * student_quantile((1 + LEVEL) / 2, each) / two_sided_z(LEVEL) for each in freedoms)
    few = max(of_slopes, min(of_few, math.sqrt(binomial_variance(value, p))))
    others = [on_logit_scale(value, each, LEVEL) for each in (of_slopes, few)]
    return [precision_interval(positives, negatives, LEVEL), *(each for each in others if each is not None)]


def cell(draw: Draw, truth: float, n: int, draws: int) -> str:
    """Of each form: how often it has the truth, in per cent, and its width over the true one."""
    random, values, rows = np.random.default_rng(n), [], []
    for _ in range(draws):
        drawn = counts(*draw(random, n))
        if (found := forms(*drawn)) is not None:
            values.append(precision_slopes(*drawn)[0])
            rows.append([(lower <= truth <= upper, upper - lower) for lower, upper in found])
    if len(rows) < draws / 2:
        return "-"
    covered, widths = np.mean(np.array(rows, dtype=float), 0).T
    true = 2 * two_sided_z(LEVEL) * float(np.std(values))
    return "; ".join(f"{100 * share:.0f}, {width / true:.1f}" for share, width in zip(covered, widths, strict=True))


def main(draws: int) -> None:
    """Print the table."""
    print(f"| scores | value | {' | '.join(f'n = {n:,}' for n in SIZES)} |\n|---|--:|{'---|' * len(SIZES)}")
    for name in settings(1):
        truths, cells = [], []
        for n in SIZES:
            draw = settings(n)[name]
            truths.append(precision_slopes(*counts(*draw(np.random.default_rng(1), TRUTH)))[0])
            cells.append(cell(draw, truths[-1], n, draws if n < SIZES[-1] else draws // 4))
        shown = " to ".join(f"{each:.3f}" for each in sorted({round(min(truths), 3), round(max(truths), 3)}))
        print(f"| {name} | {shown} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=800)
    main(**vars(parser.parse_args()))
