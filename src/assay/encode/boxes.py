"""Boxes and masks of images, as dictionaries of tensors: detections and truths as a ragged column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import move
from assay.devices.policies import reads_compiled
from assay.encode.base import Encoder
from assay.encode.instance_masks import check_masks, count_pixels
from assay.errors import ConfigError, DeviceError, DtypeError, InvalidValuesError, ShapeError, describe
from assay.tally.inputs import type_name
from assay.tally.ragged import Ragged
from assay.tally.stores.ragged_store import Groups
from assay.tally.stores.sample_store import FLOATS, WHOLE, common_dtype

BoxFormat: TypeAlias = Literal["xyxy", "xywh", "cxcywh"]
BOX_FORMATS: Mapping[str, str] = {
    "xyxy": "left, top, right, bottom",
    "xywh": "left, top, width, height",
    "cxcywh": "the center, width, height",
}
IouType: TypeAlias = Literal["bbox", "segm"]
DETECTIONS, TRUTHS, PAIRS = "detections", "truths", "pairs"
NEGATIVES, UNFINISHED = "negatives", "unfinished"
_ARGUMENTS = {DETECTIONS: "preds", TRUTHS: "target"}
_TAILS: Mapping[str, tuple[int, ...]] = dict.fromkeys(
    ("scores", "labels", "iscrowd", "area", "neg_category_ids", "not_exhaustive_category_ids"), ()
) | {"boxes": (4,)}
_OPTIONAL = ("iscrowd", "area")
_CLASSES: Mapping[str, str] = {NEGATIVES: "neg_category_ids", UNFINISHED: "not_exhaustive_category_ids"}
_WHOLE_NAMES = ("labels", "iscrowd", *_CLASSES.values())


@dataclass(frozen=True)
class BoxEncoder(Encoder):
    """The boxes of images: `preds` and `target` are lists with one dictionary of tensors an image.

    No value of a tensor on a device is read: how many boxes an image has comes from shapes. Values of boxes in host
    memory are checked at once, those on a device when the metric is computed. Of masks only their areas and what each
    detection of an image has in common with each truth are kept: `mask_area`, and the group of pairs.

    Args:
        box_format: what the four numbers of a box are.
        scored: detections have scores, and truths may be crowds and have areas; otherwise boxes and labels only.
        iou_types: which of boxes ("bbox") and masks ("segm") are read.
        federated: truths may say which classes their image has not, and of which it has more than are annotated.
    """

    box_format: BoxFormat = "xyxy"
    scored: bool = True
    iou_types: tuple[IouType, ...] = ("bbox",)
    federated: bool = False

    takes: ClassVar[str] = "boxes"
    on_cpu: ClassVar[bool] = False

    @property
    def groups(self) -> Groups:
        """The fields of detections, truths and pairs, and the shape of an item in each."""
        masks = self._masks * (("mask_area", ()),)
        groups = tuple((group, tuple((n, _TAILS[n]) for n in names) + masks) for group, names in self._names.items())
        groups += self._masks * ((PAIRS, (("intersection", ()),)),)
        return groups + self.federated * tuple((group, (("labels", ()),)) for group in _CLASSES)

    @property
    def _masks(self) -> bool:
        return "segm" in self.iou_types

    @property
    def _names(self) -> Mapping[str, tuple[str, ...]]:
        """The fields that are read as they are given."""
        common = ("boxes",) * ("bbox" in self.iou_types)
        if not self.scored:
            return dict.fromkeys((DETECTIONS, TRUTHS), (*common, "labels"))
        return {DETECTIONS: (*common, "scores", "labels"), TRUTHS: (*common, "labels", "iscrowd", "area")}

    def check(self, preds: Sequence[Any], target: Sequence[Any]) -> None:
        for images, (group, names) in zip((preds, target), self._names.items(), strict=True):
            if not _fine_together(images, names):
                for k, image in enumerate(images):
                    _check_image(f"{_ARGUMENTS[group]}[{k}]", image, names)
        if self.federated:
            for k, image in enumerate(target):
                for name in _CLASSES.values():
                    _check_tensor(f"target[{k}]", name, image.get(name, image["labels"]), None)
        if self._masks:
            for k, (own, true) in enumerate(zip(preds, target, strict=True)):
                places = [f"{_ARGUMENTS[group]}[{k}]['masks']" for group in (DETECTIONS, TRUTHS)]
                sides = zip(places, (own, true), strict=True)
                sizes = [check_masks(place, each.get("masks"), len(each["labels"])) for place, each in sides]
                if None not in sizes and sizes[0] != sizes[1]:
                    got = f"masks of {sizes[1]} with {sizes[0]} in preds"
                    raise ShapeError(describe(places[1], got, "one size", "Give both in the size of the image"))

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Ragged:
        images = {DETECTIONS: preds, TRUTHS: target}
        items = {group: {n: _flat(n, images[group]) for n in names} for group, names in self._names.items()}
        lengths = {
            group: np.array([each["labels"].shape[0] for each in several], np.int64)
            for group, several in images.items()
        }
        if self._masks:
            self._add_masks(items, preds, target)
            lengths[PAIRS] = lengths[DETECTIONS] * lengths[TRUTHS]
        if self.federated:
            for group, name in _CLASSES.items():
                classes = [{"labels": image.get(name, image["labels"][:0])} for image in target]
                items[group] = {"labels": _flat("labels", classes)}
                lengths[group] = np.array([each["labels"].shape[0] for each in classes], np.int64)
        encoded = Ragged(items, lengths)
        self._check_values(encoded)
        return encoded

    def _add_masks(self, items: dict[str, dict[str, Tensor]], preds: Sequence[Any], target: Sequence[Any]) -> None:
        """Add what is kept of masks, on the device of the labels."""
        device = items[DETECTIONS]["labels"].device
        images = [
            count_pixels((f"preds[{k}]['masks']", f"target[{k}]['masks']"), own["masks"], true["masks"])
            for k, (own, true) in enumerate(zip(preds, target, strict=True))
        ]
        for group, name, counts in (
            (DETECTIONS, "mask_area", [each.detections for each in images]),
            (TRUTHS, "mask_area", [each.truths for each in images]),
            (PAIRS, "intersection", [each.both.reshape(-1) for each in images]),
        ):
            filled = [each for each in counts if len(each)]
            together = torch.cat(filled) if filled else torch.zeros(0, dtype=torch.int64, device="cpu")
            items.setdefault(group, {})[name] = move(together, device)

    def invalid_items(self, group: str, name: str, values: Tensor) -> Tensor:
        """Which items have an invalid value: scores that are NaN, boxes that are not finite or have a negative size.

        Detections with scores may have a negative size, as in COCO: they match no truth.
        """
        if name == "scores":
            return values.isnan()
        infinite = ~values.isfinite().all(1)
        if self.scored and group == DETECTIONS:
            return infinite
        return infinite | negative_sizes(values, self.box_format)

    def _check_values(self, images: Ragged) -> None:
        """Raise for boxes in host memory that are invalid; the message has the position of the image."""
        for group, fields in images.items.items():
            for name, tensor in fields.items():
                if name in ("boxes", "scores") and reads_compiled(tensor.device):
                    wrong = torch.nonzero(self.invalid_items(group, name, tensor))
                    if len(wrong):
                        _refuse(group, images.lengths[group], name, tensor, int(wrong[0]), self.box_format)


def negative_sizes(boxes: Tensor, box_format: str) -> Tensor:
    """Which boxes have a negative width or height."""
    above, below = (boxes[:, 2:], boxes[:, :2]) if box_format == "xyxy" else (boxes[:, 2:], 0)
    return (above < below).any(1)


def _refuse(group: str, lengths: np.ndarray, name: str, tensor: Tensor, item: int, box_format: str) -> NoReturn:
    ends = np.cumsum(lengths)
    image = int(np.searchsorted(ends, item, "right"))
    row = item - int(ends[image] - lengths[image])
    place = f"{_ARGUMENTS[group]}[{image}][{name!r}][{row}]"
    value = tensor[item].tolist()
    if name == "scores":
        raise InvalidValuesError(describe(place, value, "a number", "Find out where the model computes NaN"))
    expected = f"finite {BOX_FORMATS[box_format]} with a size of 0 or more"
    do = f"Correct the box, or pass box_format={other_formats(box_format)}"
    raise InvalidValuesError(describe(place, value, expected, do))


def other_formats(box_format: str) -> str:
    """The formats that boxes of another one may be in, as text."""
    return " or ".join(repr(each) for each in BOX_FORMATS if each != box_format)


def check_box_format(box_format: object) -> None:
    """Raise a `ConfigError` for a format that is unknown."""
    if box_format not in BOX_FORMATS:
        expected = " or ".join(f"{name!r} ({text})" for name, text in BOX_FORMATS.items())
        raise ConfigError(describe("box_format", repr(box_format), expected, "Write box_format='xyxy'"))


def _fine_together(images: Sequence[Any], names: Sequence[str]) -> bool:
    """Whether all images surely have the tensors of these names, which is faster to see for all at once."""
    if {type(each) for each in images} != {dict}:
        return False
    rows = None
    for name in names:
        tensors = [image.get(name) for image in images]
        kinds = {type(each) for each in tensors}
        if name in _OPTIONAL and kinds == {type(None)}:
            continue
        if kinds != {Tensor} or not {each.dtype for each in tensors} <= _allowed(name):
            return False
        shapes = [each.shape for each in tensors]
        if {shape[1:] for shape in shapes} != {_TAILS[name]} or () in shapes:
            return False
        lengths = [shape[0] for shape in shapes]
        if rows not in (None, lengths):
            return False
        rows = lengths
    return True


def _allowed(name: str) -> frozenset[torch.dtype]:
    return frozenset(WHOLE if name in _WHOLE_NAMES else WHOLE + FLOATS)


def _check_image(place: str, image: Any, names: Sequence[str]) -> None:
    """Raise unless an image has the tensors of these names, with one row an item."""
    if not isinstance(image, Mapping):
        do = "Give one dictionary an image, such as {'boxes': ..., 'labels': ...}"
        raise ShapeError(describe(place, type_name(image), "a dictionary of tensors", do))
    rows = None
    for name in names:
        tensor = image.get(name)
        if tensor is None and name in _OPTIONAL:
            continue
        if not isinstance(tensor, Tensor):
            got = f"{type_name(tensor)}; keys {', '.join(map(str, image)) or 'none'}"
            raise ShapeError(describe(f"{place}[{name!r}]", got, "a tensor", f"Give {', '.join(names)}"))
        rows = _check_tensor(place, name, tensor, rows)


def _check_tensor(image: str, name: str, tensor: Tensor, rows: int | None) -> int:
    """Raise unless a tensor has so many rows of the right shape and dtype; how many it has."""
    shape, dtype = tensor.shape, tensor.dtype
    if shape and not shape[0] and not rows:
        return 0  # as torch.tensor([]), of any shape and dtype
    if dtype not in _allowed(name):
        place, whole = f"{image}[{name!r}]", name in _WHOLE_NAMES
        expected = f"{'' if whole else 'floats, '}int64, a narrower signed integer, uint8 or bool"
        raise DtypeError(describe(place, dtype, expected, f"Pass {place}.{'long' if whole else 'float'}()"))
    if not shape or shape[1:] != _TAILS[name] or rows not in (None, shape[0]):
        count = "N" if rows is None else rows
        expected = f"shape ({count}, 4)" if name == "boxes" else f"shape ({count},), one number a box"
        raise ShapeError(describe(f"{image}[{name!r}]", f"shape {tuple(shape)}", expected, "Give one row a box"))
    return shape[0] if rows is None else rows


def _flat(name: str, images: Sequence[Mapping[str, Any]]) -> Tensor:
    """A field of all images as one new tensor."""
    tail = _TAILS[name]
    if name in _OPTIONAL and not any(name in image for image in images):
        return _default(name, _flat("labels", images))
    tensors = [_field(name, image) if name in _OPTIONAL else image[name] for image in images]
    # Images without boxes may have tensors of any dtype and device.
    filled = [each for each in tensors if each.shape[0]] or [each.reshape(0, *tail) for each in tensors[:1]]
    if not filled:
        return torch.empty(0, *tail, dtype=torch.float32, device="cpu")
    devices, dtypes = {each.device for each in filled}, {each.dtype for each in filled}
    if len(devices) > 1:
        got = " and ".join(sorted(map(str, devices)))
        raise DeviceError(describe(name, f"images on {got}", "one device", "Move the boxes of a batch to one device"))
    if len(dtypes) > 1:
        dtype = reduce(common_dtype, sorted(dtypes, key=str))
        filled = [each.to(dtype) for each in filled]
    with torch.no_grad():
        return torch.cat(filled)


def _field(name: str, image: Mapping[str, Any]) -> Tensor:
    """A field of an image; where it is optional and not given, no truth is a crowd, and areas are NaN."""
    tensor: Tensor | None = image.get(name)
    if tensor is not None:
        return tensor
    return _default(name, image["labels"])


def _default(name: str, labels: Tensor) -> Tensor:
    if name == "iscrowd":
        return labels.new_zeros(labels.shape, dtype=torch.bool)
    return labels.new_full(labels.shape, torch.nan, dtype=torch.float32)
