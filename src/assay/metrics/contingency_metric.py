"""What metrics of two labellings have in common: the contingency table, and the entropies that are read from it."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import Tensor

from assay.decide import Argmax
from assay.errors import InvalidValuesError, describe
from assay.metrics.base import Metric, number
from assay.tally.base import State, Tally
from assay.tally.labels.confusion import Confusion, Counts
from assay.tally.labels.contingency import ContingencyTable, LabelPairs
from assay.tally.labels.labels import Labels
from assay.tally.stores.samples import SampleArrays


@dataclass(frozen=True, kw_only=True)
class ContingencyMetric(Metric):
    """A metric of the contingency table of two labellings of the same samples.

    Shapes:
        `preds` and `target` of one shape, integers: one label per element. With `num_classes`, `preds` may also
        be float scores `(N, C, ...)` for a target `(N, ...)`; the label is then the class with the highest score.

    Returns:
        float64, shape `()`; NaN without data.

    Raises:
        ConfigError: `num_classes` below 2, or too large for a table.
        InvalidValuesError: by `compute`, if a label is not in `0 ... num_classes - 1`, or a weight is negative or NaN.
    """

    inputs: ClassVar[str] = "clusters"
    higher_is_better = True
    counts_pairs: ClassVar[bool] = False
    """Whether pairs of samples are counted, so that weights must be integers."""

    num_classes: Annotated[
        int | None,
        "labels are `0 ... num_classes - 1`, and a table of `8 (C + 3) (C + 2)` bytes is counted on the device. "
        "Without it labels are any integers, and all samples are kept.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tally(False)  # raises what the tally has to say

    def tally(self, weighted: bool) -> Tally:
        if self.num_classes is None:
            return LabelPairs(weighted=weighted)
        return Confusion(Labels(self.num_classes, Argmax()), weighted)

    def reading(self, tally: Tally) -> Callable[[State], Tensor | None] | None:
        return self._of_labels if isinstance(tally, LabelPairs) and not tally.weighted else None

    def _of_labels(self, state: State) -> Tensor | None:
        """The value of labels that were kept and lie close together; None where `compute` must be asked."""
        table = ContingencyTable.of_store(state["samples"])
        value = math.nan if table is None else self.value(table)
        return None if math.isnan(value) else number(value)

    def compute(self, counts: Counts | SampleArrays) -> Tensor:
        table = ContingencyTable.of(counts)
        if not len(table.counts):
            return number(math.nan)
        if self.counts_pairs and table.unit < 0:
            do = "Scale them, or use a metric that counts no pairs, such as VMeasureScore"
            got = f"fractions for {type(self).__name__}"
            raise InvalidValuesError(describe("weights", got, "integers, as pairs of samples are counted", do))
        return number(self.value(table))

    @abstractmethod
    def value(self, table: ContingencyTable) -> float:
        """The value for a table that has counts."""


def mutual_information(table: ContingencyTable) -> float:
    """The mutual information of the two labels of a random sample, in nats; the order of labels changes no bit."""
    size, rows, columns = table.size, table.preds_totals[table.preds], table.target_totals[table.target]
    counts = table.counts.tolist()
    logs = log_quotients((size * table.counts).tolist(), (rows * columns).tolist())
    terms = [count / size * log for count, log in zip(counts, logs, strict=True)]
    return max(0.0, math.fsum(terms))


def entropy(totals: Iterable[int]) -> float:
    """The entropy of a random sample's label, in nats; the order of labels changes no bit.

    Example:
        >>> entropy([2, 2]) == math.log(2)
        True
    """
    totals = list(totals)
    size = sum(totals)
    logs = log_quotients([size] * len(totals), totals)
    return math.fsum([total / size * log for total, log in zip(totals, logs, strict=True)])


def log_quotients(above: Sequence[int], below: Sequence[int]) -> list[float]:
    """The logarithms of quotients of positive integers, also accurate where they are close to 1."""
    return [
        math.log1p((a - b) / b) if 0.5 < (ratio := a / b) < 2 else math.log(ratio)
        for a, b in zip(above, below, strict=True)
    ]
