"""How often equal models are called different by several training runs of each: the table of docs/compare.md.

Run: ``python -m benchmarks.training_runs`` (ten minutes), or a row: ``--only "2, numbers"``. Runs and samples are
both drawn anew in each simulation. 5 % may be called different.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from assay.report import Report, Samples, Section, Value, compare, compare_training_runs

SAMPLES = 500
RUNS = (2, 3, 5)
SPREADS = (0.0, 0.5, 2.0)
"""How much runs differ: the standard deviation of their means over that of a mean of the samples."""


def runs(count: int, hard: np.ndarray, spread: float, yes: bool, rng: np.random.Generator) -> list[Report]:
    """Reports of the runs of one model, whose value is 0, or the share of samples above 0."""
    found = []
    for _ in range(count):
        values = hard + rng.normal(size=SAMPLES) + rng.normal() * spread * math.sqrt(2 / SAMPLES)
        values = values > 0 if yes else values
        value = Value("x", float(values.mean()), numerator="x", higher_is_better=True)
        samples = Samples.pack(range(SAMPLES), {"x": values}, data="simulated")
        found.append(Report(f"{rng.integers(2**60)}", (Section("test", (value,), samples=samples),)))
    return found


def trial(count: int, spread: float, yes: bool, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether equal models are called different: by their first runs alone, and by all runs."""
    hard = rng.normal(size=SAMPLES)
    first, second = (runs(count, hard, spread, yes, rng) for _ in range(2))
    single = compare(first[0], second[0], flips=0).deltas[0].verdict
    several = compare_training_runs(first, second).deltas[0].verdict
    return single != "no evidence", several != "no evidence"


ROWS = {
    f"{spread:g}, {'yes or no' if yes else 'numbers'}": (spread, yes) for yes in (False, True) for spread in SPREADS
}


def main(repeats: int, only: str | None) -> None:
    """Print the table, or a row of it."""
    print(f"| runs each differ by | {' | '.join(f'{count} runs' for count in RUNS)} |\n|---|{'--:|' * len(RUNS)}")
    for name, (spread, yes) in ROWS.items():
        cells = []
        for count in RUNS if only in (None, name) else ():
            rng = np.random.default_rng(0)
            found = np.mean([trial(count, spread, yes, rng) for _ in range(repeats)], axis=0)
            cells.append(" / ".join(f"{100 * share:.1f}" for share in found))
        if cells:
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--only", choices=list(ROWS), help="one row")
    main(**vars(parser.parse_args()))
