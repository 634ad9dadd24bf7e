"""Whether two tensors hold the same values, and where and by how much they do not."""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib.resources import files

import torch
from torch import Tensor

from assay._records import CellValue, Record
from assay.devices import to_host

# Integers of a float's width, in whose order neighbours are neighbours: the distance is the count of steps between.
_BITS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
_WIDE = {torch.complex32: torch.complex64, torch.complex64: torch.complex128, torch.complex128: torch.complex128}


class Tolerance(Record):
    """How far two right results may lie apart: ``absolute + relative * |cpu|``.

    Attributes:
        relative: the part that grows with the value.
        absolute: the part that does not.
        source: where the two numbers come from.
    """

    relative: float
    absolute: float
    source: str

    def __str__(self) -> str:
        return f"relative {self.relative:g}, absolute {self.absolute:g}"


EXACT = Tolerance(0.0, 0.0, "integers and booleans are equal or they are not")


class ValueDifference(Record):
    """How the values of one tensor differ: at the element that lies farthest outside the tolerance.

    Attributes:
        where: the index of that element.
        cpu: its value on the CPU; a boolean or a complex number as a string.
        device: its value on the device.
        absolute: ``|device - cpu|`` there.
        relative: the same as a part of ``|cpu|``.
        ulps: the floats that lie between the two, in the coarser of the two dtypes; ``None`` for NaN, complex numbers
            and integers.
        outside: how many elements are outside the tolerance.
        elements: how many there are.
        dtypes: the dtype on the CPU and on the device.
        tolerance: what was allowed.
        errors: the largest error of the CPU and of the device against the same operator in float64, if it has one.
    """

    where: tuple[int, ...]
    cpu: CellValue
    device: CellValue
    absolute: CellValue
    relative: float
    ulps: int | None
    outside: int
    elements: int
    dtypes: tuple[str, str]
    tolerance: Tolerance
    errors: tuple[float, float] | None = None

    @property
    def nearer(self) -> str:
        """``"cpu"`` or ``"device"``: which of the two is nearer to float64; empty where that is not known."""
        if self.errors is None or self.errors[0] == self.errors[1]:
            return ""
        return "cpu" if self.errors[0] < self.errors[1] else "device"

    def __str__(self) -> str:
        at = f"[{', '.join(map(str, self.where))}]" if self.where else "the value"
        ulps = f", {self.ulps} units in the last place" if self.ulps is not None else ""
        return (
            f"{at}: {self.cpu} on the CPU, {self.device} on the device ({self.absolute:.3g} apart, relative "
            f"{self.relative:.3g}{ulps}); {self.outside} of {self.elements} outside {self.tolerance}"
        )


@cache
def tolerances() -> dict[torch.dtype, Tolerance]:
    """The tolerance of each dtype that is rounded.

    Returns:
        dtype -> tolerance; a dtype that is absent must be equal.

    Source:
        ``tolerances.toml`` beside this file, which names the source of each group.

    Example:
        >>> print(tolerances()[torch.float32])
        relative 1.3e-06, absolute 1e-05
    """
    groups = tomllib.loads((files(__package__) / "tolerances.toml").read_text("utf-8")).values()
    return {
        getattr(torch, name): Tolerance(numbers["relative"], numbers["absolute"], group["source"])
        for group in groups
        for name, numbers in group["dtypes"].items()
        if hasattr(torch, name)
    }


def tolerance_of(*dtypes: torch.dtype) -> Tolerance:
    """The loosest tolerance of some dtypes: a float32 result that is compared with float64 is judged as float32."""
    return max((tolerances().get(dtype, EXACT) for dtype in dtypes), key=lambda tolerance: tolerance.relative)


def difference(cpu: Tensor, device: Tensor, allowed: Tolerance | None = None) -> ValueDifference | None:
    """How two tensors of one shape differ; ``None`` if every element is within the tolerance. NaN equals NaN.

    Args:
        cpu: the values on the CPU.
        device: the values from the device, on whichever device they are.
        allowed: the tolerance, instead of that of the dtypes.

    Source:
        The rule is that of :func:`torch.isclose`, with ``equal_nan=True``.

    Example:
        >>> print(difference(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5])))
        [1]: 2.0 on the CPU, 2.5 on the device (0.5 apart, relative 0.25, 2097152 units in the last place); 1 of 2
        outside relative 1.3e-06, absolute 1e-05
    """
    dtypes = (cpu.dtype, device.dtype)
    first, second = _plain_values(cpu), _plain_values(device)
    if first.dtype == second.dtype and torch.equal(first, second):
        return None
    allowed = allowed or tolerance_of(*dtypes)
    wide = [_widened(values) for values in (first, second)]
    common = torch.promote_types(wide[0].dtype, wide[1].dtype)
    first, second = (values.to(common) for values in wide)
    close = torch.isclose(second, first, allowed.relative, allowed.absolute, equal_nan=True)
    if close.all():
        return None
    return _worst(first, second, ~close, dtypes, allowed)


def same_bits(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors on the CPU hold the same values; NaN is taken for different."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    return torch.equal(_plain_values(first), _plain_values(second))


def error_against(reference: Tensor, values: Tensor) -> float:
    """The largest distance of some values from a reference; infinite where only one of the two is NaN."""
    first, second = _widened(_plain_values(reference)), _widened(_plain_values(values))
    apart = (first - second).abs()
    apart[first == second] = 0
    apart[first.isnan() & second.isnan()] = 0
    return float(apart.nan_to_num(nan=math.inf, posinf=math.inf).max()) if apart.numel() else 0.0


def _worst(
    cpu: Tensor, device: Tensor, outside: Tensor, dtypes: tuple[torch.dtype, torch.dtype], allowed: Tolerance
) -> ValueDifference:
    apart = _distance(cpu, device)
    excess = apart / (allowed.absolute + allowed.relative * _distance(cpu, torch.zeros_like(cpu))).clamp(min=1e-300)
    excess = torch.where(outside, excess.nan_to_num(nan=math.inf, posinf=math.inf), -1.0)
    at = int(excess.argmax())
    where = tuple(int(index) for index in torch.unravel_index(torch.tensor(at, device="cpu"), cpu.shape))
    first, second = cpu.flatten()[at], device.flatten()[at]
    inexact = first.dtype.is_floating_point or first.dtype.is_complex
    absolute = float(apart.flatten()[at]) if inexact else abs(int(first) - int(second))
    size = abs(first.item())
    return ValueDifference(
        where=where,
        cpu=_cell(first),
        device=_cell(second),
        absolute=absolute,
        relative=absolute / size if size else math.inf,
        ulps=_ulps(first, second, max(dtypes, key=lambda dtype: tolerance_of(dtype).relative)),
        outside=int(outside.sum()),
        elements=cpu.numel(),
        dtypes=(_name(dtypes[0]), _name(dtypes[1])),
        tolerance=allowed,
    )


def _distance(first: Tensor, second: Tensor) -> Tensor:
    if first.dtype.is_floating_point or first.dtype.is_complex:
        return (first - second).abs().double()
    return (first.double() - second.double()).abs()


def _ulps(first: Tensor, second: Tensor, dtype: torch.dtype) -> int | None:
    if dtype not in _BITS or first.dtype.is_complex or not (first.isfinite() and second.isfinite()):
        return None
    return abs(_rank(first.to(dtype)) - _rank(second.to(dtype)))


def _rank(value: Tensor) -> int:
    """The place of a float among all floats of its dtype, counted from zero."""
    bits = int(value.reshape(1).view(_BITS[value.dtype]).item())
    magnitude = bits & ((1 << value.element_size() * 8 - 1) - 1)
    return -magnitude if bits < 0 else magnitude


def on_host(tensor: Tensor) -> Tensor:
    """A tensor's values on the CPU, dense."""
    tensor = tensor.detach()
    return to_host(tensor if tensor.layout is torch.strided else tensor.to_dense())


def _plain_values(tensor: Tensor) -> Tensor:
    tensor = on_host(tensor)
    return (tensor.dequantize() if tensor.is_quantized else tensor).resolve_conj().resolve_neg()


def _widened(tensor: Tensor) -> Tensor:
    """Floats in float64, in which the differences of two of them are nearly exact; integers as they are."""
    if tensor.dtype.is_complex:
        return tensor.to(_WIDE[tensor.dtype])
    if tensor.dtype.is_floating_point:
        return tensor.double()
    return tensor


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _cell(element: Tensor) -> CellValue:
    value = element.item()
    return str(value) if isinstance(value, bool | complex) else value
