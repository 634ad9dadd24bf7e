"""The same batches again: dropout, random numbers, state that is carried over, and inputs that are changed."""

from __future__ import annotations

from collections.abc import Callable

from assay.evaluation.model.operator_trace import FirstDifference, first_difference
from assay.evaluation.model.output_gap import OutputGap, gap_between
from assay.evaluation.nested_batch import digest, leaves
from assay.stability.comparison import Comparer
from assay.stability.model_runner import random_states
from assay.stability.model_state import changes, fingerprints
from assay.stability.result import StabilityCheck, StabilityVerdict
from assay.stability.samples import SampledInputs


def check_repeats(comparer: Comparer) -> list[StabilityCheck]:
    """Compare a second call of one copy, and a call of another copy, with the first call."""
    runner, whole = comparer.runner, comparer.whole
    model = runner.fresh()
    before, drawn = fingerprints(model), random_states()
    first = runner.run(model, whole)
    comparer.drawn = changes(drawn, random_states())
    comparer.state = changes(before, fingerprints(model))
    compared = "a second call with the same batch"
    try:
        again = gap_between(first, runner.run(model, whole))
    except Exception as error:
        return [comparer.raised("repeat", compared, error)]
    other = gap_between(first, runner.run(runner.fresh(), whole))
    comparer.is_repeatable = other.sample is None
    place = None if again.sample is None else _located(comparer, again.sample, _on_one_copy)
    if place is not None and place.is_random:  # also where copies have copies of one generator
        comparer.is_repeatable = False
    rows = [_row(comparer, compared, again, place)]
    if again.sample is None and other.sample is not None:
        place = _located(comparer, other.sample, _on_two_copies)
        rows.append(_row(comparer, "a call of another copy of the model", other, place))
    return rows


def _row(comparer: Comparer, compared: str, gap: OutputGap, place: FirstDifference | None) -> StabilityCheck:
    verdict: StabilityVerdict = "same bits" if gap.sample is None else "depends"
    return comparer.row("repeat", compared, verdict, gap, place, is_needed=True)


def _located(
    comparer: Comparer, sample: int, locate: Callable[[Comparer, int], FirstDifference | None]
) -> FirstDifference | None:
    try:
        return locate(comparer, sample)
    except Exception:  # as in `Comparer.locate`
        return None


def _on_one_copy(comparer: Comparer, sample: int) -> FirstDifference | None:
    model, group = comparer.runner.fresh(), comparer.whole[0]
    first = comparer.trace(model, group, sample)
    return first_difference(first, comparer.trace(model, group, sample), 0.0)


def _on_two_copies(comparer: Comparer, sample: int) -> FirstDifference | None:
    return comparer.locate(comparer.whole, comparer.whole, sample, 0.0)


def check_inputs(comparer: Comparer, samples: SampledInputs) -> StabilityCheck:
    """Compare the tensors of a batch before and after a call."""
    runner, group = comparer.runner, comparer.whole[0]
    arguments = runner.arguments(group)
    before = [digest(each) for each in leaves(arguments)]
    runner.outputs(runner.fresh(), arguments, len(group))
    changed = [digest(each) for each in leaves(arguments)] != before
    verdict: StabilityVerdict = "depends" if changed else "same bits"
    cause = "the model changes its input in place" if changed else ""
    return StabilityCheck("inputs", "the batch before and after a call", verdict, cause=cause)
