"""Updates inside compiled functions that torch cannot trace: one operator, which counts when it runs.

What keeps samples grows, and what encodes them is code of Python; code that torch compiles has fixed shapes. So such an
update is an operator that torch does not look into, as a kernel would be. It counts as outside of compiled functions.
On releases of torch that cannot trace any update, each update is this operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.torch_version import TorchVersion

from assay.errors import StateError, describe

if TYPE_CHECKING:
    from assay.meter.meter import Meter

TRACED_SINCE = "2.10"
"""The first release of torch whose `torch.compile` was seen to trace an update.

In 2.6.0 it takes no frozen dataclass as a key of a dictionary: see `is_hashable` in its `_dynamo/variables/dicts.py`.
2.7 to 2.9 were not tried.
"""
CAN_TRACE = TorchVersion(torch.__version__) >= TRACED_SINCE

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


def update_by_one_operator(meter: Meter, arguments: Mapping[str, Any]) -> None:
    """Update a meter by the operator.

    Args:
        meter: the meter.
        arguments: those of its update, by name; None where one was not given.

    Raises:
        StateError: one is no tensor, such as a list of strings.
    """
    given = {name: each for name, each in arguments.items() if each is not None}
    for name, each in given.items():
        if not isinstance(each, Tensor):
            do = "Call update outside of the compiled function"
            raise StateError(describe("update under torch.compile", f"{name} that is no tensor", "tensors", do))
    torch.ops.assay.update_meter(_TICKET, meter.number, list(given.values()), ",".join(given))


def _update_meter(_ticket: Tensor, meter: int, tensors: Sequence[Tensor], names: str) -> None:
    """Update a meter with these arguments, unseen by torch.compile."""
    unseen: Any = torch.compiler.disable(_update)  # type: ignore[no-untyped-call]
    unseen(meter, tensors, names)


def _update(meter: int, tensors: Sequence[Tensor], names: str) -> None:
    found: Any = _METERS[meter]
    found.update(**{name: each.detach() for name, each in zip(names.split(","), tensors, strict=True)})


def _update_nothing(_ticket: Tensor, _meter: int, _tensors: Sequence[Tensor], _names: str) -> None:
    """Nothing, while torch traces."""


# Not torch.library.custom_op, which looks for the source of its function in every module: a third of importing assay.
_OPERATORS: Any = torch.library.Library("assay", "FRAGMENT")  # type: ignore[no-untyped-call]
_OPERATORS.define("update_meter(Tensor(a!) ticket, int meter, Tensor[] tensors, str names) -> ()")
_OPERATORS.impl("update_meter", _update_meter, "CompositeExplicitAutograd")
_OPERATORS.impl("update_meter", _update_nothing, "Meta")
