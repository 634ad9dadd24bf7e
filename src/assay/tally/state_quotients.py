"""Quotients of sums, read from states as they were counted: one call of compiled code, without a canonical form."""

from __future__ import annotations

from assay.native.quotients import StateQuotient
from assay.tally.base import Tally
from assay.tally.part import PartTally
from assay.tally.sums.polynomials import QuotientOfSums
from assay.tally.sums.row_sums import RowSums
from assay.tally.sums.sums import Sums


def state_quotient(tally: Tally, formula: QuotientOfSums) -> StateQuotient | None:
    """What computes a quotient of sums of any state of a tally; None where it holds other sums or several outputs."""
    while isinstance(tally, PartTally):
        tally = tally.tally
    return tally.quotient(formula) if isinstance(tally, Sums | RowSums) else None
