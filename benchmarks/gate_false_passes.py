"""How often a gate passes a model that does not hold its rule: the tables of docs/compare.md.

Run: ``python -m benchmarks.gate_false_passes`` (ten minutes). At most 2.5 % may pass. Of drops of paired yes or no all
outcomes are counted, with Bonett and Price's interval alone beside it; the other rules are simulated, with reports
that hold what ``evaluate`` keeps.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy import stats

from assay.report import Report, Samples, Section, Value, gate
from assay.stats.distributions import normal_quantile
from assay.stats.intervals import Array, area_interval, paired_proportions

SIZES = (10, 30, 100, 300)
DROPS = (0.0, 0.005, 0.01, 0.02, 0.05)
GAINS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
LEAST = 1e-7
Random = np.random.Generator


def bonett_price(b: int, c: int, n: int) -> float:
    p, q = (c + 1) / (n + 2), (b + 1) / (n + 2)
    return p - q - normal_quantile(0.975) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))


def of_drops(n: int, drop: float) -> tuple[float, float]:
    """The largest shares over all gains that pass a drop which is true: by Bonett and Price's end, and by a gate's."""
    most = [0.0, 0.0]
    for gain in GAINS:
        passed = [0.0, 0.0]
        for b in range(n + 1):
            chances = stats.binom.pmf(b, n, gain + drop) * stats.binom.pmf(
                np.arange(n - b + 1), n - b, gain / (1 - gain - drop)
            )
            for c in np.flatnonzero(chances > LEAST).tolist():
                ends = bonett_price(b, c, n), paired_proportions(b, c, n)[0]
                passed = [sum_ + chances[c] * (end >= -drop) for sum_, end in zip(passed, ends, strict=True)]
        most = [max(pair) for pair in zip(most, passed, strict=True)]
    return most[0], most[1]


def report(columns: dict[str, Array], value: float, **about: object) -> Report:
    rows = len(next(iter(columns.values()), ()))
    samples = Samples.pack(range(rows), columns, data="simulated") if columns else None
    return Report("run", (Section("test", (Value("m", value, **about),), samples=samples),))  # type: ignore[arg-type]


def passes(of: Report, kind: str, bound: float, baseline: Report | None = None) -> bool:
    return gate(of, {kind: {"m": bound}}, baseline).outcome == "pass"


def yes_or_no(right: Array) -> Report:
    samples = Samples.pack(range(len(right)), {"right": right}, decision=right.astype(int), target=np.ones(len(right)))
    value = Value("m", float(right.mean()), numerator="right", higher_is_better=True)
    return Report("run", (Section("test", (value,), samples=samples),))


def a_worse_model(n: int, drop: float, rng: Random) -> bool:
    """The baseline is right on all; the new model is wrong on a share of what there is, and no drop is allowed."""
    return passes(yes_or_no(rng.random(n) >= drop), "max-drop", 0.0, yes_or_no(np.ones(n, bool)))


def a_smaller_ratio(n: int, ratio: float, rng: Random) -> bool:
    """The baseline is right on half; the new model loses some of those and gains none."""
    before = rng.random(n) < 0.5
    after = before & (rng.random(n) < ratio)
    return bool(before.any()) and passes(yes_or_no(after), "min-ratio", ratio, yes_or_no(before))


def an_area(positives: int, found: float, rng: Random) -> bool:
    """The area that is asked for is a little above the true one; a share of the positives is found surely."""
    shift = 1.2 if found == 1 else 9.0
    truth = found * float(stats.norm.cdf(shift / math.sqrt(2))) + (1 - found) / 2
    is_positive = np.arange(positives + 57) < positives
    scores = rng.normal(size=len(is_positive)) + shift * (is_positive & (rng.random(len(is_positive)) < found))
    above = is_positive[np.argsort(-scores)]
    area = float(stats.mannwhitneyu(scores[is_positive], scores[~is_positive]).statistic / positives / 57)
    shown, safe = (area_interval(above, ~above, safe=each) for each in (False, True))
    about = {"lower": shown[0], "upper": shown[1], "safe_lower": safe[0], "safe_upper": safe[1]}
    return passes(report({}, area, count=positives + 57, confidence_level=0.95, **about), "min", truth + 0.001)


def a_root(n: int, draw: Callable[[Random, int], Array], square: float, rng: Random) -> bool:
    """The root mean squared error that is asked for is a little below the true one."""
    squares = draw(rng, n) ** 2
    about = {"numerator": "squares", "scale": "root", "higher_is_better": False}
    root = math.sqrt(float(squares.mean()))
    return passes(report({"squares": squares}, root, **about), "max", 0.999 * math.sqrt(square))


def simulated() -> Iterator[tuple[str, str, Callable[[Random], bool]]]:
    for n, drop in ((10, 0.05), (30, 0.02), (100, 0.01)):
        yield "max-drop accuracy=0", f"n = {n}, drop {drop}", partial(a_worse_model, n, drop)
    for n in (30, 100, 300):
        yield "min-ratio accuracy=0.98", f"n = {n}, half right", partial(a_smaller_ratio, n, 0.98)
    for positives in (3, 5, 10):
        yield "min AUROC", f"{positives} positives", partial(an_area, positives, 1.0)
        yield "min AUROC", f"{positives} positives, 30 % not found", partial(an_area, positives, 0.7)
    for n in (30, 100, 1000):
        yield "max RMSE", f"n = {n}, t(5)", partial(a_root, n, lambda rng, n: rng.standard_t(5, n), 5 / 3)
        yield "max RMSE", f"n = {n}, normal", partial(a_root, n, lambda rng, n: rng.normal(size=n), 1.0)


def main(repeats: int) -> None:
    """Print the tables."""
    print("A true drop that passes, in % (Bonett and Price's end alone / a gate):\n")
    print(f"| margin | {' | '.join(f'n = {n}' for n in SIZES)} |\n|---|{'---|' * len(SIZES)}")
    for drop in DROPS:
        cells = [" / ".join(f"{100 * share:.1f}" for share in of_drops(n, drop)) for n in SIZES]
        print(f"| {drop:g} | {' | '.join(cells)} |", flush=True)
    print(f"\nPasses of rules that do not hold, in % of {repeats:,}:\n\n| rule | samples | passes |\n|---|---|--:|")
    for rule, about, trial in simulated():
        rng = np.random.default_rng(0)
        print(f"| `{rule}` | {about} | {100 * np.mean([trial(rng) for _ in range(repeats)]):.1f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    main(**vars(parser.parse_args()))
