"""A picture of each metric: its own plot, or how its value changes as predictions get worse step by step.

A family has one function that gives its samples at each step. The value of every step is computed by the metric.
"""

from __future__ import annotations

import html
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, one_hot, pad

from assay import Meter
from assay.meter.plots import plots_of
from assay.metrics.base import Metric, named_numbers
from assay.metrics.samples import examples
from assay.render.plots import Bars
from assay.render.svg import to_svg
from assay.render.text import number

STEPS = 11
Samples: TypeAlias = tuple[Sequence[Any], Mapping[str, Tensor]]
"""What an update is given: arguments, and named columns."""


@dataclass(frozen=True)
class Change:
    """What gets worse: its name on the axis, its values, and the samples at each of them."""

    axis: str
    steps: Sequence[float]
    samples: Callable[[Metric, float], Samples]


def picture(kind: type[Metric]) -> str:
    """The picture of a metric as a figure of HTML; nothing where none would say more than the formula."""
    metric = next(examples(kind))
    change = _CHANGES_OF.get(kind.__name__) or _CHANGES.get(metric.inputs)
    if kind.__name__ in _PLOTTED and change:
        return _own_plot(metric, change)
    if kind.__name__ in _WITHOUT or change is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a step without data is left out
        steps = [(step, *_number(metric, change, step)) for step in change.steps]
    points = [(step, value) for step, _, value in steps if math.isfinite(value)]
    axis = f"{change.axis} from {points[0][0]:g} to {points[-1][0]:g}"
    said = f"{axis[0].upper()}{axis[1:]}: {steps[0][1]} {_course([value for _, value in points])}."
    return _figure(_line(points, change.axis, said), said)


def _own_plot(metric: Metric, change: Change) -> str:
    name = type(metric).__name__
    args, columns = change.samples(metric, change.steps[len(change.steps) // 2])
    meter = Meter(metric)
    meter.update(*args, **columns)
    value = meter.compute()[name]
    plot = plots_of({name: metric}, {name: value})[0]
    what = "values of one batch" if isinstance(plot, Bars) else "its own plot of one batch"
    return _figure(to_svg(plot), f"{name}: {what}. {plot.summary()}")


def _number(metric: Metric, change: Change, step: float) -> tuple[str, float]:
    """The single number, or the first of several, at a step; with its name."""
    args, columns = change.samples(metric, step)
    name = type(metric).__name__
    return next(iter(named_numbers(name, metric(*args, **columns))))


def _course(values: Sequence[float]) -> str:
    first, last = values[0], values[-1]
    return f"{'rises' if last > first else 'falls'} from {number(first)} to {number(last)}"


def _figure(svg: str, said: str) -> str:
    flat = " ".join(svg.split("\n"))
    caption = html.escape(said)
    return f'<figure class="picture" data-search-exclude>{flat}<figcaption>{caption}</figcaption></figure>'


def _line(points: Sequence[tuple[float, float]], axis: str, said: str) -> str:
    """A line with a dot a step, the ends of both axes as numbers."""
    xs, ys = ([point[k] for point in points] for k in (0, 1))
    low, high = min(ys), max(ys)
    left, right, top, bottom = 64.0, 348.0, 14.0, 132.0
    places = [
        (
            left + (x - xs[0]) / (xs[-1] - xs[0]) * (right - left),
            bottom - (y - low) / (high - low) * (bottom - top) if high > low else bottom,
        )
        for x, y in points
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places)

    def text(x: float, y: float, anchor: str, content: str) -> str:
        return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{html.escape(content)}</text>'

    words = [
        text(left - 8, top + 4, "end", number(high)),
        text(left - 8, bottom + 4, "end", number(low)),
        text(left, bottom + 18, "middle", f"{xs[0]:g}"),
        text(right, bottom + 18, "middle", f"{xs[-1]:g}"),
        text((left + right) / 2, bottom + 36, "middle", axis),
    ]
    return (
        f'<svg viewBox="0 0 360 176" role="img" aria-label="{html.escape(said)}">'
        f'<path class="grid" d="M{left:g} {top:g}V{bottom:g}H{right:g}"/>'
        f'<polyline points="{path}"/>{dots}{"".join(words)}</svg>'
    )


def _random(seed: int = 0) -> torch.Generator:
    return torch.Generator(device="cpu").manual_seed(seed)


@cache
def _noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=_random(seed), dtype=torch.float32, device="cpu")


@cache
def _uniform(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=_random(seed), dtype=torch.float32, device="cpu")


def _range(*shape: int, upto: int, seed: int = 0) -> Tensor:
    return torch.randint(0, upto, shape, generator=_random(seed), device="cpu")


def _replaced(right: Tensor, others: Tensor, share: float) -> Tensor:
    """Values of which a share is replaced: each step replaces those of the step before as well."""
    rows = _uniform(len(right), seed=3).reshape(-1, *[1] * (right.ndim - 1))
    return torch.where(rows < share, others, right)


def noisy_scores(metric: Metric, step: float) -> Samples:
    """Scores of the right labels, with noise."""
    inner = getattr(metric, "metric", metric)
    classes, labels = getattr(inner, "num_classes", None), getattr(inner, "num_labels", None)
    columns = {"groups": torch.arange(300, device="cpu") % 3} if "groups" in metric.batch_tally(False).columns else {}
    if classes:
        target = _range(300, upto=classes)
        logits = 3 * one_hot(target, classes).float() + 4 * step * _noise(300, classes)
        return (logits.softmax(1), target), columns
    shape = (300, labels) if labels else (300,)
    target = (_uniform(*shape, seed=1) < 0.4).long()
    scores = 0.5 + 0.3 * (2 * target - 1) + 0.6 * step * _noise(*shape)
    return (scores.clamp(0, 1), target), columns


def overconfident_scores(metric: Metric, step: float) -> Samples:
    """Scores whose log-odds are too far from 0, by a factor."""
    log_odds = _noise(2000)
    target = (_uniform(2000, seed=1) < log_odds.sigmoid()).long()
    return ((step * log_odds).sigmoid(), target), {}


def missed_in_a_group(metric: Metric, step: float) -> Samples:
    """All positives of three groups and some others are predicted; in one group a share of these is not."""
    groups, target = torch.arange(300, device="cpu") % 3, (_uniform(300, seed=1) < 0.4).long()
    preds = torch.where((target == 0) & (_uniform(300, seed=4) < 0.3), 1, target)
    missed = (groups == 1) & (_uniform(300, seed=3) < step)
    return (torch.where(missed, torch.zeros_like(preds), preds).float(), target), {"groups": groups}


def noisy_numbers(metric: Metric, step: float) -> Samples:
    """Numbers with errors; as many columns as the metric has outputs."""
    shape = (300, n) if (n := getattr(metric, "num_outputs", 1)) > 1 else (300,)
    target = _noise(*shape)
    return (target + step * _noise(*shape, seed=1), target), {}


def noisy_positives(metric: Metric, step: float) -> Samples:
    """Positive numbers that are wrong by a factor."""
    target = (0.5 * _noise(300)).exp()
    return (target * (step * _noise(300, seed=1)).exp(), target), {}


def shifted_numbers(metric: Metric, step: float) -> Samples:
    """Positive numbers that are too large."""
    target = (0.5 * _noise(300)).exp()
    return (target + step, target), {}


def noisy_vectors(metric: Metric, step: float) -> Samples:
    size = getattr(metric, "num_features", None) or 5
    target = _noise(100, size)
    return (target + step * _noise(100, size, seed=1), target), {}


def shifted_vectors(metric: Metric, step: float) -> Samples:
    size = metric.num_features  # type: ignore[attr-defined]
    return (_noise(100, size) + step, _noise(100, size, seed=1)), {}


def mixed_distributions(metric: Metric, step: float) -> Samples:
    target, other = ((2 * _noise(100, 4, seed=seed)).softmax(1) for seed in (0, 1))
    return ((1 - step) * target + step * other, target), {}


def noisy_tokens(metric: Metric, step: float) -> Samples:
    target = _range(20, 10, upto=8)
    return (4 * one_hot(target, 8).float() + 4 * step * _noise(20, 10, 8), target), {}


def random_clusters(metric: Metric, step: float) -> Samples:
    target = _range(200, upto=4)
    return (_replaced(target, _range(200, upto=4, seed=1), step), target), {}


def spread_points(metric: Metric, step: float) -> Samples:
    """Points around three centres."""
    labels = torch.arange(90, device="cpu") % 3
    return (3 * torch.eye(3, dtype=torch.float32, device="cpu")[labels] + step * _noise(90, 3), labels), {}


def shifted_features(metric: Metric, step: float) -> Samples:
    """Features of generated samples at a distance from those of real ones."""
    real = torch.arange(200, device="cpu") % 2
    return (_noise(200, 3) + step * (1 - real)[:, None], real), {}


def random_rater_labels(metric: Metric, step: float) -> Samples:
    """Which of four categories each of five raters chose."""
    agreed = _range(60, 1, upto=4).expand(60, 5).reshape(-1)
    return (_replaced(agreed, _range(300, upto=4, seed=1), step).reshape(60, 5),), {}


def random_ratings(metric: Metric, step: float) -> Samples:
    """How many of five raters chose each of four categories."""
    (chosen,), columns = random_rater_labels(metric, step)
    return (one_hot(chosen, 4).sum(1),), columns


def noisy_documents(metric: Metric, step: float) -> Samples:
    """Twenty queries with ten documents each."""
    relevance = _range(200, upto=5).clamp(min=1) - 1
    if not getattr(metric, "max_relevance", None) and type(metric).__name__ != "RetrievalNormalizedDCG":
        relevance = (relevance > 1).long()
    queries = torch.arange(200, device="cpu") // 10
    return (relevance + 3 * step * _noise(200), relevance), {"indexes": queries}


def shifted_boxes(metric: Metric, step: float) -> Samples:
    corner = 100 * _uniform(10, 2)
    boxes, labels = torch.cat([corner, corner + 20], 1), torch.zeros(10, dtype=torch.int64, device="cpu")
    moved = boxes + torch.tensor([step, 0, step, 0], dtype=torch.float32, device="cpu") * 20
    preds = [{"boxes": moved[k : k + 1], "labels": labels[:1], "scores": _uniform(1)} for k in range(10)]
    return (preds, [{"boxes": boxes[k : k + 1], "labels": labels[:1]} for k in range(10)]), {}


def _discs(classes: int) -> Tensor:
    """A mask with a disc of each class but the background."""
    y, x = torch.meshgrid(*(torch.arange(40, device="cpu"),) * 2, indexing="ij")
    mask = torch.zeros(40, 40, dtype=torch.int64, device="cpu")
    for k, (row, column) in enumerate(((12, 10), (28, 10), (20, 24))[: classes - 1], 1):
        mask[(y - row) ** 2 + (x - column) ** 2 < 36] = k
    return mask


def shifted_masks(metric: Metric, step: float) -> Samples:
    target = _discs(metric.num_classes)[None]  # type: ignore[attr-defined]
    preds = target.roll(int(step), 2)
    return ((list(preds), list(target)) if metric.inputs == "mask lists" else (preds, target)), {}


def shifted_segments(metric: Metric, step: float) -> Samples:
    """Two things before stuff."""
    discs = _discs(3)
    category = torch.tensor([5, 0, 2], device="cpu")[discs]
    target = torch.stack([category, discs], -1)[None]
    return (target.roll(int(step), 2), target), {}


def _image(size: int = 48) -> Tensor:
    """Two channels of stripes and a disc, from 1 to 15, with grain."""
    y, x = torch.meshgrid(*(torch.arange(size, dtype=torch.float32, device="cpu"),) * 2, indexing="ij")
    stripes = 6 + 3 * torch.sign(torch.sin(0.7 * x + 0.3 * y))
    disc = 6 * ((y - size / 2) ** 2 + (x - size / 2) ** 2 < size * size / 12).float()
    grain = 0.5 * _noise(2, size, size).clamp(-2, 2)
    return (torch.stack([stripes + disc / 2, 4 + disc + stripes / 3]) + grain).clamp(1, 15)[None]


def _blurred(image: Tensor, times: float) -> Tensor:
    for _ in range(int(times)):
        image = avg_pool2d(pad(image, (1, 1, 1, 1), mode="replicate"), 3, 1)
    return image


def blurred_images(metric: Metric, step: float) -> Samples:
    image = _image()
    preds = _blurred(image, step)
    return ((preds,) if metric.inputs == "pictures" else (preds, image)), {}


def blurred_fusion(metric: Metric, step: float) -> Samples:
    image = _image()
    pan = image.mean(1, keepdim=True)
    return (_blurred(image, step),), {"ms": avg_pool2d(image, 2), "pan": pan}


def blocky_images(metric: Metric, step: float) -> Samples:
    image, side = _image(), int(step)
    return (avg_pool2d(image, side).repeat_interleave(side, 2).repeat_interleave(side, 3), image), {}


def noisy_signals(metric: Metric, step: float) -> Samples:
    """Two tones for each of four samples, in the shape that the metric takes."""
    shape = {"sources": (4, 2, 100), "spectra": (4, 10, 5, 2)}.get(metric.inputs, (4, 100))
    place = torch.arange(math.prod(shape), dtype=torch.float32, device="cpu").reshape(shape)
    target = (0.37 * place).sin() + (0.11 * place).cos()
    preds = target + step * _noise(*shape)
    return ((list(preds), list(target)) if metric.inputs == "wave lists" else (preds, target)), {}


def noisy_meshes(metric: Metric, step: float) -> Samples:
    target = _noise(10, 6, 3)
    return (target + step * _noise(10, 6, 3, seed=1), target), {}


def noisy_clouds(metric: Metric, step: float) -> Samples:
    target = _noise(10, 20, 3)
    return (list(target + step * _noise(10, 20, 3, seed=1)), list(target)), {}


def shifted_ensembles(metric: Metric, step: float) -> Samples:
    return (_noise(100, 20) + step, _noise(100, seed=1)), {}


def unsure_logits(metric: Metric, step: float) -> Samples:
    classes = getattr(metric, "num_classes", None) or 4
    return (6 * (1 - step) * one_hot(torch.arange(100, device="cpu") % classes, classes).float(),), {}


SENTENCES = (
    "every morning the old harbour wakes before the town does",
    "boats leave with the tide and come back when the light goes",
    "on the quay children count the gulls that wait for fish",
    "a letter from the north took nine days to arrive",
    "she read it twice and put it into the drawer with the others",
    "nobody asked what it said because everybody knew",
)


def dropped_words(metric: Metric, step: float) -> Samples:
    """Sentences without a share of their words."""
    words = [sentence.split() for sentence in SENTENCES]
    drawn = iter(_uniform(sum(map(len, words)), seed=3).tolist())
    return ([" ".join(word for word in each if next(drawn) >= step) for each in words], list(SENTENCES)), {}


def dropped_tags(metric: Metric, step: float) -> Samples:
    """Entities of two words, of which a share is not found."""
    target = [["B-A", "I-A", "O", "B-B", "I-B", "O"]] * 40
    drawn = _uniform(80, seed=3).tolist()
    found = [[tag if drawn[2 * k + (i > 2)] >= step else "O" for i, tag in enumerate(t)] for k, t in enumerate(target)]
    return (found, target), {}


def right_answers(metric: Metric, step: float) -> Samples:
    right = torch.full((20,), step, dtype=torch.float32, device="cpu")
    return (right, torch.full((20,), 10.0, dtype=torch.float32, device="cpu")), {}


def _steps(most: float, least: float = 0.0) -> list[float]:
    return [round(least + (most - least) * k / (STEPS - 1), 6) for k in range(STEPS)]


_NOISE = Change("errors relative to the spread of the target", _steps(2), noisy_numbers)
_FACTORS = Change("errors, standard deviation of their logarithm", _steps(1), noisy_positives)
_SHIFT = Change("bias of the predictions", _steps(1), shifted_numbers)
_MASKS = Change("shift of the masks, pixels", range(STEPS), shifted_masks)
_WORDS = Change("share of the words that are missing", _steps(0.8), dropped_words)
_SIGNALS = Change("noise relative to the signal", _steps(1.1, 0.1), noisy_signals)
_CONFIDENCE = Change("log-odds too large by a factor", _steps(5, 1), overconfident_scores)
_GROUP = Change("share of one group that is rejected", _steps(1), missed_in_a_group)
_IMAGES = Change("times blurred over 3 x 3 pixels", range(STEPS), blurred_images)

_CHANGES: Mapping[str, Change] = {
    "labels": Change("noise on the scores", _steps(1), noisy_scores),
    "pairs": _NOISE,
    "unequal pairs": Change(_NOISE.axis, _steps(2.1, 0.1), noisy_numbers),
    "positive pairs": _FACTORS,
    "vectors": Change("errors relative to the spread of the target", _steps(2), noisy_vectors),
    "distributions": Change("share of another distribution", _steps(1), mixed_distributions),
    "tokens": Change("noise on the logits", _steps(1), noisy_tokens),
    "clusters": Change("share of the samples in a random cluster", _steps(1), random_clusters),
    "points": Change("spread of the clusters", _steps(2.1, 0.1), spread_points),
    "features": Change("shift of the generated samples", _steps(2), shifted_features),
    "related vectors": Change("errors relative to the spread of the target", _steps(2), noisy_vectors),
    "ratings": Change("share of the ratings that are random", _steps(1), random_ratings),
    "rater labels": Change("share of the ratings that are random", _steps(1), random_rater_labels),
    "queries": Change("noise on the scores", _steps(1), noisy_documents),
    "boxes": Change("shift of the boxes, in widths", _steps(1), shifted_boxes),
    "masks": _MASKS,
    "mask lists": _MASKS,
    "segments": Change("shift of the segments, pixels", range(STEPS), shifted_segments),
    "images": _IMAGES,
    "large images": _IMAGES,
    "pictures": _IMAGES,
    "fused images": Change(_IMAGES.axis, _IMAGES.steps, blurred_fusion),
    "signals": _SIGNALS,
    "sources": _SIGNALS,
    "spectra": _SIGNALS,
    "wave lists": _SIGNALS,
    "meshes": Change("errors of the vertices", _steps(1), noisy_meshes),
    "point lists": Change("errors of the points", _steps(1), noisy_clouds),
    "ensembles": Change("shift of the ensemble", _steps(2), shifted_ensembles),
    "logits": Change("how unsure the classifier is", _steps(1), unsure_logits),
    "strings": _WORDS,
    "references": _WORDS,
    "tags": Change("share of the entities that are not found", _steps(1), dropped_tags),
    "passes": Change("right answers of ten", range(STEPS), right_answers),
}
"""What gets worse, by what a metric takes."""

_CHANGES_OF: Mapping[str, Change] = {
    **dict.fromkeys(("FractionalBias", "MeanError", "MeanNormalizedBias", "WeightedCalibration"), _SHIFT),
    **dict.fromkeys(
        (
            "ByGroup",
            "DemographicParityDifference",
            "DemographicParityRatio",
            "EqualOpportunityDifference",
            "EqualOpportunityRatio",
            "EqualizedOddsDifference",
            "EqualizedOddsRatio",
            "GroupDifference",
            "GroupStatRates",
            "SubgroupAccuracyDifference",
        ),
        _GROUP,
    ),
    "MaximumMeanDiscrepancy": Change("shift of the generated samples", _steps(2), shifted_vectors),
    **dict.fromkeys(("CalibrationCurve", "CalibrationError", "LogLoss", "NormalizedEntropy"), _CONFIDENCE),
    "PeakSignalNoiseRatioWithBlockedEffect": Change(
        "side of blocks of one colour, pixels", (2, 3, 4, 6, 8, 12, 16), blocky_images
    ),
    "Classwise": Change("noise on the scores", _steps(1), noisy_scores),
}
"""Metrics that another change shows better than that of what they take."""

_PLOTTED = (
    "ByGroup",
    "CalibrationCurve",
    "Classwise",
    "ConfusionMatrix",
    "DETCurve",
    "PrecisionRecallCurve",
    "ROC",
    "RetrievalPrecisionRecallCurve",
)
"""Metrics whose value is a curve, a matrix or several numbers."""

_WITHOUT = ("BitsPerByte", "ClassReport", "GroupStatRates", "PerSample", "StatScores")
"""Metrics of which no picture says more than the formula, next to those of plain values and of other metrics."""
