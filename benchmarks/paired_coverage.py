"""How good paired intervals of resampled groups are: the tables of docs/compare.md.

Run: ``python -m benchmarks.paired_coverage`` (ten minutes), or a part: ``--only "RMSE, heavy tails"``. Two models are
measured on the same drawn samples, many times, by metrics that are no means over samples. Shown are the standard
error that the replicates say over the one that the differences have, how often intervals of 95 % have the true
difference between their ends, and how often a difference is found (of models that are equally good: the level; of
others: the power), beside the unpaired test and resampled samples. Resampling a group is taking each of its samples
so many times, which is what is done here.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from assay.stats.bootstrap import expanded_tail, paired_bootstrap, poisson_draws
from assay.stats.distributions import normal_cdf, normal_quantile
from assay.stats.sampling import groups_of

Floats: TypeAlias = NDArray[np.float64]
Samples: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
"""The targets, and what a model predicts of them: logits of classes, or errors."""
Measure: TypeAlias = Callable[[Floats, NDArray[Any], NDArray[Any]], Floats]

CLASSES = 4
TRUTH = 1_000_000
"""Samples of which the true difference is measured."""


def macro_f1(weights: Floats, target: NDArray[Any], logits: NDArray[Any]) -> Floats:
    label, scores = logits.argmax(1), []
    for c in range(CLASSES):
        hits, both = weights @ ((target == c) & (label == c)), weights @ ((target == c) * 1.0 + (label == c))
        scores.append(np.divide(2 * hits, both, out=np.zeros_like(hits), where=both > 0))
    return np.mean(scores, 0)


def auroc(weights: Floats, target: NDArray[Any], logits: NDArray[Any]) -> Floats:
    """Of the first class against the others; scores have no ties."""
    order = np.argsort(logits[:, 0] - logits[:, 1:].mean(1))
    positive = target[order] == 0
    above, below = weights[:, order] * positive, np.cumsum(weights[:, order] * ~positive, axis=1)
    return np.asarray((above * below).sum(1) / (above.sum(1) * below[:, -1]))


def calibration_error(weights: Floats, target: NDArray[Any], logits: NDArray[Any]) -> Floats:
    share = 1 / (1 + np.exp(logits[:, 1:].mean(1) - logits[:, 0]))
    bins = np.minimum((10 * share).astype(int), 9)
    gaps = [np.abs(weights @ ((bins == k) * (share - (target == 0)))) for k in range(10)]
    return np.asarray(np.sum(gaps, axis=0) / weights.sum(1))


def rmse(weights: Floats, target: NDArray[Any], errors: NDArray[Any]) -> Floats:
    return np.sqrt(weights @ errors**2 / weights.sum(1))


def median_error(weights: Floats, target: NDArray[Any], errors: NDArray[Any]) -> Floats:
    size, order = np.abs(errors), np.argsort(np.abs(errors))
    total = np.cumsum(weights[:, order], axis=1)
    return np.asarray(size[order][(total >= total[:, -1:] / 2).argmax(1)])


def classifiers(rng: np.random.Generator, n: int, skills: tuple[float, float]) -> list[Samples]:
    """Two models that share most of their noise."""
    target = rng.choice(CLASSES, n, p=[0.4, 0.3, 0.2, 0.1])
    noise = 0.8 * rng.normal(size=(n, CLASSES))
    return [(target, s * np.eye(CLASSES)[target] + noise + 0.6 * rng.normal(size=(n, CLASSES))) for s in skills]


def regressions(rng: np.random.Generator, n: int, skills: tuple[float, float]) -> list[Samples]:
    """Errors with heavy tails, most of them shared."""
    shared = rng.standard_t(4, n)
    return [(shared, s * shared + 0.5 * rng.normal(size=n)) for s in skills]


@dataclass(frozen=True)
class Case:
    """A metric, and two models: equally good ones have the same skill."""

    name: str
    measure: Measure
    draw: Callable[[np.random.Generator, int, tuple[float, float]], list[Samples]]
    skills: tuple[float, float]

    def difference(self, weights: Floats, models: list[Samples]) -> Floats:
        first, second = (self.measure(weights, *each) for each in models)
        return second - first

    def truth(self) -> float:
        if self.skills[0] == self.skills[1]:
            return 0.0
        return float(self.difference(np.ones((1, TRUTH)), self.draw(np.random.default_rng(5), TRUTH, self.skills))[0])


CASES = (
    Case("macro F1", macro_f1, classifiers, (1.3, 1.5)),
    Case("macro F1, equal models", macro_f1, classifiers, (1.4, 1.4)),
    Case("AUROC", auroc, classifiers, (1.3, 1.5)),
    Case("AUROC, equal models", auroc, classifiers, (1.4, 1.4)),
    Case("calibration error", calibration_error, classifiers, (1.0, 1.5)),
    Case("RMSE, heavy tails", rmse, regressions, (1.0, 0.9)),
    Case("median absolute error", median_error, regressions, (1.0, 0.9)),
)


def percentiles(replicates: Floats, groups: int) -> tuple[float, float]:
    ordered = np.sort(replicates)
    beyond = max(1, math.floor((len(ordered) + 1) * expanded_tail(0.95, groups)))
    return float(ordered[beyond - 1]), float(ordered[-beyond])


def bias_corrected(difference: float, replicates: Floats, groups: int) -> tuple[float, float]:
    """Efron's percentiles, moved by the share of replicates below the value."""
    share = (replicates < difference).mean() + (replicates == difference).mean() / 2
    z = normal_quantile(min(max(share, 0.5 / len(replicates)), 1 - 0.5 / len(replicates)))
    tail = normal_quantile(expanded_tail(0.95, groups))
    lower, upper = np.quantile(replicates, [normal_cdf(2 * z + tail), normal_cdf(2 * z - tail)])
    return float(lower), float(upper)


def row(case: Case, n: int, n_resamples: int, most_groups: int, repeats: int) -> str:
    """A row of the table, of so many simulated sets of samples."""
    truth, rng = case.truth(), np.random.default_rng(n)
    errors, sample_errors, differences = [], [], []
    covered: dict[str, int] = dict.fromkeys(("Student", "percentiles", "bias-corrected"), 0)
    detected = unpaired = 0
    for repeat in range(repeats):
        models = case.draw(rng, n, case.skills)
        present, group = np.unique(groups_of(np.arange(n) + repeat * n, repeat, most_groups), return_inverse=True)
        weights = poisson_draws(n_resamples, len(present), repeat)[:, group].astype(float)
        values = [case.measure(np.vstack([np.ones(n), weights]), *each) for each in models]
        difference, replicates = float(values[1][0] - values[0][0]), values[1][1:] - values[0][1:]
        lower, upper, p = paired_bootstrap(difference, replicates, len(present))
        ends = {
            "Student": (lower, upper),
            "percentiles": percentiles(replicates, len(present)),
            "bias-corrected": bias_corrected(difference, replicates, len(present)),
        }
        for name, (low, high) in ends.items():
            covered[name] += low <= truth <= high
        detected += p < 0.05
        unpaired += abs(difference) > 1.96 * math.hypot(*(each[1:].std() for each in values))
        errors.append((replicates.std(ddof=1) * math.sqrt(len(present) / (len(present) - 1))) ** 2)
        if repeat < repeats // 10:
            times = rng.multinomial(n, np.full(n, 1 / n), 200).astype(float)
            sample_errors.append(float(case.difference(times, models).var()))
        differences.append(difference)
    true = float(np.std(differences))
    ratios = [math.sqrt(np.mean(each)) / true for each in (errors, sample_errors)]
    cells = [*(f"{each:.2f}" for each in ratios), *(f"{each / repeats:.3f}" for each in covered.values())]
    cells += [f"{detected / repeats:.2f}", f"{unpaired / repeats:.2f}"]
    return f"| {case.name} | {n} | {' | '.join(cells)} |"


def main(repeats: int, only: str | None) -> None:
    """Print the tables: of all samples, and of slices."""
    for n_resamples, groups, sizes in ((400, 128, (200, 1000)), (100, 32, (50, 200))):
        print(f"\n{n_resamples} draws of {groups} groups\n")
        print("| metric | samples | error | of samples | Student | percentiles | bias-corrected | found | unpaired |")
        print(f"|---|--:|{'--:|' * 7}")
        for case in [case for case in CASES if only in (None, case.name)]:
            for n in sizes:
                print(row(case, n, n_resamples, groups, repeats), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=600)
    parser.add_argument("--only", choices=[case.name for case in CASES], help="one metric")
    main(**vars(parser.parse_args()))
