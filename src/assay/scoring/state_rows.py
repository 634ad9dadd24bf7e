"""What a meter counted as rows of integers, which SQL can add up, and a meter from such sums.

A row is a field of a state, a place in it, and an integer. Rows of several meters of equal metrics add up by field and
place. Zeros are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from assay.data.tables.arrow import arrow
from assay.errors import ConfigError, StateError, describe
from assay.evaluation.arguments.options import Metrics
from assay.evaluation.arguments.preparation import meter_of
from assay.meter import Meter
from assay.meter.file import MeterDescription, counts_in, saved

if TYPE_CHECKING:
    from assay.tally.base import State

ROWS = "rows"
"""The field whose one integer is how many samples were counted."""
COLUMNS = ("field", "place", "count")


def to_table(meter: Meter) -> Any:
    """What a meter counted as an Arrow table with the columns `field`, `place` and `count`.

    Args:
        meter: metrics whose states are sums: not those that keep samples (AUROC: `exact_up_to=0`, or `thresholds=`),
            and no extremes.

    Returns:
        A table of pyarrow, for a data base or a Parquet file: docs/sql.md.

    Raises:
        ConfigError: a metric has a state that is no sum; its name is in the message.
        MissingDependencyError: pyarrow is not installed.

    Example:
        >>> from assay import Accuracy
        >>> meter = Meter(Accuracy(num_classes=2))
        >>> meter.update(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]))
        >>> to_table(meter).to_pylist()[-1]
        {'field': 'rows', 'place': 0, 'count': 3}
    """
    _check_sums(meter)
    description, tensors = saved(meter.plan, *meter.counts.canonical())
    fields: list[str] = []
    places, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for name, tensor in (*tensors.items(), (ROWS, torch.tensor([description.rows], device="cpu"))):
        flat = tensor.reshape(-1).numpy()
        filled = np.flatnonzero(flat)
        fields += [name] * len(filled)
        places.append(filled)
        counts.append(flat[filled])
    columns = {"field": fields, "place": np.concatenate(places), "count": np.concatenate(counts)}
    return arrow().table(columns)


def from_table(metrics: Metrics, table: Any, *, weighted: bool = False) -> Meter:
    """A meter from rows that `to_table` gave, added up by field and place.

    Args:
        metrics: those that were counted, as `evaluate` takes them.
        table: what gives an Arrow stream with the columns `field`, `place` and `count` (a table of pyarrow, a relation
            of DuckDB); or triples of these, as the cursor of a data base gives them.
        weighted: whether the meter had weights.

    Raises:
        ConfigError: a metric has a state that is no sum.
        StateError: the rows are of other metrics, come twice, or are no integers.

    Example:
        >>> from assay import Accuracy
        >>> rows = [("0.counts", 5, 5), ("0.counts", 6, 1), ("0.counts", 10, 4), ("rows", 0, 10)]
        >>> from_table(Accuracy(num_classes=2), rows).compute()
        {'Accuracy': tensor(0.9000, dtype=torch.float64)}
    """
    meter = meter_of(metrics, weighted)
    _check_sums(meter)
    counted = _by_field(_triples(table))
    rows = counted.pop(ROWS, {}).get(0, 0)
    tensors = {
        f"{k}.{name}": _filled(zero, counted.pop(f"{k}.{name}", {}), f"{k}.{name}")
        for k, state in enumerate(_zeros(meter))
        for name, zero in state.items()
    }
    if counted:
        expected = f"some of {', '.join([*tensors, ROWS])}"
        raise StateError(describe("from_table", f"field {min(counted)!r}", expected, "Pass the metrics of the rows"))
    states, _ = counts_in(meter.plan, MeterDescription.of(meter.metrics, weighted, rows), tensors, "from_table")
    canonical = [tally.canonicalize(state, rows) for tally, state in zip(meter.tallies, states, strict=True)]
    meter.counts.replace(canonical, rows)
    return meter


def _zeros(meter: Meter) -> list[State]:
    return [tally.zero(torch.device("cpu")) for tally in meter.tallies]


def _check_sums(meter: Meter) -> None:
    """Raise where a state is no sum of a fixed shape."""
    for name in meter.metrics:
        tally, _ = meter.plan.state_of(name, _zeros(meter))
        if rules := {*tally.fields.values()} - {"sum"}:
            got = "extremes" if rules == {"max"} else "samples, or a table that may be absent"
            do = "Leave it out; of ranked scores pass thresholds="
            raise ConfigError(describe(f"to_table: {name}", f"a state of {got}", "sums alone", do))


def _triples(table: Any) -> Iterable[tuple[Any, Any, Any]]:
    if not hasattr(table, "__arrow_c_stream__"):
        rows: Iterable[tuple[Any, Any, Any]] = table
        return rows
    read = arrow().table(table)
    if missing := [name for name in COLUMNS if name not in read.column_names]:
        got = f"columns {', '.join(read.column_names)}"
        do = "Name the sum: select field, place, sum(count) as count"
        raise StateError(describe("from_table", got, f"also {missing[0]}", do))
    return zip(*(read[name].to_pylist() for name in COLUMNS), strict=True)


def _by_field(triples: Iterable[tuple[Any, Any, Any]]) -> dict[str, dict[int, int]]:
    """The integers by field and place."""
    found: dict[str, dict[int, int]] = {}
    for field, place, count in triples:
        if not isinstance(field, str) or not all(_is_integer(each) for each in (place, count)):
            do = "Cast sums to bigint, not to a float"
            raise StateError(describe("from_table", repr((field, place, count)), "a string and two integers", do))
        of_field = found.setdefault(field, {})
        if int(place) in of_field:
            do = "Add up: group by field, place"
            raise StateError(describe("from_table", f"place {place} of {field} twice", "each place once", do))
        of_field[int(place)] = int(count)
    return found


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) or (isinstance(value, Decimal) and value == value.to_integral_value())


def _filled(zero: Tensor, counts: Mapping[int, int], where: str) -> Tensor:
    """A tensor like another one with these integers, by their place in it laid out flat."""
    flat = zero.reshape(-1).clone()
    for place, count in counts.items():
        if not 0 <= place < len(flat):
            expected = f"0 to {len(flat) - 1}"
            do = "Pass the metrics of the rows, with as many classes"
            raise StateError(describe(f"from_table: {where}", f"place {place}", expected, do))
        if not -(2**63) <= count < 2**63:
            raise StateError(describe(f"from_table: {where}", count, "an integer of 64 bits", "Add up fewer parts"))
        flat[place] = count
    return flat.view(zero.shape)
