"""Where a decision of a model and of its copy part: the first operator whose results differ."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from assay.evaluation.data.batch import Arguments
from assay.evaluation.model.operator_trace import OperatorTrace, first_difference, traced
from assay.evaluation.model.output_gap import MOST_ULPS


@dataclass(frozen=True)
class EvaluatedModel:
    """A model as the evaluation calls it.

    Attributes:
        module: whose modules are named.
        call: calls it, on its device and with its precision.
        ready: inside, it is on its device and in evaluation mode.
    """

    module: Any
    call: Callable[[Arguments], Any]
    ready: Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class TracedSample:
    """A sample in a batch, and alone.

    Attributes:
        batch: with others.
        converted: the batch in the dtype of the copy.
        alone: a batch of the sample only.
        rows: how many samples the batch has.
        row: the place of the sample.
    """

    batch: Arguments
    converted: Arguments
    alone: Arguments
    rows: int
    row: int


def first_operator(model: EvaluatedModel, copied: Any, sample: TracedSample) -> str:
    """In words, from which operator on a model and its copy differ for a sample; else the model in a batch and alone.

    Args:
        model: the model.
        copied: its copy on the CPU, in any dtype.
        sample: what they are called with.
    """

    def of_model(arguments: Arguments, rows: int, row: int) -> OperatorTrace:
        return traced(model.call, model.module, arguments, rows, row)

    def of_copy(arguments: Arguments) -> Any:
        return copied(*arguments[0], **arguments[1])

    try:
        with model.ready():
            ours = of_model(sample.batch, sample.rows, sample.row)
            theirs = traced(of_copy, copied, sample.converted, sample.rows, sample.row)
            if place := first_difference(ours, theirs, MOST_ULPS, dtypes=False):
                return str(place)
            alone = of_model(sample.alone, 1, 0)
        if place := first_difference(ours, alone, MOST_ULPS):
            return f"depends on the batch, {place}"
    except Exception:  # a model that refuses hooks or dispatch modes, such as TorchScript: the decisions say enough
        return ""
    return f"by rounding, as no operator differs by more than {MOST_ULPS:.0f} ulps"
