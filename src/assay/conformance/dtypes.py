"""What a device does with each dtype: tensors are made there and copied, added, compared and indexed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from assay.conformance.deterministic import Question

NAMES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    "complex64",
)
"""Without complex128: some releases let it be moved to mps and fail at the first operator (pytorch/pytorch#176981)."""
OTHER_BITS = "other bits"


def _numbers(dtype: torch.dtype) -> Tensor:
    """Integers that every dtype holds, as bool some of both."""
    return torch.tensor([1, 0, 3, 100], device="cpu").to(dtype)


def _same(got: Tensor, expected: Tensor) -> Any:
    """Nothing where both are equal, in dtype, too; else what it is."""
    found = got.cpu()
    return None if found.dtype == expected.dtype and torch.equal(found, expected) else OTHER_BITS


def _of_copy(run: Callable[[Tensor], Tensor]) -> Callable[[torch.dtype, str], Any]:
    """Compares an operator of the device with the same one of the CPU."""
    return lambda dtype, d: _same(run(_numbers(dtype).to(d)), run(_numbers(dtype)))


CALLS: dict[str, Callable[[torch.dtype, str], Any]] = {
    "made there": lambda dtype, d: _same(
        torch.ones(3, dtype=dtype, device=d), torch.ones(3, dtype=dtype, device="cpu")
    ),
    "copied there and back": _of_copy(lambda x: x),
    "copied from a strided view": _of_copy(lambda x: x[::2]),
    "converted there": lambda dtype, d: _same(
        torch.tensor([1, 0, 3, 100], dtype=torch.int32, device=d).to(dtype), _numbers(dtype)
    ),
    "added": _of_copy(lambda x: x + x),
    "compared": _of_copy(lambda x: x == x.flip(0)),
    "indexed": _of_copy(lambda x: x[torch.tensor([3, 0], device=x.device)]),
    "concatenated": _of_copy(lambda x: torch.cat([x, x[1:]])),
    "chosen by where": _of_copy(lambda x: torch.where(x == x[0], x, x[3])),
}
"""What is asked of each dtype. The results are integers that each of them holds, so they have equal bits everywhere."""


def _asked(call: Callable[[torch.dtype, str], Any], dtype: torch.dtype) -> Question:
    return lambda d: call(dtype, d)


DTYPES: dict[str, Question] = {
    f"{name}, {what}": _asked(call, getattr(torch, name)) for name in NAMES for what, call in CALLS.items()
}
"""Each gives None, or `OTHER_BITS` where the device has another result than the CPU."""
