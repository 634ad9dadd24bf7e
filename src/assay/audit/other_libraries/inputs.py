"""Small realistic batches for metrics: each function draws one batch of ``n`` samples from a seeded generator.

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


def batches(draw: Draw, sizes: tuple[int, ...] = BATCHES) -> tuple[Batch, ...]:
    """Batches drawn with one seed, the same in every run.

    Args:
        draw: one of the functions of this module.
        sizes: how many samples each batch has.

    Returns:
        One tuple of positional inputs for each size, on the CPU.

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
    return torch.arange(n) % count


def labels(g: Generator, n: int, classes: int = CLASSES) -> Tensor:
    """Shuffled labels of which each class occurs."""
    return cycle(classes, n)[torch.randperm(n, generator=g)]


# --- classification ---------------------------------------------------------------------------------------------------


def binary(g: Generator, n: int) -> Batch:
    """Probabilities and 0/1 labels, (B,) and (B,)."""
    return torch.rand(n, generator=g), labels(g, n, 2)


def binary_float(g: Generator, n: int) -> Batch:
    """The same with labels in floating point."""
    preds, target = binary(g, n)
    return preds, target.float()


def binary_labels(g: Generator, n: int) -> Batch:
    """Predicted and true 0/1 labels."""
    return labels(g, n, 2), labels(g, n, 2)


def binary_groups(g: Generator, n: int) -> Batch:
    """Probabilities, 0/1 labels, and the group (0 or 1) of each sample."""
    return torch.rand(n, generator=g), cycle(2, n), cycle(4, n) // 2


def binary_weighted(g: Generator, n: int) -> Batch:
    """Probabilities, 0/1 labels and weights."""
    return *binary_float(g, n), torch.rand(n, generator=g)


def multiclass(g: Generator, n: int) -> Batch:
    """Probabilities and labels, (B, C) and (B,)."""
    return torch.randn(n, CLASSES, generator=g).softmax(-1), labels(g, n)


def multiclass_labels(g: Generator, n: int) -> Batch:
    """Predicted and true labels, (B,) and (B,)."""
    return labels(g, n), labels(g, n)


def multiclass_sets(g: Generator, n: int) -> Batch:
    """Several labels a sample, (B, K) and (B, K)."""
    return tuple(torch.randint(CLASSES, (n, OUTPUTS), generator=g) for _ in range(2))


def multiclass_groups(g: Generator, n: int) -> Batch:
    """Probabilities, labels, and the group of each sample."""
    return *multiclass(g, n), cycle(2, n)


def multilabel(g: Generator, n: int) -> Batch:
    """Probabilities and 0/1 labels, (B, L) and (B, L)."""
    target = torch.randint(2, (n, LABELS), generator=g)
    target[0], target[1] = 0, 1
    return torch.rand(n, LABELS, generator=g), target


def multilabel_labels(g: Generator, n: int) -> Batch:
    """Predicted and true 0/1 labels, (B, L) and (B, L)."""
    preds, target = multilabel(g, n)
    return preds.round().long(), target


def multilabel_maps(g: Generator, n: int) -> Batch:
    """Probabilities and 0/1 labels of four pixels, (B, L, 4) and (B, L, 4)."""
    shape = (n, LABELS, 4)
    return torch.rand(shape, generator=g), torch.randint(2, shape, generator=g)


def logits(g: Generator, n: int) -> Batch:
    """Unnormalised scores and labels, (B, C) and (B,)."""
    return torch.randn(n, CLASSES, generator=g), labels(g, n)


# --- regression, aggregation ------------------------------------------------------------------------------------------


def regression(g: Generator, n: int) -> Batch:
    """Predictions near their targets, (B,) and (B,)."""
    target = torch.randn(n, generator=g)
    return target + 0.3 * torch.randn(n, generator=g), target


def regression_outputs(g: Generator, n: int) -> Batch:
    """Predictions near their targets, (B, K) and (B, K)."""
    target = torch.randn(n, OUTPUTS, generator=g)
    return target + 0.3 * torch.randn(n, OUTPUTS, generator=g), target


def regression_weighted(g: Generator, n: int) -> Batch:
    """Predictions, targets and weights."""
    return *regression(g, n), torch.rand(n, generator=g)


def positive(g: Generator, n: int) -> Batch:
    """Positive predictions and targets."""
    return torch.rand(n, generator=g) + 0.1, torch.rand(n, generator=g) + 0.1


def distributions(g: Generator, n: int) -> Batch:
    """Two distributions for each sample, (B, C) and (B, C)."""
    return tuple(torch.randn(n, CLASSES, generator=g).softmax(-1) for _ in range(2))


def many_logits(g: Generator, n: int) -> Batch:
    """Two rows of unnormalised scores for each sample."""
    return tuple(torch.randn(n, CLASSES, generator=g) for _ in range(2))


def ensemble(g: Generator, n: int) -> Batch:
    """Several forecasts and one observation for each sample, (B, members) and (B,)."""
    return torch.randn(n, 7, generator=g), torch.randn(n, generator=g)


def values(g: Generator, n: int) -> Batch:
    """One row of numbers."""
    return (torch.randn(n, generator=g),)


def number(g: Generator, n: int) -> Batch:
    """One number, such as the loss of a batch."""
    return (torch.rand((), generator=g),)


def positive_values(g: Generator, n: int) -> Batch:
    """One row of positive numbers."""
    return (torch.rand(n, generator=g) + 0.1,)


def weighted_values(g: Generator, n: int) -> Batch:
    """Numbers and their weights."""
    return torch.randn(n, generator=g), torch.rand(n, generator=g)


def clicks(g: Generator, n: int) -> Batch:
    """Whether each of B was clicked, and its weight."""
    return torch.randint(2, (n,), generator=g), torch.rand(n, generator=g)


def curve(g: Generator, n: int) -> Batch:
    """The points of a curve, x and y."""
    return torch.rand(n, generator=g), torch.rand(n, generator=g)


# --- ranking, clustering, tables --------------------------------------------------------------------------------------


def retrieval(g: Generator, n: int) -> Batch:
    """Scores, relevance, and the query of each; four documents a query, of which one at least is relevant."""
    return torch.rand(n, generator=g), (cycle(4, n) < 2).long(), torch.arange(n) // 4


def ranking(g: Generator, n: int) -> Batch:
    """Scores and relevance of C documents for each of B queries."""
    relevance = torch.randint(2, (n, CLASSES), generator=g)
    relevance[:, 0] = 1
    return torch.rand(n, CLASSES, generator=g), relevance


def clustered(g: Generator, n: int) -> Batch:
    """Points and the cluster of each, (B, 4) and (B,)."""
    return torch.randn(n, 4, generator=g), labels(g, n, 3)


def ratings(g: Generator, n: int) -> Batch:
    """How many of six raters chose each category, (B, C)."""
    chosen = torch.randint(CLASSES, (n, 6), generator=g)
    return (torch.nn.functional.one_hot(chosen, CLASSES).sum(1),)


# --- images, shapes, sound --------------------------------------------------------------------------------------------


def _images(g: Generator, n: int, channels: int, size: int) -> Tensor:
    return torch.rand(max(n // 4, 2), channels, size, size, generator=g)


def images(g: Generator, n: int) -> Batch:
    """Two images, (B, 3, 48, 48), in [0, 1]."""
    return _images(g, n, 3, 48), _images(g, n, 3, 48)


def grey_images(g: Generator, n: int) -> Batch:
    """Two images of one channel."""
    return _images(g, n, 1, 48), _images(g, n, 1, 48)


def one_image(g: Generator, n: int) -> Batch:
    """One image."""
    return (_images(g, n, 3, 48),)


def pan_images(g: Generator, n: int) -> Batch:
    """A fused image, and what it was fused from: low-resolution colours and a sharp panchromatic image."""
    sources = {"ms": _images(g, n, 3, 16), "pan": _images(g, n, 3, 48), "pan_lr": _images(g, n, 3, 16)}
    return _images(g, n, 3, 48), sources


def real_and_fake(g: Generator, n: int) -> Batch:
    """Images, and that they are real; :data:`TURNS` makes every other batch fake."""
    return _images(g, 4 * n, 3, 8), bool(n % 2 == 0)


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
    drawn = (torch.randint(CLASSES, shape, generator=g) for _ in range(2))
    return tuple(torch.nn.functional.one_hot(mask, CLASSES).movedim(-1, 1) for mask in drawn)


def index_masks(g: Generator, n: int) -> Batch:
    """Predicted and true masks as labels, (B, 12, 12)."""
    return tuple(mask.argmax(1) for mask in masks(g, n))


def segments(g: Generator, n: int) -> Batch:
    """Panoptic segments: category and instance of each pixel, (B, 8, 8, 2)."""
    shape = (max(n // 4, 2), 8, 8)
    categories = torch.tensor([0, 1, 6, 7])

    def drawn() -> Tensor:
        return torch.stack([categories[torch.randint(4, shape, generator=g)], torch.zeros(shape, dtype=torch.long)], -1)

    return drawn(), drawn()


def detections(g: Generator, n: int) -> Batch:
    """Boxes with scores and labels for each image, and the true boxes."""

    def boxes(count: int) -> Tensor:
        corner = 50 * torch.rand(count, 2, generator=g)
        return torch.cat([corner, corner + 5 + 20 * torch.rand(count, 2, generator=g)], -1)

    preds, target = [], []
    for _ in range(max(n // 4, 2)):
        found = {"boxes": boxes(4), "labels": torch.randint(3, (4,), generator=g)}
        preds.append(found | {"scores": torch.rand(4, generator=g)})
        target.append({"boxes": found["boxes"][:3] + 1.0, "labels": found["labels"][:3]})
    return preds, target


def ignite_detections(g: Generator, n: int) -> Batch:
    """The same under the names that Ignite uses."""
    preds, target = detections(g, n)
    found = [{"bbox": p["boxes"], "scores": p["scores"], "labels": p["labels"]} for p in preds]
    true = [{"bbox": t["boxes"], "labels": t["labels"], "iscrowd": torch.zeros(3, dtype=torch.bool)} for t in target]
    return found, true


def points(g: Generator, n: int) -> Batch:
    """Two sets of points for each sample, (B, 10, 3)."""
    return tuple(torch.randn(n, 10, 3, generator=g) for _ in range(2))


def meshes(g: Generator, n: int) -> Batch:
    """Vertices of a face over time, (frames, vertices, 3)."""
    return tuple(torch.randn(n, 12, 3, generator=g) for _ in range(2))


def sound(g: Generator, n: int) -> Batch:
    """Noisy and clean sound, (B, 1200)."""
    clean = torch.randn(max(n // 4, 2), 1200, generator=g)
    return clean + 0.1 * torch.randn(clean.shape, generator=g), clean


def speakers(g: Generator, n: int) -> Batch:
    """Sound of two speakers, (B, 2, 400)."""
    return tuple(torch.randn(max(n // 4, 2), 2, 400, generator=g) for _ in range(2))


def spectra(g: Generator, n: int) -> Batch:
    """Complex spectra as pairs of numbers, (B, 32, 16, 2)."""
    return tuple(torch.randn(max(n // 4, 2), 32, 16, 2, generator=g) for _ in range(2))


# --- text -------------------------------------------------------------------------------------------------------------

SENTENCES = (
    "the cat sat on the mat while it rained",
    "a small dog ran across the wet street",
    "we measure what we can and say what we cannot",
    "numbers should be the same on every device",
)


def _sentences(g: Generator, n: int) -> list[str]:
    return [SENTENCES[int(i)] for i in torch.randint(len(SENTENCES), (max(n // 4, 2),), generator=g)]


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
    found = [{"prediction_text": text, "id": str(i)} for i, text in enumerate(preds)]
    true = [{"answers": {"answer_start": [0], "text": [text]}, "id": str(i)} for i, text in enumerate(target)]
    return found, true


def language(g: Generator, n: int) -> Batch:
    """Logits over a vocabulary and the next tokens, (B, 7, V) and (B, 7)."""
    size = max(n // 4, 2)
    return torch.randn(size, 7, WORDS, generator=g), torch.randint(WORDS, (size, 7), generator=g)


def language_classes_first(g: Generator, n: int) -> Batch:
    """The same with the vocabulary in the second place, (B, V, 7)."""
    scores, target = language(g, n)
    return scores.movedim(-1, 1), target
