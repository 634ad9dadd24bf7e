"""Functions of TorchMetrics that no class has: matrices, and numbers of scores that a network or a program gives."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.compat.drop_ins import FAMILY_FUNCTIONS
from assay.compat.for_torchmetrics.boxes import OF_BOXES
from assay.compat.for_torchmetrics.families import ColumnSums, without_counterpart
from assay.compat.for_torchmetrics.metric import require_gradient
from assay.compat.for_torchmetrics.names import compatible_family_function, compatible_function
from assay.compat.for_torchmetrics.networks import as_rows, at_least_0
from assay.compat.for_torchmetrics.values import placed
from assay.devices.placement import move, to_host
from assay.devices.policies import can_hold
from assay.errors import ConfigError, NoDataWarning, taken_warnings
from assay.meter import Meter
from assay.metrics import (
    CompleteIntersectionOverUnion,
    DistanceIntersectionOverUnion,
    GeneralizedIntersectionOverUnion,
    IntersectionOverUnion,
    PerceptualPathLength,
)
from assay.metrics.detection.iou import BoxPairs

Given = Mapping[str, Any]
"""The arguments of a call, with their defaults."""

_BOXES: Mapping[str, Any] = {
    "complete_intersection_over_union": CompleteIntersectionOverUnion,
    "distance_intersection_over_union": DistanceIntersectionOverUnion,
    "generalized_intersection_over_union": GeneralizedIntersectionOverUnion,
    "intersection_over_union": IntersectionOverUnion,
}

_BOTH_WAYS = ("theils_u_matrix",)
"""Matrices that are not symmetric."""


def _corners(name: str, boxes: Tensor) -> np.ndarray:
    if boxes.ndim != 2 or boxes.shape[-1] != 4:
        raise ValueError(f"Expected {name} to be of shape (N, 4) but got {boxes.shape}")
    return boxes.detach().cpu().double().numpy()


def _overlaps(metric: Any, given: Given) -> Tensor:
    """The number of each pair of boxes; all 0 where one side has none."""
    preds, target = (_corners(name, given[name]) for name in ("preds", "target"))
    if not len(preds) or not len(target):
        size = max(len(preds), len(target))
        return torch.zeros(size, size, dtype=torch.float64, device="cpu")
    rows, columns = (each.ravel() for each in np.indices((len(preds), len(target))))
    first, second = preds[rows], target[columns]
    sizes = first[:, 2:] - first[:, :2], second[:, 2:] - second[:, :2]
    values = metric.pair_values(BoxPairs((first[:, :2], second[:, :2]), sizes))
    return torch.from_numpy(values.reshape(len(preds), len(target)))


def _box_overlap(original: Any, given: Given) -> Tensor:
    """The mean over the boxes beside each other, or the number of each pair."""
    found = _overlaps(_BOXES[original.__name__](), given)
    both_empty = found.numel() and not (len(given["preds"]) and len(given["target"]))
    if given["iou_threshold"] is not None and not both_empty:
        found = found.masked_fill(found < given["iou_threshold"], given["replacement_val"])
    if given["aggregate"]:
        diagonal = found.diag().tolist()
        mean = math.fsum(diagonal) / len(diagonal) if diagonal else 0.0
        found = torch.tensor(mean, dtype=torch.float64, device="cpu")
    is_wide = torch.float64 in (given["preds"].dtype, given["target"].dtype)
    return found.to(given["preds"].device, torch.float64 if is_wide else torch.float32)


def _average_precision(original: Any, given: Given) -> Any:
    """The dictionary of the class; TorchMetrics' own where an argument has no counterpart."""
    family = OF_BOXES["MeanAveragePrecision"]
    meter = Meter(value=family.metric(given))
    meter.update(given["preds"], given["target"])
    boxes = [each for item in given["preds"] for each in item.values() if isinstance(each, Tensor)]
    device = boxes[0].device if boxes else torch.device("cpu")
    values = placed(family.value(_value(meter), given), torch.float32, device)
    return {name: each.squeeze() if each.numel() == 1 else each for name, each in values.items()}


def _value(meter: Meter) -> Any:
    with taken_warnings(NoDataWarning):
        return meter.compute()["value"]


def _association(original: Any, given: Given) -> Tensor:
    """The association of each pair of columns, by the function of two."""
    settings = {name: value for name, value in given.items() if name != "matrix"}
    home, name = sys.modules[original.__module__], original.__name__
    of_two, columns = compatible_function(getattr(home, name.removesuffix("_matrix"))), given["matrix"].T
    found = torch.ones(len(columns), len(columns), device=columns.device)
    for i, j in itertools.combinations(range(len(columns)), 2):
        found[i, j] = of_two(columns[i], columns[j], **settings)
        found[j, i] = of_two(columns[j], columns[i], **settings) if name in _BOTH_WAYS else found[i, j]
    return found


def _best_permutation(original: Any, given: Given) -> Any:
    """TorchMetrics' choice of the permutation, by ratios of assay."""
    options = {name: value for name, value in given.items() if name not in ("metric_func", "kwargs")}
    function = given["metric_func"]
    kind = FAMILY_FUNCTIONS.get(getattr(function, "__name__", ""))
    if kind and function.__module__.startswith("torchmetrics."):  # others are of assay already, or the caller's
        function = compatible_family_function(function, kind)
    return original(**options, metric_func=function, **given.get("kwargs", {}))


def _mean_of(scores: Callable[[Any, Given], Tensor], value: Any = None) -> Callable[[Any, Given], Any]:
    """The mean, or the sum, of scores of samples; the scores where TorchMetrics gives these."""

    def call(original: Any, given: Given) -> Any:
        reduction = given.get("reduction", "mean")
        if reduction not in ("mean", "sum"):
            return original(**given)
        found = scores(original, given)
        meter = Meter(value=ColumnSums(reduction=reduction))
        meter.update(**{name: each.detach() for name, each in as_rows(found).items()})
        mean = placed(_value(meter), found.dtype, found.device)
        return mean if value is None else value(mean, given)

    return call


def _single_scores(original: Any, given: Given) -> Tensor:
    return original(**{**given, "reduction": "none"})  # type: ignore[no-any-return]


def _caption_scores(original: Any, given: Given) -> Tensor:
    home: Any = sys.modules[original.__module__]
    network = home._get_clip_model_and_processor(given["model_name_or_path"])
    score, _ = home._clip_score_update(given["source"], given["target"], *network)
    return score  # type: ignore[no-any-return]


def _of_program(original: Any, given: Given) -> Tensor:
    """The number that a program gives each signal, run on the CPU; on the device of the signals, where it is wanted."""
    device = given["preds"].device
    options = {"device": given["device"] or device} if "device" in given else {}
    found: Tensor = original(**{name: move(each, "cpu") for name, each in given.items()} | options)
    wanted = device if given.get("keep_same_device", True) else torch.device("cpu")
    return found.to(found.dtype if can_hold(wanted, found.dtype) else torch.float32).to(wanted)


def _path_length(original: Any, given: Given) -> tuple[Tensor, Tensor, Tensor]:
    """The mean, the standard deviation and the distances between the quantiles, of all that TorchMetrics computes."""
    *_, found = original(**{**given, "lower_discard": None, "upper_discard": None})
    limits = {name: given[name] for name in ("lower_discard", "upper_discard")}
    metric, distances = PerceptualPathLength(epsilon=1.0, **limits), to_host(found).double()
    if distances.isnan().any():
        raise without_counterpart("distances", "NaN", "numbers")
    kept = torch.from_numpy(metric.kept(distances.numpy(), [1] * len(distances)))
    values = metric(distances), distances[kept].std()
    return *placed(values, found.dtype, found.device), found[kept.to(found.device)]


_CALLS: Mapping[str, Callable[[Any, Given], Any]] = {
    **dict.fromkeys(_BOXES, _box_overlap),
    **dict.fromkeys(
        ("arniqa", "deep_image_structure_and_texture_similarity", "learned_perceptual_image_patch_similarity"),
        _mean_of(_single_scores),
    ),
    "clip_score": _mean_of(_caption_scores, at_least_0),
    **dict.fromkeys(
        ("cramers_v_matrix", "pearsons_contingency_coefficient_matrix", "theils_u_matrix", "tschuprows_t_matrix"),
        _association,
    ),
    "mean_average_precision": _average_precision,
    **dict.fromkeys(
        (
            *("deep_noise_suppression_mean_opinion_score", "non_intrusive_speech_quality_assessment"),
            *("perceptual_evaluation_speech_quality", "short_time_objective_intelligibility"),
            "speech_reverberation_modulation_energy_ratio",
        ),
        _of_program,
    ),
    "perceptual_path_length": _path_length,
    "permutation_invariant_training": _best_permutation,
}
"""What each function does, of the function of TorchMetrics and the arguments."""

_WITH_GRADIENT = ("permutation_invariant_training",)
"""Functions whose values have a gradient here, too."""


@functools.cache
def compatible_function_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function in the place of one of TorchMetrics that no class of it has, or the class that runs one."""
    if isinstance(original, type):
        return _class_of_function(original)
    signature, name = inspect.signature(original), original.__name__
    call = _CALLS[name]

    @functools.wraps(original)
    def value(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if name not in _WITH_GRADIENT and require_gradient(bound.arguments.values()):
            return original(*args, **kwargs)
        try:
            return call(original, bound.arguments)
        except ConfigError:  # an argument without a counterpart
            return original(*args, **kwargs)

    value.__module__ = f"assay.compat.{original.__module__}"
    return value


def _class_of_function(original: Any) -> type:
    """The class in the place of one of TorchMetrics whose `compute` calls the function that is changed here."""
    home = sys.modules[original.__module__]
    settings = [each for each in inspect.signature(original).parameters if each not in ("kwargs", "sim_net")]
    function = compatible_function_alone(home.perceptual_path_length)

    def compute(self: Any) -> Any:
        """The numbers of the generator of the last update."""
        given = {name: getattr(self, name) for name in settings}
        return function(self.generator, sim_net=self.net, device=self.device, **given)

    body = {"compute": compute, "__doc__": original.__doc__, "__module__": "assay.compat.torchmetrics.image"}
    return type(original.__name__, (original,), body)
