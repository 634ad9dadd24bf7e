"""Whether outputs change with what stands in positions that a mask excludes."""

from __future__ import annotations

from typing import Any

from assay.evaluation.model.operator_trace import FirstDifference, first_difference, traced
from assay.evaluation.model.output_gap import MOST_ULPS, OutputGap, gap_between
from assay.stability.comparison import Comparer, not_checked
from assay.stability.padding import ADDED, PaddedInputs, padded, valid_outputs
from assay.stability.result import StabilityCheck
from assay.stability.samples import SampledInputs
from assay.stability.verdict import verdict_of

_NONE = "no input is named attention_mask, mask or key_padding_mask, and no token is said to be padding (padding=0)"


def check_padding(comparer: Comparer, model: Any, samples: SampledInputs, padding: int | None) -> StabilityCheck:
    """Compare the samples with the same ones in longer batches, and with something else in the padding."""
    arguments = comparer.runner.arguments(comparer.whole[0])
    more = padded(model, arguments, padding)
    if more is None:
        return not_checked("padding", _NONE)
    compared = f"{ADDED} more positions of padding"
    try:
        found = _gaps(comparer, model, arguments, more)
    except Exception as error:
        return comparer.raised("padding", compared, error)
    gap, given = max(found, key=lambda each: each[0].ulps)
    verdict = verdict_of(gap, None)
    place = None if verdict != "depends" else _located(comparer, more, given, gap)
    return comparer.row("padding", compared, verdict, gap, place)


def _gaps(comparer: Comparer, model: Any, arguments: Any, more: PaddedInputs) -> list[tuple[OutputGap, Any]]:
    """The gaps between the outputs for a batch and those with more padding, and with other padding."""
    first = valid_outputs(comparer.outputs, arguments, model)
    runner = comparer.runner
    found = []
    for given in filter(None, (more.arguments, more.other)):
        second = more.original(runner.outputs(runner.fresh(), given, comparer.rows))
        found.append((gap_between(first, valid_outputs(second, arguments, model)), given))
    return found


def _located(comparer: Comparer, more: PaddedInputs, given: Any, gap: OutputGap) -> FirstDifference | None:
    """The first operator that has other results with other padding; tensors with positions are of no help."""
    if more.other is None or gap.sample is None:
        return None
    runner, rows = comparer.runner, comparer.rows
    traces = []
    for arguments in (more.arguments, more.other):
        model = runner.fresh()
        run = lambda given, model=model: runner.outputs(model, given, rows)  # noqa: E731
        try:
            traces.append(traced(run, model, arguments, rows, gap.sample).without_positions(more.length + ADDED))
        except Exception:  # as in `Comparer.locate`
            return None
    return first_difference(traces[0], traces[1], MOST_ULPS)
