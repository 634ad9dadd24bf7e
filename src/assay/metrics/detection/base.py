"""What metrics of boxes have in common: the samples, and boxes as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
import torch

from assay.encode.boxes import DETECTIONS, TRUTHS, BoxEncoder, BoxFormat, IouType, check_box_format
from assay.errors import ConfigError, InvalidValuesError, describe
from assay.metrics.base import Metric
from assay.tally.base import Tally
from assay.tally.stores.ragged_store import RaggedArrays, RaggedStore


@dataclass(frozen=True)
class BoxMetric(Metric):
    """A metric of the boxes of images, computed from all of them.

    Shapes: `preds` and `target` are lists with one dictionary of tensors an image, on any device: `boxes` of shape
    `(n, 4)` and `labels (n,)`, integers of any size. `n` differs from image to image and may be 0. Samples are images;
    weights are refused.

    Rounding: boxes and scores are kept in their own dtype, and everything is computed in float64.

    Returns:
        float64.

    Raises:
        ConfigError: an argument that is out of range or unknown; weights.
        ShapeError, DtypeError: something that is no list of such dictionaries; the message has the position of the
            image.
        InvalidValuesError: boxes with a negative size (but for detections of `MeanAveragePrecision`), or numbers that
            are not finite: by `update`, with the position
            of the image, where they are in host memory; by `compute` where they are on another device.
    """

    family: ClassVar[str] = "detection"
    inputs: ClassVar[str] = "boxes"
    higher_is_better: ClassVar[bool | None] = True
    exact_terms: ClassVar[bool] = False
    scored: ClassVar[bool] = False

    box_format: Annotated[
        BoxFormat,
        'what the numbers of a box are: left, top, right, bottom ("xyxy"); left, top, width, height ("xywh"); or the '
        'center, width and height ("cxcywh").',
    ] = "xyxy"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_box_format(self.box_format)

    @property
    def encoder(self) -> BoxEncoder:
        """What reads the dictionaries."""
        return BoxEncoder(self.box_format, self.scored, self._iou_types, self._federated)

    @property
    def _iou_types(self) -> tuple[IouType, ...]:
        return ("bbox",)

    @property
    def _federated(self) -> bool:
        return False

    def tally(self, weighted: bool) -> Tally:
        if weighted:
            do = "Make a meter without weighted=True for metrics of boxes"
            raise ConfigError(describe("weights", "weights of images", "none", do))
        return RaggedStore(self.encoder.column, self.encoder.groups)

    def batch_tally(self, weighted: bool) -> Tally:
        return self.tally(weighted)

    def images(self, counts: RaggedArrays) -> ImageBoxes:
        """The images, after their values were found to be valid."""
        for group, fields in counts.items.items():
            for name in fields.keys() & {"boxes", "scores"}:
                values = torch.from_numpy(fields[name])
                if count := int(self.encoder.invalid_items(group, name, values).sum()):
                    what = "boxes have a negative size or are not finite" if name == "boxes" else "scores are NaN"
                    got = f"{count} of the {group}, whose {what}"
                    raise InvalidValuesError(describe(type(self).__name__, got, "none", "Correct those images"))
        return ImageBoxes(counts, self.box_format)


@dataclass(frozen=True, eq=False)
class ImageBoxes:
    """Images with their boxes as left, top, width and height, in float64."""

    arrays: RaggedArrays
    box_format: BoxFormat

    def field(self, group: str, name: str) -> np.ndarray:
        """A field of all items of a group."""
        return self.arrays.items[group][name]

    def image(self, group: str) -> np.ndarray:
        """The number of the image of each item of a group."""
        return np.repeat(np.arange(len(self.arrays)), self.arrays.lengths[group])

    @cached_property
    def boxes(self) -> dict[str, np.ndarray]:
        """The boxes of detections and truths."""
        return {group: self._boxes(self.field(group, "boxes")) for group in (DETECTIONS, TRUTHS)}

    @cached_property
    def truth_areas(self) -> np.ndarray:
        """The areas of truths; where none are given, those of their masks, or else of their boxes."""
        areas = self.field(TRUTHS, "area")
        masks = self.arrays.items[TRUTHS].get("mask_area")
        own = masks if masks is not None else self.boxes[TRUTHS][:, 2] * self.boxes[TRUTHS][:, 3]
        return np.where(np.isnan(areas), own, areas)

    def _boxes(self, boxes: np.ndarray) -> np.ndarray:
        boxes = boxes.astype(np.float64)
        if self.box_format == "xyxy":
            boxes[:, 2:] -= boxes[:, :2]
        elif self.box_format == "cxcywh":
            boxes[:, :2] -= boxes[:, 2:] / 2
        return boxes
