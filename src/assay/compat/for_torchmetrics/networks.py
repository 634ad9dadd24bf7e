"""Networks and programs that TorchMetrics runs, with assay's counts: mean scores of samples, and features of images."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.compat.for_torchmetrics.families import Arguments, ColumnSums, Family, without_counterpart
from assay.devices.placement import move
from assay.errors import InvalidValuesError, describe
from assay.integrations.optional_packages import import_package
from assay.metrics import FrechetDistance, MemorizationInformedFrechetInceptionDistance
from assay.metrics.base import Metric, number
from assay.metrics.generative.features import FeatureMetric
from assay.metrics.generative.frechet import distance_of_rows
from assay.tally.base import Tally
from assay.tally.points.feature_moments import Moments
from assay.tally.points.finite_rows import FiniteRows, PointArrays

_kernels: Any = import_package("torchmetrics.image.kid", "metrics of its names")

_FIRST = 1  # column, until the first batch says how many there are
_RANGE_IS_KNOWN = 2048  # features of Inception, whose last layer has small numbers


class FewImagesError(InvalidValuesError, RuntimeError, ValueError):
    """Too few images, for which TorchMetrics raises a `RuntimeError` or a `ValueError`."""


def there(metric: Any) -> Any:
    """The module of the class of TorchMetrics, whose functions run its network or program."""
    return sys.modules[metric.original.__module__]


def as_rows(scores: Tensor, width: int = 1) -> dict[str, Any]:
    """Scores of samples as rows of `width` numbers."""
    return {"preds": (scores if scores.dtype == torch.float64 else scores.float()).reshape(-1, width)}


def _scored(scores: Callable[..., Tensor], width: int = 1, value: Any = None) -> Family:
    """The mean, or the sum, of scores that a network or a program gives to samples."""

    def run(metric: Any, *batch: Any, **named: Any) -> dict[str, Any]:
        return as_rows(scores(metric, *batch, **named), width)

    def metric(arguments: Arguments) -> Metric:
        reduction = arguments.get("reduction", "mean")
        if reduction not in ("mean", "sum"):
            raise without_counterpart("reduction", reduction, "'mean' or 'sum'")
        return ColumnSums(width=width, reduction=reduction)

    return Family("PerSample", metric, run=run, **({} if value is None else {"value": value}))


def _quality_rows(metric: Any, img: Tensor) -> Tensor:
    score, _ = there(metric)._arniqa_update(
        img, model=metric.model, normalize=metric.normalize, autocast=metric.autocast
    )
    return score  # type: ignore[no-any-return]


def _caption_rows(metric: Any, source: Any, target: Any) -> Tensor:
    score, _ = there(metric)._clip_score_update(source, target, metric.model, metric.processor)
    return score  # type: ignore[no-any-return]


def at_least_0(value: Tensor, arguments: Arguments) -> Tensor:
    """A mean score of CLIP as TorchMetrics gives it."""
    return value.clamp(min=0)


def _opinions(metric: Any, preds: Tensor) -> Tensor:
    return there(metric).deep_noise_suppression_mean_opinion_score(  # type: ignore[no-any-return]
        preds=preds,
        fs=metric.fs,
        personalized=metric.personalized,
        device=metric.cal_device,
        num_threads=metric.num_threads,
        cache_session=metric.cache_sessions,
    )


def _reverberation(metric: Any, preds: Tensor) -> Tensor:
    names = ("fs", "n_cochlear_filters", "low_freq", "min_cf", "max_cf", "norm", "fast")
    settings = (getattr(metric, name) for name in names)  # on the CPU: it needs float64
    return there(metric).speech_reverberation_modulation_energy_ratio(move(preds, "cpu"), *settings)  # type: ignore[no-any-return]


def _features(network: Callable[[Any, Tensor], Tensor]) -> Callable[..., dict[str, Any]]:
    """Features of images of one group, real or generated."""

    def run(metric: Any, imgs: Tensor, real: bool) -> dict[str, Any]:
        rows = network(metric, imgs)
        rows = rows[None] if rows.ndim == 1 else rows
        rows = rows if rows.dtype == torch.float64 else rows.float()
        return {"preds": rows, "target": torch.full((len(rows),), int(real), device=rows.device)}

    return run


def _inception(metric: Any, imgs: Tensor) -> Tensor:
    as_bytes = metric.normalize and not metric.__dict__.get("used_custom_model", False)
    return metric.inception((imgs * 255).byte() if as_bytes else imgs)  # type: ignore[no-any-return]


def _logits(metric: Any, imgs: Tensor) -> dict[str, Any]:
    rows = _inception(metric, imgs).float()
    return {"preds": rows, "target": torch.zeros(len(rows), dtype=torch.int64, device=rows.device)}


@dataclass(frozen=True, kw_only=True)
class DistanceOfRows(FeatureMetric):
    """The Fréchet distance of features of any range, all of which are kept."""

    def compute(self, counts: tuple[PointArrays, PointArrays]) -> Tensor:
        return number(distance_of_rows(self, counts)[0])


@dataclass(frozen=True, kw_only=True)
class KernelOfSubsets(FeatureMetric):
    """The mean and the standard deviation of the kernel distance over random subsets.

    Args:
        subsets: how many are drawn, by torch's generator.
        size: of each.
        degree: of the kernel.
        gamma: the same.
        coef: the same.
    """

    subsets: int
    size: int
    degree: int
    gamma: float | None
    coef: float

    def compute(self, counts: tuple[PointArrays, PointArrays]) -> tuple[Tensor, Tensor]:
        generated, real = (torch.from_numpy(each.preds) for each in counts)
        if min(len(generated), len(real)) < self.size:
            what = "Argument `subset_size` should be smaller than the number of samples"
            got, do = (
                f"{len(real)} real and {len(generated)} generated images",
                "Update with more, or lower subset_size",
            )
            raise FewImagesError(f"{what}. {describe('update', got, f'{self.size} or more of each', do)}")
        found = torch.stack([self._distance(real, generated) for _ in range(self.subsets)])
        return found.mean(), found.std(unbiased=False)

    def _distance(self, real: Tensor, generated: Tensor) -> Tensor:
        some = (rows[torch.randperm(len(rows), device="cpu")[: self.size]] for rows in (real, generated))
        return _kernels.poly_mmd(*some, self.degree, self.gamma, self.coef)  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class ScoreOfSplits(Metric):
    """The mean and the standard deviation of the inception score over random parts of the images.

    Args:
        num_classes: the number of logits.
        splits: how many parts there are, which torch's generator draws.
    """

    inputs = "logits"

    num_classes: int
    splits: int

    def tally(self, weighted: bool) -> Tally:
        return FiniteRows((self.num_classes,), (), weighted)

    def compute(self, counts: PointArrays) -> tuple[Tensor, Tensor]:
        rows = torch.from_numpy(counts.in_order().preds)
        logs = rows[torch.randperm(len(rows), device="cpu")].log_softmax(1)
        scores = torch.stack([_inception_score(each) for each in logs.chunk(self.splits)])
        return scores.mean(), scores.std()


def _inception_score(logs: Tensor) -> Tensor:
    shares = logs.exp()
    return (shares * (logs - shares.mean(0).log())).sum(1).mean().exp()


def _features_of(group: int) -> Callable[[tuple[PointArrays, PointArrays], Any], list[Tensor]]:
    """The features of a group, in the order of their values, as a state of TorchMetrics' class."""

    def features(counts: tuple[PointArrays, PointArrays], metric: Any) -> list[Tensor]:
        rows = counts[group].in_order().preds
        return [torch.from_numpy(rows)] if len(rows) else []

    return features


def _moments_of(group: int, name: str) -> Callable[[Any, Any], Tensor]:
    """A state of `FrechetInceptionDistance` of a group: its number of images, or sums of features or of products."""

    def moments(counts: tuple[Moments | PointArrays, Moments | PointArrays], metric: Any) -> Tensor:
        found = counts[group]
        if isinstance(found, PointArrays):
            rows = found.in_order().preds.astype(np.float64)
            values = {"num_samples": np.array(len(rows)), "sum": rows.sum(0), "cov_sum": rows.T @ rows}
        else:
            sums = np.array([math.ldexp(each, found.unit) for each in found.sums])
            products = found.scatter + np.outer(sums, sums) / max(1, found.count)
            values = {"num_samples": np.array(found.count), "sum": sums, "cov_sum": products}
        return torch.from_numpy(values[name])

    return moments


_FEATURES = {"fake_features": _features_of(0), "real_features": _features_of(1)}
_MOMENTS = {
    f"{kind}_features_{name}": _moments_of(group, name)
    for group, kind in enumerate(("fake", "real"))
    for name in ("cov_sum", "num_samples", "sum")
}


def _two_groups(assay: str, make: Callable[[Arguments], Metric], value: Any = None, states: Any = None) -> Family:
    def metric(arguments: Arguments) -> Metric:
        if arguments["reset_real_features"] is False:
            raise without_counterpart("reset_real_features", False, "True")
        return make(arguments)

    options = {} if value is None else {"value": value}
    return Family(assay, metric, run=_features(_inception), by_shape="num_features", states=states or {}, **options)


def _frechet(arguments: Arguments) -> Metric:
    bounded = arguments["feature"] == _RANGE_IS_KNOWN
    return FrechetDistance(num_features=_FIRST) if bounded else DistanceOfRows(num_features=_FIRST)


def _of_two_groups(value: Tensor, arguments: Arguments) -> Tensor:
    if math.isnan(value):
        what = "More than one sample is required for both the real and fake distributed to compute FID"
        do = "Update with two or more of each"
        raise FewImagesError(f"{what}. {describe('update', 'fewer images', '2 or more of each group', do)}")
    return value


OF_NETWORKS: Mapping[str, Family] = {
    "ARNIQA": _scored(_quality_rows),
    "CLIPScore": _scored(_caption_rows, value=at_least_0),
    "DeepImageStructureAndTextureSimilarity": _scored(lambda metric, *images: there(metric)._dists_update(*images)),
    "DeepNoiseSuppressionMeanOpinionScore": _scored(_opinions, 4),
    "FrechetInceptionDistance": _two_groups("FrechetDistance", _frechet, _of_two_groups, _MOMENTS),
    "InceptionScore": Family(
        "InceptionScore",
        lambda all: ScoreOfSplits(num_classes=_FIRST, splits=all["splits"]),
        run=_logits,
        by_shape="num_classes",
    ),
    "KernelInceptionDistance": _two_groups(
        "KernelInceptionDistance",
        lambda all: KernelOfSubsets(
            num_features=_FIRST,
            size=all["subset_size"],
            **{name: all[name] for name in ("subsets", "degree", "gamma", "coef")},
        ),
        states=_FEATURES,
    ),
    "LearnedPerceptualImagePatchSimilarity": _scored(
        lambda metric, *images: there(metric)._lpips_update(*images, net=metric.net, normalize=metric.normalize)
    ),
    "MemorizationInformedFrechetInceptionDistance": _two_groups(
        "MemorizationInformedFrechetInceptionDistance",
        lambda all: MemorizationInformedFrechetInceptionDistance(
            num_features=_FIRST, cosine_distance_eps=all["cosine_distance_eps"]
        ),
        states=_FEATURES,
    ),
    "NonIntrusiveSpeechQualityAssessment": _scored(
        lambda metric, preds: there(metric).non_intrusive_speech_quality_assessment(preds, metric.fs), 5
    ),
    "PerceptualEvaluationSpeechQuality": _scored(
        lambda metric, *signals: there(metric).perceptual_evaluation_speech_quality(
            *signals, metric.fs, metric.mode, False, metric.n_processes
        )
    ),
    "ShortTimeObjectiveIntelligibility": _scored(
        lambda metric, *signals: there(metric).short_time_objective_intelligibility(
            *signals, metric.fs, metric.extended, False
        )
    ),
    "SpeechReverberationModulationEnergyRatio": _scored(_reverberation),
}
