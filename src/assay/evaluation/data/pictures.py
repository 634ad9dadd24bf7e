"""Small pictures of the worst samples: the model's input, with boxes or masks of prediction and target."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from assay.devices.placement import to_host
from assay.render.pictures import COLORS, Picture, PictureBox

LONG_SIDE = 160
"""Of a picture, in pixels."""
MIN_SCORE = 0.3
"""The score from which on a detection is drawn."""
MOST_BOXES = 20
_GAP = 4  # pixels between two images

Marks: TypeAlias = Mapping[str, Any]
"""What is drawn on an image, as plain data: ``boxes`` of numbers, or two compressed ``masks``."""
Pixels: TypeAlias = NDArray[np.uint8]


def find_image(arguments: tuple[Sequence[Any], Mapping[str, Any]]) -> Tensor | None:
    """The first image in the arguments of a model.

    A batch of images is a tensor `(N, C, H, W)` with 1, 3 or 4 channels, a tensor `(N, H, W)` of at least 8 x 8 pixels,
    or a list of images `(C, H, W)` or `(H, W)`.

    Example:
        >>> find_image(((torch.zeros(5, 3, 8, 9),), {})).shape, find_image(((torch.zeros(5, 64),), {}))
        (torch.Size([3, 8, 9]), None)
    """
    args, kwargs = arguments
    for each in (*args, *kwargs.values()):
        if isinstance(each, Tensor | list | tuple) and len(each.shape if isinstance(each, Tensor) else each):
            image = each[0] if len(each) else None
            if isinstance(image, Tensor) and _is_image(image):
                return image
    return None


def _is_image(tensor: Tensor) -> bool:
    if not tensor.numel() or tensor.is_complex():
        return False
    if tensor.ndim == 2:
        return min(tensor.shape) >= 8
    return tensor.ndim == 3 and tensor.shape[0] in (1, 3, 4)


def draw(id: str, image: Tensor, marks: Marks | None, classes: Sequence[str]) -> Picture:
    """A picture of an image with what is drawn on it.

    Args:
        id: which sample it is.
        image: `(C, H, W)` or `(H, W)`. Values that are not all between 0 and 1 are scaled from the least to the
            largest; of four channels the first three are shown.
        marks: boxes, or masks that are shown on two copies of the image: of the prediction, and of the target.
        classes: the names of the classes.
    """
    pixels, scale = _pixels(image)
    if marks and "masks" in marks:
        own, true = (_mask_from(text, marks["shape"]) for text in marks["masks"])
        gap = np.full((len(pixels), _GAP, 3), 128, np.uint8)
        both = np.concatenate([_painted(pixels, own), gap, _painted(pixels, true)], 1)
        return Picture.of(id, both, note="Masks: the prediction on the left, the target on the right.")
    if not marks:
        return Picture.of(id, pixels)
    boxes = [_box(each, scale, classes) for each in marks["boxes"]]
    note = f"Boxes: detections with a score of {MIN_SCORE:g} or more, at most {MOST_BOXES}; dashed: true boxes."
    return Picture.of(id, pixels, boxes, note)


def _pixels(image: Tensor) -> tuple[Pixels, float]:
    """The pixels of a small image, and how many of them one pixel of the image is."""
    planes = to_host(image)
    planes = planes[None] if planes.ndim == 2 else planes[:3]
    if planes.dtype == torch.uint8:
        planes = planes.float() / 255
    planes = planes.double().nan_to_num(0, 0, 0)
    low, high = planes.min(), planes.max()
    if low < 0 or high > 1:
        planes = (planes - low) / (high - low).clamp_min(1e-300)
    scale = min(1.0, LONG_SIDE / max(planes.shape[1:]))
    if scale < 1:
        size = [max(1, round(side * scale)) for side in planes.shape[1:]]
        planes = interpolate(planes[None], size, mode="bilinear", antialias=True)[0]
    pixels: Pixels = (255 * planes).round().clamp(0, 255).to(torch.uint8).permute(1, 2, 0).numpy()
    return np.ascontiguousarray(pixels[..., 0] if len(planes) == 1 else pixels), scale


def box_marks(prediction: Any, target: Any, box_format: str) -> Marks | None:
    """The boxes of an image: the detections of the highest scores, and the true ones; None where it has none."""
    if not all(isinstance(each, Mapping) and "boxes" in each for each in (prediction, target)):
        return None
    scores = to_host(prediction["scores"]).double()
    best = scores.argsort(descending=True, stable=True)[:MOST_BOXES].tolist()
    detections = _numbers(prediction, box_format)
    rows = [[*detections[k], float(scores[k])] for k in best if scores[k] >= MIN_SCORE]
    return {"boxes": [[*each, None] for each in _numbers(target, box_format)] + rows}


def _numbers(sample: Mapping[str, Tensor], box_format: str) -> list[list[float]]:
    """The left, top, right and bottom edge and the label of each box."""
    boxes = to_host(sample["boxes"]).double().reshape(-1, 4)
    first, second = boxes[:, :2], boxes[:, 2:]
    if box_format == "cxcywh":
        first = first - second / 2
    ends = second if box_format == "xyxy" else first + second
    labels = to_host(sample["labels"]).tolist()
    return [[*box, label] for box, label in zip(torch.cat([first, ends], 1).tolist(), labels, strict=True)]


def _box(numbers: Sequence[Any], scale: float, classes: Sequence[str]) -> PictureBox:
    left, top, right, bottom = (round(edge * scale, 2) for edge in numbers[:4])
    return PictureBox(left, top, right, bottom, class_name(numbers[4], classes), numbers[5])


def class_name(label: int, classes: Sequence[str]) -> str:
    """The name of a class, or its number."""
    return classes[label] if 0 <= label < len(classes) else f"class {label}"


def are_masks(preds: Tensor, target: Tensor | None) -> bool:
    """Whether a batch is masks: the class of each pixel `(N, H, W)`, or `(N, C, H, W)` of 0 and 1."""
    if target is None or preds.ndim not in (3, 4) or preds.shape != target.shape:
        return False
    return not (preds.is_floating_point() or target.is_floating_point())


def mask_marks(prediction: Tensor, target: Tensor) -> Marks:
    """The masks of an image, small."""
    masks = [_small_mask(each) for each in (prediction, target)]
    texts = [base64.b64encode(zlib.compress(mask.tobytes(), 9)).decode() for mask in masks]
    return {"masks": texts, "shape": list(masks[0].shape)}


def _small_mask(mask: Tensor) -> Pixels:
    if mask.ndim == 3:  # the last of the classes that a pixel has
        numbers = torch.arange(len(mask), device=mask.device).view(-1, 1, 1) + (len(mask) == 1)
        mask = (mask * numbers).amax(0)
    step = -(-max(mask.shape) // LONG_SIDE)
    small: Pixels = (to_host(mask[::step, ::step]).long() % 256).to(torch.uint8).numpy()
    return small


def _mask_from(text: str, shape: Sequence[int]) -> Pixels:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(shape)


def _painted(pixels: Pixels, mask: Pixels) -> Pixels:
    """An image whose classes other than the first are tinted, each in its color."""
    rows, columns = (
        np.arange(side) * mask_side // side for side, mask_side in zip(pixels.shape[:2], mask.shape, strict=True)
    )
    classes = mask[rows[:, None], columns]
    tints = np.array([[int(color[k : k + 2], 16) for k in (1, 3, 5)] for color in COLORS])
    image = np.broadcast_to(pixels[..., None] if pixels.ndim == 2 else pixels, (*classes.shape, 3))
    painted = 0.4 * image + 0.6 * tints[(classes.astype(int) - 1) % len(COLORS)]
    return np.where((classes > 0)[..., None], painted.round(), image).astype(np.uint8)
