"""How often a gate passes a drop of paired yes or no that is true: a table of docs/compare.md.

Run: ``python -m benchmarks.gate_false_passes`` (some minutes). At most 2.5 % may pass. All outcomes are counted, with
Bonett and Price's interval alone beside it. `benchmarks.coverage.gates` simulates the other rules.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from assay.stats.distributions import normal_quantile
from assay.stats.paired_shares import paired_proportions

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


def main() -> None:
    """Print the table."""
    print("A true drop that passes, in % (Bonett and Price's end alone / a gate):\n")
    print(f"| margin | {' | '.join(f'n = {n}' for n in SIZES)} |\n|---|{'---|' * len(SIZES)}")
    for drop in DROPS:
        cells = [" / ".join(f"{100 * share:.1f}" for share in of_drops(n, drop)) for n in SIZES]
        print(f"| {drop:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
