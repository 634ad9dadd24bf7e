"""Stored predictions: tables of any size, on this machine or counted apart and added up, become a report."""

from __future__ import annotations

from assay.scoring.bad_rows import BadRowsError
from assay.scoring.partial import Partial, merge
from assay.scoring.state_rows import from_table, to_table
from assay.scoring.stored_predictions import count, fragments_of, score

__all__ = ["BadRowsError", "Partial", "count", "fragments_of", "from_table", "merge", "score", "to_table"]
