"""Other ways to compute the same outputs: another dtype, other threads, compiled, exported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from assay.evaluation.model.operator_trace import FirstDifference, first_difference, traced
from assay.evaluation.model.output_gap import OutputGap, gap_between, spacing
from assay.stability.causes import coarse_operator
from assay.stability.comparison import Comparer, first_line, not_checked
from assay.stability.result import StabilityCheck
from assay.stability.verdict import verdict_of

MOST_LOST = 1024.0
"""Ulps between a model and its float64 copy that are called rounding; sound models of the tests have 16."""


def check_threads(comparer: Comparer) -> StabilityCheck:
    """Compare one thread with several."""
    before = torch.get_num_threads()
    other = 1 if before > 1 else 2
    compared = f"{other} with {before} threads of the CPU"
    try:
        torch.set_num_threads(other)
        outputs = comparer.runner.run(comparer.runner.fresh(), comparer.whole)
    finally:
        torch.set_num_threads(before)
    gap = gap_between(comparer.outputs, outputs)
    return comparer.row("threads", compared, verdict_of(gap, None), gap, None)


def check_dtype(comparer: Comparer) -> StabilityCheck:
    """Compare with the float64 copy, and look for operators that compute in fewer bits than the model has."""
    name = str(comparer.dtype).removeprefix("torch.")
    compared = f"float64 with {name}"
    coarse = _coarse(comparer)
    outputs = comparer.float64_run(comparer.whole)
    if outputs is None and coarse is None:
        return not_checked("dtype", comparer.no_float64)
    gap = OutputGap(0.0, 0.0, None, None, 0)
    if outputs is not None:
        gap = gap_between(comparer.outputs, outputs, spacing(comparer.dtype))
    if coarse is not None:
        cause = f"{coarse.name} computes in fewer bits than {name}, the dtype of the model"
        return comparer.row("dtype", compared, "depends", gap, coarse, cause=cause)
    if gap.ulps <= MOST_LOST:
        return comparer.row("dtype", compared, "same bits" if gap.sample is None else "rounding", gap, None)
    place = _first_loss(comparer, gap)
    wrong = gap.ulps * spacing(comparer.dtype)
    cause = f"digits are lost, by cancellation or a long sum: outputs in {name} are wrong by {wrong:.1g}"
    return comparer.row("dtype", compared, "depends", gap, place, cause=cause)


def _coarse(comparer: Comparer) -> FirstDifference | None:
    try:
        trace = comparer.trace(comparer.runner.fresh(), comparer.whole[0], 0)
    except Exception:  # as in `Comparer.locate`
        return None
    return coarse_operator(trace, comparer.dtype)


def _first_loss(comparer: Comparer, gap: OutputGap) -> FirstDifference | None:
    assert gap.sample is not None, "some outputs differ"
    runner, group = comparer.runner, comparer.whole[0]
    model = runner.in_float64()
    run = lambda given: runner.outputs(model, given, len(group))  # noqa: E731
    try:
        exact = traced(run, model, runner.arguments(group, torch.float64), len(group), gap.sample)
        own = comparer.trace(runner.fresh(), group, gap.sample)
        return first_difference(own, exact.as_dtype(torch.float64, comparer.dtype), MOST_LOST)
    except Exception:  # as in `Comparer.locate`
        return None


def check_compiled(comparer: Comparer) -> StabilityCheck:
    """Compare with `torch.compile`."""
    return check_against(comparer, "torch.compile", None)


def check_against(comparer: Comparer, name: str, other: Callable[..., Any] | None) -> StabilityCheck:
    """Compare with another form of the model; with its compiled form where none is given."""
    runner = comparer.runner
    try:
        model = torch.compile(runner.fresh()) if other is None else runner.prepared(other)
        gap = gap_between(comparer.outputs, runner.run(model, comparer.whole))
    except Exception as error:
        return not_checked(name, f"it does not run: {first_line(error)}")
    cause = f"{name} computes something else"
    return comparer.row(name, f"{name} with the model", verdict_of(gap, None), gap, None, cause=cause)
