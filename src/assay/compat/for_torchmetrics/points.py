"""Metrics of points as TorchMetrics defines them: clusters, ratings of several raters, point clouds and faces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torchmetrics.families import Arguments, Family
from assay.errors import InvalidValuesError, ShapeError, describe
from assay.integrations.optional_packages import import_package
from assay.integrations.torchmetrics import torchmetrics
from assay.metrics import (
    CalinskiHarabaszScore,
    ClusterAccuracy,
    DaviesBouldinScore,
    DunnIndex,
    FleissKappa,
    LipVertexError,
    ProcrustesDisparity,
)

_checks: Any = import_package("torchmetrics.utilities.checks", "metrics of its names")
_clustering: Any = import_package("torchmetrics.functional.clustering.utils", "metrics of its names")
_fleiss: Any = import_package("torchmetrics.functional.nominal.fleiss_kappa", "metrics of its names")

_FIRST = 2  # categories, until the first batch says how many there are


class ClustersError(InvalidValuesError, ValueError):
    """One cluster, or as many as points, for which TorchMetrics raises a `ValueError`."""


def _clusters(data: Tensor, labels: Tensor) -> dict[str, Any]:
    _clustering._validate_intrinsic_cluster_data(data, labels)
    return {"preds": data, "target": labels}


def _of_clusters(value: Tensor, arguments: Arguments) -> Tensor:
    if value.isnan():
        what = "Number of detected clusters must be greater than one and less than the number of samples."
        do = "Check the labels"
        raise ClustersError(f"{what} {describe('labels', 'one cluster, or one point in each', 'several', do)}")
    return value


def _cluster_accuracy(arguments: Arguments) -> ClusterAccuracy:
    classes = arguments["num_classes"]
    if not isinstance(classes, int) or classes <= 0:
        raise ValueError("Argument `num_classes` should be a positive integer")
    return ClusterAccuracy(num_classes=max(classes, 2))


def _construct_accuracy(metric: Any, num_classes: int, **options: Any) -> None:
    """What the class of TorchMetrics does, but for its need of `torch_linear_assignment`."""
    torchmetrics.Metric.__init__(metric, **options)
    metric.num_classes = num_classes


@dataclass(frozen=True)
class RatingBatch:
    """Numbers of ratings, or scores of each rater."""

    mode: str

    def __call__(self, ratings: Tensor) -> dict[str, Any]:
        shape = (0, *ratings.shape[1:]) if ratings.ndim else ()
        _fleiss._fleiss_kappa_update(
            torch.empty(shape, dtype=ratings.dtype, device="cpu"), self.mode
        )  # it checks these
        return {"preds": ratings}


def _clouds(point_cloud1: Tensor, point_cloud2: Tensor) -> dict[str, Any]:
    _checks._check_same_shape(point_cloud1, point_cloud2)
    if point_cloud1.ndim != 3:
        got, do = f"{point_cloud1.ndim} dimensions", "Pass a batch of clouds, also of one"
        raise ShapeError(describe("point_cloud1", got, "3D tensors of shape (N, M, D)", do))
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
    "ClusterAccuracy": Family(
        "ClusterAccuracy",
        _cluster_accuracy,
        construct=_construct_accuracy,
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
