"""Quotients of polynomials in exact sums for all outputs at once, each rounded once: what fractions give one by one."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from assay.native.library import library, loaded

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


class StateQuotient:
    """The quotient of one output, of any state of one layout, in one call of compiled code.

    Args:
        flaws: fields that are not 0 where there is something to report, each with how many numbers it has.
        inputs: for each sum its field, at which byte it starts, and how many limbs it has.
        program: how the quotient is computed of them.
    """

    def __init__(
        self, flaws: Sequence[tuple[str, int]], inputs: Sequence[tuple[str, int, int]], program: QuotientSteps
    ) -> None:
        names = [name for name, _ in flaws] + [name for name, _, _ in inputs]
        self._fields = list(dict.fromkeys(names))
        at, steps = self._fields.index, program.steps
        numbers = [len(flaws), len(inputs), len(steps) // 24, *program[1:]]
        numbers += [each for name, size in flaws for each in (at(name), size)]
        numbers += [each for name, first, words in inputs for each in (at(name), first // 8, words)]
        self._reading = struct.pack(f"{len(numbers)}q", *numbers) + steps
        self._addresses = struct.Struct(f"{len(self._fields)}q").pack
        self._then: Callable[[float], float] | None = None

    def through(self, function: Callable[[float], float]) -> StateQuotient:
        """What reads a function of this quotient, rounded to a float, in its place; of NaN it must give NaN."""
        read = copy(self)
        read._then = function
        return read

    def __call__(self, state: Mapping[str, Tensor]) -> Tensor | None:
        """The quotient, float64 of shape `()`; None where it is doubtful, or there is something to report.

        Args:
            state: on the CPU, in any form.
        """
        if library() is None:
            return None
        addresses = []
        for name in self._fields:
            field = state[name]
            if not field.is_contiguous():
                return None
            addresses.append(field.data_ptr())
        return self._value(self._addresses(*addresses))

    def of(self, state: Mapping[str, Tensor]) -> Callable[[], float]:
        """The same of a contiguous state whose tensors stay where they are, as a float; NaN where it would be None.

        Compiled code must be there.
        """
        addresses = self._addresses(*[state[name].data_ptr() for name in self._fields])
        return lambda: self._number(addresses)

    def _number(self, addresses: bytes) -> float:
        value: float = _function_of_state()(addresses, self._reading)
        return value if self._then is None else self._then(value)

    def _value(self, addresses: bytes) -> Tensor | None:
        value = self._number(addresses)
        return None if value != value else torch.scalar_tensor(value, dtype=torch.float64, device="cpu")


@cache
def _function_of_state() -> ctypes._NamedFuncPointer:
    function = loaded().assay_quotient_of_state
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_double
    return function


@cache
def _function() -> ctypes._NamedFuncPointer:
    function = loaded().assay_quotients
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    function.argtypes = (number, pointer, pointer, *[number] * 5, *[pointer] * 3)
    function.restype = number
    return function
