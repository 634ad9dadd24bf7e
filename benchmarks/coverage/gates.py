"""Rules of gates that do not hold, with every kind of rule and of metric: how often they pass.

In each setting the bound is the true value and a hair beyond, which is the hardest case: a model that is clearly unfit
passes less often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy import stats

import assay.metrics as m
from assay.metrics.base import Metric
from assay.report import Report, gate
from assay.stats.intervals import Array
from benchmarks.coverage.gate_reports import evaluated, mean_report, metric_report, resampled
from benchmarks.coverage.labels import PRIORS, binary, matrix, value_of
from benchmarks.coverage.rows import Random
from benchmarks.coverage.samples import codes_of, shared
from benchmarks.coverage.scores import (
    area,
    calibrated,
    errors,
    pairs,
    queries,
    true_calibration,
    true_precision,
)
from benchmarks.paired_coverage import auroc, classifiers, macro_f1

MOST = 0.025
SIZES = (10, 30, 100, 1_000)
HAIR = 1e-6
Draw = Callable[[Random, int], Report]
PairOf = Callable[[Random, int], tuple[Report, Report]]


@dataclass(frozen=True)
class Rule:
    """A rule that does not hold, of samples of some kind.

    Attributes:
        rule: as on the command line, without numbers.
        about: what is measured, and on which samples.
        passes: whether the rule passes for as many samples that are drawn.
        sizes: how many samples there are.
        cost: how many times fewer sets are drawn.
    """

    rule: str
    about: str
    passes: Callable[[Random, int], bool]
    sizes: tuple[int, ...] = SIZES
    cost: float = 1.0

    def measured(self, size: int, draws: int) -> tuple[float, bool]:
        """The share that passes, and whether it is larger than 2.5 % by more than two standard errors."""
        random, draws = np.random.default_rng(size), max(20, round(draws / self.cost))
        share = sum(self.passes(random, size) for _ in range(draws)) / draws
        return share, share > MOST + 2 * math.sqrt(MOST * (1 - MOST) / draws)


def absolute(kind: str, truth: float, draw: Draw, random: Random, size: int) -> bool:
    bound = truth + HAIR if kind in ("min", "worst-slice") else truth - HAIR
    return gate(draw(random, size), {kind: {"x": bound}}).outcome == "pass"


def relative(kind: str, change: float, draw: PairOf, random: Random, size: int) -> bool:
    """Whether a rule about a change passes; ``change`` is the true drop, rise or ratio."""
    before, after = draw(random, size)
    bound = change + HAIR if kind == "min-ratio" else change - HAIR
    name = "x[*]" if after.sections[0].slices else "x"
    return gate(after, {kind: {name: bound}}, before).outcome == "pass"


# ------------------------------------------------------------------------------------------------ means and shares


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
        yield Rule("--max", f"mean, {name}", partial(absolute, "max", truth, partial(of_numbers, name)))
    yield Rule(
        "--min",
        "mean, exponential",
        partial(absolute, "min", 1.0, lambda random, n: mean_report(random.exponential(size=n))),
    )
    yield Rule("--max", "RMSE, t(5) errors", partial(absolute, "max", math.sqrt(5 / 3), partial(of_root, False)))
    yield Rule("--max", "RMSE, normal errors", partial(absolute, "max", 1.0, partial(of_root, True)))


# ------------------------------------------------------------------------------------------------ labels and scores


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
    yield Rule(
        "--min", "average precision, 30 % positives", partial(absolute, "min", truth, of_precision), SIZES[1:], 2
    )
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


# ------------------------------------------------------------------------------------------------ slices


def of_slices(random: Random, n: int) -> Report:
    """Four slices of n samples, one of which is worse than the others."""
    parts = np.repeat(np.arange(4), n)
    return mean_report(random.random(4 * n) < np.where(parts == 0, 0.8, 0.95), parts=parts)


def of_loss_slices(random: Random, n: int) -> Report:
    parts = np.repeat(np.arange(4), n)
    losses = random.exponential(size=4 * n) * np.where(parts == 0, 1.0, 0.5)
    return mean_report(losses, parts=parts, higher_is_better=False)


def of_worse_slice(random: Random, n: int) -> tuple[Report, Report]:
    """The same samples, of which a slice lost 2 %."""
    parts = np.repeat(np.arange(4), n)
    before, after = right_pair(4 * n, np.where(parts == 0, 0.02, 0.0), random)
    return mean_report(before, parts=parts), mean_report(after, parts=parts)


def slice_rules() -> Iterator[Rule]:
    sizes = SIZES[1:]
    yield Rule(
        "--worst-slice",
        "accuracy, one of four slices of n is at the bound",
        partial(absolute, "worst-slice", 0.8, of_slices),
        sizes,
        2,
    )
    passes = partial(absolute, "worst-slice-max", 1.0, of_loss_slices)
    yield Rule("--worst-slice-max", "exponential loss, likewise", passes, sizes, 2)
    passes = partial(relative, "max-drop", 0.02, of_worse_slice)
    yield Rule('--max-drop "x[*]"', "accuracy, one of four slices of n lost 0.02", passes, sizes, 4)


# ------------------------------------------------------------------------------------------------ changes


def right_pair(n: int, drop: float | Array, random: Random, differing: float = 0.1) -> tuple[Array, Array]:
    """Whether two models are right, of which the second is worse by a drop; some samples differ besides."""
    u, agree = random.random(n), random.random(n) < 0.7
    lost, won = u < differing / 2 + drop, u > 1 - differing / 2
    return np.where(lost, True, np.where(won, False, agree)), np.where(lost, False, np.where(won, True, agree))


def of_drop(drop: float, differing: float, paired: bool, random: Random, n: int) -> tuple[Report, Report]:
    before, after = right_pair(n, drop, random, differing)
    if not paired:
        after = right_pair(n, drop, random, differing)[1]
    return mean_report(before), mean_report(after, first=0 if paired else n)


def of_rise(paired: bool, root: bool, random: Random, n: int) -> tuple[Report, Report]:
    """Losses with a long tail, of which the second model's are 1.1 times as large on average."""
    hard = random.exponential(size=n)
    before, after = hard * random.exponential(size=n), 1.1 * hard * random.exponential(size=n)
    if not paired:
        after = 1.1 * random.exponential(size=n) * random.exponential(size=n)
    first = 0 if paired else n
    return tuple(mean_report(x, root=root, higher_is_better=False, first=k) for x, k in ((before, 0), (after, first)))  # type: ignore[return-value]


def of_rare_rise(random: Random, n: int) -> tuple[Report, Report]:
    """Losses of which one in fifty is larger by 1, and the others hardly change."""
    before = random.random(n)
    after = before + 0.001 * random.normal(size=n) + (random.random(n) < 0.02)
    return mean_report(before, higher_is_better=False), mean_report(after, higher_is_better=False)


def of_f1(random: Random, n: int) -> tuple[Report, Report]:
    """Of two models the second finds fewer of the positives, and both share most of their mistakes."""
    target, u = random.random(n) < 0.3, random.random(n)
    found = [np.where(target, u < recall, u < 0.05).astype(int) for recall in (0.8, 0.75)]
    return tuple(metric_report(m.F1Score(), preds, target.astype(int)) for preds in found)  # type: ignore[return-value]


F1_DROP = 2 * 0.24 / (0.3 + 0.24 + 0.035) - 2 * 0.225 / (0.3 + 0.225 + 0.035)


def of_half(paired: bool, random: Random, n: int) -> tuple[Report, Report]:
    """The baseline is right on half; the new model loses 2 % of those and gains none."""
    before = random.random(n) < 0.5
    after = before & (random.random(n) < 0.98)
    if not paired:
        after = random.random(n) < 0.49
    return mean_report(before), mean_report(after, first=0 if paired else n)


SKILLS = (1.4, 1.3)


@cache
def true_drop(measure: Callable[..., Array]) -> float:
    (target, first), (_, second) = classifiers(np.random.default_rng(5), 1_000_000, SKILLS)
    ones = np.ones((1, len(target)))
    return float((measure(ones, target, first) - measure(ones, target, second))[0])


def of_models(measure: Callable[..., Array], random: Random, n: int) -> tuple[Report, Report]:
    (target, first), (_, second) = classifiers(random, n, SKILLS)
    return resampled(measure, target, first), resampled(measure, target, second)


LOST = 0.02


def of_lost_positives(random: Random, n: int) -> tuple[Report, Report]:
    """Half of the samples are positives, all above the negatives, of which the second model loses one in fifty."""
    target = (np.arange(n) % 2).astype(int)  # class 0 is the positive one
    scores = np.where(target == 0, 10.0, 0.0) + random.random(n)
    lost = (target == 0) & (random.random(n) < LOST)
    logits = [np.stack([each, np.zeros(n)], 1) for each in (scores, np.where(lost, scores - 20, scores))]
    return resampled(auroc, target, logits[0]), resampled(auroc, target, logits[1])


def change_rules() -> Iterator[Rule]:
    for drop, differing in ((0.01, 0.0), (0.02, 0.1)):
        draw = partial(of_drop, drop, differing, True)
        about = f"accuracy, a drop of {drop:g}, {100 * differing:g} % differ besides"
        yield Rule("--max-drop", about, partial(relative, "max-drop", drop, draw))
    draw = partial(of_drop, 0.02, 0.1, False)
    yield Rule("--max-drop", "accuracy of other samples", partial(relative, "max-drop", 0.02, draw))
    yield Rule("--max-rise", "loss with a long tail", partial(relative, "max-rise", 0.1, partial(of_rise, True, False)))
    draw = partial(of_rise, False, False)
    yield Rule("--max-rise", "the same, other samples", partial(relative, "max-rise", 0.1, draw))
    root = math.sqrt(1.1) - 1
    yield Rule("--max-rise", "root of that loss", partial(relative, "max-rise", root, partial(of_rise, True, True)))
    yield Rule("--max-rise", "loss, one in fifty larger by 1", partial(relative, "max-rise", 0.02, of_rare_rise))
    yield Rule("--max-drop", "F1", partial(relative, "max-drop", F1_DROP, of_f1), SIZES[1:], 2)
    for paired in (True, False):
        about = f"accuracy of 0.5, 2 % of it lost{'' if paired else ', other samples'}"
        yield Rule("--min-ratio", about, partial(relative, "min-ratio", 0.98, partial(of_half, paired)))
    draw = partial(of_rise, True, False)
    yield Rule("--max-ratio", "loss with a long tail", partial(relative, "max-ratio", 1.1, draw))
    for name, measure in (("macro F1", macro_f1), ("AUROC", auroc)):
        passes = partial(relative, "max-drop", true_drop(measure), partial(of_models, measure))
        yield Rule("--max-drop", f"{name}, resampled", passes, (100, 1_000), 4)
    passes = partial(relative, "max-drop", LOST, of_lost_positives)
    yield Rule("--max-drop", "AUROC, resampled, one positive in fifty lost", passes, (100, 1_000), 4)


# ------------------------------------------------------------------------------------------------ clusters


def clustered(how: str, share: float, random: Random, clusters: int) -> Report:
    codes = codes_of(clusters, how, random)
    if share:
        return mean_report(shared(codes, lambda n: random.random(n) < share, random), codes)
    return mean_report(shared(codes, lambda n: random.exponential(size=n), random), codes, higher_is_better=False)


def clustered_pair(drop: float, random: Random, clusters: int) -> tuple[Report, Report]:
    codes = codes_of(clusters, "uneven", random)
    which = shared(codes, lambda n: random.choice(3, n, p=[0.05 + drop, 0.05, 0.9 - drop]), random)
    agree = shared(codes, lambda n: random.random(n) < 0.7, random)
    return (
        mean_report(np.where(which < 2, which == 0, agree), codes),
        mean_report(np.where(which < 2, which == 1, agree), codes),
    )


def clustered_losses(random: Random, clusters: int) -> tuple[Report, Report]:
    codes = codes_of(clusters, "uneven", random)
    before = shared(codes, lambda n: random.exponential(size=n), random)
    after = shared(codes, lambda n: 1.1 * random.exponential(size=n), random)
    return mean_report(before, codes, higher_is_better=False), mean_report(after, codes, higher_is_better=False)


def cluster_rules() -> Iterator[Rule]:
    sizes = (10, 30, 100)
    for how in ("equal", "uneven"):
        for share in (0.7, 0.95):
            about = f"accuracy of {share:g}, n {how} clusters"
            draw = partial(clustered, how, share)
            yield Rule("--min, --cluster", about, partial(absolute, "min", share, draw), sizes, 2)
    draw = partial(clustered, "uneven", 0.0)
    yield Rule("--max, --cluster", "exponential loss, n uneven clusters", partial(absolute, "max", 1.0, draw), sizes, 2)
    draw = partial(clustered_pair, 0.02)
    yield Rule(
        "--max-drop, --cluster", "accuracy, n uneven clusters", partial(relative, "max-drop", 0.02, draw), sizes, 2
    )
    passes = partial(relative, "min-ratio", 0.68 / 0.7, partial(clustered_pair, 0.02))
    yield Rule("--min-ratio, --cluster", "the same", passes, sizes, 2)
    passes = partial(relative, "max-rise", 0.1, clustered_losses)
    yield Rule("--max-rise, --cluster", "exponential loss, n uneven clusters", passes, sizes, 2)


def rules() -> Iterator[Rule]:
    for each in (means, label_rules, score_rules, slice_rules, change_rules, cluster_rules):
        yield from each()


def table(draws: int) -> Iterator[str]:
    """The lines of the table."""
    sizes = (3, *SIZES)
    yield "| rule that does not hold | of | " + " | ".join(f"n = {size:,}" for size in sizes) + " |"
    yield "|---|---|" + "--:|" * len(sizes)
    for rule in rules():
        found = {size: rule.measured(size, draws) for size in rule.sizes}
        cells = (f"{100 * found[size][0]:.1f}{' †' * found[size][1]}" if size in found else "" for size in sizes)
        yield f"| `{rule.rule}` | {rule.about} | {' | '.join(cells)} |"
