"""Calls of catalyst."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, function, instance, labels, named, noise, uniform

from assay.audit import Case


def warp():
    return named("catalyst.contrib.losses.recsys.WARPLoss")()


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("catalyst.metrics.functional._focal.sigmoid_focal_loss", noise(8), labels(2, 8))
    yield function("catalyst.metrics.functional._focal.reduced_focal_loss", noise(8), labels(2, 8))
    yield instance("catalyst.contrib.losses.triplet.TripletLoss", noise(6, 4), labels(2, 6))
    yield case("catalyst.contrib.losses.recsys.WARPLoss", warp, (noise(4, 6), torch.eye(6)[:4]))
    yield function(
        "catalyst.metrics.functional._average_precision.binary_average_precision", uniform(8, 3), labels(2, 8, 3)
    )
    yield function("catalyst.metrics.functional._auc.auc", uniform(8, 3), labels(2, 8, 3))
    yield function("catalyst.metrics.functional._mrr.reciprocal_rank", uniform(8, 3), labels(2, 8, 3).float(), k=2)
    yield function("catalyst.metrics.functional._ndcg.ndcg", uniform(8, 3), labels(2, 8, 3).float(), topk=[2])
    yield function("catalyst.metrics.functional._hitrate.hitrate", uniform(8, 3), labels(2, 8, 3).float(), topk=[2])
    for n in ("BarlowTwinsLoss",):
        yield instance(f"catalyst.contrib.losses.{n}", noise(6, 4), noise(6, 4))
    for n in ("DiceLoss", "IoULoss", "TrevskyLoss", "FocalTrevskyLoss", "FocalLossBinary"):
        yield instance(
            f"catalyst.contrib.losses.{n}",
            uniform(2, 3, 8, 8),
            labels(2, 2, 3, 8, 8).float(),
            **{"alpha": 0.5} if "Trev" in n else {},
        )
    yield instance("catalyst.contrib.layers.ArcFace", noise(4, 8), labels(3, 4), in_features=8, out_features=3)
    yield instance("catalyst.contrib.layers.CurricularFace", noise(4, 8), labels(3, 4), in_features=8, out_features=3)
    yield instance("catalyst.contrib.layers.CosFace", noise(4, 8), labels(3, 4), in_features=8, out_features=3)
