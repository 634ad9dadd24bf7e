"""Gates that are run again while samples come in: the tables of "Looking again" in docs/compare.md.

Run: ``python -m benchmarks.sequential`` (a minute or two), or a part of it: ``--only clusters``. Pairs of yes or no
are drawn, of which some differ; a rule passes where the end of the interval is within its margin.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np

from assay.stats.betting import FRACTIONS, log_wealth
from assay.stats.intervals import Array
from assay.stats.paired_shares import paired_proportions
from assay.stats.power import Spread

PAIRS = 2000
LOOKS = (1, 20, 200)
SETTINGS = ((0.0, 0.05), (0.0, 0.2), (0.02, 0.02), (0.02, 0.05), (0.05, 0.2))
EFFECTS = (1, 2, 3)
VALUES = np.array([-1.0, 0.0, 1.0])


def once(losses: Array, gains: Array, seen: Array, margin: float) -> Array:
    """Whether a gate passes by the intervals of one look, after so many pairs."""
    within = (gains - losses) / seen >= -margin  # else no end can be
    pairs = zip(losses.tolist(), gains.tolist(), seen.tolist(), within.tolist(), strict=True)
    return np.array([is_within and paired_proportions(b, c, n)[0] >= -margin for b, c, n, is_within in pairs])


def at_any_look(losses: Array, gains: Array, seen: Array, margin: float) -> Array:
    """Whether bets against the drop have won forty times their stake, so that the lower end is above it."""
    counts = np.stack([losses, seen - losses - gains, gains])
    odds = (VALUES + 1) / (1 - margin) - 1
    won = np.logaddexp.reduce(np.log1p(FRACTIONS[:, None] * odds) @ counts) - math.log(len(FRACTIONS))
    return np.asarray(won >= math.log(40))


Passes = Callable[[Array, Array, Array, float], Array]


def first_pass(change: float, differing: float, margin: float, looks: int, passes: Passes, seed: int) -> int:
    """After how many pairs a rule passes; 0 where it does at no look."""
    losses, gains = (differing - change) / 2, (differing + change) / 2
    drawn = np.random.default_rng(seed).choice(3, PAIRS, p=[losses, 1 - differing, gains])
    lost, won = np.cumsum(drawn == 0), np.cumsum(drawn == 2)
    seen = np.arange(PAIRS // looks, PAIRS + 1, PAIRS // looks)
    passed = passes(lost[seen - 1], won[seen - 1], seen, margin)
    return int(seen[passed.argmax()]) if passed.any() else 0


CLUSTERS = 400


def clustered_pass(share: float, right: float, looks: int, seed: int) -> tuple[bool, bool]:
    """Whether ``--min`` with the true value passes at a look: by sums of whole clusters, and as if independent.

    Clusters have 7 samples on average. In a share of the samples the outcome is that of the whole cluster.
    """
    random = np.random.default_rng(seed)
    sizes = 1 + random.geometric(1 / 6, CLUSTERS)
    codes = np.repeat(np.arange(CLUSTERS), sizes)
    of_cluster = (random.random(CLUSTERS) < right)[codes]
    samples = np.where(random.random(len(codes)) < share, of_cluster, random.random(len(codes)) < right)
    sums, seen = np.bincount(codes, samples), np.linspace(CLUSTERS // looks, CLUSTERS, looks).astype(int) - 1
    bets = np.log1p(FRACTIONS[:, None] * (sums - right * sizes) / (right * sizes.max())).cumsum(1)[:, seen]
    of_clusters = np.logaddexp.reduce(bets) - math.log(len(FRACTIONS))
    right_ones, all_ones = np.cumsum(sums)[seen], np.cumsum(sizes)[seen]
    counts = zip(all_ones - right_ones, right_ones, strict=True)
    of_samples = [log_wealth(np.array([0.0, 1.0]), np.array(each), 0.0, right) for each in counts]
    return bool(max(of_clusters) >= math.log(40)), max(of_samples) >= math.log(40)


def clustered_table(repeats: int) -> None:
    print("\n| shared | right | 1 look | 20 looks |\n|--:|--:|--:|--:|")
    for share, right in ((0.6, 0.7), (1.0, 0.7), (1.0, 0.95)):
        cells = []
        for looks in (1, 20):
            passed = np.mean([clustered_pass(share, right, looks, seed) for seed in range(repeats)], 0)
            cells.append(" / ".join(f"{100 * each:.1f}" for each in passed))
        print(f"| {share:g} | {right:g} | {' | '.join(cells)} |", flush=True)


def looks_table(repeats: int) -> None:
    seeds = range(repeats)
    print(
        f"\n| margin | pairs that differ | {' | '.join(f'{looks} look(s)' for looks in LOOKS)} |\n|--:|--:|--:|--:|--:|"
    )
    for margin, differing in SETTINGS:
        cells = []
        for looks in LOOKS:
            passed = [
                np.mean([first_pass(-margin, differing, margin, looks, by, seed) > 0 for seed in seeds])
                for by in (once, at_any_look)
            ]
            cells.append(" / ".join(f"{100 * share:.1f}" for share in passed))
        print(f"| {margin:g} | {differing:g} | {' | '.join(cells)} |", flush=True)


def effects_table(repeats: int) -> None:
    seeds = range(repeats)
    print("\n| margin | pairs that differ | effect | one look passes | passes | pairs until then |")
    print(f"|{'--:|' * 6}")
    for margin, differing in ((0.0, 0.1), (0.02, 0.1)):
        smallest = Spread(PAIRS, differing, differing).smallest()
        for times in EFFECTS:
            change = times * smallest - margin
            found = [first_pass(change, differing, margin, 50, at_any_look, seed) for seed in seeds]
            single = np.mean([first_pass(change, differing, margin, 1, once, seed) > 0 for seed in seeds])
            spent = np.mean([n or PAIRS for n in found]) / PAIRS
            passed = np.mean([n > 0 for n in found])
            print(
                f"| {margin:g} | {differing:g} | {times} | {single:.2f} | {passed:.2f} | {100 * spent:.0f} % |",
                flush=True,
            )


TABLES = {"clusters": clustered_table, "looks": looks_table, "effects": effects_table}


def main(repeats: int, only: str | None) -> None:
    """Print the tables, or one of them."""
    for name, table in TABLES.items():
        if only in (None, name):
            table(repeats)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--only", choices=list(TABLES), help="one table")
    main(**vars(parser.parse_args()))
