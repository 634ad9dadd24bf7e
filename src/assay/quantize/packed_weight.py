"""The canonical form of a quantized weight: integers, scales and zeros, the same bytes for every device and processor.

A weight of shape ``(N, K)`` is held as signed integers ``v``, in groups of ``g`` along its rows:

    ``w[n, k] = v[n, k] * scales[n, k // g] + zeros[n, k // g]``

in float32, rounded once to the dtype that is asked for. The zero is the weight that the integer 0 stands for; symmetric
schemes have none. Other conventions turn into this one: torch's kernels for 4 bits subtract 8 from an unsigned integer
and add the same zero; a zero point ``z`` in units of the integer (GPTQ, AWQ, HQQ) is the zero ``(2^(bits-1) - z) · s``,
which float32 holds exactly where ``z`` is an integer and ``s`` a float16 or bfloat16.

The integers of a row are laid bit behind bit: integer ``k`` takes the bits ``k·bits`` to ``k·bits + bits - 1`` of the
row, where bit ``j`` of a row is bit ``j % 8`` of its byte ``j // 8`` (the least significant first), and the last byte
is filled up with zeros. A field of less than 8 bits holds ``v + 2^(bits-1)``; one of 8 bits holds ``v`` in two's
complement. So 4 bits are what mps and xpu read, and 8 bits what every device reads, without another copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.errors import ConfigError, DeviceError, DtypeError, InvalidValuesError, ShapeError, describe
from assay.quantize.scheme import Scheme

SCALES = (torch.bfloat16, torch.float16, torch.float32)
BLOCK = 2**20  # weights that are expanded at once


def pack(values: Tensor, bits: int) -> Tensor:
    """Lay signed integers bit behind bit, row by row.

    Args:
        values: int8 of shape (..., K), each in ``[-2^(bits-1), 2^(bits-1))``.
        bits: 2 to 8.

    Returns:
        uint8 of shape (..., ceil(K · bits / 8)), on the same device.

    Example:
        >>> pack(torch.tensor([[-8, 7, 0]], dtype=torch.int8), 4)
        tensor([[240,   8]], dtype=torch.uint8)
    """
    if bits == 8:
        return values.contiguous().view(torch.uint8)
    width = values.shape[-1]
    fields = (values + (1 << (bits - 1))).to(torch.uint8)
    count = 8 // _common(bits)  # so many fields fill whole bytes
    fields = torch.unflatten(F.pad(fields, (0, -width % count)), -1, (-1, count))
    whole = [torch.zeros_like(fields[..., 0]) for _ in range(count * bits // 8)]
    for place in range(count):
        byte, shift = divmod(place * bits, 8)
        whole[byte] = whole[byte] | (fields[..., place] << shift)
        if shift + bits > 8:
            whole[byte + 1] = whole[byte + 1] | (fields[..., place] >> (8 - shift))
    return torch.stack(whole, -1).flatten(-2)[..., : (width * bits + 7) // 8].contiguous()


def unpack(packed: Tensor, bits: int, width: int) -> Tensor:
    """Read the signed integers that :func:`pack` laid.

    Args:
        packed: uint8 of shape (..., ceil(width · bits / 8)).
        bits: 2 to 8.
        width: how many integers a row has.

    Returns:
        int8 of shape (..., width). For 8 bits it shares the memory of ``packed``.

    Example:
        >>> unpack(torch.tensor([[240, 8]], dtype=torch.uint8), 4, 3)
        tensor([[-8,  7,  0]], dtype=torch.int8)
    """
    if bits == 8:
        return packed.view(torch.int8)
    count = 8 // _common(bits)
    per = count * bits // 8
    packed = F.pad(packed, (0, -packed.shape[-1] % per)) if packed.shape[-1] % per else packed
    whole = torch.unflatten(packed, -1, (-1, per))
    fields = []
    for place in range(count):
        byte, shift = divmod(place * bits, 8)
        field = whole[..., byte] >> shift
        if shift + bits > 8:
            field = field | (whole[..., byte + 1] << (8 - shift))
        fields.append(field & ((1 << bits) - 1))
    return torch.stack(fields, -1).flatten(-2)[..., :width].view(torch.int8) - (1 << (bits - 1))


def _common(bits: int) -> int:
    """The greatest common divisor with 8."""
    return bits & -bits


@dataclass(frozen=True, eq=False)
class PackedWeight:
    """A quantized weight in its canonical form; the module says how it is laid out.

    Args:
        packed: uint8 of shape (N, ceil(K · bits / 8)).
        scales: bfloat16, float16 or float32 of shape (N, K / group size).
        zeros: like the scales, or ``None`` where the scheme is symmetric.
        scheme: what the integers mean.
        shape: ``(N, K)``.

    Raises:
        ConfigError: the scheme cannot hold such a weight.
        ShapeError: a tensor is not as large as the scheme and the shape say, such as scales with too few groups.
        DtypeError: a tensor is of another dtype.
        DeviceError: the tensors are on different devices.

    Example:
        >>> packed = torch.tensor([[240, 8]], dtype=torch.uint8)
        >>> scales = torch.tensor([[0.5, 2.0]])
        >>> PackedWeight(packed, scales, None, Scheme(4, 2, symmetric=True), (1, 4)).dequantize()
        tensor([[ -4.0000,   3.5000,   0.0000, -16.0000]])
    """

    packed: Tensor
    scales: Tensor
    zeros: Tensor | None
    scheme: Scheme
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(size) for size in self.shape))
        if why := self.scheme.why_not(self.shape):
            raise ConfigError(describe("shape", f"{self.shape}: {why}", f"one that {self.scheme} holds", "Change one"))
        rows, width = self.shape
        self._expect("packed", self.packed, (rows, self.scheme.row_bytes(width)), (torch.uint8,))
        groups = (rows, width // self.scheme.group(width))
        self._expect("scales", self.scales, groups, SCALES)
        if (self.zeros is None) != self.scheme.symmetric:
            expected = "none" if self.scheme.symmetric else "a tensor like the scales"
            got = "none" if self.zeros is None else "a tensor"
            raise ConfigError(describe("zeros", got, f"{expected} for {self.scheme}", "Pass what the scheme says"))
        if self.zeros is not None:
            self._expect("zeros", self.zeros, groups, (self.scales.dtype,))

    def _expect(self, name: str, tensor: Tensor, shape: tuple[int, int], dtypes: tuple[torch.dtype, ...]) -> None:
        what = f"for {self.scheme} of shape {self.shape}"
        if tuple(tensor.shape) != shape:
            do = "Pass the tensors that belong together"
            raise ShapeError(describe(name, f"shape {tuple(tensor.shape)}", f"shape {shape} {what}", do))
        if tensor.dtype not in dtypes:
            expected = " or ".join(str(dtype) for dtype in dtypes)
            raise DtypeError(describe(name, str(tensor.dtype), f"{expected} {what}", "Convert it"))
        if tensor.device != self.packed.device:
            do = "Move them together"
            raise DeviceError(describe(name, f"a tensor on {tensor.device}", f"one on {self.packed.device}", do))

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.packed.device

    @property
    def nbytes(self) -> int:
        """The bytes that it takes, scales and zeros included."""
        return sum(tensor.nbytes for tensor in self.tensors)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The integers, the scales, and the zeros where there are some."""
        return (self.packed, self.scales) if self.zeros is None else (self.packed, self.scales, self.zeros)

    def _with(self, change: Callable[[Tensor], Tensor]) -> PackedWeight:
        packed, scales, *zeros = map(change, self.tensors)
        shape = packed.shape[0], self.shape[1]
        return PackedWeight(packed, scales, zeros[0] if zeros else None, self.scheme, shape)

    def values(self) -> Tensor:
        """The integers, int8 of shape (N, K)."""
        return unpack(self.packed, self.scheme.bits, self.shape[1])

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The weight that it stands for.

        ``v · scale + zero`` in float32, rounded once. The product of an integer and a scale in bfloat16 or float16 is
        exact in float32, so that the bits are the same whether or not a device fuses the product with the sum.

        Args:
            dtype: of the result.

        Returns:
            A tensor of shape (N, K) on the same device.
        """
        rows, width = self.shape
        block = max(1, BLOCK // width)
        if block >= rows:
            return expand(self.values(), self.scales, self.zeros, dtype)
        weight = torch.empty(self.shape, dtype=dtype, device=self.device)
        for first in range(0, rows, block):
            weight[first : first + block] = self.rows(slice(first, first + block)).dequantize(dtype)
        return weight

    def rows(self, which: slice | Tensor) -> PackedWeight:
        """Some of the rows: a slice of them shares the memory, an int64 tensor of shape (n,) takes copies.

        Example:
            >>> packed, scales = torch.zeros(8, 4, dtype=torch.uint8), torch.ones(8, 1)
            >>> PackedWeight(packed, scales, None, Scheme(8, None, symmetric=True), (8, 4)).rows(slice(2, 5)).shape
            (3, 4)
        """
        if isinstance(which, slice):
            return self._with(lambda tensor: tensor[which])
        return self._with(lambda tensor: tensor.index_select(0, which))  # a number below 0 is no row

    def padded(self, rows: int) -> PackedWeight:
        """It with rows of zeros at the end, as many as make it so long."""
        extra = rows - self.shape[0]
        return self._with(lambda tensor: F.pad(tensor, (0, 0, 0, extra))) if extra else self

    def to(self, device: str | torch.device) -> PackedWeight:
        """The same on another device."""
        return self._with(lambda tensor: tensor.to(device))

    def equal(self, other: PackedWeight) -> bool:
        """Whether both have the same scheme, shape, dtype of scales, and the same bits. Reads values on the CPU."""
        pairs = zip(self.tensors, other.to(self.device).tensors, strict=False)
        return (self.scheme, self.shape, self.scales.dtype) == (other.scheme, other.shape, other.scales.dtype) and all(
            torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)) for a, b in pairs
        )

    def check(self, name: str = "weight") -> PackedWeight:
        """Itself, where its scales and zeros are finite. Reads values on the CPU.

        Raises:
            InvalidValuesError: they are not.
        """
        for what, tensor in (("scales", self.scales), ("zeros", self.zeros)):
            if tensor is not None and not bool(tensor.isfinite().all()):
                got = f"{int((~tensor.isfinite()).sum())} that are NaN or infinite"
                do = "Quantize or load it again"
                raise InvalidValuesError(describe(f"{what} of {name}", got, "finite numbers", do))
        return self

    def __repr__(self) -> str:
        scales = str(self.scales.dtype).removeprefix("torch.")
        size = f"shape={self.shape}, scales={scales}, device={self.device}, {self.nbytes} bytes"
        return f"PackedWeight({self.scheme}, {size})"


def expand(values: Tensor, scales: Tensor, zeros: Tensor | None, dtype: torch.dtype) -> Tensor:
    """``v · scale + zero`` for integers of shape (N, K), and scales and zeros of shape (N, K / group size)."""
    grouped = torch.unflatten(values, 1, (scales.shape[1], -1)).to(torch.float32)
    weight = grouped.mul_(scales.to(torch.float32).unsqueeze(-1))
    if zeros is not None:
        weight = weight.add_(zeros.to(torch.float32).unsqueeze(-1))
    return weight.to(dtype).flatten(1)
