"""Small realistic batches for metrics: each name draws one batch of ``n`` samples from a seeded generator.

B samples, C classes, L labels, K outputs. Every class occurs in every batch, so that no metric takes its path for
absent ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

CLASSES = 5
LABELS = 4
OUTPUTS = 3
WORDS = 12
BATCHES = (16, 16, 9)  # the last batch of a data set is smaller

Batch = tuple[Any, ...]
Draw = Callable[[Generator, int], Batch]
Column = Callable[[Generator, int], Tensor]


def batches(draw: Draw, sizes: tuple[int, ...] = BATCHES) -> tuple[Batch, ...]:
    """Batches of these sizes, drawn with one seed: tuples of positional inputs on the CPU, the same in every run.

    Example:
        >>> [preds.shape[0] for preds, target in batches(binary)]
        [16, 16, 9]
        >>> bool((batches(binary)[0][0] == batches(binary)[0][0]).all())
        True
    """
    generator = torch.Generator().manual_seed(0)
    return tuple(draw(generator, size) for size in sizes)


def cycle(count: int, n: int) -> Tensor:
    """Labels of which each of ``count`` classes occurs."""
    return torch.arange(n, device="cpu") % count


def labels(g: Generator, n: int, classes: int = CLASSES) -> Tensor:
    """Shuffled labels of which each class occurs."""
    return cycle(classes, n)[torch.randperm(n, generator=g, device="cpu")]


# Columns, and batches of columns, which are drawn from left to right --------------------------------------------------


def _batch(*columns: Column) -> Draw:
    return lambda g, n: tuple(column(g, n) for column in columns)


def _uniform(*shape: int, least: float = 0.0) -> Column:
    return lambda g, n: torch.rand(n, *shape, generator=g, device="cpu") + least


def _normal(*shape: int) -> Column:
    return lambda g, n: torch.randn(n, *shape, generator=g, device="cpu")


def _integers(high: int, *shape: int) -> Column:
    return lambda g, n: torch.randint(high, (n, *shape), generator=g, device="cpu")


def _labels(classes: int) -> Column:
    return lambda g, n: labels(g, n, classes)


def _groups(each: int) -> Column:
    return lambda g, n: cycle(2 * each, n) // each


def _softmax(g: Generator, n: int) -> Tensor:
    return torch.randn(n, CLASSES, generator=g, device="cpu").softmax(-1)


def _near(*shape: int) -> Draw:
    def draw(g: Generator, n: int) -> Batch:
        target = torch.randn(n, *shape, generator=g, device="cpu")
        return target + 0.3 * torch.randn(n, *shape, generator=g, device="cpu"), target

    return draw


def _and(draw: Draw, *columns: Column) -> Draw:
    return lambda g, n: (*draw(g, n), *(column(g, n) for column in columns))


# Classification: probabilities, logits or predicted labels, then the target, (B,) and (B,) if nothing else is said ----

binary = _batch(_uniform(), _labels(2))
binary_float = _batch(_uniform(), lambda g, n: labels(g, n, 2).float())
binary_labels = _batch(_labels(2), _labels(2))
binary_groups = _batch(_uniform(), _groups(1), _groups(2))
binary_weighted = _and(binary_float, _uniform())
multiclass = _batch(_softmax, _labels(CLASSES))  # (B, C)
multiclass_labels = _batch(_labels(CLASSES), _labels(CLASSES))
multiclass_sets = _batch(_integers(CLASSES, OUTPUTS), _integers(CLASSES, OUTPUTS))  # several labels a sample, (B, K)
multiclass_groups = _and(multiclass, _groups(1))
multilabel_maps = _batch(_uniform(LABELS, 4), _integers(2, LABELS, 4))  # of four pixels, (B, L, 4)
logits = _batch(_normal(CLASSES), _labels(CLASSES))  # (B, C)


def multilabel(g: Generator, n: int) -> Batch:
    """Probabilities and 0/1 labels, (B, L) and (B, L)."""
    target = torch.randint(2, (n, LABELS), generator=g, device="cpu")
    target[0], target[1] = 0, 1
    return torch.rand(n, LABELS, generator=g, device="cpu"), target


# Regression and aggregation: predictions and targets, or values, (B,) -------------------------------------------------

regression = _near()
regression_outputs = _near(OUTPUTS)  # (B, K)
regression_weighted = _and(regression, _uniform())
positive = _batch(_uniform(least=0.1), _uniform(least=0.1))
distributions = _batch(_softmax, _softmax)  # (B, C)
many_logits = _batch(_normal(CLASSES), _normal(CLASSES))
ensemble = _batch(_normal(7), _normal())  # seven forecasts of each
values = _batch(_normal())
number = _batch(lambda g, n: torch.rand((), generator=g, device="cpu"))  # such as the loss of a batch
positive_values = _batch(_uniform(least=0.1))
weighted_values = _batch(_normal(), _uniform())
clicks = _batch(_integers(2), _uniform())  # whether each was clicked, and its weight
curve = _batch(_uniform(), _uniform())  # x and y of its points

# Ranking, clustering, tables ------------------------------------------------------------------------------------------

# Scores, relevance, and the query of each; four documents a query, of which one at least is relevant.
retrieval = _batch(_uniform(), lambda g, n: (cycle(4, n) < 2).long(), lambda g, n: torch.arange(n, device="cpu") // 4)
clustered = _batch(_normal(4), _labels(3))  # points and the cluster of each


def ranking(g: Generator, n: int) -> Batch:
    """Scores and relevance of C documents for each of B queries."""
    relevance = torch.randint(2, (n, CLASSES), generator=g, device="cpu")
    relevance[:, 0] = 1
    return torch.rand(n, CLASSES, generator=g, device="cpu"), relevance


def ratings(g: Generator, n: int) -> Batch:
    """How many of six raters chose each category, (B, C)."""
    chosen = torch.randint(CLASSES, (n, 6), generator=g, device="cpu")
    return (torch.nn.functional.one_hot(chosen, CLASSES).sum(1),)


# Images, shapes, sound ------------------------------------------------------------------------------------------------


def _image(channels: int, size: int) -> Column:
    """Images in [0, 1], (B, channels, size, size)."""
    return lambda g, n: torch.rand(max(n // 4, 2), channels, size, size, generator=g, device="cpu")


def _fewer(column: Column) -> Column:
    """A quarter of the samples, as each has many values."""
    return lambda g, n: column(g, max(n // 4, 2))


images = _batch(_image(3, 48), _image(3, 48))
grey_images = _batch(_image(1, 48), _image(1, 48))
one_image = _batch(_image(3, 48))
points = _batch(_normal(10, 3), _normal(10, 3))  # two sets of points for each sample
meshes = _batch(_normal(12, 3), _normal(12, 3))  # vertices of a face over time, (frames, vertices, 3)
speakers = _batch(_fewer(_normal(2, 400)), _fewer(_normal(2, 400)))  # sound of two speakers
spectra = _batch(_fewer(_normal(32, 16, 2)), _fewer(_normal(32, 16, 2)))  # complex, as pairs of numbers


def pan_images(g: Generator, n: int) -> Batch:
    """A fused image, and what it was fused from: low-resolution colours and a sharp panchromatic image."""
    sources = {"ms": _image(3, 16)(g, n), "pan": _image(3, 48)(g, n), "pan_lr": _image(3, 16)(g, n)}
    return _image(3, 48)(g, n), sources


def real_and_fake(g: Generator, n: int) -> Batch:
    """Images, and that they are real; :data:`TURNS` makes every other batch fake."""
    return _image(3, 8)(g, 4 * n), bool(n % 2 == 0)


TURNS = (16, 17, 16, 17)  # even: real images, odd: made ones


class FeatureExtractor(torch.nn.Module):
    """Stands in for the network of metrics that compare features of images: the mean of each channel."""

    num_features = 3

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, H, W) to (B, 3)."""
        return images.float().flatten(2).mean(-1)


def masks(g: Generator, n: int) -> Batch:
    """Predicted and true masks, one-hot, (B, C, 12, 12)."""
    shape = (max(n // 4, 2), 12, 12)
    drawn = (torch.randint(CLASSES, shape, generator=g, device="cpu") for _ in range(2))
    return tuple(torch.nn.functional.one_hot(mask, CLASSES).movedim(-1, 1) for mask in drawn)


def index_masks(g: Generator, n: int) -> Batch:
    """Predicted and true masks as labels, (B, 12, 12)."""
    return tuple(mask.argmax(1) for mask in masks(g, n))


def segments(g: Generator, n: int) -> Batch:
    """Panoptic segments: category and instance of each pixel, (B, 8, 8, 2)."""
    shape = (max(n // 4, 2), 8, 8)
    categories = torch.tensor([0, 1, 6, 7], device="cpu")

    def drawn() -> Tensor:
        return torch.stack(
            [
                categories[torch.randint(4, shape, generator=g, device="cpu")],
                torch.zeros(shape, dtype=torch.long, device="cpu"),
            ],
            -1,
        )

    return drawn(), drawn()


def detections(g: Generator, n: int) -> Batch:
    """Boxes with scores and labels for each image, and the true boxes."""

    def boxes(count: int) -> Tensor:
        corner = 50 * torch.rand(count, 2, generator=g, device="cpu")
        return torch.cat([corner, corner + 5 + 20 * torch.rand(count, 2, generator=g, device="cpu")], -1)

    preds, target = [], []
    for _ in range(max(n // 4, 2)):
        image = {"boxes": boxes(4), "labels": torch.randint(3, (4,), generator=g, device="cpu")}
        preds.append(image | {"scores": torch.rand(4, generator=g, device="cpu")})
        target.append({"boxes": image["boxes"][:3] + 1.0, "labels": image["labels"][:3]})
    return preds, target


def ignite_detections(g: Generator, n: int) -> Batch:
    """The same under the names that Ignite uses."""
    preds, target = detections(g, n)
    guesses = [{"bbox": p["boxes"], "scores": p["scores"], "labels": p["labels"]} for p in preds]
    true = [
        {"bbox": t["boxes"], "labels": t["labels"], "iscrowd": torch.zeros(3, dtype=torch.bool, device="cpu")}
        for t in target
    ]
    return guesses, true


def sound(g: Generator, n: int) -> Batch:
    """Noisy and clean sound, (B, 1200)."""
    clean = torch.randn(max(n // 4, 2), 1200, generator=g, device="cpu")
    return clean + 0.1 * torch.randn(clean.shape, generator=g, device="cpu"), clean


# --- text -------------------------------------------------------------------------------------------------------------

SENTENCES = (
    "the cat sat on the mat while it rained",
    "a small dog ran across the wet street",
    "we measure what we can and say what we cannot",
    "numbers should be the same on every device",
)


def _sentences(g: Generator, n: int) -> list[str]:
    return [SENTENCES[int(i)] for i in torch.randint(len(SENTENCES), (max(n // 4, 2),), generator=g, device="cpu")]


def sentences(g: Generator, n: int) -> Batch:
    """Predicted sentences and true ones."""
    target = _sentences(g, n)
    return [text.replace("the", "a", 1) for text in target], target


def translations(g: Generator, n: int) -> Batch:
    """Predicted sentences, and two references for each."""
    preds, target = sentences(g, n)
    return preds, [[text, text.replace("we", "they")] for text in target]


def tokens(g: Generator, n: int) -> Batch:
    """Translations as lists of words."""
    preds, target = translations(g, n)
    return [text.split() for text in preds], [[text.split() for text in texts] for texts in target]


def answers(g: Generator, n: int) -> Batch:
    """Answers to questions, as SQuAD stores them."""
    preds, target = sentences(g, n)
    guesses = [{"prediction_text": text, "id": str(i)} for i, text in enumerate(preds)]
    true = [{"answers": {"answer_start": [0], "text": [text]}, "id": str(i)} for i, text in enumerate(target)]
    return guesses, true


def language(g: Generator, n: int) -> Batch:
    """Logits over a vocabulary and the next tokens, (B, 7, V) and (B, 7)."""
    size = max(n // 4, 2)
    return torch.randn(size, 7, WORDS, generator=g, device="cpu"), torch.randint(
        WORDS, (size, 7), generator=g, device="cpu"
    )


def language_classes_first(g: Generator, n: int) -> Batch:
    """The same with the vocabulary in the second place, (B, V, 7)."""
    scores, target = language(g, n)
    return scores.movedim(-1, 1), target
