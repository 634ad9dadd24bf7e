"""Intervals of what is read from scores, numbers and documents of queries, drawn and counted by a meter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from scipy import stats

import assay.metrics as m
from assay.meter import Meter
from assay.meter.resampling.intervals import closed_forms
from assay.metrics.base import Metric
from assay.stats.intervals import Array
from benchmarks.coverage.rows import SIZES, Found, Random, Row


def of_meter(meter: Meter, draw: Callable[[Random, int], tuple[Array, ...]], random: Random, size: int) -> Found:
    fresh = meter.fresh()
    fresh.update(*(torch.from_numpy(np.ascontiguousarray(each)) for each in draw(random, size)))
    found = closed_forms(fresh)
    return {name: (found[name].lower, found[name].upper) if name in found else None for name in meter.metrics}


def normal_scores(
    prevalence: float, shift: float, spread: float, found: float, random: Random, size: int
) -> tuple[Array, ...]:
    """Normal scores; a share of the positives is like negatives."""
    y = random.random(size) < prevalence
    moved = y & (random.random(size) < found)
    return stats.norm.cdf(np.where(moved, shift + spread * random.normal(size=size), random.normal(size=size))), y * 1


def area(shift: float, spread: float, found: float) -> float:
    return found * float(stats.norm.cdf(shift / math.hypot(1, spread))) + (1 - found) / 2


@cache
def true_precision(prevalence: float, shift: float, spread: float, found: float) -> float:
    """The average precision of all samples: the mean precision at the scores of positives, by their quantiles."""
    grid = np.linspace(-8, 8 + shift * max(1.0, spread), 200_001)
    recall = found * stats.norm.sf(grid, shift, spread) + (1 - found) * stats.norm.sf(grid)
    precision = prevalence * recall / (prevalence * recall + (1 - prevalence) * stats.norm.sf(grid))
    return float(np.sum(-np.diff(recall) * (precision[1:] + precision[:-1]) / 2))


def score_rows() -> Iterator[Row]:
    meter = Meter(AUROC=m.AUROC(), AveragePrecision=m.AveragePrecision())
    for prevalence, shift, spread, found, least in (
        (0.5, 1.2, 1.0, 1.0, 20),
        (0.05, 2.3, 1.0, 1.0, 100),
        (0.05, 0.9, 2.0, 1.0, 100),
        (0.05, 9.0, 1.0, 0.7, 100),
        (0.005, 2.3, 1.0, 1.0, 1_000),
    ):
        scores = prevalence, shift, spread, found
        truth = {"AUROC": area(*scores[1:]), "AveragePrecision": true_precision(*scores)}
        how = "" if found == 1 else ", 30 % of them like negatives"
        about = f"prevalence {prevalence:g}{how}" + (f", positives spread {spread:g} times as far" * (spread != 1))
        sizes = tuple(size for size in SIZES if size >= least)
        yield Row(about, partial(of_meter, meter, partial(normal_scores, *scores)), truth, sizes, 4)


def of_classes(shares: tuple[float, ...], random: Random, size: int) -> tuple[Array, ...]:
    """Logits of classes, and the class of each sample."""
    target = random.choice(len(shares), size, p=shares)
    return 1.4 * np.eye(len(shares))[target] + random.normal(size=(size, len(shares))), target


def class_rows() -> Iterator[Row]:
    for shares in ((0.25, 0.25, 0.25, 0.25), (0.4, 0.3, 0.2, 0.1), (0.85, 0.05, 0.05, 0.05)):
        about = f"classes of {', '.join(f'{share:g}' for share in shares)}"
        kinds = {"num_classes": len(shares), "logits": True}
        yield averages(about, partial(of_classes, shares), ("macro", "weighted"), kinds)


def averages(
    about: str, draw: Callable[[Random, int], tuple[Array, ...]], kinds: tuple[str, ...], arguments: dict[str, Any]
) -> Row:
    """Averages of AUROC and average precision, whose true values are those of a million samples."""
    both = m.AUROC, m.AveragePrecision
    names = {f"{metric.__name__}_{kind}": f"{metric.__name__}, {kind}" for metric in both for kind in kinds}
    meter = Meter(**{f"{each.__name__}_{kind}": each(average=kind, **arguments) for each in both for kind in kinds})
    meter.update(*(torch.from_numpy(each) for each in draw(np.random.default_rng(1), 1_000_000)))
    truth = {names[name]: float(value) for name, value in meter.compute().items()}

    def intervals(random: Random, size: int) -> Found:
        return {names[name]: ends for name, ends in of_meter(meter, draw, random, size).items()}

    return Row(about, intervals, truth, SIZES[1:3], 8)


def of_labels(shared: float, random: Random, size: int) -> tuple[Array, ...]:
    """Logits of three labels of different shares, which depend on each other, and whether samples have them."""
    alone = math.sqrt(1 - shared**2)
    target = shared * random.normal(size=(size, 1)) + alone * random.normal(size=(size, 3)) > (0, 0.8, 1.3)
    noise = shared * random.normal(size=(size, 1)) + alone * random.normal(size=(size, 3))
    return 1.2 * target + noise, target.astype(int)


def label_rows() -> Iterator[Row]:
    for shared in (0.0, 0.8):
        about = f"3 labels, {'independent' if not shared else 'which depend on each other'}"
        yield averages(about, partial(of_labels, shared), ("micro", "macro"), {"num_labels": 3, "logits": True})


def calibrated(gap: float, random: Random, size: int) -> tuple[Array, ...]:
    p = random.random(size)
    return p, (random.random(size) < np.clip(p + gap * np.sin(6 * p), 0, 1)).astype(int)


def true_calibration(gap: float, bins: int, power: int) -> float:
    grid = (np.arange(bins * 2000) + 0.5) / (bins * 2000)
    gaps = (np.clip(grid + gap * np.sin(6 * grid), 0, 1) - grid).reshape(bins, -1).mean(1)
    return float(np.mean(np.abs(gaps) ** power) ** (1 / power))


def calibration_rows() -> Iterator[Row]:
    bins = 15
    meter = Meter(l1=m.CalibrationError(n_bins=bins), l2=m.CalibrationError(n_bins=bins, norm="l2"))
    names = {"l1": "CalibrationError", "l2": "CalibrationError, norm l2"}
    for gap in (0.0, 0.05, 0.2):
        truth = {names[name]: true_calibration(gap, bins, power) for name, power in (("l1", 1), ("l2", 2))}

        def draw(random: Random, size: int, gap: float = gap) -> Found:
            found = of_meter(meter, partial(calibrated, gap), random, size)
            return {names[name]: ends for name, ends in found.items()}

        yield Row(f"right as often as said, {gap:g} off at most", draw, truth, SIZES[1:], 3)


def pairs(rho: float, kind: str, random: Random, size: int) -> tuple[Array, ...]:
    """Pairs of correlated numbers: normal, with heavy tails (Student's t with 5 degrees), skewed, or rounded."""
    x, y = random.normal(size=(2, size))
    y = rho * x + math.sqrt(1 - rho**2) * y
    if kind == "t(5)":
        tail = np.sqrt(random.chisquare(5, size) / 5)
        x, y = x / tail, y / tail
    if kind == "lognormal":
        x, y = np.exp(x), np.exp(y)
    if kind == "in 5 steps":
        x, y = np.clip(np.rint(x), -2, 2), np.clip(np.rint(y), -2, 2)
    return x, y


@cache
def correlations(rho: float, kind: str) -> dict[str, float]:
    """The true rank correlations: known, or of many pairs."""
    truth = {"SpearmanCorrCoef": 6 / math.pi * math.asin(rho / 2), "KendallRankCorrCoef": 2 / math.pi * math.asin(rho)}
    many = pairs(rho, kind, np.random.default_rng(1), 1_000_000)
    if kind == "t(5)":  # the t copula has the same tau
        truth["SpearmanCorrCoef"] = float(stats.spearmanr(*many).statistic)
    if kind == "in 5 steps":
        truth["SpearmanCorrCoef"] = float(stats.spearmanr(*many).statistic)
        truth["KendallRankCorrCoef"] = float(stats.kendalltau(*many).statistic)
    return truth


def correlation_rows() -> Iterator[Row]:
    for kind in ("normal", "t(5)", "lognormal", "in 5 steps"):
        for rho in (0.0, 0.9):
            truth = correlations(rho, kind)
            meter = Meter(**{name: getattr(m, name)() for name in truth})
            draw = partial(of_meter, meter, partial(pairs, rho, kind))
            yield Row(f"{kind}, correlation {rho:g}", draw, truth, SIZES[:4], 4)


def errors(random: Random, size: int) -> tuple[Array, ...]:
    target = random.lognormal(size=size)
    return target * np.exp(random.standard_t(4, size) / 5), target


def quantile_rows() -> Iterator[Row]:
    for q in (0.1, 0.5, 0.9, 0.99):
        meter = Meter(Quantile=m.Quantile(q=q))
        draw = partial(of_meter, meter, lambda random, size: (random.lognormal(size=size),))
        yield Row(f"lognormal, q = {q:g}", draw, {"Quantile": float(stats.lognorm.ppf(q, 1))}, cost=2)
    meter = Meter(
        MedianAbsoluteError=m.MedianAbsoluteError(), MedianAbsolutePercentageError=m.MedianAbsolutePercentageError()
    )
    preds, target = errors(np.random.default_rng(1), 8_000_000)
    truth = {
        "MedianAbsoluteError": float(np.median(np.abs(preds - target))),
        "MedianAbsolutePercentageError": float(np.median(np.abs(preds - target) / target)),
    }
    yield Row("errors with heavy tails, in proportion", partial(of_meter, meter, errors), truth, cost=2)


QUERIES = (
    "ExpectedReciprocalRank",
    "RankBiasedPrecision",
    "RetrievalAUROC",
    "RetrievalFallOut",
    "RetrievalHitRate",
    "RetrievalMAP",
    "RetrievalMRR",
    "RetrievalNormalizedDCG",
    "RetrievalPrecision",
    "RetrievalRPrecision",
    "RetrievalRecall",
)
DOCUMENTS = 10


def queries(random: Random, size: int) -> tuple[Array, Array, Array]:
    """Queries of ten documents that differ in how hard they are; some relevant ones in each."""
    target = (random.random((size, DOCUMENTS)) < 0.3).astype(int)
    target[:, 0], target[:, 1] = 1, 0
    scores = target * random.normal(1, 0.7, (size, 1)) + random.normal(size=(size, DOCUMENTS))
    return scores.ravel(), target.ravel(), np.repeat(np.arange(size), DOCUMENTS)


def retrieval_metrics() -> dict[str, Metric]:
    top = {"RetrievalFallOut": 3, "RetrievalHitRate": 1, "RetrievalPrecision": 3, "RetrievalRecall": 3}
    return {name: getattr(m, name)(**({"top_k": top[name]} if name in top else {})) for name in QUERIES}


def of_queries(random: Random, size: int) -> Found:
    meter = Meter(**retrieval_metrics())
    scores, target, indexes = (torch.from_numpy(each) for each in queries(random, size))
    meter.update(scores, target, indexes=indexes)
    found = closed_forms(meter)
    return {name: (found[name].lower, found[name].upper) if name in found else None for name in meter.metrics}


def retrieval_rows() -> Iterator[Row]:
    meter = Meter(**retrieval_metrics())
    scores, target, indexes = (torch.from_numpy(each) for each in queries(np.random.default_rng(1), 200_000))
    meter.update(scores, target, indexes=indexes)
    truth = {name: float(value) for name, value in meter.compute().items()}
    yield Row("queries of 10 documents", of_queries, truth, SIZES[:4], 12)


def events(random: Random, size: int) -> tuple[Array, Array]:
    """Rain and its forecast."""
    rain = random.normal(size=size)
    return np.exp(0.8 * rain + 0.6 * random.normal(size=size)), np.exp(rain)


def tags(random: Random, size: int) -> tuple[Array, Array]:
    """Three tags a sample, each right in nine of ten."""
    target = random.integers(0, 2, (size, 3))
    return np.where(random.random((size, 3)) < 0.9, target, 1 - target), target


def event_rows() -> Iterator[Row]:
    for threshold in (1.0, 8.0):
        preds, target = (each >= threshold for each in events(np.random.default_rng(1), 8_000_000))
        truth = {"CriticalSuccessIndex": float((preds & target).sum() / (preds | target).sum())}
        meter = Meter(CriticalSuccessIndex=m.CriticalSuccessIndex(threshold=threshold))
        reason = "" if threshold == 1 else "few events: a share of so few takes few values"
        yield Row(f"rain above {threshold:g}", partial(of_meter, meter, events), truth, cost=2, reason=reason)
    meter = Meter(ExactMatch=m.ExactMatch(num_labels=3))
    yield Row("three tags, each 0.9 right", partial(of_meter, meter, tags), {"ExactMatch": 0.9**3}, cost=2)


def rows() -> Iterator[Row]:
    of_rankings = score_rows, class_rows, label_rows
    for each in (*of_rankings, calibration_rows, correlation_rows, quantile_rows, retrieval_rows, event_rows):
        yield from each()
