"""Metrics of points as TorchMetrics defines them: clusters, ratings of several raters, point clouds and faces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from assay.compat.torchmetrics_families import Arguments, Family
from assay.errors import InvalidValuesError, describe
from assay.metrics import (
    CalinskiHarabaszScore,
    DaviesBouldinScore,
    DunnIndex,
    FleissKappa,
    LipVertexError,
    ProcrustesDisparity,
)

_FIRST = 2  # categories, until the first batch says how many there are


class ClustersError(InvalidValuesError, ValueError):
    """One cluster, or as many as points, for which TorchMetrics raises a `ValueError`."""


def _clusters(data: Tensor, labels: Tensor) -> dict[str, Any]:
    if data.ndim != 2:
        raise ValueError(f"Expected 2D data, got {data.ndim}D data instead")
    if not data.is_floating_point():
        raise ValueError(f"Expected floating point data, got {data.dtype} data instead")
    if labels.ndim != 1:
        raise ValueError(f"Expected 1D labels, got {labels.ndim}D labels instead")
    return {"preds": data, "target": labels}


def _of_clusters(value: Tensor, arguments: Arguments) -> Tensor:
    if value.isnan():
        what = "Number of detected clusters must be greater than one and less than the number of samples."
        do = "Check the labels"
        raise ClustersError(f"{what} {describe('labels', 'one cluster, or one point in each', 'several', do)}")
    return value


@dataclass(frozen=True)
class RatingBatch:
    """Numbers of ratings, or scores of each rater."""

    mode: str

    def __call__(self, ratings: Tensor) -> dict[str, Any]:
        probs = self.mode == "probs"
        if probs and (ratings.ndim != 3 or not ratings.is_floating_point()):
            raise ValueError(
                "If argument ``mode`` is 'probs', ratings must have 3 dimensions with the format"
                " [n_samples, n_categories, n_raters] and be floating point."
            )
        if not probs and (ratings.ndim != 2 or ratings.is_floating_point()):
            raise ValueError(
                "If argument ``mode`` is `counts`, ratings must have 2 dimensions with the format"
                " [n_samples, n_categories] and be none floating point."
            )
        return {"preds": ratings}


def _clouds(point_cloud1: Tensor, point_cloud2: Tensor) -> dict[str, Any]:
    if point_cloud1.shape != point_cloud2.shape:
        text = "Predictions and targets are expected to have the same shape, but got"
        raise RuntimeError(f"{text} {point_cloud1.shape} and {point_cloud2.shape}.")
    if point_cloud1.ndim != 3:
        raise ValueError(
            "Expected both datasets to be 3D tensors of shape (N, M, D), where N is the batch size, M is the number of"
            f" data points and D is the dimensionality of the data points, but got {point_cloud1.ndim} dimensions."
        )
    return {"preds": list(point_cloud1), "target": list(point_cloud2)}


def _of_clouds(metric: Any, arguments: Arguments, batch: Mapping[str, Any], given: Sequence[Any]) -> Tensor:
    metric.encoder.check(batch["preds"], batch["target"])
    rows: Tensor = metric.encoder.rows(batch["preds"], batch["target"])
    return rows[:, 0]


def _faces(vertices_pred: Tensor, vertices_gt: Tensor) -> dict[str, Any]:
    frames = min(len(vertices_pred), len(vertices_gt))
    return {"preds": vertices_pred[:frames], "target": vertices_gt[:frames]}


OF_POINTS: Mapping[str, Family] = {
    "CalinskiHarabaszScore": Family(
        "CalinskiHarabaszScore",
        lambda all: CalinskiHarabaszScore(num_features=1),
        lambda all: _clusters,
        _of_clusters,
        by_shape="num_features",
    ),
    "DaviesBouldinScore": Family(
        "DaviesBouldinScore",
        lambda all: DaviesBouldinScore(num_features=1),
        lambda all: _clusters,
        _of_clusters,
        by_shape="num_features",
    ),
    "DunnIndex": Family(
        "DunnIndex",
        lambda all: DunnIndex(num_features=1, p=all["p"]),
        lambda all: _clusters,
        by_shape="num_features",
    ),
    "FleissKappa": Family(
        "FleissKappa",
        lambda all: FleissKappa(num_classes=_FIRST, mode=all["mode"]),
        lambda all: RatingBatch(all["mode"]),
        by_shape="num_classes",
    ),
    "LipVertexError": Family(
        "LipVertexError", lambda all: LipVertexError(mouth_map=tuple(all["mouth_map"])), lambda all: _faces
    ),
    "ProcrustesDisparity": Family(
        "ProcrustesDisparity",
        lambda all: ProcrustesDisparity(reduction=all.get("reduction", "mean")),
        lambda all: _clouds,
        rows=_of_clouds,
    ),
}
