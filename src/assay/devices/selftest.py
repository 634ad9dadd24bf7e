"""Run the integer operators that tallies stand on, on the device at hand, and compare with NumPy on the CPU.

A fact file says what a kind of device should do; this says what this one does. Values lie above 2^32, indices repeat,
and some results are slices with an offset, because these are the cases that went wrong on real devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.devices.pretend_state import pretended_kind

BINS, SAMPLES = 7, 4099

TorchRun = Callable[[Tensor, Tensor, Tensor], Tensor]
NumpyRun = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class SelfTestOutcome:
    """One operation of the self-test: its name, whether it passed, and what went wrong."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class SelfTest:
    """What the self-test found on one device."""

    device: torch.device
    outcomes: tuple[SelfTestOutcome, ...]

    @property
    def passed(self) -> bool:
        """Whether every operation gave the right integers."""
        return not self.failures

    @property
    def failures(self) -> tuple[SelfTestOutcome, ...]:
        """The operations that did not."""
        return tuple(outcome for outcome in self.outcomes if not outcome.passed)


def self_test(device: str | torch.device) -> SelfTest:
    """Run the self-test on a device, once a process, and once where it is pretended; later calls give the same answer.

    Waits for the device, so it belongs to start-up and to ``assay devices``, never to an update.

    Args:
        device: the device to try. An unusable one fails; it does not raise.

    Returns:
        The outcome of each operation.

    Example:
        >>> self_test("cpu").passed
        True
    """
    return _self_test(torch.device(device), pretended_kind())


@cache
def _self_test(device: torch.device, pretended: str) -> SelfTest:
    return SelfTest(device, tuple(run_operation(name, device) for name in OPERATIONS))


def run_operation(name: str, device: torch.device) -> SelfTestOutcome:
    """Run one operation of the self-test now; what a device raises is an outcome."""
    return _try(name, device, *OPERATIONS[name], _arrays())


def _try(
    name: str, device: torch.device, run: TorchRun, oracle: NumpyRun, arrays: tuple[Any, Any, Any]
) -> SelfTestOutcome:
    try:
        integers, index, floats = (torch.from_numpy(array).to(device) for array in arrays)
        got = run(integers, index, floats).cpu().numpy()
    except Exception as error:  # any failure of a device's kernel is an answer here
        return SelfTestOutcome(name, False, str(error).strip().partition("\n")[0] or type(error).__name__)
    expected = oracle(*arrays)
    if got.dtype == expected.dtype and np.array_equal(got, expected):
        return SelfTestOutcome(name, True)
    return SelfTestOutcome(name, False, f"{_wrong(got, expected)} of {expected.size} numbers are wrong")


def _arrays() -> tuple[Any, Any, Any]:
    """Integers, indices and floats, the same ones each time."""
    generator = np.random.default_rng(0)
    integers = generator.integers(-(2**45), 2**45, SAMPLES)
    index = generator.integers(0, BINS, SAMPLES)
    return integers, index, generator.standard_normal(SAMPLES).astype(np.float32)


def _wrong(got: Any, expected: Any) -> int:
    return int(expected.size if got.shape != expected.shape else (got != expected).sum())


def _add(name: str, row: int | None = None) -> tuple[TorchRun, NumpyRun]:
    """An operator that adds integers into bins: of a table with three rows in one of them, or of one row."""
    shape, at = (BINS,) if row is None else (3, BINS), ... if row is None else row

    def run(integers: Tensor, index: Tensor, floats: Tensor) -> Tensor:
        table = integers.new_zeros(shape)
        getattr(table[at], name)(0, index, integers)
        return table

    def oracle(integers: Any, index: Any, floats: Any) -> Any:
        table = np.zeros(shape, dtype=np.int64)
        np.add.at(table[at], index, integers)
        return table

    return run, oracle


def _both(run: Callable[[Any, Any], Any]) -> tuple[TorchRun, NumpyRun]:
    """An operation of integers and floats that torch and NumPy spell the same."""
    return (lambda n, i, f: run(n, f), lambda n, i, f: run(n, f))


OPERATIONS: dict[str, tuple[TorchRun, NumpyRun]] = {
    "index_add_": _add("index_add_"),
    "index_add_ into a slice": _add("index_add_", row=1),
    "scatter_add_": _add("scatter_add_"),
    "scatter_add_ into a slice": _add("scatter_add_", row=1),
    "sum": _both(lambda n, f: n.sum().reshape(1)),
    "sum of a slice": _both(lambda n, f: n[5:].sum().reshape(1)),
    "shift": _both(lambda n, f: (n << 7) ^ (n >> 9)),
    "product": _both(lambda n, f: (n >> 22) * (n >> 20)),
    "bits of a float": (lambda n, i, f: f.view(torch.int32), lambda n, i, f: f.view(np.int32)),
    "float to integer": (lambda n, i, f: (f * 2**20).long(), lambda n, i, f: (f * 2**20).astype(np.int64)),
    "strided copy to the CPU": _both(lambda n, f: n[::3]),
}
