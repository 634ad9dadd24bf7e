"""TorchMetrics' functions of each pair of rows, computed in float64 on the CPU and rounded once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torchmetrics.metric import require_gradient
from assay.devices.placement import to_host
from assay.integrations.optional_packages import import_package

_helpers: Any = import_package("torchmetrics.functional.pairwise.helpers", "functions of its names")


def _cosines(x: Tensor, y: Tensor, given: Mapping[str, Any]) -> Tensor:
    """The cosine of each pair; NaN of a row of zeros."""
    x, y = (each / each.abs().amax(1, keepdim=True) if each.shape[1] else each for each in (x, y))
    found: Tensor = (x / x.norm(dim=1, keepdim=True)) @ (y / y.norm(dim=1, keepdim=True)).T
    return found


def _distances(exponent: float | None) -> Callable[[Tensor, Tensor, Mapping[str, Any]], Tensor]:
    """The norm of the difference of each pair, of differences and not of products, which cancel."""

    def of_pairs(x: Tensor, y: Tensor, given: Mapping[str, Any]) -> Tensor:
        p = float(given["exponent"] if exponent is None else exponent)
        return torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist")

    return of_pairs


_NUMBERS: Mapping[str, Callable[[Tensor, Tensor, Mapping[str, Any]], Tensor]] = {
    "pairwise_cosine_similarity": _cosines,
    "pairwise_euclidean_distance": _distances(2),
    "pairwise_linear_similarity": lambda x, y, given: x @ y.T,
    "pairwise_manhattan_distance": _distances(1),
    "pairwise_minkowski_distance": _distances(None),
}
"""The numbers of two matrices in float64, and of the arguments of the function."""


@functools.cache
def compatible_pair_function(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function in the place of one of TorchMetrics that measures each pair of rows."""
    signature, numbers = inspect.signature(original), _NUMBERS[original.__name__]

    @functools.wraps(original)
    def value(*args: Any, **kwargs: Any) -> Tensor:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if _is_theirs(given):
            return original(*args, **kwargs)
        x, y, zero_diagonal = _helpers._check_input(given["x"], given["y"], given["zero_diagonal"])
        found = numbers(to_host(x).double(), to_host(y).double(), given)
        if zero_diagonal:
            found.fill_diagonal_(0)
        reduced: Tensor = _helpers._reduce_distance_matrix(found, given["reduction"])
        return reduced.to(x.dtype).to(x.device)

    value.__module__ = f"assay.compat.{original.__module__}"
    return value


def _is_theirs(given: Mapping[str, Any]) -> bool:
    """Whether TorchMetrics computes it: with a gradient, of integers, of two dtypes, or to refuse an exponent."""
    x, y, exponent = given["x"], given["y"], given.get("exponent", 2)
    dtypes = {each.dtype for each in (x, y) if each is not None}
    is_refused = not isinstance(exponent, float | int) or not exponent >= 1
    return len(dtypes) > 1 or not x.is_floating_point() or require_gradient((x, y)) or is_refused
