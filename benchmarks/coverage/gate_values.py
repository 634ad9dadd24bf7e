"""Rules about values that do not hold: means, shares, labels, scores, numbers and queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
from scipy import stats

import assay.metrics as m
from assay.metrics.base import Metric
from assay.report import Report
from assay.stats.intervals import Array
from benchmarks.coverage.gate_reports import evaluated, mean_report, metric_report
from benchmarks.coverage.gate_rule import SIZES, UNSEEN, Rule, absolute
from benchmarks.coverage.labels import PRIORS, binary, matrix, value_of
from benchmarks.coverage.rows import Random
from benchmarks.coverage.scores import (
    area,
    calibrated,
    errors,
    pairs,
    queries,
    true_calibration,
    true_precision,
)


def of_share(p: float, random: Random, n: int) -> Report:
    return mean_report(random.random(n) < p)


def of_weighted_share(random: Random, n: int) -> Report:
    return mean_report((random.random(n) < 0.9).astype(float), weights=random.exponential(size=n))


NUMBERS: dict[str, tuple[Callable[[Random, int], Array], float]] = {
    "normal": (lambda random, n: random.normal(1, 1, n), 1.0),
    "exponential": (lambda random, n: random.exponential(size=n), 1.0),
    "lognormal": (lambda random, n: random.lognormal(size=n), math.exp(0.5)),
    "cross-entropy of a good model": (lambda random, n: np.logaddexp(0, -random.normal(3, 2, n)), 0.1820085),
    "1 % are 1, others 0.1 at most": (
        lambda random, n: np.where(random.random(n) < 0.01, 1, 0.1 * random.random(n)),
        0.01 + 0.99 * 0.05,
    ),
}


def of_numbers(name: str, random: Random, n: int) -> Report:
    return mean_report(NUMBERS[name][0](random, n), higher_is_better=False)


def of_root(normal: bool, random: Random, n: int) -> Report:
    values = random.normal(size=n) if normal else random.standard_t(5, n)
    return mean_report(values**2, root=True, higher_is_better=False)


def means() -> Iterator[Rule]:
    for p in (0.5, 0.95, 0.99):
        yield Rule("--min", f"accuracy of {p:g}", partial(absolute, "min", p, partial(of_share, p)))
    yield Rule("--max", "error rate of 0.01", partial(absolute, "max", 0.01, partial(of_share, 0.01)))
    yield Rule("--min", "weighted accuracy of 0.9", partial(absolute, "min", 0.9, of_weighted_share))
    for name, (_, truth) in NUMBERS.items():
        passes, reason = partial(absolute, "max", truth, partial(of_numbers, name)), UNSEEN * name.startswith("1 %")
        yield Rule("--max", f"mean, {name}", passes, reason=reason)
    yield Rule(
        "--min",
        "mean, exponential",
        partial(absolute, "min", 1.0, lambda random, n: mean_report(random.exponential(size=n))),
    )
    yield Rule("--max", "RMSE, t(5) errors", partial(absolute, "max", math.sqrt(5 / 3), partial(of_root, False)))
    yield Rule("--max", "RMSE, normal errors", partial(absolute, "max", 1.0, partial(of_root, True)))


def labels(chances: Array, metric: Metric, random: Random, n: int) -> Report:
    """Targets and predictions by the chances of a confusion matrix."""
    target, preds = np.divmod(random.choice(chances.size, n, p=chances.ravel()), len(chances))
    return metric_report(metric, preds, target)


def label_rules() -> Iterator[Rule]:
    for prevalence in (0.5, 0.05):
        chances = binary(prevalence, 0.8, 0.95)
        for metric in (m.Precision(), m.Recall(), m.F1Score(), m.JaccardIndex()):
            about = f"{type(metric).__name__}, prevalence {prevalence:g}"
            draw = partial(labels, chances, metric)
            yield Rule("--min", about, partial(absolute, "min", value_of(metric, chances), draw), SIZES[1:])
    for name in ("3 even classes", "classes of 0.9, 0.07, 0.03"):
        priors = PRIORS[name]
        of = {"num_classes": len(priors)}
        for metric in (
            m.F1Score(average="macro", **of),
            m.MatthewsCorrCoef(**of),
            m.CohenKappa(**of),
            m.BalancedAccuracy(**of),
        ):
            chances = matrix(priors, 0.9)
            about = f"{'macro F1' if isinstance(metric, m.F1Score) else type(metric).__name__}, {name}"
            draw = partial(labels, chances, metric)
            yield Rule("--min", about, partial(absolute, "min", value_of(metric, chances), draw), (100, 1_000))


def of_scores(metric: Metric, found: float, random: Random, positives: int) -> Report:
    """A share of the positives is found surely where that is not 1; 19 negatives to a positive, 57 at least."""
    y = np.arange(positives + max(57, 19 * positives)) < positives
    shift = 1.2 if found == 1 else 9.0
    scores = random.normal(size=len(y)) + shift * (y & (random.random(len(y)) < found))
    return metric_report(metric, stats.norm.cdf(scores / 3), y.astype(int))


def of_precision(random: Random, n: int) -> Report:
    y = random.random(n) < 0.3
    scores = stats.norm.cdf(random.normal(size=n) + 1.2 * y)
    return metric_report(m.AveragePrecision(), scores, y.astype(int))


def of_pairs(metric: Metric, kind: str, random: Random, n: int) -> Report:
    return metric_report(metric, *pairs(0.9, kind, random, n))


def of_correlation(random: Random, n: int) -> Report:
    return evaluated(m.PearsonCorrCoef(), *pairs(0.9, "normal", random, n))


def of_determination(random: Random, n: int) -> Report:
    target = random.normal(size=n)
    return evaluated(m.R2Score(), 0.8 * target + 0.5 * random.normal(size=n), target)


def of_calibration(random: Random, n: int) -> Report:
    return metric_report(m.CalibrationError(n_bins=15), *calibrated(0.2, random, n))


def of_errors(metric: Metric, random: Random, n: int) -> Report:
    return metric_report(metric, *errors(random, n))


@cache
def true_median() -> float:
    preds, target = errors(np.random.default_rng(1), 4_000_000)
    return float(np.median(np.abs(preds - target)))


def of_queries(metric: Metric, random: Random, n: int) -> Report:
    scores, target, indexes = queries(random, n)
    return metric_report(metric, scores, target, indexes=indexes)


@cache
def true_of_queries(metric: Metric) -> float:
    return of_queries(metric, np.random.default_rng(1), 200_000).sections[0].values[0].value


def score_rules() -> Iterator[Rule]:
    for found in (1.0, 0.7):
        how = "" if found == 1 else ", 30 % of them like negatives"
        truth = area(1.2 if found == 1 else 9.0, 1, found)
        draw = partial(of_scores, m.AUROC(), found)
        yield Rule(
            "--min", f"AUROC, n positives of 20 n{how}", partial(absolute, "min", truth, draw), (3, 10, 30, 100), 2
        )
    truth = true_precision(0.3, 1.2, 1.0, 1.0)
    about, passes = "average precision, 30 % positives", partial(absolute, "min", truth, of_precision)
    yield Rule("--min", about, passes, SIZES[1:], 2)
    spearman = 6 / math.pi * math.asin(0.45)
    draw = partial(of_pairs, m.SpearmanCorrCoef(), "normal")
    yield Rule("--min", "Spearman's correlation of 0.9", partial(absolute, "min", spearman, draw), cost=2)
    draw = partial(of_pairs, m.KendallRankCorrCoef(), "lognormal")
    yield Rule("--min", "Kendall's correlation", partial(absolute, "min", 2 / math.pi * math.asin(0.9), draw), cost=2)
    truth = true_calibration(0.2, 15, 1)
    yield Rule("--max", "calibration error", partial(absolute, "max", truth, of_calibration), SIZES[2:], 2)
    draw = lambda random, n: metric_report(m.Quantile(q=0.9), random.lognormal(size=n))  # noqa: E731
    truth = float(stats.lognorm.ppf(0.9, 1))
    yield Rule("--max", "quantile 0.9, lognormal", partial(absolute, "max", truth, draw), cost=2)
    draw = partial(of_errors, m.MedianAbsoluteError())
    yield Rule("--max", "median absolute error", partial(absolute, "max", true_median(), draw), cost=2)
    for metric in (m.RetrievalMRR(), m.RetrievalNormalizedDCG()):
        passes = partial(absolute, "min", true_of_queries(metric), partial(of_queries, metric))
        yield Rule("--min", f"{type(metric).__name__}, n queries of 10 documents", passes, SIZES[1:3], 4)
    yield Rule(
        "--min", "Pearson's correlation of 0.9, resampled", partial(absolute, "min", 0.9, of_correlation), SIZES[1:3], 8
    )
    yield Rule("--min", "R², resampled", partial(absolute, "min", 0.71, of_determination), SIZES[1:3], 8)
