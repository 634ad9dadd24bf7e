"""What metrics of strings have in common: an encoder with named columns, and their exact sums."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from torch import Tensor

from assay.encode.strings import StringEncoder, load_package
from assay.metrics.base import Metric, number
from assay.metrics.exact_arithmetic import quotient, rounded
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.sums.count_sums import CountSums
from assay.tally.sums.exact import Number
from assay.tally.sums.polynomials import QuotientOfSums, RowSum, SumOf
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True)
class TextMetric(Metric):
    """A metric that is computed from the sums of the columns of an encoder's rows.

    Shapes: `preds` and `target` are lists of strings of equal length. Weights are one number a pair of strings.

    Returns:
        float64, shape `()`. NaN without data.

    Raises:
        InputError: something that is no string, such as None or bytes; the message has its position.
        MissingDependencyError: a package of the extra `text` is not installed.
    """

    family: ClassVar[str] = "text"
    inputs: ClassVar[str] = "strings"

    def __post_init__(self) -> None:
        super().__post_init__()
        if package := self.encoder.package:
            load_package(package)

    @property
    @abstractmethod
    def encoder(self) -> StringEncoder:
        """What counts each pair of strings."""

    def tally(self, weighted: bool) -> Tally:
        encoder = self.encoder
        return (CountSums if encoder.counts else RowSums)(RowNumbers(len(encoder.names)), weighted)

    def totals(self, counts: RowTotals) -> Mapping[str, Number]:
        """The sum of each column."""
        return dict(zip(self.encoder.names, counts.sums[0], strict=True))


@dataclass(frozen=True)
class TextQuotient(TextMetric):
    """A metric that is the quotient of the sums of two columns, or the mean of one."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, str]:
        """The column whose sum is divided, and that by which it is; empty for the mean over samples."""

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return quotient_of_columns(*map(self.encoder.names.index, filter(None, self.columns)))

    def compute(self, counts: RowTotals) -> Tensor:
        above, below = self.columns
        totals = self.totals(counts)
        return number(rounded(quotient(totals[above], totals[below] if below else counts.weight)))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        above, below = self.columns
        column = dict(zip(self.encoder.names, batch.preds.unbind(1), strict=True))
        return SampleTerms.of(above, column[above], below, column[below] if below else None)


@cache
def quotient_of_columns(above: int, below: int | None = None) -> QuotientOfSums:
    """The quotient of the sums of two columns, or the mean of one."""
    return QuotientOfSums(SumOf(RowSum(0, above)), SumOf(None if below is None else RowSum(0, below)))
