"""How often each end of an interval misses: the tables of docs/intervals.md.

Run: ``python -m benchmarks.interval_coverage`` (a few minutes), or a part: ``--only bootstraps``. Sets of samples are
drawn from distributions whose mean is known. Counted is how often the whole interval lies below the mean, how often
it lies above it, and how often a gate does not trust an end (`assay.stats.intervals.risky_end`); such an end does not
count as a miss.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from assay.meter.resampling.replicates import replicate_interval
from assay.stats.bootstrap import poisson_draws
from assay.stats.intervals import Array, clopper_pearson, mean_interval, risky_end, student_interval, wilson
from assay.stats.sampling import groups_of
from benchmarks.coverage.moments import sums_of, values_of

SIZES = (12, 20, 50, 100, 200, 500, 1000)
GROUPS = 128


@dataclass(frozen=True)
class Source:
    """Where samples come from: a distribution with its true mean."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Array]
    mean: float


SOURCES = (
    Source("normal", lambda rng, shape: rng.normal(size=shape), 0.0),
    Source("lognormal, σ = 1", lambda rng, shape: rng.lognormal(size=shape), math.exp(0.5)),
    Source("exponential", lambda rng, shape: rng.exponential(size=shape), 1.0),
    # a margin from N(3, 2): right in 93 % of the samples; the mean is the integral of log(1 + exp(-m)) N(m; 3, 2)
    Source("cross-entropy of a good model", lambda rng, shape: np.logaddexp(0, -rng.normal(3, 2, shape)), 0.1820085),
    Source("squared errors of normal ones", lambda rng, shape: rng.normal(size=shape) ** 2, 1.0),
    Source("errors in [0, 1], beta(1/2, 2)", lambda rng, shape: rng.beta(0.5, 2, size=shape), 0.2),
)
P = 0.95


def misses(ends: list[tuple[float, float]], truth: float, risky: list[str]) -> str:
    """The shares of intervals below and above the truth by an end that is trusted, and of those with a risky end."""
    pairs = list(zip(ends, risky, strict=True))
    below = np.mean([upper < truth and end not in ("upper", "both") for (_, upper), end in pairs])
    above = np.mean([lower > truth and end not in ("lower", "both") for (lower, _), end in pairs])
    return f"{100 * below:.1f} / {100 * above:.1f} / {100 * np.mean([end != '' for end in risky]):.0f}"


def of_means(source: Source, size: int, repeats: int) -> tuple[str, str]:
    """The misses of Student's interval and of the one that allows for skewness."""
    values = source.draw(np.random.default_rng(size), (repeats, size))
    student = misses([student_interval(each) for each in values], source.mean, [""] * repeats)
    ours = misses([mean_interval(each) for each in values], source.mean, [risky_end(each) for each in values])
    return student.rpartition(" / ")[0], ours


def of_shares(size: int, repeats: int) -> tuple[str, str]:
    """The misses of Wilson's and of Clopper and Pearson's interval."""
    counts = np.random.default_rng(size).binomial(size, P, repeats)
    found = (misses([of(int(k), size) for k in counts], P, [""] * repeats) for of in (wilson, clopper_pearson))
    first, second = (each.rpartition(" / ")[0] for each in found)
    return first, second


def of_bootstraps(size: int, repeats: int) -> tuple[str, str]:
    """The coverage of the bootstrap of groups, of the root mean squared error and of R², read from sums over groups."""
    rng, covered = np.random.default_rng(size), {"rmse": 0, "r2": 0}
    for repeat in range(repeats):
        target = rng.normal(size=size)
        sums = sums_of(0.8 * target + 0.5 * rng.normal(size=size), target)
        _, codes = np.unique(groups_of(np.arange(size), repeat, GROUPS), return_inverse=True)
        count = int(codes.max()) + 1
        groups = np.stack([np.bincount(codes, each, count) for each in sums])
        drawn = groups @ np.concatenate([np.ones((1, count), int), poisson_draws(400, count, repeat)]).T
        values = {"rmse": np.sqrt(drawn[-1] / drawn[0]), "r2": values_of(drawn)["R2Score"]}
        for name, truth in (("rmse", math.sqrt(0.29)), ("r2", 0.71)):
            value, *others = values[name].tolist()
            found = replicate_interval(value, others, 0.95, count, "root" if name == "rmse" else "")
            covered[name] += not isinstance(found, str) and found.lower <= truth <= found.upper
    return f"{covered['rmse'] / repeats:.3f}", f"{covered['r2'] / repeats:.3f}"


def means_table(repeats: int, _: int) -> None:
    header = "| " + " | ".join(map(str, SIZES)) + " |"
    print("Below / above the mean / not trusted, in %:\n")
    print(f"| distribution | interval {header}\n|---|---|{'---|' * len(SIZES)}")
    for source in SOURCES:
        cells = [of_means(source, size, repeats) for size in SIZES]
        print(f"| {source.name} | Student | {' | '.join(first for first, _ in cells)} |")
        print(f"| | assay | {' | '.join(second for _, second in cells)} |", flush=True)


def shares_table(repeats: int, _: int) -> None:
    shares = [of_shares(size, repeats) for size in SIZES]
    print(f"| yes or no, p = {P} | Wilson | {' | '.join(first for first, _ in shares)} |")
    print(f"| | Clopper-Pearson | {' | '.join(second for _, second in shares)} |\n")


def bootstraps_table(_: int, bootstraps: int) -> None:
    print("Coverage of the bootstrap of tallies:\n\n| samples | RMSE | R² |\n|---|---|---|")
    for size in (20, 50):
        print(f"| {size} | {' | '.join(of_bootstraps(size, bootstraps))} |", flush=True)


TABLES = {"means": means_table, "shares": shares_table, "bootstraps": bootstraps_table}


def main(repeats: int, bootstraps: int, only: str | None) -> None:
    """Print the tables, or one of them."""
    for name, table in TABLES.items():
        if only in (None, name):
            table(repeats, bootstraps)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=4000)
    parser.add_argument("--bootstraps", type=int, default=2000)
    parser.add_argument("--only", choices=list(TABLES), help="one table")
    main(**vars(parser.parse_args()))
