"""Metrics that have several values in TorchMetrics: ROUGE, answers, groups of samples, and segments of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torchmetrics.batches import BatchFormat, labels_of, probabilities
from assay.compat.for_torchmetrics.families import Arguments, Family, without_counterpart
from assay.devices.placement import can_read
from assay.encode.base import Encoder
from assay.errors import InvalidValuesError, NoDataWarning, describe, warn
from assay.integrations.optional_packages import import_package
from assay.metrics import ByGroup, ModifiedPanopticQuality, PanopticQuality, ROUGEScore, SQuAD, StatScores
from assay.metrics.base import Metric
from assay.metrics.composition import tally_of, values_of
from assay.tally.base import Tally

_rouge: Any = import_package("torchmetrics.functional.text.rouge", "metrics of its names")
_squad: Any = import_package("torchmetrics.functional.text.squad", "metrics of its names")
_fairness: Any = import_package("torchmetrics.functional.classification.group_fairness", "metrics of its names")
_panoptic: Any = import_package("torchmetrics.functional.detection._panoptic_quality_common", "metrics of its names")

_UNANSWERED = "\0"
"""An answer that no right answer has."""


@dataclass(frozen=True, kw_only=True)
class Several(Metric):
    """The values of several metrics by name.

    Args:
        metrics: what is counted.
        names: as many names.
    """

    metrics: tuple[Metric, ...]
    names: tuple[str, ...]

    @property
    def inputs(self) -> str:  # type: ignore[override]
        """The samples that they take."""
        return self.metrics[0].inputs

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        return tuple(dict.fromkeys(each for metric in self.metrics for each in metric.encoders))

    def tally(self, weighted: bool) -> Tally:
        return tally_of(self.metrics, weighted)

    def batch_tally(self, weighted: bool) -> Tally:
        return self.tally(weighted)

    def compute(self, counts: Sequence[Any]) -> dict[str, Tensor]:
        return dict(zip(self.names, values_of(self.metrics, counts), strict=True))


_MEASURES = ("fmeasure", "precision", "recall")


def _rouge_metric(arguments: Arguments) -> Metric:
    for name in ("normalizer", "tokenizer"):
        if arguments[name] is not None:
            raise without_counterpart(name, arguments[name], "None")
    if arguments["accumulate"] != "best":
        raise without_counterpart("accumulate", arguments["accumulate"], "'best'")
    keys = _keys(arguments)
    pairs = [(key, measure) for key in keys for measure in _MEASURES]
    stems = bool(arguments["use_stemmer"])
    metrics = tuple(ROUGEScore(key, measure, use_stemmer=stems) for key, measure in pairs)  # type: ignore[arg-type]
    return Several(metrics=metrics, names=tuple(f"{key}_{measure}" for key, measure in pairs))


def _keys(arguments: Arguments) -> tuple[str, ...]:
    keys = arguments["rouge_keys"]
    return keys if isinstance(keys, tuple) else (keys,)


@dataclass(frozen=True)
class SummaryBatch:
    """Texts with lists of references.

    Args:
        has_sentences: whether each sentence is a line.
    """

    has_sentences: bool

    def __call__(self, preds: Any, target: Any) -> dict[str, Any]:
        if isinstance(target, list) and all(isinstance(each, str) for each in target):
            target = [target] if isinstance(preds, str) else [[each] for each in target]
        texts = [preds] if isinstance(preds, str) else list(preds)
        references = [[target]] if isinstance(target, str) else [list(each) for each in target]
        rows = min(len(texts), len(references))
        return {
            "preds": [self._lines(each) for each in texts[:rows]],
            "target": [[self._lines(each) for each in several] for several in references[:rows]],
        }

    def _lines(self, text: str) -> str:
        return "\n".join(_rouge._split_sentence(text)) if self.has_sentences else text


def _answers(preds: Any, target: Any) -> dict[str, Any]:
    """Answers in the order of the questions; those of no question do not count."""
    found, _ = _squad._squad_input_check(preds, target)
    questions = [target] if isinstance(target, dict) else list(target)
    texts = []
    for question in questions:
        if question["id"] not in found:
            warn(f"Unanswered question {question['id']} will receive score 0.", NoDataWarning)
        texts.append(found.get(question["id"], _UNANSWERED))
    return {"preds": texts, "target": [list(each["answers"]["text"]) for each in questions]}


def _percent(value: Mapping[str, Tensor], arguments: Arguments) -> dict[str, Tensor]:
    return {name: 100 * each for name, each in value.items()}


def _group_counts(arguments: Arguments) -> Metric:
    options = {name: arguments[name] for name in ("threshold", "ignore_index")}
    return ByGroup(StatScores(**options), num_groups=arguments["num_groups"])


@dataclass(frozen=True)
class GroupBatch:
    """Labels and the group of each sample.

    Args:
        has_target: whether the target counts.
    """

    has_target: bool = True

    def __call__(self, preds: Tensor, target: Tensor | None, groups: Tensor) -> dict[str, Any]:
        if not self.has_target or target is None:
            target = torch.zeros(preds.shape, dtype=torch.int64, device=preds.device)
        sides = probabilities(preds), labels_of(target), groups
        return dict(zip(("preds", "target", "groups"), (each.flatten() for each in sides), strict=True))


def _shares(value: Mapping[str, tuple[Tensor, ...]], arguments: Arguments) -> dict[str, Tensor]:
    counts = {name: torch.stack(each[:4]).double() for name, each in value.items()}
    return {name: each / each.sum() for name, each in counts.items()}


def _criteria(value: Mapping[str, tuple[Tensor, ...]], arguments: Arguments) -> dict[str, Tensor]:
    counts = torch.stack([torch.stack(each[:4]) for each in value.values()], 1)
    found: dict[str, Tensor] = {}
    if arguments["task"] in ("demographic_parity", "all"):
        found |= _fairness._compute_binary_demographic_parity(*counts)
    if arguments["task"] in ("equal_opportunity", "all"):
        found |= _fairness._compute_binary_equal_opportunity(*counts)
    return found


def _categories(arguments: Arguments) -> dict[str, Any]:
    things, stuffs = _panoptic._parse_categories(arguments["things"], arguments["stuffs"])
    unknown = arguments["allow_unknown_preds_category"]
    return {"things": tuple(things), "stuffs": tuple(stuffs), "allow_unknown_preds_category": unknown}


def _quality(arguments: Arguments) -> Metric:
    return PanopticQuality(return_sq_and_rq=True, return_per_class=True, **_categories(arguments))


def _segments(preds: Tensor, target: Tensor) -> dict[str, Any]:
    _panoptic._validate_inputs(preds, target)
    return {"preds": preds, "target": target}


class UnknownCategoriesError(InvalidValuesError, ValueError):
    """Categories that are neither things nor stuffs, for which TorchMetrics raises a `ValueError`."""


@dataclass(frozen=True)
class KnownSegments:
    """Categories and segments; unknown categories of `preds` are refused at once where no device must be waited for.

    Args:
        categories: those of things and stuffs.
    """

    categories: tuple[int, ...]

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        batch = _segments(preds, target)
        if can_read(preds):
            own = preds[..., 0]
            unknown = ~torch.isin(own, torch.tensor(self.categories, device="cpu"))
            if unknown.any():
                found = sorted(set(own[unknown].tolist()))
                do = "Correct them, or pass allow_unknown_preds_category=True"
                why = describe("preds", f"categories {found}", "those of things and stuffs", do)
                raise UnknownCategoriesError(f"Unknown categories found. {why}")
        return batch


def _segment_batch(arguments: Arguments) -> BatchFormat:
    if arguments["allow_unknown_preds_category"]:
        return _segments
    categories = _categories(arguments)
    return KnownSegments((*categories["things"], *categories["stuffs"]))


def _as_tensor(value: Any, arguments: Arguments) -> Tensor:
    """PQ, SQ and RQ of each category `(categories, 3)`, 0 for absent ones, or their means."""
    each = torch.stack(list(value), 1)
    if arguments["return_per_class"]:
        each = each.nan_to_num(0.0)
        return each if arguments["return_sq_and_rq"] else each[:, :1].T
    means = each.nanmean(0)
    return means if arguments["return_sq_and_rq"] else means[0]


OF_DICTIONARIES: Mapping[str, Family] = {
    "BinaryFairness": Family(
        "GroupStatRates",
        _group_counts,
        lambda all: GroupBatch(all["task"] != "demographic_parity"),
        _criteria,
    ),
    "BinaryGroupStatRates": Family("GroupStatRates", _group_counts, lambda all: GroupBatch(), _shares),
    "ModifiedPanopticQuality": Family(
        "ModifiedPanopticQuality",
        lambda all: ModifiedPanopticQuality(**_categories(all)),
        _segment_batch,
        dtype=torch.float64,
    ),
    "PanopticQuality": Family("PanopticQuality", _quality, _segment_batch, _as_tensor, dtype=torch.float64),
    "ROUGEScore": Family("ROUGEScore", _rouge_metric, lambda all: SummaryBatch("rougeLsum" in _keys(all))),
    "SQuAD": Family(
        "SQuAD",
        lambda all: Several(metrics=(SQuAD("exact_match"), SQuAD("f1")), names=("exact_match", "f1")),
        lambda all: _answers,
        _percent,
    ),
}
