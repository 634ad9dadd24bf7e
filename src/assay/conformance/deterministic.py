"""What has no deterministic form on a device: with ``torch.use_deterministic_algorithms(True)`` it raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.conformance.fixed_inputs import counts, filled, indices, mask, matrix, vector, zeros

Question: TypeAlias = Callable[[str], Any]
"""Asks a device, given its name."""


@contextmanager
def _deterministic() -> Iterator[None]:
    """Ask for deterministic algorithms inside the block; afterwards it is as it was."""
    asked, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(asked, warn_only=warns)


def _lengths(length: int) -> Tensor:
    return torch.tensor([length], device="cpu")


def _back(run: Callable[[Tensor], Any], *shape: int) -> Question:
    """Forward as usual, backward with deterministic algorithms."""

    def both(d: str) -> Any:
        x = filled(d, *shape).requires_grad_()
        out = run(x)
        with _deterministic():
            return torch.autograd.grad(out.sum(), x)[0]

    return both


def _strict(run: Question) -> Question:
    def both(d: str) -> Any:
        with _deterministic():
            return run(d)

    return both


DETERMINISTIC: dict[str, Question] = {
    "cumsum": _strict(lambda d: vector(d).cumsum(0)),
    "cumsum of integers": _strict(lambda d: indices(d).cumsum(0)),
    "put_": _strict(lambda d: vector(d).put_(indices(d), vector(d))),
    "put_ accumulate": _strict(lambda d: vector(d).put_(indices(d), vector(d), accumulate=True)),
    "histc": _strict(lambda d: vector(d).histc(3, 0, 3)),
    "histc of integers": _strict(lambda d: indices(d).histc(3, 0, 3)),
    "bincount": _strict(lambda d: counts(d).bincount()),
    "bincount with weights": _strict(lambda d: counts(d).bincount(vector(d))),
    "kthvalue": _strict(lambda d: vector(d).kthvalue(1)),
    "median": _strict(lambda d: vector(d).median()),
    "median of a dimension": _strict(lambda d: vector(d).median(0)),
    "mode": _strict(lambda d: vector(d).mode(0)),
    "scatter_": _strict(lambda d: vector(d).scatter_(0, indices(d), vector(d))),
    "scatter_add_": _strict(lambda d: vector(d).scatter_add_(0, indices(d), vector(d))),
    "scatter_add_ of two dimensions": _strict(lambda d: matrix(d, 2, 2).scatter_add_(0, zeros(d), matrix(d, 2, 2))),
    "scatter_reduce_ sum": _strict(lambda d: vector(d).scatter_reduce_(0, indices(d), vector(d), "sum")),
    "scatter_reduce_ mean": _strict(lambda d: vector(d).scatter_reduce_(0, indices(d), vector(d), "mean")),
    "scatter_reduce_ amax": _strict(lambda d: vector(d).scatter_reduce_(0, indices(d), vector(d), "amax")),
    "index_add_": _strict(lambda d: vector(d).index_add_(0, indices(d), vector(d))),
    "index_copy_": _strict(lambda d: vector(d).index_copy_(0, indices(d), vector(d))),
    "index_put_": _strict(lambda d: vector(d).index_put_((indices(d),), vector(d))),
    "index_put_ accumulate": _strict(lambda d: vector(d).index_put_((indices(d),), vector(d), accumulate=True)),
    "masked_scatter_": _strict(lambda d: vector(d).masked_scatter_(mask(d), vector(d))),
    "resize_": _strict(lambda d: vector(d).resize_(5)[3:].isnan().all().item()),
    "empty": _strict(lambda d: torch.empty(3, device=d).isnan().all().item()),
    "nll_loss of images": _strict(lambda d: F.nll_loss(filled(d, 1, 2, 2, 2), zeros(d)[None])),
    "cross_entropy of images": _strict(lambda d: F.cross_entropy(filled(d, 1, 2, 2, 2), zeros(d)[None])),
    "cross_entropy": _strict(lambda d: F.cross_entropy(matrix(d), indices(d))),
    "max_unpool2d": _strict(lambda d: F.max_unpool2d(filled(d, 1, 1, 2, 2), zeros(d)[None, None], (2, 2))),
    "max_unpool3d": _strict(lambda d: F.max_unpool3d(filled(d, 1, 1, 1, 2, 2), zeros(d)[None, None, None], (2, 2, 2))),
    "mm without CUBLAS_WORKSPACE_CONFIG": _strict(lambda d: matrix(d) @ matrix(d)),
    "avg_pool3d backward": _back(lambda x: F.avg_pool3d(x, 3), 2, 3, 3, 3),
    "adaptive_avg_pool2d backward": _back(lambda x: F.adaptive_avg_pool2d(x, 3), 2, 3, 3),
    "adaptive_avg_pool3d backward": _back(lambda x: F.adaptive_avg_pool3d(x, 3), 2, 3, 3, 3),
    "adaptive_max_pool2d backward": _back(lambda x: F.adaptive_max_pool2d(x, 3), 2, 3, 3),
    "max_pool2d backward": _back(lambda x: F.max_pool2d(x, 2), 1, 1, 4, 4),
    "max_pool3d backward": _back(lambda x: F.max_pool3d(x, 3), 2, 3, 3, 3),
    "fractional_max_pool2d backward": _back(
        lambda x: F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.5)), 2, 3, 4, 4
    ),
    "fractional_max_pool3d backward": _back(
        lambda x: F.fractional_max_pool3d(x, 2, output_ratio=(0.5, 0.5, 0.5)), 2, 3, 4, 4, 4
    ),
    "interpolate linear backward": _back(lambda x: F.interpolate(x, size=12, mode="linear"), 1, 2, 4),
    "interpolate bilinear backward": _back(lambda x: F.interpolate(x, size=12, mode="bilinear"), 1, 2, 4, 4),
    "interpolate bicubic backward": _back(lambda x: F.interpolate(x, size=12, mode="bicubic"), 1, 2, 4, 4),
    "interpolate trilinear backward": _back(lambda x: F.interpolate(x, size=12, mode="trilinear"), 1, 2, 4, 4, 4),
    "interpolate nearest backward": _back(lambda x: F.interpolate(x, size=12), 1, 2, 4, 4),
    "reflection_pad1d backward": _back(lambda x: F.pad(x, (1, 2), "reflect"), 2, 3, 8),
    "reflection_pad2d backward": _back(lambda x: F.pad(x, (1, 2, 3, 4), "reflect"), 2, 3, 8, 8),
    "reflection_pad3d backward": _back(lambda x: F.pad(x, (1, 2, 3, 4, 5, 6), "reflect"), 2, 3, 8, 8, 8),
    "replication_pad1d backward": _back(lambda x: F.pad(x, (1, 2), "replicate"), 2, 3, 4),
    "replication_pad2d backward": _back(lambda x: F.pad(x, (1, 2, 3, 4), "replicate"), 2, 3, 4, 4),
    "replication_pad3d backward": _back(lambda x: F.pad(x, (1, 2, 3, 4, 5, 6), "replicate"), 2, 3, 4, 4, 4),
    "grid_sample 2d backward": _back(
        lambda x: F.grid_sample(x, torch.zeros(1, 1, 1, 2, device=x.device), align_corners=False), 1, 1, 2, 2
    ),
    "grid_sample 3d backward": _back(
        lambda x: F.grid_sample(x, torch.zeros(1, 1, 1, 2, 3, device=x.device), align_corners=False), 1, 1, 2, 2, 2
    ),
    "ctc_loss backward": _back(
        lambda x: F.ctc_loss(
            x.log_softmax(-1), torch.ones(1, 2, dtype=torch.int64, device=x.device), _lengths(3), _lengths(2)
        ),
        3,
        1,
        3,
    ),
    "embedding backward": _back(lambda x: F.embedding(indices(str(x.device)), x), 3, 2),
    "embedding_bag max backward": _back(lambda x: F.embedding_bag(zeros(str(x.device)), x, mode="max"), 4, 3),
    "gather backward": _back(lambda x: x.gather(0, indices(str(x.device))), 3),
    "index backward": _back(lambda x: x[indices(str(x.device))], 3),
    "index_select backward": _back(lambda x: x.index_select(0, indices(str(x.device))), 3),
    "repeat_interleave backward": _back(lambda x: x.repeat_interleave(2), 3),
    "cumsum backward": _back(lambda x: x.cumsum(0), 3),
    "prod backward": _back(torch.prod, 3),
    "median backward": _back(torch.median, 3),
}
"""Each is one call, or the backward pass of one."""
