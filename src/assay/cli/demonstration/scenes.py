"""A detector, trained in seconds on scenes that the demo draws: circles, squares and triangles on a textured ground."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from assay.cli.demonstration.models import SEED, Example
from assay.metrics import MeanAveragePrecision
from assay.metrics.base import Metric
from assay.render.plots import Floats

SHAPES = ("circle", "square", "triangle")
SIZE = 64
STRIDE = 4
CELLS = SIZE // STRIDE
TRAINED, HELD_OUT = 512, 200
MOST = 12
"""Detections of a scene, at most; a scene has at most five shapes."""


class Scene(NamedTuple):
    """An image with the boxes and labels of the shapes on it, and the number of the scene."""

    image: Tensor
    truth: dict[str, Tensor]
    number: int


def draw_scene(seed: int) -> Scene:
    """Draw the scene of a number: one to five shapes, turned a little, which may hide parts of each other.

    Returns:
        An image `(3, SIZE, SIZE)` from 0 to 1, and a box (left, top, right, bottom) and a label for each shape; boxes
        are those of whole shapes, also where another one lies on top.
    """
    rng = np.random.default_rng((SEED, seed))
    image = _ground(rng)
    boxes: list[Floats] = []
    labels: list[int] = []
    for _ in range(int(rng.integers(1, 6))):
        radius = rng.uniform(5, 18)
        center = rng.uniform(radius + 1, SIZE - radius - 1, 2)
        label, angle = int(rng.integers(len(SHAPES))), rng.uniform(-0.4, 0.4)
        box, mask = _shape(label, center, radius, angle)
        if all(_overlap(box, other) < 0.25 for other in boxes):
            ground = image[:, mask > 0.5].mean(1)
            color = rng.uniform(0, 1, 3)
            color += np.sign(color - ground) * 0.12  # what has the color of the ground cannot be seen
            image += mask * (color[:, None, None] + rng.normal(0, 0.04, image.shape) - image)
            boxes.append(box)
            labels.append(label)
    truth = {
        "boxes": torch.tensor(np.array(boxes), dtype=torch.float32, device="cpu"),
        "labels": torch.tensor(labels, device="cpu"),
    }
    return Scene(torch.tensor(image.clip(0, 1), dtype=torch.float32, device="cpu"), truth, seed)


def _ground(rng: np.random.Generator) -> Floats:
    """Smooth spots of some sizes, and grain."""
    ground = np.full((3, SIZE, SIZE), 0.5) + rng.uniform(-0.2, 0.2, (3, 1, 1))
    for cells in (2, 4, 8, 16):
        coarse = rng.normal(0, 0.09, (1, cells + 1, cells + 1)) + rng.normal(0, 0.03, (3, cells + 1, cells + 1))
        at = np.linspace(0, cells, SIZE, endpoint=False)
        low, part = at.astype(int), at % 1
        rows = coarse[:, low] * (1 - part)[:, None] + coarse[:, low + 1] * part[:, None]
        ground += rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part
    return np.asarray(ground + rng.normal(0, 0.04, ground.shape))


def _shape(label: int, center: Floats, radius: float, angle: float) -> tuple[Floats, Floats]:
    """The box of a shape, and how much of each pixel it covers."""
    across, down = np.meshgrid(np.arange(SIZE) + 0.5 - center[0], np.arange(SIZE) + 0.5 - center[1])
    if SHAPES[label] == "circle":
        corners = np.array([[-radius, -radius], [radius, radius]])
        inside = radius - np.hypot(across, down)
    else:
        sides = 4 if SHAPES[label] == "square" else 3
        turns = angle - np.pi / 2 + 2 * np.pi * (np.arange(sides) + (sides == 4) / 2) / sides
        corners = radius * np.stack([np.cos(turns), np.sin(turns)], 1)
        away = turns + np.pi / sides  # the directions of the sides
        from_center = [across * np.cos(turn) + down * np.sin(turn) for turn in away]
        inside = radius * np.cos(np.pi / sides) - np.max(from_center, 0)
    return np.concatenate([center + corners.min(0), center + corners.max(0)]), np.clip(inside + 0.5, 0, 1)


def _overlap(a: Floats, b: Floats) -> float:
    """The intersection of two boxes, as a part of the smaller one."""
    both = np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None).prod()
    return float(both / min((a[2:] - a[:2]).prod(), (b[2:] - b[:2]).prod()))


def _convolution(inputs: int, outputs: int, stride: int = 1, dilation: int = 1) -> nn.Sequential:
    kernel = nn.Conv2d(inputs, outputs, 3, stride, dilation, dilation, bias=False)
    return nn.Sequential(kernel, nn.BatchNorm2d(outputs), nn.ReLU())


class Detector(nn.Module):
    """For each cell of a grid, how likely a shape of each kind has its middle there, and the sides of its box.

    It has no anchors; a cell that is the largest among its neighbours is a detection.
    """

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            _convolution(3, 16, stride=2),
            _convolution(16, 32, stride=2),
            _convolution(32, 32),
            _convolution(32, 32, dilation=2),
            _convolution(32, 32, dilation=2),
            _convolution(32, 32),
            nn.Conv2d(32, len(SHAPES) + 4, 1),
        )

    def grid(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of middles `(N, 3, CELLS, CELLS)` and distances to the sides `(N, 4, CELLS, CELLS)` in cells."""
        middles, sides = self.net(images - 0.5).split([len(SHAPES), 4], 1)
        return middles - 3, nn.functional.softplus(sides + 2)

    def forward(self, images: Tensor) -> list[dict[str, Tensor]]:
        """The detections of some images `(N, 3, SIZE, SIZE)`: boxes, scores and labels of each."""
        middles, sides = self.grid(images)
        scores = middles.sigmoid()
        is_peak = scores == nn.functional.max_pool2d(scores, 3, 1, 1)
        best, at = (scores * is_peak).flatten(1).topk(MOST)
        label, cell = at // CELLS**2, at % CELLS**2
        x, y = cell % CELLS + 0.5, cell // CELLS + 0.5
        left, top, right, bottom = sides.flatten(2).gather(2, cell[:, None].expand(-1, 4, -1)).unbind(1)
        boxes = torch.stack([x - left, y - top, x + right, y + bottom], 2) * STRIDE
        return [{"boxes": boxes[i].clamp(0, SIZE), "scores": best[i], "labels": label[i]} for i in range(len(images))]


def _targets(truth: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """What the grid of a scene should be: middles, sides, and the weights of the cells for these."""
    middles, sides = torch.zeros(len(SHAPES), CELLS, CELLS, device="cpu"), torch.zeros(4, CELLS, CELLS, device="cpu")
    weights = torch.zeros(CELLS, CELLS, device="cpu")
    at = torch.arange(CELLS, device="cpu") + 0.5
    for box, label in zip(truth["boxes"] / STRIDE, truth["labels"], strict=True):
        x, y = (box[:2] + box[2:]) / 2
        near = torch.exp(-((at - x).square() + (at[:, None] - y).square()) / 0.8)
        near[int(y), int(x)] = 1
        middles[label] = middles[label].maximum(near)
        x_sides, y_sides = at.expand(CELLS, CELLS), at[:, None].expand(CELLS, CELLS)
        distances = torch.stack([x_sides - box[0], y_sides - box[1], box[2] - x_sides, box[3] - y_sides])
        here = near > 0.25
        sides[:, here] = distances[:, here]
        weights[here] = near[here]
    return middles, sides, weights


def _loss(grid: tuple[Tensor, Tensor], targets: Sequence[Tensor]) -> Tensor:
    """Focal loss of middles, and the relative error of sides."""
    (middles, sides), (right, distances, weights) = grid, targets
    scores = middles.sigmoid().clamp(1e-4, 1 - 1e-4)
    is_middle = right == 1
    focal = torch.where(
        is_middle, (1 - scores).square() * scores.log(), (1 - right) ** 4 * scores.square() * (1 - scores).log()
    )
    off = (sides - distances).abs() * weights[:, None]
    return -focal.sum() / is_middle.sum() + off.sum() / weights.sum()


def _batch(scenes: list[Scene]) -> tuple[Tensor, list[dict[str, Tensor]], Tensor]:
    images, truths, numbers = zip(*scenes, strict=True)
    return torch.stack(images), list(truths), torch.tensor(numbers, device="cpu")


class SceneExample(Example):
    """Scenes to train on, others to measure, and the detector."""

    title = "Shapes in drawn scenes"
    epochs = 12

    def __init__(self) -> None:
        self.options = {"classes": SHAPES}
        with torch.random.fork_rng(devices=[]):
            self.model: Detector = Detector()

    @property
    def metrics(self) -> dict[str, Metric]:
        return {"COCO": MeanAveragePrecision(class_metrics=True)}

    @cached_property
    def scenes(self) -> list[Scene]:
        """The scenes that are measured."""
        return [draw_scene(TRAINED + i) for i in range(HELD_OUT)]

    @property
    def held_out(self) -> DataLoader[Any]:
        data: Any = self.scenes
        return DataLoader(data, batch_size=50, collate_fn=_batch)

    def train(self, epochs: int) -> Iterator[None]:
        """Train on scenes in batches of 32."""
        scenes = [draw_scene(i) for i in range(TRAINED)]
        images = torch.stack([scene.image for scene in scenes])
        targets = [torch.stack(each) for each in zip(*(_targets(scene.truth) for scene in scenes), strict=True)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            self.model = Detector()
            optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3, weight_decay=1e-2)
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, epochs * math.ceil(TRAINED / 32))
            for _ in range(epochs):
                for rows in torch.split(torch.randperm(TRAINED, device="cpu"), 32):
                    optimizer.zero_grad()
                    loss = _loss(self.model.grid(images[rows]), [target[rows] for target in targets])
                    torch.autograd.backward(loss)
                    optimizer.step()
                    schedule.step()
                yield
