"""What verdicts and intervals got wrong once, measured again: the table of goals in docs/coverage.md.

Run: ``python -m benchmarks.verdicts`` (ten minutes of one core), or parts: ``--only looks "few positives"``. Drawn are
the settings in which gates, tests and intervals erred most often before they were corrected. Per cent of ``--draws``
sets.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

import assay.metrics as m
from assay.metrics.classification.ratio import Ratio
from assay.metrics.classification.ratio_metric import RatioMetric
from assay.report import Report, gate
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.tests_and_intervals import interval_of
from assay.stats.betting import FRACTIONS
from assay.stats.clusters import ClusteredMean
from assay.stats.hypothesis_tests import paired_t_of, paired_test
from assay.stats.intervals import Array
from benchmarks.clusters import numbers, sizes, yes_or_no
from benchmarks.coverage.gate_changes import right_pair
from benchmarks.coverage.gate_reports import evaluated, mean_report, metric_report

Random = np.random.Generator
Line = tuple[str, str]
"""What was simulated, and the per cent of the sets."""


def worse_models(draws: int) -> Iterator[Line]:
    """Rules that no drop is allowed, of a model that is worse."""
    for n, drop in ((10, 0.05), (30, 0.02), (100, 0.01)):
        for differing in (0.0, 0.02):
            random, passed = np.random.default_rng(n), 0
            for _ in range(draws):
                before, after = right_pair(n, drop, random, differing)
                passed += gate(mean_report(after), {"max-drop": {"x": 0}}, mean_report(before)).exit_code == 0
            about = f"`--max-drop x=0` passes a drop of {drop:g}, n = {n}, {100 * differing:g} % flip either way"
            yield about, f"{100 * passed / draws:.1f}"


def tests_of_clusters(draws: int) -> Iterator[Line]:
    """`paired_test` of equal models: of samples, a tenth of the sets, and of the sums of clusters."""
    for clusters, how in ((10, "equal"), (60, "equal"), (60, "uneven"), (60, "one of 30 %")):
        for kind in ("yes or no", "numbers"):
            random, found = np.random.default_rng(2), np.zeros(2)
            for k in range(draws):
                codes = np.repeat(np.arange(clusters), sizes(clusters, how, random))
                a, b = yes_or_no(codes, 0.0, random) if kind == "yes or no" else numbers(codes, random)
                apart = b.astype(float) - a
                found[1] += ClusteredMean.of(np.bincount(codes, apart), np.bincount(codes) * 1.0).test()[0] < 0.05
                if not k % 10:
                    found[0] += 10 * (paired_test(apart)[0] < 0.05)
            cells = " / ".join(f"{100 * each / draws:.1f}" for each in found)
            yield f"`paired_test` of {kind}, {clusters} clusters, {how}: as independent / in clusters", cells


LOOKS, PAIRS = 20, 2_000


def looks(draws: int) -> Iterator[Line]:
    """Equal models, called different at any of 20 looks: by the p of one look, and by bets on both ends."""
    seen = np.arange(PAIRS // LOOKS, PAIRS + 1, PAIRS // LOOKS)
    for about, values in (("yes or no, 20 % differ", (-1.0, 0.0, 1.0)), ("numbers in [-1, 1]", np.linspace(-1, 1, 21))):
        chances = [0.1, 0.8, 0.1] if len(values) == 3 else None
        random, found = np.random.default_rng(3), np.zeros(2)
        for _ in range(draws):
            apart = random.choice(values, PAIRS, p=chances)
            means, squares = (np.cumsum(each)[seen - 1] / seen for each in (apart, apart**2))
            errors = np.sqrt((squares - means**2) / (seen - 1))
            ps = [paired_t_of(*each) for each in zip(means.tolist(), errors.tolist(), seen.tolist(), strict=True)]
            found[0] += min(ps) < 0.05
            won = [np.log1p(FRACTIONS[:, None] * side * apart).cumsum(1)[:, seen - 1] for side in (1, -1)]
            most = max(float(np.logaddexp.reduce(each).max()) for each in won)
            found[1] += most - math.log(len(FRACTIONS)) >= math.log(40)
        cells = " / ".join(f"{100 * each / draws:.1f}" for each in found)
        yield f"equal models called different at one of {LOOKS} looks, {about}: p of one look / bets", cells


@dataclass(frozen=True)
class Scores:
    """Normal scores of positives; negatives are standard normal."""

    about: str
    shift: float
    spread: float = 1.0
    found: float = 1.0

    def draw(self, random: Random, positives: int, negatives: int) -> tuple[Array, Array]:
        moved = random.random(positives) < self.found
        scores = np.where(moved, self.shift, 0) + np.where(moved, self.spread, 1) * random.normal(size=positives)
        scores = np.concatenate([scores, random.normal(size=negatives)])
        return stats.norm.cdf(scores / 3), np.repeat([1, 0], [positives, negatives])

    def area(self) -> float:
        return self.found * float(stats.norm.cdf(self.shift / math.hypot(1, self.spread))) + (1 - self.found) / 2


SCORES = (
    Scores("area 0.80", 1.19),
    Scores("area 0.95", 2.326),
    Scores("area 0.7, unequal spreads", 1.17, 2.0),
    Scores("30 % of the positives like negatives", 9.0, 1.0, 0.7),
)


def missed(draw: Callable[[], Report], rule: str, truth: float, hair: float, draws: int) -> str:
    """How often the interval is below and above the truth, and a rule passes whose bound is a hair beyond it."""
    counts = np.zeros(3)
    for _ in range(draws):
        report = draw()
        found = interval_of(MeasuredValue.of(report.sections[0], "x"), 0.95, safe=False)
        passes = gate(report, {rule: {"x": truth + (hair if rule == "min" else -hair)}}).exit_code == 0
        if found.lower is None or found.upper is None:
            return "no interval"
        counts += found.upper < truth, found.lower > truth, passes
    below, above, passed = 100 * counts / draws
    return f"covers {100 - below - above:.1f} (below {below:.1f}, above {above:.1f}); passes {passed:.1f}"


def few_positives(draws: int) -> Iterator[Line]:
    for positives, negatives in ((3, 57), (5, 55), (10, 90)):
        for scores in SCORES:
            random = np.random.default_rng(positives)

            def draw(
                scores: Scores = scores, p: int = positives, n: int = negatives, random: Random = random
            ) -> Report:
                return metric_report(m.AUROC(), *scores.draw(random, p, n))

            about = f"AUROC of {positives} positives, {negatives} negatives, {scores.about}; `--min auc=truth+.001`"
            yield about, missed(draw, "min", scores.area(), 0.001, draws)


def roots(draws: int) -> Iterator[Line]:
    for n in (30, 100, 1_000):
        random = np.random.default_rng(n)

        def draw(n: int = n, random: Random = random) -> Report:
            return mean_report(random.standard_t(5, n) ** 2, root=True, higher_is_better=False)

        yield f"RMSE, errors of t(5), n = {n}; `--max`", missed(draw, "max", math.sqrt(5 / 3), 1e-6, draws)


@dataclass(frozen=True, kw_only=True)
class TverskyIndex(RatioMetric):
    """A ratio that names no interval, as in docs/own_metrics.md."""

    ratio = Ratio("tp", "tp + alpha fp + beta fn")
    alpha: float = 0.5
    beta: float = 0.5


def own_ratio(draws: int) -> Iterator[Line]:
    for alpha, beta in ((0.3, 0.7), (0.1, 0.1), (2.0, 2.0)):
        metric, prevalence, recall, false = TverskyIndex(alpha=alpha, beta=beta), 0.3, 0.8, 0.1
        hits = prevalence * recall
        truth = hits / (hits + alpha * (1 - prevalence) * false + beta * (prevalence - hits))
        random = np.random.default_rng(4)

        def draw(metric: TverskyIndex = metric, random: Random = random) -> Report:
            target = random.random(300) < 0.3
            return evaluated(metric, (random.random(300) < np.where(target, 0.8, 0.1)).astype(int), target.astype(int))

        about = f"a ratio of one's own (Tversky's, weights {alpha:g} and {beta:g}), resampled, n = 300; `--min`"
        yield about, missed(draw, "min", truth, 1e-6, max(20, draws // 10))


PARTS: dict[str, Callable[[int], Iterator[Line]]] = {
    "worse models": worse_models,
    "clusters": tests_of_clusters,
    "looks": looks,
    "few positives": few_positives,
    "roots": roots,
    "own ratio": own_ratio,
}


def main(draws: int, only: list[str]) -> None:
    """Print the table."""
    print("| of | % |\n|---|--:|")
    for name, part in PARTS.items():
        if not only or name in only:
            for about, found in part(draws):
                print(f"| {about} | {found} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--only", nargs="+", default=[], choices=list(PARTS), help="parts")
    main(**vars(parser.parse_args()))
