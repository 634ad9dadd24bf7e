"""Aggregates, and metrics of numbers, of clicks and of texts, with TorchEval's definitions."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torcheval.metric import CompatibleTorchEval
from assay.compat.for_torchmetrics.batches import labels_of
from assay.devices.placement import can_read
from assay.errors import NoDataWarning, taken_warnings
from assay.meter import Meter
from assay.metrics import (
    BLEUScore,
    Max,
    Mean,
    MeanSquaredError,
    Min,
    NormalizedEntropy,
    Perplexity,
    R2Score,
    Sum,
    WeightedCalibration,
    WordErrorRate,
    WordInfoLost,
    WordInfoPreserved,
)
from assay.metrics.exact_arithmetic import quotient, result
from assay.metrics.output_metrics import MEAN_SQUARED_ERROR

_HOME = "torcheval.metrics.functional"


def _there(module: str, name: str) -> Any:
    return getattr(import_module(f"{_HOME}.{module}"), name)


def _weights(weight: Any, input: Tensor, expected: str = "a float value") -> Tensor:
    """A weight for each number.

    Raises:
        ValueError: it is neither a number nor of the size of the input; the text is TorchEval's.
    """
    if isinstance(weight, Tensor) and weight.size() == input.size():
        return weight
    if isinstance(weight, float | int):
        return torch.full_like(input, weight, dtype=torch.float64 if input.dtype == torch.float64 else torch.float32)
    raise ValueError(
        f"Weight must be either {expected} or a tensor that matches the input tensor size. Got {weight} instead."
    )


class _Weighted(CompatibleTorchEval):
    """The mean or the sum of numbers with weights."""

    dtype = torch.float64

    def _meters_of(self, size: int) -> dict[str, Meter]:
        return {"value": Meter(weighted=True, value=Mean() if self.original.__name__ == "Mean" else Sum())}

    def _count(self, input: Tensor, *, weight: Any = 1.0) -> None:
        expected = ["a float value or an int value"] if self.original.__name__ == "Sum" else []
        weights = _weights(weight, input, *expected)
        self._begin(0)
        self.meters["value"].update(input.flatten(), weights=weights.flatten())

    def _value(self) -> Any:
        return self._read()


class _Extreme(CompatibleTorchEval):
    """The largest or the smallest number."""

    def _meters_of(self, size: int) -> dict[str, Meter]:
        return {"value": Meter(value=Max() if self.original.__name__ == "Max" else Min())}

    def _count(self, input: Tensor) -> None:
        self._begin(0)
        self.meters["value"].update(input.flatten())

    def _value(self) -> Any:
        return self._read()


class _Errors(CompatibleTorchEval):
    """Squared errors, or the share of the variance that is explained, of each output; size 0 is one dimension."""

    def _meters_of(self, size: int) -> dict[str, Meter]:
        outputs = size or 1
        if self.original.__name__ == "R2Score":
            return {"value": Meter(value=R2Score(num_outputs=outputs, multioutput=self.multioutput))}
        metric = MeanSquaredError(num_outputs=outputs)
        return {name: Meter(weighted=True, value=metric) for name in ("value", "below")}  # weights below 0 are apart

    def _count(self, input: Tensor, target: Tensor, *, sample_weight: Tensor | None = None) -> None:
        if self.original.__name__ == "R2Score":
            _there("regression.r2_score", "_r2_score_update_input_check")(input, target)
            self._begin(input.shape[1] if input.ndim == 2 else 0)
            self.meters["value"].update(input, target)
            return
        check = _there("regression.mean_squared_error", "_mean_squared_error_update_input_check")
        check(input, target, sample_weight)
        self._begin(input.shape[1] if input.ndim == 2 else 0)
        if sample_weight is None:
            ones = torch.ones(len(input), device=input.device, dtype=torch.float32)
            self.meters["value"].update(input, target, weights=ones)
            return
        weights = sample_weight.reshape(len(input))
        self.meters["value"].update(input, target, weights=weights.clamp(min=0))
        self.meters["below"].update(input, target, weights=(-weights).clamp(min=0))

    def _value(self) -> Any:
        if self.original.__name__ == "R2Score":
            return self._score()
        values = self._mean_error()
        return values if self.multioutput == "raw_values" else values.mean()

    def _mean_error(self) -> Tensor:
        """That of each output; exact also of weights below 0, with which TorchEval computes."""
        below = self.meters["below"]
        with taken_warnings(NoDataWarning):  # where all weights are below 0
            values: Tensor = self._read()
        if not below.rows or not any(below.counts_of("value").weight):
            return values
        added, taken = (self.meters[name].counts_of("value") for name in ("value", "below"))
        means = []
        for k, weight in enumerate(added.weight):
            above = [MEAN_SQUARED_ERROR.above.evaluate(each.sum_of(k)) for each in (added, taken)]
            means.append(quotient(above[0] - above[1], weight - taken.weight[k]))
        return result(means)

    def _score(self) -> Tensor:
        rows = self.meters["value"].rows
        if rows < 2 or self.num_regressors >= rows - 1:
            zero = torch.tensor(0.0, device="cpu")
            compute = _there("regression.r2_score", "_r2_score_compute")  # which raises
            compute(zero, zero, zero, torch.tensor(rows, device="cpu"), self.multioutput, self.num_regressors)
        value: Tensor = self._read()
        if self.num_regressors:
            value = 1 - (1 - value) * (rows - 1) / (rows - self.num_regressors - 1)
        return value


class _OfTasks(CompatibleTorchEval):
    """A value of each task, `(num_tasks, N)` or `(N,)`, whose numbers have weights of their own."""

    dtype = torch.float64

    def _meters_of(self, size: int) -> dict[str, Meter]:
        name = self.original.__name__
        if name == "ClickThroughRate":
            metric: Any = Mean()
        elif name == "WeightedCalibration":
            metric = WeightedCalibration()
        else:
            metric = NormalizedEntropy(logits=self.from_logits)
        return {f"value{task}": Meter(weighted=True, value=metric) for task in range(size)}

    def _count_tasks(self, weights: Tensor, *parts: Tensor) -> None:
        self._begin(self.num_tasks)
        for task, meter in enumerate(self.meters.values()):
            of_task = [each if each.ndim == 1 else each[task] for each in (weights, *parts)]
            meter.update(*of_task[1:], weights=of_task[0])

    def _values(self) -> Tensor:
        return torch.stack([self._read(name) for name in self.meters])


class _ClickThroughRate(_OfTasks):
    def _count(self, input: Tensor, weights: Any = 1.0) -> None:
        _there("ranking.click_through_rate", "_click_through_rate_input_check")(
            input, weights, num_tasks=self.num_tasks
        )
        self._count_tasks(_weights(weights, input), input)

    def _value(self) -> Any:
        return self._values().nan_to_num(0.0)  # without weight


class _WeightedCalibration(_OfTasks):
    def _count(self, input: Tensor, target: Tensor, weight: Any = 1.0) -> None:
        check = _there("ranking.weighted_calibration", "_weighted_calibration_input_check")
        check(input, target, weight, num_tasks=self.num_tasks)
        self._count_tasks(_weights(weight, input), input, target.to(input.dtype))

    def _value(self) -> Any:
        values = self._values()
        return values if values.isfinite().all() else torch.empty(0, device="cpu")


class _NormalizedEntropy(_OfTasks):
    def _count(self, input: Tensor, target: Tensor, *, weight: Tensor | None = None) -> None:
        check = _there("classification.binary_normalized_entropy", "_ne_input_check")
        check(input, target, self.from_logits or not can_read(input), self.num_tasks, weight)
        self._count_tasks(_weights(1.0 if weight is None else weight, input), input, labels_of(target))

    def _value(self) -> Any:
        return self._values()


class _SignalNoise(CompatibleTorchEval):
    """The ratio of the range of the target to the error of all numbers."""

    def _meters_of(self, size: int) -> dict[str, Meter]:
        meters = {"value": Meter(value=MeanSquaredError())}
        return meters | ({"low": Meter(value=Min()), "high": Meter(value=Max())} if self.auto_range else {})

    def _count(self, input: Tensor, target: Tensor) -> None:
        _there("image.psnr", "_psnr_input_check")(input, target)
        self._begin(0)
        self.meters["value"].update(input.flatten(), target.flatten())
        if self.auto_range:
            self.meters["low"].update(target.flatten())
            self.meters["high"].update(target.flatten())

    def _value(self) -> Any:
        given = self._arguments["data_range"]
        span = self._read("high") - self._read("low") if self.auto_range else torch.tensor(given, device="cpu")
        return 10 * torch.log10(span.double() ** 2 / self._read())


class _Perplexity(CompatibleTorchEval):
    dtype = torch.float64

    def _meters_of(self, size: int) -> dict[str, Meter]:
        return {"value": Meter(value=Perplexity(ignore_index=self.ignore_index))}

    def _count(self, input: Tensor, target: Tensor) -> None:
        has_shapes = target.ndim == 2 and input.ndim == 3 and input.shape[:2] == target.shape
        if not has_shapes or (target.numel() and can_read(target)):
            _there("text.perplexity", "_perplexity_input_check")(input, target, self.ignore_index)
        self._begin(0)
        self.meters["value"].update(input, target)

    def _value(self) -> Any:
        value = self._read()
        return torch.empty(0, device="cpu") if value.isnan() else value


class _Words(CompatibleTorchEval):
    """Words that are right, of strings and lists of strings."""

    def _value_dtype(self) -> torch.dtype:
        return torch.float32 if self.original.__name__ == "WordErrorRate" else torch.float64

    def _meters_of(self, size: int) -> dict[str, Meter]:
        kinds: dict[str, Any] = {"WordErrorRate": WordErrorRate, "WordInformationLost": WordInfoLost}
        return {"value": Meter(value=kinds.get(self.original.__name__, WordInfoPreserved)())}

    def _count(self, input: str | list[str], target: str | list[str]) -> None:
        texts = [[each] if isinstance(each, str) else list(each) for each in (input, target)]
        if self.original.__name__ != "WordInformationLost":
            _there("text.word_error_rate", "_word_error_rate_input_check")(input, target)
        elif len(texts[0]) != len(texts[1]):
            _there("text.word_information_lost", "_wil_update")(input, target)  # which raises
        self._begin(0)
        self.meters["value"].update(*texts)

    def _value(self) -> Any:
        return self._read()


class _BLEU(CompatibleTorchEval):
    dtype = torch.float64

    def _meters_of(self, size: int) -> dict[str, Meter]:
        weights = None if self.weights is None else tuple(self.weights.tolist())
        return {"value": Meter(value=BLEUScore(n_gram=self.n_gram, weights=weights))}

    def _count(self, input: str | Sequence[str], target: Sequence[str | Sequence[str]]) -> None:
        texts = [input] if isinstance(input, str) else list(input)
        references = [[each] if isinstance(each, str) else list(each) for each in target]
        longest = max((len(each.split()) for each in texts), default=0)
        if len(texts) != len(references) or longest < self.n_gram:
            _there("text.bleu", "_bleu_score_update")(input, target, self.n_gram)  # which raises
        self._begin(0)
        self.meters["value"].update(texts, references)

    def _value(self) -> Any:
        return self._read()


OF_VALUES: dict[str, type[CompatibleTorchEval]] = {
    **dict.fromkeys(("Mean", "Sum"), _Weighted),
    **dict.fromkeys(("Max", "Min"), _Extreme),
    **dict.fromkeys(("MeanSquaredError", "R2Score"), _Errors),
    "ClickThroughRate": _ClickThroughRate,
    "WeightedCalibration": _WeightedCalibration,
    "BinaryNormalizedEntropy": _NormalizedEntropy,
    "PeakSignalNoiseRatio": _SignalNoise,
    "Perplexity": _Perplexity,
    **dict.fromkeys(("WordErrorRate", "WordInformationLost", "WordInformationPreserved"), _Words),
    "BLEUScore": _BLEU,
}
"""The class that counts each metric of numbers or texts."""
