"""Metrics of labels with TorchEval's definitions."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torcheval.metric import CompatibleTorchEval, CountsOfOthers
from assay.compat.for_torchmetrics.batches import NO_LABEL, labels_of
from assay.decide import first_largest
from assay.devices.placement import can_read
from assay.meter import Meter
from assay.metrics import ConfusionMatrix, StatScores, Sum

_HOME = "torcheval.metrics.functional.classification"

_MODULES = {"Accuracy": "accuracy", "F1Score": "f1_score", "Precision": "precision", "Recall": "recall"}
"""Of the functions with which TorchEval checks batches, by how the names of its classes end."""


def check(module: str, name: str) -> Any:
    """The function with which TorchEval checks the shapes of a batch."""
    return getattr(import_module(f"{_HOME}.{module}"), f"_{name}_update_input_check")


def _module(name: str) -> str:
    """The module of a class of labels."""
    return next(module for end, module in _MODULES.items() if name.endswith(end))


def decided(scores: Tensor, threshold: float) -> Tensor:
    """1 for scores that are a threshold or more, else 0; NaN is invalid."""
    return torch.where(scores >= threshold, 1, torch.where(scores < threshold, 0, NO_LABEL))


def _classes(preds: Tensor) -> Tensor:
    """Labels, or of rows of scores the class with the largest; a row with NaN has an invalid one."""
    if preds.ndim != 2:
        return labels_of(preds)
    found = first_largest(preds if preds.is_floating_point() else preds.float())
    return torch.where(found < preds.shape[1], found, NO_LABEL)


class _Hits(CountsOfOthers):
    """How many of so many are right; NaN where it is not known."""

    def _meters_of(self, size: int) -> dict[str, Meter]:
        return {"value": Meter(value=Sum(nan_policy="raise"))}

    def _states(self) -> dict[str, Tensor]:
        hits, rows = self._read(), torch.tensor(float(self.meters["value"].rows), device="cpu", dtype=torch.float64)
        return self._named(tp=hits, fp=rows - hits, labels=rows, predictions=rows)

    def _named(self, tp: Tensor, fp: Tensor, labels: Tensor, predictions: Tensor) -> dict[str, Tensor]:
        """Counts by the names that the class has for them."""
        numbers = {"num_tp": tp, "num_fp": fp, "num_correct": tp, "num_total": labels}
        numbers |= dict.fromkeys(("num_label", "num_labels", "num_true_labels"), labels)
        numbers |= dict.fromkeys(("num_prediction", "num_predictions"), predictions)
        return {name: numbers[name] for name in self._states_there}

    def _count(self, input: Tensor, target: Tensor) -> None:
        self._check(input, target)
        self._begin(0)
        self.meters["value"].update(*self._batch(input, target))

    @abstractmethod
    def _check(self, input: Tensor, target: Tensor) -> None:
        """Raise what TorchEval raises for these shapes."""

    @abstractmethod
    def _batch(self, input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        """What the meter counts."""


class _Multiclass(_Hits):
    """Right labels of all classes, or true and false positives and negatives of each.

    With `k` above 1, a target is right if fewer than `k` scores are above its own.
    """

    @property
    def _micro(self) -> bool:
        return bool(self.average == "micro")

    @property
    def _k(self) -> int:
        return getattr(self, "k", 1)

    def _meters_of(self, size: int) -> dict[str, Meter]:
        if self._micro:
            return super()._meters_of(size)
        return {"value": Meter(value=StatScores(num_classes=self.num_classes + 1))}  # the last one is no class

    def _states(self) -> dict[str, Tensor]:
        if self._micro:
            return super()._states()
        tp, fp, _, fn, _ = (each.double()[: self.num_classes] for each in self._read())
        if self.average in ("macro", "weighted"):
            # TorchEval leaves absent classes out, too, except in one part of recall
            present = tp + fp + fn > 0
            tp, fp, fn = tp[present], fp[present], fn[present]
        return self._named(tp, fp, tp + fn, tp + fp)

    def _check(self, input: Tensor, target: Tensor) -> None:
        module = _module(self.original.__name__)
        check(module, module)(input, target, self.num_classes, *([self._k] if module == "accuracy" else []))

    def _batch(self, input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        target = labels_of(target)
        if self._micro:
            return (_top_hits(input, target, self._k) if self._k > 1 else _hits(_classes(input), target),)
        known = _below(target, self.num_classes)
        if self._k == 1:
            return _below(_classes(input), self.num_classes), known
        hits = _top_hits(input, target, self._k)
        missed = torch.where(hits.isnan(), NO_LABEL, self.num_classes)
        return torch.where(hits == 1, known, missed), known


class _Multilabel(_Hits):
    """Sets of labels that are right by the criterion."""

    def _check(self, input: Tensor, target: Tensor) -> None:
        if hasattr(self, "threshold"):
            check("accuracy", "multilabel_accuracy")(input, target)
        else:
            check("accuracy", "topk_multilabel_accuracy")(input, target, self.k)

    def _batch(self, input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        preds = decided(input, self.threshold) if hasattr(self, "threshold") else _first(input, self.k)
        target = labels_of(target)
        known = (preds != NO_LABEL) & (target >= 0) & (target <= 1)
        if self.criteria == "hamming":
            return ((preds == target).float().masked_fill(~known, torch.nan).flatten(),)
        if self.criteria == "overlap":
            hits = ((preds == 1) & (target == 1)).any(1) | ((preds == 0) & (target == 0)).all(1)
        elif self.criteria == "contain":
            hits = (preds >= target).all(1)
        elif self.criteria == "belong":
            hits = (preds <= target).all(1)
        else:
            hits = (preds == target).all(1)
        return (hits.float().masked_fill(~known.all(1), torch.nan),)


class _Binary(_Hits):
    """True and false positives and negatives of scores and a threshold."""

    def _meters_of(self, size: int) -> dict[str, Meter]:
        return {"value": Meter(value=StatScores())}

    def _states(self) -> dict[str, Tensor]:
        tp, fp, tn, fn, _ = (each.double() for each in self._read())
        if "num_correct" in self._states_there:
            return {"num_correct": tp + tn, "num_total": tp + fp + tn + fn}
        return self._named(tp, fp, tp + fn, tp + fp)

    def _check(self, input: Tensor, target: Tensor) -> None:
        module = _module(self.original.__name__)
        check(module, f"binary_{module}")(input, target)

    def _batch(self, input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        return decided(input, self.threshold), labels_of(target)


class _Confusion(_Hits):
    """The confusion matrix."""

    def _meters_of(self, size: int) -> dict[str, Meter]:
        return {"value": Meter(value=ConfusionMatrix(num_classes=self.num_classes))}

    def _states(self) -> dict[str, Tensor]:
        return {"confusion_matrix": self._read().double()}

    def _check(self, input: Tensor, target: Tensor) -> None:
        if hasattr(self, "threshold"):
            check("confusion_matrix", "binary_confusion_matrix")(input, target)
        elif can_read(input) and can_read(target):
            check("confusion_matrix", "confusion_matrix")(input, target, self.num_classes)
        else:  # the same without the labels
            check("f1_score", "f1_score")(input, target, self.num_classes)

    def _batch(self, input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        preds = decided(input, self.threshold) if hasattr(self, "threshold") else _classes(input)
        return preds, labels_of(target)

    def normalized(self, normalize: str | None = None) -> Any:
        """The matrix, normalized in this way."""
        return self._by_states(self.original.normalized, normalize).to(self.device, torch.float32)


def _hits(preds: Tensor, target: Tensor) -> Tensor:
    return (preds == target).float().masked_fill(preds == NO_LABEL, torch.nan)


def _top_hits(input: Tensor, target: Tensor, k: int) -> Tensor:
    """1 for rows of scores in which fewer than `k` are above that of the target, else 0; NaN for invalid data."""
    classes = input.shape[1]
    known = (target >= 0) & (target < classes) & ~input.isnan().any(1)
    of_target = input.gather(1, target.clamp(0, classes - 1)[:, None])
    return ((input > of_target).sum(1) < k).float().masked_fill(~known, torch.nan)


def _first(input: Tensor, k: int) -> Tensor:
    """1 for the `k` labels with the largest scores of each row, of equal ones the lower labels; else 0."""
    first = input.sort(dim=1, descending=True, stable=True).indices[:, :k]
    chosen = torch.zeros_like(input, dtype=torch.int64).scatter_(1, first, 1)
    return chosen.masked_fill(input.isnan().any(1, keepdim=True), NO_LABEL)


def _below(labels: Tensor, classes: int) -> Tensor:
    """Labels, of which those that are no class are invalid."""
    return torch.where(labels < classes, labels, NO_LABEL)


OF_LABELS: dict[str, type[CompatibleTorchEval]] = {
    **dict.fromkeys(("BinaryAccuracy", "BinaryPrecision", "BinaryRecall", "BinaryF1Score"), _Binary),
    **dict.fromkeys(
        ("MulticlassAccuracy", "MulticlassPrecision", "MulticlassRecall", "MulticlassF1Score"), _Multiclass
    ),
    **dict.fromkeys(("MultilabelAccuracy", "TopKMultilabelAccuracy"), _Multilabel),
    **dict.fromkeys(("BinaryConfusionMatrix", "MulticlassConfusionMatrix"), _Confusion),
}
"""The class that counts each metric of labels."""
