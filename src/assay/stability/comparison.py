"""One comparison of two runs: how far their outputs are apart, from which operator on, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor

from assay.evaluation.model.operator_trace import FirstDifference, OperatorTrace, first_difference, traced
from assay.evaluation.model.output_gap import MOST_ULPS, OutputGap, gap_between
from assay.stability.causes import Observed, cause_of
from assay.stability.model_runner import Groups, ModelRunner
from assay.stability.result import StabilityCheck, StabilityVerdict
from assay.stability.samples import samples_in
from assay.stability.verdict import verdict_of


@dataclass
class Comparer:
    """Compares runs of copies of one model.

    Attributes:
        runner: makes and runs copies.
        rows: how many samples there are.
        dtype: of the model's weights; of its outputs where it has none.
        outputs: of all samples in one batch.
        no_float64: why there is no float64 copy; empty where there is one.
        state: what of the model changed in a call.
        drawn: the global generators from which a call drew.
        is_repeatable: whether two copies give the same outputs.
    """

    runner: ModelRunner
    rows: int
    dtype: torch.dtype
    outputs: Tensor
    no_float64: str = ""
    state: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    is_repeatable: bool = True
    _in_float64: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, runner: ModelRunner, rows: int, dtype: torch.dtype | None) -> Self:
        """Run all samples as one batch, once in the dtype of the model and once in float64."""
        outputs = runner.run(runner.fresh(), [list(range(rows))])
        made = cls(runner, rows, dtype or outputs.dtype, outputs)
        if made.dtype == torch.float64:
            made.no_float64 = "the model is in float64"
        elif not made.dtype.is_floating_point:
            made.no_float64 = "the outputs are integers"
        else:
            made.float64_run(made.whole)
        return made

    @property
    def whole(self) -> Groups:
        """All samples as one batch."""
        return [list(range(self.rows))]

    def float64_run(self, groups: Groups) -> Tensor | None:
        """The outputs of a float64 copy for batches; None where the model has no such copy."""
        key = repr(groups)
        if not self.no_float64 and key not in self._in_float64:
            try:
                self._in_float64[key] = self.runner.run(self.runner.in_float64(), groups, torch.float64)
            except Exception as error:
                self.no_float64 = first_line(error)
        return None if self.no_float64 else self._in_float64[key]

    def check(
        self, what: str, compared: str, groups: Groups, others: Groups, *, is_needed: bool = False
    ) -> StabilityCheck:
        """Compare two ways to make batches of the same samples."""
        try:
            first = self.runner.run(self.runner.fresh(), groups)
            second = self.runner.run(self.runner.fresh(), others)
        except Exception as error:
            return self.raised(what, compared, error)
        gap = gap_between(first, second)
        in_float64 = self._float64_gap(groups, others) if gap.ulps > MOST_ULPS else None
        verdict = verdict_of(gap, in_float64)
        most = MOST_ULPS if verdict == "depends" else 0.0
        place = None if gap.sample is None else self.locate(groups, others, self._sample(groups, gap), most)
        return self.row(what, compared, verdict, gap, place, is_needed=is_needed)

    def _sample(self, groups: Groups, gap: OutputGap) -> int:
        assert gap.sample is not None, "some outputs differ"
        return sorted(samples_in(groups))[gap.sample]

    def _float64_gap(self, groups: Groups, others: Groups) -> OutputGap | None:
        first, second = self.float64_run(groups), self.float64_run(others)
        return None if first is None or second is None else gap_between(first, second)

    def locate(self, groups: Groups, others: Groups, sample: int, most_ulps: float) -> FirstDifference | None:
        """The first operator whose results for a sample differ between two ways to make batches."""
        try:
            return first_difference(self._trace(groups, sample), self._trace(others, sample), most_ulps)
        except Exception:  # a model that refuses hooks or dispatch modes, such as TorchScript: the outputs say enough
            return None

    def _trace(self, groups: Groups, sample: int) -> OperatorTrace:
        model = self.runner.fresh()
        place = next(k for k, group in enumerate(groups) if sample in group)
        for group in groups[:place]:
            self.runner.call(model, group)
        return self.trace(model, groups[place], sample)

    def trace(self, model: Any, group: list[int], sample: int) -> OperatorTrace:
        """The operators of one call, with what they give for a sample."""
        arguments = self.runner.arguments(group)
        rows = len(group)
        run = lambda given: self.runner.outputs(model, given, rows)  # noqa: E731
        return traced(run, model, arguments, rows, group.index(sample))

    def row(
        self,
        what: str,
        compared: str,
        verdict: StabilityVerdict,
        gap: OutputGap,
        place: FirstDifference | None,
        *,
        cause: str = "",
        is_needed: bool = False,
    ) -> StabilityCheck:
        """A comparison as a row of the result; the cause is looked for where none is given."""
        if verdict != "depends":
            cause = ""
        elif not cause:
            cause = cause_of(Observed(what, gap, place, self.state, self.drawn, self.runner.fresh()))
        return StabilityCheck(
            what, compared, verdict, gap.largest, gap.ulps, gap.rows, gap.flips, gap.sample,
            "" if place is None else str(place), cause, is_needed,
        )  # fmt: skip

    def raised(self, what: str, compared: str, error: Exception) -> StabilityCheck:
        """A comparison in which the model raised an error, although it runs on all samples at once."""
        model = self.runner.fresh()
        seen = Observed(what, None, None, self.state, self.drawn, model, first_line(error))
        return StabilityCheck(what, compared, "depends", cause=cause_of(seen))


def not_checked(what: str, why: str, *, is_needed: bool = False) -> StabilityCheck:
    """The row of what was not compared."""
    return StabilityCheck(what, "", "not checked", cause=why, is_needed=is_needed)


def first_line(error: Exception) -> str:
    """An error in one line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
