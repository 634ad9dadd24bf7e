"""Quotients of polynomials in exact sums for all outputs at once, each rounded once: what fractions give one by one."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from assay.native.library import loaded

Root = Literal["", "of the quotient", "of the divisor"]
"""What a square root is taken of."""

LOAD, ADD, SUBTRACT, MULTIPLY = range(4)
MOST_STEPS = 32

_ROOTS: tuple[Root, ...] = ("", "of the quotient", "of the divisor")
_CERTAIN = 2


class Quotients(NamedTuple):
    """The quotients of all outputs.

    `values` are the quotients rounded to float64, `rests` what that left of them, to a relative error of the quotient
    below 2 ** -97. Of the outputs in `doubtful` they may be anything. A single output has a value of shape `()` and no
    rest.
    """

    values: Tensor
    rests: Tensor | None
    doubtful: list[int]


class QuotientSteps(NamedTuple):
    """How two polynomials are computed, and their quotient.

    `steps` are packed integers; those at `above` and `below` give the polynomials. The quotient of these
    integers weighs `2 ** unit`, before the root of it is taken.
    """

    steps: bytes
    above: int
    below: int
    root: int
    unit: int


def quotient_steps(
    steps: Sequence[tuple[int, int, int]], above: int, below: int, root: Root, unit: int
) -> QuotientSteps:
    """What `quotients` takes.

    Each step is an operation, and the steps that gave what it takes; for `LOAD` the place of an input and 0.
    """
    assert len(steps) <= MOST_STEPS, "a longer formula needs more registers in quotients.c"
    packed = struct.pack(f"{3 * len(steps)}q", *(number for step in steps for number in step))
    return QuotientSteps(packed, above, below, _ROOTS.index(root), unit)


def quotients(outputs: int, inputs: Sequence[int], program: QuotientSteps) -> Quotients:
    """Quotients of two polynomials in the sums of each output.

    Args:
        outputs: how many there are.
        inputs: for each sum the address of its limbs, those of one output behind those of the other, and how many limbs
            an output has. One limb is an integer.
        program: how they are computed.
    """
    single = outputs == 1
    values = torch.empty(() if single else outputs, dtype=torch.float64, device="cpu")
    rests = None if single else torch.empty_like(values)
    status = None if single else torch.empty(outputs, dtype=torch.uint8, device="cpu")
    steps, above, below, root, unit = program
    doubtful = _function()(
        outputs,
        struct.pack(f"{len(inputs)}q", *inputs),
        steps,
        len(steps) // 24,
        above,
        below,
        root,
        unit,
        values.data_ptr(),
        None if rests is None else rests.data_ptr(),
        None if status is None else status.data_ptr(),
    )
    if not doubtful:
        return Quotients(values, rests, [])
    return Quotients(values, rests, [0] if status is None else (status != _CERTAIN).nonzero()[:, 0].tolist())


class PreparedQuotient:
    """The quotient of one output, of sums that stay where they are.

    Args:
        inputs: see `quotients`.
        program: see there.
    """

    def __init__(self, inputs: Sequence[int], program: QuotientSteps) -> None:
        packed, (steps, above, below, root, unit) = struct.pack(f"{len(inputs)}q", *inputs), program
        self._function = _function()
        self._given = 1, packed, steps, len(steps) // 24, above, below, root, unit

    def value(self) -> Tensor | None:
        """The quotient, float64 of shape `()`; None where it is doubtful."""
        value = torch.empty((), dtype=torch.float64, device="cpu")
        return None if self._function(*self._given, value.data_ptr(), None, None) else value


@cache
def _function() -> ctypes._NamedFuncPointer:
    function = loaded().assay_quotients
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    function.argtypes = (number, pointer, pointer, *[number] * 5, *[pointer] * 3)
    function.restype = number
    return function
