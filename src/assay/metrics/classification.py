from __future__ import annotations

from dataclasses import dataclass
from assay.decide import Argmax
from assay.metrics.base import Metric, number
from assay.tally.base import Tally
from assay.tally.confusion import Confusion, Counts
from assay.tally.labels import Labels


@dataclass(frozen=True)
class Accuracy(Metric):
    num_classes: int

    def tally(self, weighted: bool) -> Tally:
        return Confusion(Labels(self.num_classes, Argmax()), weighted)

    def read(self, counted: Counts):
        v = counted.values[0]
        return number(int(v.trace()) / int(v.sum()))
