"""Digits on a canvas: detection

Four handwritten digits at random places of each image. The detector takes connected bright regions as boxes and names
them by the nearest digit that it knows.

- Mean average precision as pycocotools computes it, with an interval from resampled images.
- The worst images are shown with their boxes; dashed ones are true. Digits that touch become one box.
"""

import numpy as np
import torch
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from assay import evaluate
from assay.metrics import MeanAveragePrecision

digits = load_digits()
nearest = KNeighborsClassifier(5).fit(digits.data[:900], digits.target[:900])
rng = np.random.default_rng(0)


def draw():
    """An image of four digits, with their boxes and labels."""
    canvas, boxes, labels = np.zeros((40, 40)), [], []
    for k in rng.integers(900, len(digits.images), 4):
        top, left = rng.integers(0, 32, 2)
        canvas[top : top + 8, left : left + 8] = np.maximum(canvas[top : top + 8, left : left + 8], digits.images[k])
        ys, xs = np.nonzero(digits.images[k] > 4)
        boxes.append([left + xs.min(), top + ys.min(), left + xs.max() + 1, top + ys.max() + 1])
        labels.append(digits.target[k])
    truth = {"boxes": torch.tensor(np.array(boxes), dtype=torch.float32), "labels": torch.tensor(np.array(labels))}
    return torch.tensor(canvas[None] / 16, dtype=torch.float32), truth


def detect(images):
    """The boxes, scores and labels of each image."""
    return [detections(image[0].numpy() * 16) for image in images]


def detections(canvas):
    regions, _ = ndimage.label(canvas > 4, np.ones((3, 3)))
    boxes, scores, labels = [], [], []
    for ys, xs in ndimage.find_objects(regions):
        patch = np.zeros((8, 8))
        cut = canvas[ys, xs][:8, :8]
        patch[: cut.shape[0], (8 - cut.shape[1]) // 2 : (8 - cut.shape[1]) // 2 + cut.shape[1]] = cut
        share = nearest.predict_proba(patch.reshape(1, -1))[0]
        boxes.append([xs.start, ys.start, xs.stop, ys.stop])
        scores.append(share.max())
        labels.append(share.argmax())
    return {
        "boxes": torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
        "scores": torch.tensor(np.array(scores), dtype=torch.float32),
        "labels": torch.tensor(np.array(labels), dtype=torch.int64),
    }


def collate(samples):
    images, truths = zip(*samples, strict=True)
    return torch.stack(images), list(truths)


loader = torch.utils.data.DataLoader([draw() for _ in range(120)], batch_size=40, collate_fn=collate)
metrics = {"box": MeanAveragePrecision(class_metrics=True)}
report = evaluate(
    detect, loader, metrics, classes=list("0123456789"), device="cpu", progress=False, title="Digits on a canvas"
)
