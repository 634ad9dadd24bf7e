"""Which tallies serve which metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assay.errors import ShapeError, describe
from assay.metrics.base import Metric
from assay.tally.base import Layout, State, Tally


class Plan:
    """Which tallies serve which metrics: as few as their descriptions allow.

    Meters of the same metrics have the same plan, in whatever order the metrics were given: their states add up by
    their place in it.
    """

    def __init__(self, metrics: Mapping[str, Metric], weighted: bool) -> None:
        self._wanted = {name: metrics[name].tally(weighted) for name in sorted(metrics)}
        joined: list[Tally] = []
        for tally in self._wanted.values():
            for k, other in enumerate(joined):
                both = other.join(tally)
                if both is not None:
                    joined[k] = both
                    break
            else:
                joined.append(tally)
        self.tallies: tuple[Tally, ...] = tuple(joined)
        self._index = {name: self._serving(tally) for name, tally in self._wanted.items()}

    def _serving(self, tally: Tally) -> int:
        return next(k for k, other in enumerate(self.tallies) if other.join(tally) == other)

    def check(self, layout: Layout) -> None:
        """Raise an `InputError` when a batch of this layout cannot be counted, or holds what nothing reads."""
        if layout.target is not None and not any(tally.reads_target for tally in self._wanted.values()):
            do = "Leave it out; weights are passed by name, as weights=..."
            raise ShapeError(
                describe("target", "a tensor", f"none, which {', '.join(self._wanted)} would not read", do)
            )
        for tally in self._wanted.values():
            tally.check(layout)

    def readings(self, names: Iterable[str]) -> list[tuple[int, Tally, list[str]]]:
        """What is read for metrics: the place of the tally that counts it, the one to read, and which metrics do."""
        found: dict[tuple[int, Tally], list[str]] = {}
        for name in names:
            found.setdefault((self._index[name], self._wanted[name]), []).append(name)
        return [(place, wanted, metrics) for (place, wanted), metrics in found.items()]

    def state_of(self, name: str, states: Sequence[State]) -> tuple[Tally, State]:
        """The tally that a metric asked for, and its state."""
        wanted, k = self._wanted[name], self._index[name]
        return wanted, self.tallies[k].part(states[k], wanted) if wanted != self.tallies[k] else states[k]
