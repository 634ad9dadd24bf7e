"""Precision and recall of detections that were matched: the curves of each class, and their means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from torch import Tensor

from assay.metrics.base import number
from assay.metrics.detection.matching import AREAS, Array, DetectionMatches
from assay.native import matching as native
from assay.native.library import library


@dataclass(frozen=True, eq=False)
class DetectionCurves:
    """Average precision and recall of each class, NaN for classes without truths.

    Args:
        ious: the thresholds of IoU.
        most: the largest numbers of detections.
        precision: `(areas, thresholds, classes)`, for the last of `most`.
        recall: `(areas, most, classes, thresholds)`.
    """

    ious: Array
    most: tuple[int, ...]
    precision: Array
    recall: Array

    def of_classes(self, chosen: np.ndarray) -> DetectionCurves:
        """Those of some classes."""
        return replace(self, precision=self.precision[:, :, chosen], recall=self.recall[:, :, chosen])

    @classmethod
    def of(cls, found: DetectionMatches, ious: Array, most: tuple[int, ...], recalls: Array) -> DetectionCurves:
        """The curves of what was matched at these thresholds, with the precision at these recalls."""
        return cls(ious, most, *_curves(found, most, recalls))

    @property
    def summary(self) -> dict[str, Tensor]:
        """The means over classes."""
        values = {"map": self.precision[0]}
        values |= {f"map_{round(100 * iou)}": self.precision[0, self.ious == iou] for iou in (0.5, 0.75)}
        values |= {f"map_{name}": self.precision[a] for a, (name, _, _) in enumerate(AREAS) if name}
        values |= {f"mar_{k}": self.recall[0, m] for m, k in enumerate(self.most)}
        values |= {f"mar_{name}": self.recall[a, -1] for a, (name, _, _) in enumerate(AREAS) if name}
        return {name: mean_of(each) for name, each in values.items()}


def mean_of(numbers: np.ndarray) -> Tensor:
    """The mean of what is not NaN."""
    return number(float(means_of_rows(numbers.reshape(1, -1))[0]))


def means_of_rows(rows: np.ndarray) -> np.ndarray:
    """The mean of what is not NaN in each of the rows."""
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    there = ~np.isnan(flat)
    count = there.sum(1)
    total = np.where(there, flat, 0).sum(1)
    return np.asarray(np.divide(total, count, out=np.full(len(flat), np.nan), where=count > 0))


def _curves(found: DetectionMatches, most: Sequence[int], recalls: Array) -> tuple[Array, Array]:
    """The average precision `(areas, thresholds, classes)`, and the recall of the first detections of each image.

    The recall is `(areas, most, classes, thresholds)`.
    """
    areas, thresholds, detections = found.flags.shape
    classes = found.positives.shape[1]
    ends = (found.scores[1:] != found.scores[:-1]) | (found.labels[1:] != found.labels[:-1])
    last, within = np.append(ends, True)[:detections], np.stack([found.rank < k for k in most])
    starts = np.searchsorted(found.labels, np.arange(classes + 1))
    precision = np.full((areas, thresholds, classes), np.nan)
    hits = np.zeros((areas, len(most), classes, thresholds), np.int64)
    write = native.average_precision if library() is not None else _write_curves
    write(precision, hits, found.flags, last, within, starts, found.positives, recalls)
    positives = found.positives[:, None, :, None]
    return precision, np.divide(hits, positives, out=np.full(hits.shape, np.nan), where=positives > 0)


def _write_curves(
    precision: Array,
    hits: np.ndarray,
    flags: np.ndarray,
    last: np.ndarray,
    within: np.ndarray,
    starts: np.ndarray,
    positives: np.ndarray,
    recalls: Array,
) -> None:
    """What `native.average_precision` does, without compiled code."""
    for k, (start, stop) in enumerate(pairwise(starts)):
        steps = np.flatnonzero(last[start:stop])
        for a in np.flatnonzero(positives[:, k]):
            of_class = flags[a, :, start:stop]
            right, counted = (each.cumsum(1)[:, steps] for each in (of_class == 1, of_class < 2))
            precision[a, :, k] = _mean_precision(right, counted, int(positives[a, k]), recalls)
            hits[a, :, k] = np.stack([(of_class[:, each[start:stop]] == 1).sum(1) for each in within])


def _mean_precision(right: np.ndarray, counted: np.ndarray, positives: int, recalls: Array) -> Array:
    """The mean over recalls of the highest precision there or above, from counts `(thresholds, steps)`."""
    precision = right / np.maximum(counted, 1)
    highest = np.zeros((len(right), right.shape[1] + 1))  # beyond the last step it is 0
    np.maximum.accumulate(precision[:, ::-1], 1, out=highest[:, -2::-1])
    recall = right / positives
    at = [row[np.searchsorted(each, recalls)] for row, each in zip(highest, recall, strict=True)]
    return np.asarray(np.stack(at).cumsum(1)[:, -1] / len(recalls))  # added one by one, as compiled code does
