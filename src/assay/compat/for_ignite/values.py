"""Metrics of Ignite that metrics of assay count, of data in another layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

import assay.metrics
from assay.compat.for_ignite.metric import CompatibleIgniteMetric, NotComputableError, counts, pair, quietly
from assay.compat.for_ignite.pairs import check_regression, column, total_of, without_others, zeros_and_ones
from assay.compat.for_torchmetrics.batches import NO_LABEL
from assay.decide import first_largest
from assay.errors import ShapeError, describe
from assay.meter import Meter
from assay.metrics.base import Metric
from assay.metrics.image.base import ImageMetric
from assay.tally.rows.image_terms import ImageTerm, Similarity, StructuralSimilarity
from assay.tally.rows.windows import Window


class OneMetric(CompatibleIgniteMetric):
    """A metric that one of assay counts, with a number as its value."""

    def _meter_of(self, size: int, flag: int) -> Meter:
        return Meter(value=self._metric(size))

    def _metric(self, size: int) -> Metric:
        """What counts data of this size: the metric of this name."""
        metric: Metric = getattr(assay.metrics, self.name)()
        return metric

    def _count(self, output: Any) -> None:
        batch = self._batch(*pair(output))
        self._begin(batch[0].shape[-1] if self.sized else 0, 0)
        self.meter.update(*batch)

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        """What the meter counts of a batch."""
        return preds, target

    def _value(self, meter: Meter) -> Any:
        return float(quietly(meter))


def _distributions(scores: Tensor) -> Tensor:
    """Scores of shape `(N, C, ...)` as rows `(N, C)`."""
    if scores.ndim < 2:
        do = "Pass scores of all classes"
        raise ShapeError(describe("y_pred", f"shape {tuple(scores.shape)}", "(N, C) or (N, C, ...)", do))
    return scores.movedim(1, -1).reshape(-1, scores.shape[1])


class _Entropy(OneMetric):
    def _metric(self, size: int) -> Metric:
        return assay.metrics.Entropy(logits=True)

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        return (_distributions(preds),)


class _MutualInformation(_Entropy):
    sized = True

    def _metric(self, size: int) -> Metric:
        return assay.metrics.MutualInformation(num_classes=size, logits=True)


class _Divergence(OneMetric):
    """The divergence of the softmax of the target from that of the prediction."""

    def _metric(self, size: int) -> Metric:
        symmetric = self.name == "JSDivergence"
        kind = assay.metrics.JensenShannonDivergence if symmetric else assay.metrics.KLDivergence
        return kind(log_prob=True)

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        if preds.shape != target.shape:
            got, expected = f"shape {tuple(target.shape)}", f"that of y_pred, {tuple(preds.shape)}"
            raise ShapeError(describe("y", got, expected, "Pass the scores of both for the same samples and classes"))
        first, second = (_distributions(each).log_softmax(-1) for each in (target, preds))
        return first, second


class _TokenPerplexity(OneMetric):
    def _metric(self, size: int) -> Metric:
        return assay.metrics.Perplexity(ignore_index=self._arguments["ignore_index"])

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        if preds.ndim < 2 or (len(preds), *preds.shape[2:]) != target.shape:
            got, expected = f"shape {tuple(target.shape)}", f"(N, ...) for y_pred (N, C, ...), {tuple(preds.shape)}"
            raise ShapeError(describe("y", got, expected, "Pass one token for each row of scores"))
        rows = _distributions(preds)
        return rows[:, None], target.reshape(-1, 1)

    def _value(self, meter: Meter) -> Any:
        value = quietly(meter)
        return self._without_data() if value.isnan() else float(value)


class _ManhattanDistance(OneMetric):
    def _metric(self, size: int) -> Metric:
        return assay.metrics.MeanAbsoluteError()

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        check_regression((preds, target))
        return column(preds, target)

    def _value(self, meter: Meter) -> Any:
        return float(total_of(meter))


class _Median(OneMetric):
    """Medians of errors, of which that of percentages is in percent."""

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        self._check_shape((preds, target))
        return preds, target.reshape(preds.shape)

    def _value(self, meter: Meter) -> Any:
        return super()._value(meter) * (100 if self.name == "MedianAbsolutePercentageError" else 1)


class _MultilabelConfusion(OneMetric):
    def _metric(self, size: int) -> Metric:
        return assay.metrics.ConfusionMatrix(num_labels=self._arguments["num_classes"])

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        size = (len(preds), self._arguments["num_classes"])
        floats = preds.is_floating_point() or target.is_floating_point() or torch.bool in (preds.dtype, target.dtype)
        if preds.shape != target.shape or preds.shape[:2] != size or floats:
            self._check_input((preds, target))  # which raises
        return zeros_and_ones(preds), zeros_and_ones(target)

    def _value(self, meter: Meter) -> Any:
        matrix = quietly(meter)
        return matrix / matrix.sum((1, 2), keepdim=True).double() if self._arguments["normalized"] else matrix


class _SelectionRate(OneMetric):
    """How often each class is predicted; the flag says that labels of two classes are."""

    sized = True

    def _meter_of(self, size: int, flag: int) -> Meter:
        sizes: dict[str, Any] = {"num_labels": size} if self._multilabel else {"num_classes": 2 if flag else size}
        return Meter(value=assay.metrics.SelectionRate(**sizes))

    def _count(self, output: Any) -> None:
        preds, target = pair(output)
        self._check_shape((preds, target))
        self._check_type((preds, target))
        binary = self._type == "binary"
        self._begin(preds.shape[1] if preds.ndim > 1 else 1, int(binary))
        if binary or self._multilabel:
            preds = zeros_and_ones(preds.flatten() if binary else preds)
            self.meter.update(preds, torch.zeros_like(preds))
        else:
            self.meter.update(preds, torch.zeros_like(target.long()))

    def _value(self, meter: Meter) -> Any:
        return quietly(meter)

    def compute(self) -> Any:
        return super().compute().float()


@dataclass(frozen=True)
class _Windows(Window):
    """A window that has another size, or another deviation, along each dimension."""

    along: tuple[Window, ...] = ()

    def means(self, x: Tensor, dims: Any) -> Tensor:
        for dim, window in zip(dims, self.along, strict=True):
            x = window.means(x, (dim,))
        return x


@dataclass(frozen=True, kw_only=True)
class _SimilarityInWindows(ImageMetric):
    """SSIM of images whose borders were added."""

    similarity: Similarity

    @property
    def term(self) -> ImageTerm:
        return StructuralSimilarity(self.similarity)


class _SSIM(OneMetric):
    """SSIM of images that go on beyond their borders as in a mirror.

    Windows that are not Gaussian have at most 5 pixels along a side, wherever Ignite's are larger.
    """

    _LARGEST: ClassVar[int] = 5

    def _windows(self) -> tuple[Window, ...]:
        count = self._arguments["ndims"]
        size, sigma = (
            (given,) * count if isinstance(given, int | float) else tuple(given)
            for given in (self._arguments["kernel_size"], self._arguments["sigma"])
        )
        if self._arguments["gaussian"]:
            return tuple(map(Window, size, sigma))
        return tuple(Window(min(each, self._LARGEST)) for each in size)

    def _metric(self, size: int) -> Metric:
        given, windows = self._arguments, self._windows()
        c1, c2 = ((given[name] * given["data_range"]) ** 2 for name in ("k1", "k2"))
        return _SimilarityInWindows(similarity=Similarity(_Windows(1, along=windows), c1, c2))

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        self._check_type_and_shape(preds, target)
        border = [side for window in reversed(self._windows()) for side in [window.size // 2] * 2]
        preds, target = (each if each.is_floating_point() else each.float() for each in (preds, target))
        return tuple(functional.pad(each, border, mode="reflect") for each in (preds, target))


class _InceptionScore(OneMetric):
    """The score of what a network says of generated images: probabilities."""

    def _metric(self, size: int) -> Metric:
        return assay.metrics.InceptionScore(num_classes=self._num_features)

    def _construct(self, *args: Any, **kwargs: Any) -> None:
        self._num_features = self._arguments["num_features"] or 1000
        super()._construct(*args, **kwargs)

    def _count(self, output: Any) -> None:
        self.meter.update(self._extract_features(output).log())


class _ByQuery(CompatibleIgniteMetric):
    """A value for each number of items that are recommended."""

    def _meter_of(self, size: int, flag: int) -> Meter:
        skipped = "skip" if self._arguments["ignore_zero_hits"] else "neg"
        options: dict[str, Any] = {"by_row": True, "empty_target_action": skipped}
        kind: Any = assay.metrics.RetrievalHitRate
        if self.name == "NDCG":
            exponential = self._arguments["gain_function"] == "exp_rank"
            options["gain"] = "exponential" if exponential else "linear"
            kind = assay.metrics.RetrievalNormalizedDCG
        return Meter(**{f"k{k}": kind(top_k=k, **options) for k in self._numbers()})

    def _numbers(self) -> list[int]:
        given = self._arguments["top_k"]
        return sorted([given] if isinstance(given, int) else given)

    def _count(self, output: Any) -> None:
        if len(output) != 2 or output[0].shape != output[1].shape:
            do = "Pass scores and relevances (N, items)"
            raise ShapeError(describe("output of the engine", f"{len(output)} parts", "(y_pred, y) of one shape", do))
        preds, target = output
        preds = preds if preds.is_floating_point() else preds.float()
        if self.name == "NDCG":
            target = torch.where(target >= self._arguments["relevance_threshold"], target, 0)
        else:
            target = (target > 0).long()
        self.meter.update(preds, target)

    def _value(self, meter: Meter) -> Any:
        values = [float(quietly(meter, f"k{k}")) for k in self._numbers()]
        if any(value != value for value in values):
            raise NotComputableError(f"{self.name} must have at least one example.")
        return values


class _CohenKappa(OneMetric):
    """Agreement of labels of so many classes; where that is not said, of all labels, which are kept."""

    def _metric(self, size: int) -> Metric:
        classes = self._arguments["num_classes"]
        if classes is None:
            return assay.metrics.MutualInfoScore()  # whose counts are the labels of all samples
        return assay.metrics.CohenKappa(num_classes=classes, weights=self._arguments["weights"], ignore_index=-1)

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        preds, target = (_label_column(each) for each in (preds, target))
        if preds.ndim > 1 or target.ndim > 1:
            raise ValueError("multilabel-indicator is not supported")
        classes = self._arguments["num_classes"]
        return preds, target if classes is None else without_others(target, classes)

    def _value(self, meter: Meter) -> Any:
        if self._arguments["num_classes"] is not None:
            return super()._value(meter)
        preds, target = _labels(meter)
        classes = int(max(preds.max(), target.max())) + 1
        metric = assay.metrics.CohenKappa(num_classes=max(classes, 2), weights=self._arguments["weights"])
        return _value_of(metric, preds, target)


class _Matthews(OneMetric):
    """The correlation of all labels, which are kept; 0 where there is one class."""

    def _metric(self, size: int) -> Metric:
        return assay.metrics.MutualInfoScore()  # whose counts are the labels of all samples

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        preds, target = (_label_column(each) for each in (preds, target))
        if target.ndim > preds.ndim or preds.ndim > 2:
            got = f"y_pred of shape {tuple(preds.shape)} and y of shape {tuple(target.shape)}"
            raise ShapeError(describe("output of the engine", got, "labels (N,) or scores (N, C)", "Pass labels as y"))
        return tuple(_classes(each) for each in (preds, target))

    def _value(self, meter: Meter) -> Any:
        preds, target = _labels(meter)
        known, places = torch.unique(torch.cat([preds, target]), return_inverse=True)
        metric = assay.metrics.MatthewsCorrCoef(num_classes=max(len(known), 2))
        value = _value_of(metric, *places.split(len(preds)))
        return 0.0 if value != value else value


def _label_column(labels: Tensor) -> Tensor:
    labels = labels.flatten() if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if not labels.is_floating_point() or labels.ndim > 1:
        return labels
    return torch.where(labels == labels.trunc(), labels, NO_LABEL).long()


def _classes(labels: Tensor) -> Tensor:
    """Labels; of rows of scores the class with the largest."""
    if labels.ndim == 1:
        return labels
    return first_largest(labels if labels.is_floating_point() else labels.float())


def _labels(meter: Meter) -> tuple[Tensor, Tensor]:
    """The labels of all samples, in host memory."""
    found = counts(meter)
    preds, target = (torch.from_numpy(found[name].reshape(-1).copy()).long() for name in ("preds", "target"))
    return preds, target


def _value_of(metric: Metric, preds: Tensor, target: Tensor) -> float:
    meter = Meter(value=metric)
    meter.update(preds, target)
    return float(quietly(meter))


OF_VALUES: dict[str, type[CompatibleIgniteMetric]] = {
    "CohenKappa": _CohenKappa,
    "Entropy": _Entropy,
    **dict.fromkeys(("HitRate", "NDCG"), _ByQuery),
    "InceptionScore": _InceptionScore,
    **dict.fromkeys(("JSDivergence", "KLDivergence"), _Divergence),
    "ManhattanDistance": _ManhattanDistance,
    "MatthewsCorrCoef": _Matthews,
    **dict.fromkeys(("MedianAbsoluteError", "MedianAbsolutePercentageError", "MedianRelativeAbsoluteError"), _Median),
    "MultiLabelConfusionMatrix": _MultilabelConfusion,
    "MutualInformation": _MutualInformation,
    "Perplexity": _TokenPerplexity,
    "SSIM": _SSIM,
    "SelectionRate": _SelectionRate,
}
"""The class that counts each of these metrics."""
