"""Updates inside compiled functions, of meters that keep samples: one operator of torch, which counts when it runs.

What keeps samples grows, and code that torch compiles has fixed shapes. So the update is an operator that torch does
not look into, as a kernel would be. It counts as outside of compiled functions: rows are staged, nothing waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.meter.arguments import Arguments

if TYPE_CHECKING:
    from assay.meter.meter import Meter

_METERS: WeakValueDictionary[int, Meter] = WeakValueDictionary()
_NUMBERS = count()
with torch.inference_mode(False):
    _TICKET = torch.zeros((), dtype=torch.int64, device="cpu")
    """What the operator is said to write into: torch leaves out calls that have no effect."""


def numbered(meter: Meter) -> int:
    """A number by which the operator finds a meter, as long as it lives."""
    number = next(_NUMBERS)
    _METERS[number] = meter
    return number


def count_in_one_operator(meter: Meter, batch: Arguments) -> None:
    """Count a batch by the operator.

    Raises:
        ConfigError: a column has any number of items a sample, which is not tensors alone.
    """
    if len(batch.ragged):  # torch takes an empty mapping for true while it traces
        do = "Call update outside of the compiled function"
        raise ConfigError(describe("update under torch.compile", f"columns {sorted(batch.ragged)}", "tensors", do))
    tensors = [each for each in batch.tensors if each is not None]
    given = [each is not None for each in batch.tensors]
    torch.ops.assay.count_rows(_TICKET, meter.number, tensors, given, ",".join(batch.names))


@torch.library.custom_op("assay::count_rows", mutates_args=("ticket",))
def count_rows(ticket: Tensor, meter: int, tensors: Sequence[Tensor], given: Sequence[bool], names: str) -> None:
    """Count rows into a meter."""
    rest = iter(tensors)
    rows = [next(rest).detach() if each else None for each in given]
    _METERS[meter].count(Arguments(rows, tuple(filter(None, names.split(",")))))


@count_rows.register_fake
def _(ticket: Tensor, meter: int, tensors: Sequence[Tensor], given: Sequence[bool], names: str) -> None:
    """Nothing, while torch traces."""
