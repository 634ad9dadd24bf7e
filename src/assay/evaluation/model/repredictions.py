"""Predictions that a copy of the model makes again on the CPU, and what the difference is worth."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from assay.devices.memory import free_host_bytes
from assay.devices.placement import has_values, to_host
from assay.evaluation.data.batch import Arguments
from assay.evaluation.model.decision_traces import EvaluatedModel, TracedSample, first_operator
from assay.evaluation.model.dtypes import DTYPES
from assay.evaluation.model.prediction_sample import PredictionSample, SampledPrediction, has_classes, in_one_line
from assay.evaluation.nested_batch import mapped
from assay.report.value import Value

_ROWS = 7
"""Samples a batch when they are predicted again: another size than usual, so that sums have another order."""
_MOST_TRACED = 8
"""Decisions for which the first operator that differs is looked for: each takes three calls of the model."""


@dataclass(frozen=True)
class ChangedDecision:
    """A sample whose decision differs.

    Attributes:
        id: of the sample.
        decision: the class with the largest score in the evaluation.
        again: that of the copy.
        where: the first operator that differs, in words; empty where it was not looked for.
    """

    id: int | str
    decision: int
    again: int
    where: str = ""


@dataclass(frozen=True)
class Repredictions:
    """What the predictions of a copy say of those of one process.

    Attributes:
        count: how many samples were predicted again.
        seen: how many samples were predicted.
        largest: the largest difference of two numbers.
        margins: of all samples; None where predictions are no scores of classes.
        changes: by how much the margins of the samples changed.
        decisions: those that differ.
        failure: why nothing was predicted again; empty otherwise.
    """

    count: int = 0
    seen: int = 0
    largest: float = 0.0
    margins: Tensor | None = None
    changes: Tensor | None = None
    decisions: tuple[ChangedDecision, ...] = ()
    failure: str = ""


def repredictions(
    sample: PredictionSample,
    model: Callable[..., Any],
    preds: Callable[[Any], Any],
    dtype: str,
    evaluated: EvaluatedModel | None = None,
    copies: int = 1,
) -> Repredictions:
    """Predict a sample again, by a copy of the model on the CPU; the model itself is not changed.

    Args:
        sample: what was kept of the evaluation.
        model: the model.
        preds: finds the predictions in what the model gives.
        dtype: of the copy: ``"float32"`` or ``"float64"``.
        evaluated: calls the model, to find the first operator that differs; None not to look for it.
        copies: how many processes of this machine make a copy now.
    """
    if reason := sample.failure or _no_copy(model, DTYPES[dtype], copies):
        return Repredictions(failure=reason)
    if not sample.seen:
        return Repredictions()
    try:
        return _compared(sample, model, preds, DTYPES[dtype], evaluated)
    except Exception as error:
        return Repredictions(failure=in_one_line(error))


def _no_copy(model: Any, dtype: torch.dtype, copies: int) -> str:
    tensors = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    if any(type(each).__name__ == "DTensor" for each in tensors):
        return "the model is sharded among processes"
    if not all(map(has_values, tensors)):
        return "weights have no values (device meta)"
    needed = copies * sum(each.numel() for each in tensors) * torch.finfo(dtype).bits // 8
    free = free_host_bytes()
    if free is not None and needed > free:
        takes = "a copy takes" if copies == 1 else f"{copies} copies take"
        return f"{takes} {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB of memory are free"
    return ""


def _compared(
    sample: PredictionSample,
    model: Any,
    preds: Callable[[Any], Any],
    dtype: torch.dtype,
    evaluated: EvaluatedModel | None,
) -> Repredictions:
    kept = sample.kept
    if not kept:
        return Repredictions(seen=sample.seen, margins=_joined(sample.margins))
    copied = _copy_on_cpu(model, dtype)
    first, second = torch.cat([each.preds for each in kept]), _again(kept, copied, preds, dtype)
    one, other = first.to(torch.float64), second.to(torch.float64)
    equal = (one == other) | (one.isnan() & other.isnan())
    largest = float(torch.where(equal, 0.0, (one - other).abs()).max())
    found = Repredictions(len(kept), sample.seen, largest)
    if not has_classes(first) or not sample.margins:
        return found
    at = first.argmax(1, keepdim=True)  # the decision of the evaluation, and the best of the other classes
    changes = _lead(other, at) - _lead(one, at)
    changed = (first.argmax(1) != second.argmax(1)).nonzero()[:, 0].tolist()
    decisions = [ChangedDecision(kept[k].id, int(first[k].argmax()), int(second[k].argmax())) for k in changed]
    for place, k in enumerate(changed[:_MOST_TRACED] if evaluated is not None else ()):
        assert evaluated is not None
        where = first_operator(evaluated, copied, _traced_sample(kept, k, dtype))
        decisions[place] = replace(decisions[place], where=where)
    return replace(found, margins=_joined(sample.margins), changes=changes, decisions=tuple(decisions))


def _traced_sample(kept: Sequence[SampledPrediction], k: int, dtype: torch.dtype) -> TracedSample:
    start = k // _ROWS * _ROWS
    group = [each.arguments for each in kept[start : start + _ROWS]]
    only = _stacked([kept[k].arguments])
    return TracedSample(_stacked(group), _stacked(group, dtype), only, len(group), k - start)


def _joined(margins: Sequence[Tensor]) -> Tensor | None:
    return to_host(torch.cat(list(margins))) if margins else None


def _again(kept: Sequence[SampledPrediction], copied: Any, preds: Callable[[Any], Any], dtype: torch.dtype) -> Tensor:
    found = []
    with torch.inference_mode():
        for start in range(0, len(kept), _ROWS):
            args, kwargs = _stacked([each.arguments for each in kept[start : start + _ROWS]], dtype)
            found.append(to_host(preds(copied(*args, **kwargs))))
    return torch.cat(found)


def _copy_on_cpu(model: Any, dtype: torch.dtype) -> Any:
    """A copy whose tensors are made on the CPU and in a dtype, without a second copy on the model's device."""
    if not isinstance(model, nn.Module):
        return copy.deepcopy(model)

    def converted(tensor: Tensor) -> Tensor:
        wanted = dtype if tensor.is_floating_point() else tensor.dtype
        return tensor.detach().to(device="cpu", dtype=wanted, copy=True)

    memo: dict[int, Any] = {id(each): nn.Parameter(converted(each), False) for each in model.parameters()}
    memo |= {id(each): converted(each) for each in model.buffers()}
    return copy.deepcopy(model, memo).eval()


def _stacked(parts: Sequence[Arguments], dtype: torch.dtype | None = None) -> Arguments:
    """Samples as one batch, with floats in a dtype; in their own by default."""
    columns = [_leaves(each) for each in parts]
    place = iter(range(len(columns[0])))

    def joined(_: Any) -> Any:
        k = next(place)
        first = columns[0][k]
        if isinstance(first, list):
            return [row for each in columns for row in each[k]]
        if not isinstance(first, Tensor) or not first.ndim:
            return first
        tensor = torch.cat([each[k] for each in columns])
        return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor

    args, kwargs = mapped(parts[0], joined)
    return args, kwargs


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    mapped(tree, found.append)
    return found


def expected_flips(margins: Tensor, changes: Tensor) -> float:
    """The share of decisions that numerics change: the mean over all samples of P(\\|e\\| >= margin) / 2.

    Args:
        margins: of all samples.
        changes: the changes ``e`` of the margins of the samples that were predicted again.

    Example:
        >>> expected_flips(torch.tensor([0.5, 3.0]), torch.tensor([1.0, -0.1]))
        0.125
    """
    sizes = changes.abs().to(torch.float64).sort().values
    below = torch.searchsorted(sizes, margins.to(torch.float64))
    return float((1 - below / len(sizes)).mean()) / 2


def note_of_repredictions(parts: Sequence[Repredictions], dtype: str, values: Iterable[Value]) -> str:
    """What the report says: how far predictions are from those of a copy on the CPU, or why there is no copy.

    Args:
        parts: what each process found.
        dtype: of the copies.
        values: of the report; numerics are compared with the interval of accuracy.
    """
    reason = next((each.failure for each in parts if each.failure), "")
    count = sum(each.count for each in parts)
    if reason or not count:
        return f"No predictions were made again on the CPU: {reason or 'no predictions that are tensors'}."
    text = f"{count:,} random samples were predicted again on the CPU in {dtype}, in batches of {_ROWS}: "
    text += f"largest difference {max(each.largest for each in parts):.3g}"
    margins = [each.margins for each in parts if each.margins is not None]
    changes = [each.changes for each in parts if each.changes is not None]
    if not changes:
        return f"{text}."
    decisions = [decision for each in parts for decision in each.decisions]
    share, seen = expected_flips(torch.cat(margins), torch.cat(changes)), sum(each.seen for each in parts)
    text += f"; {len(decisions):,} of {count:,} decisions differ. By the margins of all {seen:,} samples, numerics"
    text += f" change about {share:.2g} of the decisions{_of_accuracy(values)}."
    return f"{text}{_listed(decisions)}"


def _listed(decisions: Sequence[ChangedDecision]) -> str:
    """The decisions that differ, by the first operator that does."""
    by_operator: dict[str, list[str]] = {}
    for each in decisions:
        by_operator.setdefault(each.where, []).append(f"{each.id} ({each.decision}, on the CPU {each.again})")
    parts = [f"{', '.join(ids)}{where and f': {where}'}" for where, ids in by_operator.items()]
    return f" Ids of samples whose decisions differ: {'; '.join(parts)}." if parts else ""


def _lead(scores: Tensor, at: Tensor) -> Tensor:
    others = scores.scatter(1, at, -torch.inf)
    return scores.gather(1, at)[:, 0] - others.amax(1)


def _of_accuracy(values: Iterable[Value]) -> str:
    value = next((each for each in values if each.numerator == "correct" and not each.denominator), None)
    if value is None:
        return ""
    moved = f", and move {value.name} by no more than that"
    if value.lower is None or value.upper is None:
        return moved
    return f"{moved}; its interval is ± {(value.upper - value.lower) / 2:.2g}"
