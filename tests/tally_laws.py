"""What the laws of states are tested on: one case for each distinct tally, read by every metric that it serves."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from assay.meter import Meter
from assay.metrics.base import Metric
from assay.tally.base import Tally
from laws import CASES, Case, kind_of


@dataclass(frozen=True, eq=False)
class TallyCase(Case):
    """A tally with the samples it is tested on; its meters hold all the metrics that are computed from it."""

    metrics: tuple[Metric, ...] = ()

    def __str__(self) -> str:
        return f"{super().__str__()} and {len(self.metrics) - 1} more" if len(self.metrics) > 1 else super().__str__()

    @property
    def tally(self) -> Tally:
        return self.metric.tally(self.weighted)

    @property
    def kind(self) -> tuple[object, ...]:
        """What a state is made by; metrics that are computed from one state are of one kind, and terms of a module."""
        return kind_of(self.tally), self.weighted, self.raw

    @property
    def with_functions(self) -> list[Metric]:
        """The metrics that hold a function, which no file has."""
        return [metric for metric in self.metrics if any(each.function for each in metric.encoders)]

    def meter(self, stage_bytes: int = 1 << 21) -> Meter:
        named: dict[str, Any] = {f"m{k}": metric for k, metric in enumerate(self.metrics)}
        return Meter(weighted=self.weighted, stage_bytes=stage_bytes, **named)


def _by_tally() -> list[TallyCase]:
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in CASES:
        key = (case.metric.tally(case.weighted), case.draw, case.weighted, case.whole_weights)
        groups.setdefault(key, []).append(case)
    return [_of_one_tally(cases) for cases in groups.values()]


def _of_one_tally(cases: list[Case]) -> TallyCase:
    shared = {field.name: getattr(cases[0], field.name) for field in fields(Case)}
    return TallyCase(**shared, metrics=tuple(case.metric for case in cases))


TALLY_CASES = _by_tally()
