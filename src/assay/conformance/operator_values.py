"""Values of operators of float32 on fixed numbers, and how far they may lie from those of float64 on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

OPENCL = "OpenCL C 3.0 specification, relative error as ULPs of single-precision functions"
IEEE = "IEEE 754: correctly rounded"
ASSERT_CLOSE = "torch.testing.assert_close, relative tolerance of float32; a tenth of its absolute one"

Run: TypeAlias = Callable[[Tensor], Tensor]
COUNT = 29


@dataclass(frozen=True)
class OperatorCase:
    """An operator, its inputs, and its rounding.

    Attributes:
        run: the operator, of one tensor.
        inputs: which of `INPUTS` it is given.
        ulps: how many units in the last place a result may be off.
        source: who says so.
        absolute: how far results may be off in addition, as those that sum.
    """

    run: Run
    inputs: str = "signed"
    ulps: float = 0.5
    source: str = IEEE
    absolute: float = 0.0


def _numbers() -> Tensor:
    """Dyadic fractions, which float32 holds exactly, in an order of their own; none is 0."""
    return (torch.arange(COUNT, device="cpu") * 11 % COUNT - COUNT // 2) / 8 + 1 / 16


INPUTS: dict[str, Tensor] = {
    "signed": _numbers(),
    "positive": _numbers().abs(),
    "at most 1": _numbers() / 4,
    "above 1": _numbers().abs() + 1,
    "all bits": torch.ldexp(_numbers() / 3, torch.arange(COUNT, device="cpu") % 17 - 8),
    "rows": _numbers()[:28].reshape(4, 7),
}
"""Inputs by name; each has both large and small numbers, and no result is 0, NaN or infinite."""

_ULPS: dict[str, tuple[str, float]] = {
    "exp": ("signed", 3),
    "exp2": ("signed", 3),
    "expm1": ("signed", 3),
    "log": ("positive", 3),
    "log2": ("positive", 3),
    "log10": ("positive", 3),
    "log1p": ("positive", 2),
    "rsqrt": ("positive", 2),
    "sin": ("signed", 4),
    "cos": ("signed", 4),
    "tan": ("signed", 5),
    "asin": ("at most 1", 4),
    "acos": ("at most 1", 4),
    "atan": ("signed", 5),
    "sinh": ("signed", 4),
    "cosh": ("signed", 4),
    "tanh": ("signed", 5),
    "acosh": ("above 1", 4),
    "asinh": ("signed", 4),
    "atanh": ("at most 1", 5),
    "erf": ("signed", 16),
    "erfc": ("signed", 16),
}
"""Functions of one number, by what they are given and how many units in the last place they may be off."""


def _close(run: Run, inputs: str) -> OperatorCase:
    """An operator that is made of several roundings."""
    return OperatorCase(run, inputs, ulps=11, source=ASSERT_CLOSE, absolute=1e-6)  # 11 ulps are 1.3e-6


def _named(name: str, inputs: str, ulps: float) -> OperatorCase:
    return OperatorCase(getattr(torch, name), inputs, ulps, OPENCL)


def _other(x: Tensor) -> Tensor:
    """Other numbers of about the same size, without another rounding."""
    return x.flip(0) * 4


OPERATOR_VALUES: dict[str, OperatorCase] = {
    "addition": OperatorCase(lambda x: x + _other(x), "all bits"),
    "subtraction": OperatorCase(lambda x: x - _other(x), "all bits"),
    "multiplication": OperatorCase(lambda x: x * _other(x), "all bits"),
    "division": OperatorCase(lambda x: x / _other(x), "all bits"),
    "sqrt": OperatorCase(lambda x: x.abs().sqrt(), "all bits"),
    "floor": OperatorCase(lambda x: x.floor() + 0.5),
    "round": OperatorCase(lambda x: x.round() + 0.25),
    "a float as an integer": OperatorCase(lambda x: (x * 64).to(torch.int64).to(x.dtype) + 0.5),
    "comparison": OperatorCase(lambda x: (x > x.flip(0)).to(x.dtype) + 1),
    "maximum": OperatorCase(lambda x: torch.maximum(x, x.flip(0)) + 0.25),
    "argmax of rows": OperatorCase(lambda x: x.argmax(1).to(x.dtype) + 1, "rows"),
    "sort": OperatorCase(lambda x: x.sort().values),
    "order of a sort": OperatorCase(lambda x: x.argsort().to(x.dtype) + 1),
    "topk": OperatorCase(lambda x: x.topk(7).values),
    "cumulative maximum": OperatorCase(lambda x: x.cummax(0).values),
    "sum of dyadic fractions": OperatorCase(lambda x: x.sum().reshape(1)),
    "sum of a strided view": OperatorCase(lambda x: x[::3].sum().reshape(1)),
    "sum of columns": OperatorCase(lambda x: x.sum(0), "rows"),
    "product of matrices of dyadic fractions": OperatorCase(lambda x: x.T @ x, "rows"),
    **{name: _named(name, *of) for name, of in _ULPS.items()},
    "pow": OperatorCase(lambda x: x**2.5, "positive", 16, OPENCL),
    "atan2": OperatorCase(lambda x: torch.atan2(x, _other(x)), "signed", 6, OPENCL),
    "hypot": OperatorCase(lambda x: torch.hypot(x, _other(x)), "signed", 4, OPENCL),
    "sigmoid": _close(torch.sigmoid, "signed"),
    "softplus": _close(F.softplus, "signed"),
    "lgamma": _close(torch.lgamma, "above 1"),
    "softmax": _close(lambda x: x.softmax(1), "rows"),
    "log_softmax": _close(lambda x: x.log_softmax(1), "rows"),
    "logsumexp": _close(lambda x: x.logsumexp(1), "rows"),
    "mean": _close(lambda x: x.mean(1), "rows"),
    "variance": _close(lambda x: x.var(1), "rows"),
    "norm": _close(lambda x: torch.linalg.vector_norm(x, dim=1), "rows"),
    "distances of rows": _close(lambda x: torch.cdist(x, x + 1), "rows"),
    "sum of exponentials": _close(lambda x: x.exp().sum(1), "rows"),
}
"""By name. Sums of dyadic fractions are exact in any order, so they have the same bits everywhere."""


def reference(case: OperatorCase) -> tuple[float, ...]:
    """The values in float64 on the CPU."""
    return tuple(case.run(INPUTS[case.inputs].double()).reshape(-1).tolist())


def operator_values(case: OperatorCase, device: str) -> tuple[float, ...]:
    """The values in float32 on a device."""
    found: Any = case.run(INPUTS[case.inputs].to(device)).cpu()
    return tuple(found.double().reshape(-1).tolist())


def error_in_ulps(case: OperatorCase, got: tuple[float, ...], expected: tuple[float, ...]) -> float:
    """The largest error in units in the last place of float32, beyond what is allowed in absolute terms."""
    if len(got) != len(expected):
        return math.inf
    return max(map(_ulps, got, expected, [case.absolute] * len(got)))


def _ulps(got: float, expected: float, absolute: float) -> float:
    if math.isnan(got) or math.isinf(got):
        return math.inf
    unit = math.ldexp(1.0, max(math.frexp(expected)[1], -125) - 24)
    return max(abs(got - expected) - absolute, 0.0) / unit
