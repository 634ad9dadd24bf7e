"""What the laws of states are tested on: one case for each distinct tally, read by every metric that it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.meter import Meter
from assay.metrics.base import Metric
from assay.tally.base import Tally
from laws import CASES, Case


@dataclass(frozen=True, eq=False)
class TallyCase(Case):
    """A tally with the samples it is tested on; its meters hold all the metrics that are computed from it."""

    metrics: tuple[Metric, ...] = ()

    def __str__(self) -> str:
        return f"{super().__str__()} and {len(self.metrics) - 1} more" if len(self.metrics) > 1 else super().__str__()

    @property
    def tally(self) -> Tally:
        return self.metric.tally(self.weighted)

    def meter(self, stage_bytes: int = 1 << 21) -> Meter:
        named: dict[str, Any] = {f"m{k}": metric for k, metric in enumerate(self.metrics)}
        return Meter(weighted=self.weighted, stage_bytes=stage_bytes, **named)


def _by_tally() -> list[TallyCase]:
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in CASES:
        key = (case.metric.tally(case.weighted), case.draw, case.weighted, case.whole_weights)
        groups.setdefault(key, []).append(case)
    return [
        TallyCase(first.metric, first.draw, first.weighted, first.whole_weights, tuple(case.metric for case in cases))
        for cases in groups.values()
        for first in cases[:1]
    ]


TALLY_CASES = _by_tally()
