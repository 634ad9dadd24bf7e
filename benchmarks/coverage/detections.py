"""Intervals of mean average precision, by the bootstrap of groups of images.

Detections are matched within an image, so matches do not depend on which images were drawn: each set is matched once,
and a replicate weights the images. This is what `assay.meter.resampling.intervals.bootstrap` does, without its meters:
ten sets a second instead of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from assay.encode.boxes import DETECTIONS, TRUTHS
from assay.meter.resampling.replicates import ConfidenceInterval, replicate_interval
from assay.metrics.detection.base import ImageBoxes
from assay.metrics.detection.matching import matches
from assay.stats.bootstrap import (
    BIAS_OF_PAIRS,
    paired_bootstrap,
    poisson_draws,
    replicate_error,
    replicate_skewness,
)
from assay.stats.intervals import Array
from assay.stats.sampling import groups_of
from assay.tally.stores.ragged_store import RaggedArrays
from benchmarks.coverage.gate_rule import MOST
from benchmarks.coverage.rows import Cell, Random

SIZES = (30, 100, 300)
IOUS, RECALLS = np.linspace(0.5, 0.95, 10), np.linspace(0, 1, 101)
MOST_DETECTIONS = 100
DRAWS = 500
DROPS, DROP_SIZES, WORSE = 150, (100,), 0.05
TRUTH = 200_000
"""Images of which the true values are computed."""
NAMES = ("map", "map_50", "mar_100")


@dataclass(frozen=True)
class Source:
    """Where images come from.

    Attributes:
        about: what is said of them.
        classes: the share of each class among objects.
        objects: how many an image has on average.
        found: the share of objects that are detected.
        extra: how many wrong detections an image has on average.
        moved: how far the sides of detected boxes are off, in sizes of the object.
        shared: how much images differ in how many objects they have and how well these are found; 0 not at all.
    """

    about: str
    classes: tuple[float, ...] = (0.6, 0.3, 0.1)
    objects: float = 4.0
    found: float = 0.8
    extra: float = 1.5
    moved: float = 0.06
    shared: float = 0.0


SOURCES = (
    Source("one class", (1.0,)),
    Source("3 classes of 0.6, 0.3, 0.1"),
    Source("3 classes, a good detector", found=0.97, extra=0.3, moved=0.03),
    Source("3 classes, images differ in difficulty and number of objects", shared=1.0),
    Source("10 classes of 0.4 to 0.02", (0.4, 0.2, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02)),
)


def images(source: Source, random: Random, n: int) -> ImageBoxes:
    """Images with objects and detections."""
    hardness = source.shared * random.normal(size=n)
    objects = random.poisson(source.objects * np.exp(hardness - source.shared**2 / 2))
    image = np.repeat(np.arange(n), objects)
    labels = random.choice(len(source.classes), len(image), p=source.classes)
    corners, sides = 400 * random.random((len(image), 2)), 30 + 100 * random.random((len(image), 2))
    boxes = np.hstack([corners, corners + sides])
    odds = source.found / (1 - source.found) * np.exp(-hardness[image])
    hit = random.random(len(image)) < odds / (1 + odds)
    moved = boxes[hit] + source.moved * np.tile(sides[hit], 2) * random.normal(size=(hit.sum(), 4))
    wrong = np.repeat(np.arange(n), random.poisson(source.extra, n))
    corners, sides = 400 * random.random((len(wrong), 2)), 30 + 100 * random.random((len(wrong), 2))
    places = np.concatenate([image[hit], wrong])
    order = np.argsort(places, kind="stable")
    scores = np.concatenate([random.normal(1.0, 1.0, len(moved)), random.normal(-0.7, 1.0, len(wrong))])
    found = {
        "boxes": np.vstack([moved, np.hstack([corners, corners + sides])])[order],
        "scores": 1 / (1 + np.exp(-scores[order])),
        "labels": np.concatenate([labels[hit], random.choice(len(source.classes), len(wrong))])[order],
    }
    true = {"boxes": boxes, "labels": labels, "iscrowd": np.zeros_like(labels), "area": np.full(len(labels), np.nan)}
    lengths = {DETECTIONS: np.bincount(places, minlength=n), TRUTHS: objects}
    return ImageBoxes(RaggedArrays({DETECTIONS: found, TRUTHS: true}, lengths), "xyxy")


def values_of(data: ImageBoxes, classes: int, weights: Array) -> dict[str, Array]:
    """The values where images count as often as each row of the weights says."""
    labels = {group: data.field(group, "labels") for group in (DETECTIONS, TRUTHS)}
    found = matches(data, "bbox", labels, classes, MOST_DETECTIONS, IOUS)
    order = np.lexsort((-data.field(DETECTIONS, "scores"), labels[DETECTIONS]))
    image, right = data.image(DETECTIONS)[order], found.flags[0] == 1
    cells = data.image(TRUTHS) * classes + labels[TRUTHS]
    positives = weights @ np.bincount(cells, minlength=len(data.arrays) * classes).reshape(-1, classes)
    starts = np.searchsorted(found.labels, np.arange(classes + 1))
    precision, recall = (np.full((len(IOUS), classes, len(weights)), np.nan) for _ in range(2))
    for k in range(classes):
        of_class = slice(starts[k], starts[k + 1])
        known = positives[:, k] > 0
        drawn, of_known = weights[known][:, image[of_class]], positives[known, k]
        counted, reached = np.maximum(np.cumsum(drawn, 1), 1), recalls_reached(of_known)
        for t in range(len(IOUS)):
            hits = np.cumsum(drawn * right[t, of_class], 1)
            highest = np.maximum.accumulate((hits / counted)[:, ::-1], 1)[:, ::-1]
            steps = np.diff(np.take_along_axis(reached, hits, 1), axis=1, prepend=0)
            precision[t, k, known] = (highest * steps).sum(1) / len(RECALLS)
            recall[t, k, known] = hits[:, -1] / of_known if hits.shape[1] else 0.0
    with np.errstate(all="ignore"):
        means = np.nanmean(precision, (0, 1)), np.nanmean(precision[0], 0), np.nanmean(recall, (0, 1))
    return dict(zip(NAMES, means, strict=True))


def recalls_reached(positives: Array) -> Array:
    """How many of the recalls are reached with 0, 1, ... hits, a row for each number of positives."""
    different, rows = np.unique(positives, return_inverse=True)
    return np.searchsorted(RECALLS, np.arange(different.max(initial=0) + 1) / different[:, None], "right")[rows]


Ends = tuple[float, float, float]
"""The ends of an interval, and the lower one by which a gate decides."""


def intervals(source: Source, random: Random, n: int) -> dict[str, Ends | None]:
    """The intervals from 400 resamples of 128 groups."""
    _, codes = np.unique(groups_of(np.arange(n), int(random.integers(1 << 30)), 128), return_inverse=True)
    count = int(codes.max()) + 1
    draws = np.concatenate([np.ones((1, count), int), poisson_draws(400, count, int(random.integers(1 << 30)))])
    found: dict[str, Ends | None] = {}
    for name, (value, *others) in values_of(images(source, random, n), len(source.classes), draws[:, codes]).items():
        interval = replicate_interval(float(value), others, 0.95, count, biased_upwards=True)
        known = interval.within((0.0, 1.0)) if isinstance(interval, ConfidenceInterval) else None
        found[name] = None if known is None or known.safe is None else (known.lower, known.upper, known.safe[0])
    return found


@cache
def truths(source: Source) -> Mapping[str, float]:
    """The values of so many images that their error is small beside that of 300."""
    data = images(source, np.random.default_rng(1), TRUTH)
    found = values_of(data, len(source.classes), np.ones((1, TRUTH), int))
    return {name: float(each[0]) for name, each in found.items()}


def cells(source: Source, n: int, draws: int) -> dict[str, tuple[str, str]]:
    """By name, how often intervals cover, and how often a rule ``--min`` with the true value passes."""
    random, found = np.random.default_rng(n), {name: list[Ends]() for name in NAMES}
    for _ in range(draws):
        for name, each in intervals(source, random, n).items():
            found[name] += [] if each is None else [each]
    shown = {}
    for name, truth in truths(source).items():
        lower, upper, safe = np.array(found[name]).reshape(-1, 3).T
        below, above, passed = (float(np.mean(each)) for each in (upper < truth, lower > truth, safe > truth))
        cell = Cell(1 - below - above, below, above, 1 - len(lower) / draws, len(lower))
        mark = " †" if passed > MOST + 2 * math.sqrt(MOST * (1 - MOST) / len(lower)) else ""
        shown[name] = str(cell), f"{100 * passed:.1f}{mark}"
    return shown


def drops(source: Source, n: int, draws: int) -> dict[str, float]:
    """By name, how often ``--max-drop`` with the true drop passes, of a detector that finds 5 of 100 objects fewer.

    The lower end is that of gates, see `assay.report.inference.tests_and_intervals.difference`.
    """
    other, passed = replace(source, found=source.found - WORSE), dict.fromkeys(NAMES, 0)
    before, now = truths(source), truths(other)
    for k in range(draws):
        _, codes = np.unique(groups_of(np.arange(n), k, 128), return_inverse=True)
        count = int(codes.max()) + 1
        drawn = poisson_draws(400, count, k)
        weights = np.concatenate([np.ones((1, count), int), drawn])[:, codes]
        first, second = (
            values_of(images(each, np.random.default_rng([k, n]), n), len(source.classes), weights)
            for each in (source, other)
        )
        for name in NAMES:
            change, others = second[name][0] - first[name][0], second[name][1:] - first[name][1:]
            known = np.isfinite(others)
            skewness = replicate_skewness(others[known], drawn[known])
            lower, _, _ = paired_bootstrap(float(change), others[known], count, skewness=skewness)
            error, _ = replicate_error(others[known], count)
            passed[name] += lower - BIAS_OF_PAIRS * error > now[name] - before[name]
    return {name: each / draws for name, each in passed.items()}


def table(share: float) -> Iterator[str]:
    """The lines of the table."""
    draws = max(20, round(DRAWS * share))
    yield f"| of | images | {' | '.join(f'n = {n}' for n in SIZES)} | {' | '.join(f'gate, {n}' for n in SIZES)} |"
    yield "|---|---|" + "--:|" * 2 * len(SIZES)
    for source in SOURCES:
        found = [cells(source, n, draws) for n in SIZES]
        for name in NAMES:
            line = " | ".join(each[name][k] for k in range(2) for each in found)
            yield f"| `{name}` | {source.about} | {line} |"
    yield f"\n| a drop that is true passes | images | {' | '.join(f'`{name}`' for name in NAMES)} |"
    yield f"|---|--:|{'--:|' * len(NAMES)}"
    for source in (SOURCES[k] for k in (1, 2, 4)):
        for n in DROP_SIZES:
            shares = drops(source, n, max(20, round(DROPS * share))).values()
            yield f"| {source.about} | {n} | {' | '.join(f'{100 * each:.1f}' for each in shares)} |"
