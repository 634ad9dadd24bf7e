"""Images of which some classes only are annotated, as in LVIS."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from assay.encode.boxes import DETECTIONS, NEGATIVES, PAIRS, TRUTHS, UNFINISHED
from assay.metrics.detection.base import ImageBoxes
from assay.tally.stores.ragged_store import RaggedArrays

UNKNOWN = "unknown"
"""The field of detections: whether one that no truth matches may be right, as not all of its class are annotated."""


def known_detections(images: ImageBoxes, most: int) -> ImageBoxes:
    """The images with those detections only whose class was looked for, of the `most` first of each image."""
    arrays, image = images.arrays, images.image(DETECTIONS)
    order = np.lexsort((-images.field(DETECTIONS, "scores").astype(np.float64), image))
    first = np.empty(len(order), bool)
    first[order] = np.arange(len(order)) - np.searchsorted(image, image) < most
    counted = first & _listed(images, TRUTHS, NEGATIVES)
    items = {group: dict(fields) for group, fields in arrays.items.items()}
    items[DETECTIONS][UNKNOWN] = _listed(images, UNFINISHED)
    items[DETECTIONS] = {name: values[counted] for name, values in items[DETECTIONS].items()}
    lengths = dict(arrays.lengths)
    lengths[DETECTIONS] = np.bincount(image[counted], minlength=len(arrays))
    if PAIRS in items:
        pairs = np.repeat(counted, lengths[TRUTHS][image])
        items[PAIRS] = {name: values[pairs] for name, values in items[PAIRS].items()}
        lengths[PAIRS] = lengths[DETECTIONS] * lengths[TRUTHS]
    return ImageBoxes(RaggedArrays(items, lengths), images.box_format)


def _listed(images: ImageBoxes, *groups: str) -> NDArray[np.bool_]:
    """Which detections are of a class that one of the groups has in their image."""
    labels = [images.field(group, "labels").astype(np.int64) for group in (DETECTIONS, *groups)]
    classes, index = np.unique(np.concatenate(labels), return_inverse=True)
    image = np.concatenate([images.image(group) for group in (DETECTIONS, *groups)])
    keys = image * len(classes) + index
    return np.isin(keys[: len(labels[0])], keys[len(labels[0]) :])
