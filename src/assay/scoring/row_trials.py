"""Which rows metrics refuse: rows are counted apart, fewer and fewer of them, until single ones are found."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.errors import InputError, InvalidValuesError
from assay.meter import Meter
from assay.meter.inputs.arguments import Arguments
from assay.metrics.regression.sample_errors import SampleErrorMetric
from assay.scoring.rows import TableRows
from assay.tally.base import Batch
from assay.tally.scores.labelled_scores import ScoreSpec

MOST_TRIALS = 10_000
"""How many parts of batches are counted apart; a table in which more are refused has another fault than some rows."""
_MESSAGE = re.compile(r"(?P<what>.*?): got .*, expected (?P<expected>.*?)\. [A-Z].*", re.DOTALL)
_PLACE = re.compile(r"\[[0-9]+\]")

Rows = NDArray[np.int64]


class RowTrial:
    """Finds the rows that metrics refuse when they are given them or when they are computed.

    Args:
        meter: what counts the rows; it is not changed.

    Attributes:
        left: how many parts of batches may still be counted.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter, self.left = meter, MOST_TRIALS
        self._of_samples = [name for name, each in meter.metrics.items() if isinstance(each, SampleErrorMetric)]
        data = (getattr(getattr(tally, "term", tally), "data", None) for tally in meter.tallies)
        self._scores = list(dict.fromkeys(each for each in data if isinstance(each, ScoreSpec)))

    def fresh(self) -> RowTrial:
        """One that has tried no rows."""
        return RowTrial(self._meter)

    def refused(self, rows: TableRows) -> dict[str, NDArray[np.bool_]]:
        """By reason, which rows are refused; where `left` is 0 afterwards, some may be missing.

        Raises:
            InputError: what no row of the table changes, such as the dtype of a column.
        """
        reasons: dict[str, NDArray[np.bool_]] = {}
        every = np.arange(len(rows.places))
        if not self._problems(rows, every):
            return reasons
        rest = self._without_bad_scores(rows, every, reasons)
        is_flat = isinstance(rows.preds, Tensor) and rows.preds.ndim == 1
        if is_flat:  # refused values lie side by side
            rest = rest[np.argsort(rows.preds.numpy()[rest], kind="stable")]
        parts = [rest]
        while parts and self.left:
            part = parts.pop()
            problems = self._problems(rows, part) if len(part) else {}
            if len(part) == 1 or (is_flat and len(part) in problems.values()):
                for reason in list(problems)[:1]:
                    reasons.setdefault(reason, np.zeros(len(every), bool))[part] = True
            elif problems:
                parts += [part[len(part) // 2 :], part[: len(part) // 2]]
        return reasons

    def _without_bad_scores(self, rows: TableRows, every: Rows, reasons: dict[str, NDArray[np.bool_]]) -> Rows:
        """Note the rows whose scores metrics of scores refuse, all at once, and return the others."""
        bad = np.zeros(len(every), bool)
        for spec in self._scores:
            kinds = spec.invalid_rows(spec.rows(Batch(rows.preds, rows.target, rows.weights)))
            for what, kind in zip(spec.invalid, kinds, strict=False):
                mask = kind.reshape(len(every), -1).bool().any(1).numpy() & ~bad
                if mask.any():
                    reasons.setdefault(_invalid(what), np.zeros(len(every), bool))[mask] = True
                bad |= mask
        return every[~bad]

    def _problems(self, rows: TableRows, part: Rows) -> dict[str, int]:
        """Why metrics refuse some rows, and how many values of them; nothing where they do not."""
        self.left = max(0, self.left - 1)
        meter = self._meter.fresh()
        try:
            meter.count(arguments_of(meter, rows, part))
        except InputError as error:
            if not meter.takes_raw:  # of the layout, which all rows have
                raise
            return {_reason(str(error)): 0}
        problems = {_invalid(each.what): each.count for _, each in meter.invalid_values()}
        if not problems and self._of_samples:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    meter.compute(self._of_samples)
            except InvalidValuesError as error:
                return {_reason(str(error)): 0}
        return problems


def arguments_of(meter: Meter, rows: TableRows, part: Rows | None = None) -> Arguments:
    """Some of the rows, or all, as a meter counts them."""

    def some(values: Any) -> Any:
        if part is None or values is None:
            return values
        if isinstance(values, Tensor):
            return values.index_select(0, torch.from_numpy(part))
        return [values[row] for row in part.tolist()]

    columns: Mapping[str, Any] = {name: some(column) for name, column in rows.columns.items()}
    return meter.arguments(some(rows.preds), some(rows.target), some(rows.weights), columns)


def _reason(message: str) -> str:
    """Why a raw sample is refused, without what differs from row to row."""
    match = _MESSAGE.match(message)
    return _invalid(f"{_PLACE.sub('', match['what'])}: expected {match['expected']}" if match else message)


def _invalid(what: str) -> str:
    return f"invalid values ({what})"
