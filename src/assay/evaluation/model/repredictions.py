"""A random sample of predictions that a copy of the model makes again on the CPU, and what the difference is worth."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.devices.memory import free_host_bytes
from assay.devices.placement import has_values, to_host
from assay.evaluation.data.batch import Arguments
from assay.evaluation.nested_batch import mapped, take
from assay.report.value import Value

_ROWS = 7
"""Samples a batch when they are predicted again: another size than usual, so that sums have another order."""
DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass
class PredictionSample:
    """A random sample of inputs with their predictions, and the margins of all predictions.

    Args:
        size: how many samples are kept.
        seed: of the generator that chooses them, which nothing else uses.

    Attributes:
        seen: how many samples were predicted.
        margins: of each, by how much the largest score is above the second; empty where predictions are no scores of
            classes.
        failure: why inputs or predictions cannot be kept; the evaluation itself goes on.
    """

    size: int
    seed: int
    seen: int = 0
    margins: list[Tensor] = field(default_factory=list)
    failure: str = ""
    _kept: dict[int, tuple[Arguments, Tensor]] = field(default_factory=dict)

    def note(self, arguments: Arguments, preds: Any) -> None:
        """Note a batch without a wait; each sample is kept with the same probability (reservoir sampling)."""
        if self.failure or not isinstance(preds, Tensor) or not preds.ndim:
            return
        try:
            self._note(arguments, preds)
        except Exception as error:
            self.failure = _in_one_line(error)

    def _note(self, arguments: Arguments, preds: Tensor) -> None:
        rows = len(preds)
        preds = preds.detach()
        for row, place in self._chosen(rows).items():
            only = slice(row, row + 1)  # a view: a list of rows would be copied to the device first
            self._kept[place] = _each(take(arguments, rows, only), _copied), preds[only].clone()
        if _has_classes(preds):
            self.margins.append(_margins(preds).to(torch.float32))
        self.seen += rows

    def _chosen(self, rows: int) -> dict[int, int]:
        """The rows of a batch that are kept, with their places; of two at one place the later one."""
        random = np.random.default_rng((self.seed, self.seen))
        places = random.integers(0, self.seen + 1 + np.arange(rows))
        first = np.arange(self.seen, self.seen + rows)
        places = np.where(first < self.size, first, places)
        by_place = {int(place): row for row, place in enumerate(places) if place < self.size}
        return {row: place for place, row in by_place.items()}

    @property
    def kept(self) -> list[tuple[Arguments, Tensor]]:
        """The samples that are kept, in host memory: their inputs and predictions."""
        return [(_each(arguments, _on_host), to_host(preds)) for arguments, preds in self._kept.values()]


def note_of_repredictions(
    sample: PredictionSample,
    model: Callable[..., Any],
    preds: Callable[[Any], Any],
    dtype: str,
    values: Iterable[Value],
    shared: str = "",
) -> str:
    """What the report says: how far predictions are from those of a copy on the CPU, or why there is no copy.

    Args:
        sample: what was kept of the evaluation.
        model: the model, which is copied and not changed.
        preds: finds the predictions in what the model gives.
        dtype: of the copy: ``"float32"`` or ``"float64"``.
        values: of the report; numerics are compared with the interval of accuracy.
        shared: why a copy of the model of this process is not the model; empty where it is.
    """
    reason = shared or sample.failure or ("" if sample.seen else "no predictions that are tensors")
    reason = reason or _no_copy(model, DTYPES[dtype])
    if not reason:
        try:
            inputs, first = zip(*sample.kept, strict=True)
            again = _again(inputs, model, preds, DTYPES[dtype])
            return _sentences(sample, torch.cat(first), again, dtype, values)
        except Exception as error:
            reason = _in_one_line(error)
    return f"No predictions were made again on the CPU: {reason}."


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _no_copy(model: Any, dtype: torch.dtype) -> str:
    tensors = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    if any(type(each).__name__ == "DTensor" for each in tensors):
        return "the model is sharded among processes"
    if not all(map(has_values, tensors)):
        return "weights have no values (device meta)"
    needed = sum(each.numel() for each in tensors) * torch.finfo(dtype).bits // 8
    free = free_host_bytes()
    if free is not None and needed > free:
        return f"a copy takes {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB of memory are free"
    return ""


def _again(inputs: Sequence[Arguments], model: Any, preds: Callable[[Any], Any], dtype: torch.dtype) -> Tensor:
    """The predictions of a copy, which is gone afterwards."""
    copied, found = _copy_on_cpu(model, dtype), []
    with torch.inference_mode():
        for start in range(0, len(inputs), _ROWS):
            args, kwargs = _stacked(inputs[start : start + _ROWS], dtype)
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


def _stacked(parts: Sequence[Arguments], dtype: torch.dtype) -> Arguments:
    """Samples as one batch, with floats in a dtype."""
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
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    args, kwargs = mapped(parts[0], joined)
    return args, kwargs


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    mapped(tree, found.append)
    return found


def _each(arguments: Arguments, change: Callable[[Any], Any]) -> Arguments:
    args, kwargs = mapped(arguments, change)
    return args, kwargs


def _copied(leaf: Any) -> Any:
    """What a later batch cannot write into."""
    if isinstance(leaf, Tensor):
        return leaf.detach().clone()
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _on_host(leaf: Any) -> Any:
    return to_host(leaf) if isinstance(leaf, Tensor) else leaf


def _has_classes(preds: Tensor) -> bool:
    return preds.ndim == 2 and preds.shape[1] > 1 and preds.is_floating_point()


def _margins(preds: Tensor) -> Tensor:
    first, second = preds.topk(2, 1).values.unbind(1)
    return first - second


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


def _sentences(sample: PredictionSample, first: Tensor, second: Tensor, dtype: str, values: Iterable[Value]) -> str:
    count = len(first)
    one, other = first.to(torch.float64), second.to(torch.float64)
    equal = (one == other) | (one.isnan() & other.isnan())
    largest = float(torch.where(equal, 0.0, (one - other).abs()).max())
    text = f"{count:,} random samples were predicted again on the CPU in {dtype}, in batches of {_ROWS}: "
    text += f"largest difference {largest:.3g}"
    if not _has_classes(first) or not sample.margins:
        return f"{text}."
    flips = int((first.argmax(1) != second.argmax(1)).sum())
    at = first.argmax(1, keepdim=True)  # the decision of the evaluation, and the best of the other classes
    changes = _lead(other, at) - _lead(one, at)
    share = expected_flips(to_host(torch.cat(sample.margins)), changes)
    text += f"; {flips:,} of {count:,} decisions differ. By the margins of all {sample.seen:,} samples, numerics change"
    return f"{text} about {share:.2g} of the decisions{_of_accuracy(values)}."


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
