"""Examples of every metric and sample data for them, made from what its class declares.

The laws in the tests, the audit of assay's own metrics and the tables of the documentation use them. Values are dyadic
fractions that every dtype down to bfloat16 holds exactly; ties, constants and absent classes are frequent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import torch
from torch import Generator, Tensor

import assay.metrics
from assay.errors import ConfigError
from assay.metrics.base import Metric

CLASSES, LABELS, OUTPUTS, RATERS = 4, 3, 2, 5
TASKS: tuple[Mapping[str, int], ...] = ({}, {"num_classes": CLASSES}, {"num_labels": LABELS})
Draw: TypeAlias = Callable[[Generator, int], tuple[Any, ...]]
"""Gives so many samples: preds, and target where the metric takes one; tensors, or lists of raw samples."""
WORDS = ("a", "b", "the", "cat", "Cat.", "sat,", "1.5", "naïve", "火", "")
TAGS = ("O", "B-A", "I-A", "B-B", "I-B", "O")


def public_metrics() -> dict[str, type[Metric]]:
    """Every metric of `assay.metrics`, by name.

    Example:
        >>> public_metrics()["Recall"].family
        'classification'
    """
    kinds = {name: getattr(assay.metrics, name) for name in assay.metrics.__all__}
    return {name: kind for name, kind in kinds.items() if kind is not Metric}


def examples(kind: type[Metric]) -> Iterator[Metric]:
    """A metric for each of a class's `examples`, and the first of them for every task that it knows and does not name.

    Example:
        >>> from assay.metrics import HammingDistance
        >>> [(metric.num_classes, metric.num_labels) for metric in examples(HammingDistance)]
        [(None, None), (4, None), (None, 3)]
    """
    first, *others = kind.examples
    for task in TASKS:
        if task.keys() <= kind.arguments.keys() - first.keys():
            with suppress(ConfigError):  # such as kappa, which multilabel data does not have
                yield kind(**task, **first)
    yield from (kind(**arguments) for arguments in others)


def draw_for(metric: Metric) -> Draw:
    """How to draw samples that a metric takes."""
    for part in () if metric.inputs else (getattr(metric, "metric", None), *getattr(metric, "operands", ())):
        if isinstance(part, Metric):
            return output_pairs if hasattr(metric, "outputs") else draw_for(part)
    if metric.inputs == "labels":
        if getattr(metric, "num_labels", None):
            return multilabel
        by_task = (multiclass, multiclass_logits) if getattr(metric, "num_classes", None) else (binary, binary_logits)
        return by_task[getattr(metric, "logits", True)]
    if metric.inputs == "ratings":
        return rating_scores if getattr(metric, "mode", None) == "probs" else ratings
    if metric.inputs == "pairs" and getattr(metric, "num_outputs", 1) > 1:
        return output_pairs
    if metric.inputs == "queries" and not metric.by_row:  # type: ignore[attr-defined]
        return documents
    if metric.inputs == "boxes" and "segm" in getattr(metric, "iou_type", ""):
        return scenes
    return _DRAWS[metric.inputs]


def draw_columns(metric: Metric, generator: Generator, count: int) -> dict[str, Tensor]:
    """The named columns that a metric takes, for so many samples."""
    encoded = {encoder.column for encoder in metric.encoders}
    names = metric.batch_tally(False).columns - encoded
    return {name: _COLUMNS[name](generator, count) for name in sorted(names)}


def integers(generator: Generator, low: int, high: int, *shape: int) -> Tensor:
    """Integers from `low` to `high - 1`."""
    return torch.randint(low, high, shape, generator=generator, device="cpu")


def probabilities(generator: Generator, *shape: int) -> Tensor:
    """Rows that sum to 1, in steps of 1/64."""
    cuts = integers(generator, 0, 65, *shape[:-1], shape[-1] - 1).sort(-1).values
    ends = torch.zeros(*shape[:-1], 1, dtype=torch.int64, device="cpu")
    return torch.cat([ends, cuts, ends + 64], -1).diff(dim=-1) / 64


def binary(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, 0, 65, count) / 64, integers(generator, 0, 2, count)


def binary_logits(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, -128, 129, count) / 4, integers(generator, 0, 2, count)


def multiclass(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return probabilities(generator, count, CLASSES), integers(generator, 0, CLASSES, count)


def multiclass_logits(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, -128, 129, count, CLASSES) / 4, integers(generator, 0, CLASSES, count)


def multilabel(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, 0, 65, count, LABELS) / 64, integers(generator, 0, 2, count, LABELS)


def pairs(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, -128, 129, count) / 8, integers(generator, -128, 129, count) / 8


def output_pairs(generator: Generator, count: int) -> tuple[Tensor, ...]:
    shape = (count, OUTPUTS)
    return integers(generator, -128, 129, *shape) / 8, integers(generator, -128, 129, *shape) / 8


def positive_pairs(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, 1, 129, count) / 8, integers(generator, 1, 129, count) / 8


def unequal_pairs(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, -32, 33, count) / 4, integers(generator, -32, 33, count) / 4 + 1 / 8


def vectors(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, -128, 129, count, 5) / 8, integers(generator, -128, 129, count, 5) / 8


def distributions(generator: Generator, count: int) -> tuple[Tensor, ...]:
    preds, target = (probabilities(generator, count, CLASSES) for _ in range(2))
    return (preds * 64 + 1) / 128, (target * 64 + 1) / 128


def tokens(generator: Generator, count: int) -> tuple[Tensor, ...]:
    logits = integers(generator, -128, 129, count, 3, 2 * CLASSES) / 4
    return logits, integers(generator, 0, 2 * CLASSES, count, 3)


def values(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return (integers(generator, -128, 129, count) / 8,)


def clusters(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, 0, CLASSES, count), integers(generator, 0, CLASSES, count)


def points(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, -16, 17, count, 3) / 4, integers(generator, 0, CLASSES, count)


def features(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Features of generated and of real samples."""
    real = integers(generator, 0, 2, count)
    return integers(generator, -16, 17, count, 3) / 4 + real[:, None], real


def related_vectors(generator: Generator, count: int) -> tuple[Tensor, ...]:
    preds = integers(generator, -128, 129, count, 3) / 8
    return preds, preds / 2 + integers(generator, 0, 65, count, 3) / 8


def ratings(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return (integers(generator, 0, CLASSES, count, RATERS, 1).eq(torch.arange(CLASSES, device="cpu")).sum(1),)


def rater_labels(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return (integers(generator, -1, CLASSES, count, RATERS),)


def rating_scores(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return (probabilities(generator, count, RATERS, CLASSES).movedim(-1, 1),)


def sentences(generator: Generator, count: int) -> list[str]:
    """Sentences of few words, so that they repeat; some have none."""
    return [" ".join(_draw(generator, WORDS, int(integers(generator, 0, 9)))) for _ in range(count)]


def strings(generator: Generator, count: int) -> tuple[Any, ...]:
    return sentences(generator, count), sentences(generator, count)


def references(generator: Generator, count: int) -> tuple[Any, ...]:
    sets = [sentences(generator, int(integers(generator, 1, 4))) for _ in range(count)]
    return sentences(generator, count), [each[0] if len(each) == 1 else each for each in sets]


def tags(generator: Generator, count: int) -> tuple[Any, ...]:
    lengths = integers(generator, 0, 8, count).tolist()
    preds, target = ([_draw(generator, TAGS, length) for length in lengths] for _ in range(2))
    return preds, target


def passes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    drawn = integers(generator, 4, 13, count)
    return (integers(generator, 0, 65, count) * (drawn + 1)).div(65, rounding_mode="floor").float(), drawn.float()


def _draw(generator: Generator, values: Sequence[str], count: int) -> list[str]:
    return [values[k] for k in integers(generator, 0, len(values), count).tolist()]


def documents(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, -4, 5, count) / 4, integers(generator, -1, 4, count).clamp(min=0)


def query_rows(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, -4, 5, count, 7) / 4, integers(generator, -1, 4, count, 7).clamp(min=0)


def boxes(generator: Generator, count: int) -> tuple[Any, ...]:
    """Images with up to four detections and truths, with sizes as every format has them: images without any occur."""

    def image(scored: bool) -> dict[str, Tensor]:
        number = int(integers(generator, 0, 5))
        first, sizes = integers(generator, 0, 9, number, 2) * 4.0, integers(generator, 0, 9, number, 2) * 4.0
        fields = {"boxes": torch.cat([first, first + sizes], 1), "labels": integers(generator, 0, CLASSES, number)}
        if scored:
            return fields | {"scores": integers(generator, 0, 17, number) / 16}
        fields |= {"iscrowd": integers(generator, 0, 4, number) == 0, "area": sizes.prod(1) / 2}
        others = {
            "neg_category_ids": torch.arange(number, CLASSES, device="cpu"),
            "not_exhaustive_category_ids": fields["labels"][:1],
        }
        return fields | others

    return [image(True) for _ in range(count)], [image(False) for _ in range(count)]


def scenes(generator: Generator, count: int) -> tuple[Any, ...]:
    """The same images with masks."""
    preds, target = boxes(generator, count)
    for image in (*preds, *target):
        image["masks"] = integers(generator, 0, 2, len(image["labels"]), 6, 5) > 0
    return preds, target


def images(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return _pixels(generator, count, 2, 12, 11), _pixels(generator, count, 2, 12, 11)


def large_images(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return _pixels(generator, count, 1, 41, 42), _pixels(generator, count, 1, 41, 42)


def fused_images(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return (_pixels(generator, count, 2, 24, 22),)


def _pixels(generator: Generator, *shape: int) -> Tensor:
    return integers(generator, 1, 129, *shape) / 8


def pictures(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return images(generator, count)[:1]


def masks(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Indices of classes; some images have few of them, and some only the background."""
    most = integers(generator, 1, CLASSES + 1, count, 1, 1)
    preds, target = (integers(generator, 0, CLASSES, count, 6, 5) % most for _ in range(2))
    return preds, target


def mask_lists(generator: Generator, count: int) -> tuple[Any, ...]:
    """Masks of different sizes with three classes."""
    sizes = integers(generator, 1, 7, count, 2).tolist()
    preds, target = ([integers(generator, 0, 3, *size) for size in sizes] for _ in range(2))
    return preds, target


def segments(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pixels with a category, some of them unknown in the target, and an instance."""

    def drawn(categories: Sequence[int]) -> Tensor:
        pixels = (count, 4, 5)
        return torch.stack(
            [
                torch.tensor(categories, device="cpu")[integers(generator, 0, len(categories), *pixels)],
                integers(generator, 0, 3, *pixels),
            ],
            -1,
        )

    target = drawn((0, 2, 2, 5, 5, 5, 7))
    kept = integers(generator, 0, 3, count, 4, 5, 1) > 0
    preds = torch.where(kept, target, drawn((0, 2, 5)))
    preds[..., 0].masked_fill_(preds[..., 0] == 7, 5)
    return preds, target


def signals(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return _waves(generator, count, 8)


def sources(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return _waves(generator, count, 2, 8)


def spectra(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return _waves(generator, count, 2, 2, 2)


def _waves(generator: Generator, *shape: int) -> tuple[Tensor, ...]:
    """None of them silent or without error; their values are halves of odd numbers."""
    target = integers(generator, -16, 16, *shape) + 1 / 2
    return target + integers(generator, -16, 16, *shape) + 1 / 4, target


def wave_lists(generator: Generator, count: int) -> tuple[Any, ...]:
    """Signals of different lengths."""
    pairs = [_waves(generator, length) for length in integers(generator, 12, 40, count).tolist()]
    return [preds for preds, _ in pairs], [target for _, target in pairs]


def point_lists(generator: Generator, count: int) -> tuple[Any, ...]:
    """Clouds of different numbers of points, no two of which are the same."""

    def cloud(number: int) -> Tensor:
        return integers(generator, -16, 17, number, 3) / 4 + torch.arange(number, device="cpu")[:, None]

    numbers = integers(generator, 2, 9, count).tolist()
    return [cloud(number) for number in numbers], [cloud(number) for number in numbers]


def meshes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    shape = (count, 6, 3)
    return integers(generator, -128, 129, *shape) / 8, integers(generator, -128, 129, *shape) / 8


_COLUMNS: Mapping[str, Callable[[Generator, int], Tensor]] = {
    "groups": lambda generator, count: integers(generator, 0, 3, count),
    "indexes": lambda generator, count: integers(generator, 0, 1 + count // 4, count),
    "ms": lambda generator, count: _pixels(generator, count, 2, 12, 11),
    "pan": lambda generator, count: _pixels(generator, count, 1, 24, 22),
    "pan_lr": lambda generator, count: _pixels(generator, count, 1, 12, 11),
}


def positive_values(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return (integers(generator, 1, 129, count) / 8,)


def ensembles(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return integers(generator, -128, 129, count, 5) / 8, integers(generator, -128, 129, count) / 8


def logits(generator: Generator, count: int) -> tuple[Tensor, ...]:
    return (integers(generator, -64, 65, count, CLASSES) / 8,)


_DRAWS: Mapping[str, Draw] = {
    "clusters": clusters,
    "rater labels": rater_labels,
    "pairs": pairs,
    "points": points,
    "features": features,
    "related vectors": related_vectors,
    "positive pairs": positive_pairs,
    "unequal pairs": unequal_pairs,
    "vectors": vectors,
    "distributions": distributions,
    "fused images": fused_images,
    "images": images,
    "large images": large_images,
    "masks": masks,
    "mask lists": mask_lists,
    "pictures": pictures,
    "signals": signals,
    "sources": sources,
    "spectra": spectra,
    "meshes": meshes,
    "point lists": point_lists,
    "wave lists": wave_lists,
    "tokens": tokens,
    "queries": query_rows,
    "values": values,
    "positive values": positive_values,
    "ensembles": ensembles,
    "logits": logits,
    "strings": strings,
    "references": references,
    "tags": tags,
    "passes": passes,
    "boxes": boxes,
    "segments": segments,
}
