from __future__ import annotations

from dataclasses import dataclass
from assay.metrics.base import Metric, number
from assay.tally.base import Tally
from assay.tally.sums import PREDS, TARGET, Product, Sums, Totals


@dataclass(frozen=True)
class MeanSquaredError(Metric):
    def tally(self, weighted: bool) -> Tally:
        return Sums(frozenset({Product(PREDS, PREDS), Product(PREDS, TARGET), Product(TARGET, TARGET)}), weighted=weighted)

    def read(self, counted: Totals):
        xx, xy, yy = (counted[Product(*p)][0] for p in ((PREDS, PREDS), (PREDS, TARGET), (TARGET, TARGET)))
        return number(float((xx - 2 * xy + yy) / counted.weight[0]))
