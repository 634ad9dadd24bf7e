"""Layers that hold their weight as integers: the canonical form as buffers, and per device what its kernels read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from assay.errors import ConfigError, DeviceError, DtypeError, ShapeError, describe
from assay.quantize.dispatch import FALLBACK, DispatchTable, at, regimes
from assay.quantize.kernels import KernelWeight, kernel
from assay.quantize.packed_weight import PackedWeight
from assay.quantize.scheme import Scheme
from assay.quantize.tuning_records import Steps

HELD = ("packed", "scales", "zeros")


class QuantizedWeight(nn.Module):
    """A weight as integers, in the place where a layer has its weight; layers that share it share one of these.

    Its buffers ``packed``, ``scales`` and ``zeros`` are the canonical form and nothing else: they are what
    ``state_dict`` has, they keep their dtypes in ``to(dtype)``, and a move leaves every bit as it was. What
    a kernel reads is made of them at first use, and forgotten when they move or change.

    Args:
        integers: the weight.
        dtype: of the weight that it stands for, which ``to(dtype)`` changes.
        table: from how many rows on which kernel is the fastest; by default assay's own measurements.

    Example:
        >>> from assay.quantize import quantize_weight
        >>> weight = QuantizedWeight(quantize_weight(torch.eye(4, 32), "int8"), torch.bfloat16)
        >>> weight.half().dtype, weight.scales.dtype
        (torch.float16, torch.bfloat16)
    """

    packed: Tensor
    scales: Tensor
    zeros: Tensor | None
    _packs: dict[tuple[str, torch.dtype], KernelWeight]
    _steps: dict[torch.dtype, Steps]
    _stamp: tuple[Any, ...]

    def __init__(self, integers: PackedWeight, dtype: torch.dtype, table: DispatchTable | None = None) -> None:
        super().__init__()
        self.scheme: Scheme = integers.scheme
        self.shape: tuple[int, int] = integers.shape
        self.dtype = dtype
        self.table = table
        for name in HELD:
            self.register_buffer(name, getattr(integers, name))
        self._forget()

    @property
    def device(self) -> torch.device:
        """Where it is."""
        packed = self._buffers["packed"]  # past the look-up of modules, which every call would pay for
        assert packed is not None
        return packed.device

    @property
    def integers(self) -> PackedWeight:
        """The canonical form; it shares the memory."""
        return PackedWeight(self.packed, self.scales, self.zeros, self.scheme, self.shape)

    def dequantize(self, dtype: torch.dtype | None = None) -> Tensor:
        """The weight that it stands for, of shape (N, K)."""
        return self.integers.dequantize(dtype or self.dtype)

    def kernels(self, dtype: torch.dtype) -> Steps:
        """(first number of rows, name of the kernel) for activations of this dtype, where the weight is."""
        if dtype not in self._steps:
            self._look_up(dtype)
        return self._steps[dtype]

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _look_up(self, dtype: torch.dtype) -> None:
        self._steps[dtype] = regimes(dtype, self.device, self.scheme, self.shape, self.table)

    def prepare(self, dtype: torch.dtype | None = None) -> None:
        """Pack for the kernels now, rather than in the first call; before ``torch.compile`` with ``fullgraph``."""
        for _, name in self.kernels(dtype or self.dtype):
            self._packed(name, dtype or self.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """``x @ wᵀ`` for activations of shape (..., K); the shape of the result is (..., N)."""
        rows, width = self.shape
        if not x.is_floating_point():
            raise DtypeError(describe("input", str(x.dtype), "floats", "Convert it"))
        if x.dim() == 0 or x.shape[-1] != width:
            got, do = f"shape {tuple(x.shape)}", "Check the layer before"
            raise ShapeError(describe("input", got, f"shape (..., {width})", do))
        if x.device != self.device:
            do = "Move one of them"
            raise DeviceError(describe("input", f"a tensor on {x.device}", f"one on {self.device}", do))
        flat = x.reshape(-1, width)
        if flat.shape[0] == 0:
            return x.new_empty((*x.shape[:-1], rows))
        return self._multiplied(flat.contiguous()).reshape(*x.shape[:-1], rows)

    def _multiplied(self, x: Tensor) -> Tensor:
        if not (x.requires_grad and torch.is_grad_enabled()):
            return self.multiply(x)
        if torch.compiler.is_compiling():  # the compiler derives the gradient of elementary operators itself
            return kernel(FALLBACK).matmul(x, kernel(FALLBACK).pack(self.integers, self.dtype))
        product: Tensor = _Product.apply(x, self)  # type: ignore[no-untyped-call]
        return product

    def multiply(self, x: Tensor) -> Tensor:
        name = at(x.shape[0], self.kernels(x.dtype))
        return kernel(name).matmul(x, self._packed(name, x.dtype))

    def _packed(self, name: str, dtype: torch.dtype) -> KernelWeight:
        """The weight as a kernel reads it, made when it is not there, is another device's, or the buffers changed."""
        entry = self._packs.get((name, dtype))
        if entry is not None:
            is_compiling = torch.compiler.is_compiling()
            if is_compiling or (entry.layout == kernel(name).layout(self.device) and self._stamp == self._stamp_now()):
                return entry
        fresh: KernelWeight = self._pack(name, dtype)
        return fresh

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _pack(self, name: str, dtype: torch.dtype) -> KernelWeight:
        now = self._stamp_now()
        if now != self._stamp:
            self._packs.clear()
            self._stamp = now
        with torch.no_grad():
            self._packs[name, dtype] = kernel(name).pack(self.integers, dtype)
        return self._packs[name, dtype]

    def _stamp_now(self) -> tuple[Any, ...]:
        """Changes when a buffer is replaced or written to."""
        buffers = (self._buffers[name] for name in HELD)
        return tuple([None if t is None else (id(t), 0 if t.is_inference() else t._version) for t in buffers])

    def _forget(self) -> None:
        self._packs, self._steps, self._stamp = {}, {}, ()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> QuantizedWeight:
        """Move the buffers as every module does, but keep their dtypes: the integers mean nothing with other scales."""
        before = {name: self._buffers[name] for name in HELD}
        self.dtype = fn(torch.empty(0, dtype=self.dtype, device=self.packed.device)).dtype
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, buffer in before.items():
            after = self._buffers[name]
            if buffer is not None and after is not None and after.dtype != buffer.dtype:
                self._buffers[name] = buffer.to(after.device)
        self._forget()
        return self

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, metadata: Any, strict: bool, *lists: Any
    ) -> None:
        errors: list[str] = lists[-1]
        for name in HELD:
            mine, theirs = self._buffers[name], state_dict.get(prefix + name)
            if mine is not None and isinstance(theirs, Tensor) and theirs.dtype != mine.dtype:
                got, expected = str(theirs.dtype), f"{mine.dtype}, which is not converted"
                errors.append(describe(prefix + name, got, expected, "Load what was quantized in the same way"))
        if not errors:
            super()._load_from_state_dict(state_dict, prefix, metadata, strict, *lists)
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packs": {}, "_steps": {}, "_stamp": ()}

    def extra_repr(self) -> str:
        return f"{self.scheme}, shape={self.shape}, dtype={str(self.dtype).removeprefix('torch.')}"


class _Product(torch.autograd.Function):
    """The product with the gradient of its activations, for which nothing but the integers is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: QuantizedWeight) -> Tensor:
        ctx.weight = weight
        return weight.multiply(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad @ ctx.weight.dequantize(grad.dtype), None


class _QuantizedLayer(nn.Module):
    """A layer whose weight is quantized."""

    weight: QuantizedWeight

    @property
    def integers(self) -> PackedWeight:
        """The canonical form of the weight; it shares the memory."""
        return self.weight.integers

    @property
    def scheme(self) -> Scheme:
        """How the weight is held."""
        return self.weight.scheme


class QuantizedLinear(_QuantizedLayer):
    """``y = x wᵀ + b`` with a quantized weight, in the place of ``torch.nn.Linear``.

    Any dtype of activations runs, in that dtype: there is no silent change of precision. Inputs may require grad; the
    weight does not learn. Under autocast activations become autocast's dtype, as they do for a linear layer.

    Args:
        weight: the integers, or a :class:`QuantizedWeight` that other layers share.
        bias: of shape (N,), kept as the object it is; or ``None``.
        dtype: of the layer that it stands for, where ``weight`` is given as integers.
        table: see :class:`QuantizedWeight`.

    Raises:
        ShapeError: the bias is not as long as the weight has rows.

    Example:
        >>> from assay.quantize import quantize_weight
        >>> dense = torch.nn.Linear(64, 8)
        >>> layer = QuantizedLinear(quantize_weight(dense.weight, "int8"), dense.bias)
        >>> x = torch.ones(2, 3, 64)
        >>> bool((layer(x) - dense(x)).abs().max() < 0.02)
        True
        >>> sorted(layer.state_dict())
        ['bias', 'weight.packed', 'weight.scales']
    """

    bias: Tensor | None

    def __init__(
        self,
        weight: PackedWeight | QuantizedWeight,
        bias: Tensor | None = None,
        dtype: torch.dtype | None = None,
        table: DispatchTable | None = None,
    ) -> None:
        super().__init__()
        self.weight = _weight(weight, dtype or (torch.float32 if bias is None else bias.dtype), table)
        self.out_features, self.in_features = self.weight.shape
        if bias is not None and tuple(bias.shape) != (self.out_features,):
            expected = f"shape ({self.out_features},)"
            raise ShapeError(describe("bias", f"shape {tuple(bias.shape)}", expected, "Pass the layer's own"))
        if isinstance(bias, nn.Parameter) or bias is None:
            self.register_parameter("bias", bias)
        else:
            self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output for activations of shape (..., K)."""
        kind = x.device.type
        if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind) and x.is_floating_point():
            x = x.to(torch.get_autocast_dtype(kind))
        y = self.weight.forward(x)
        bias = self.bias
        return y if bias is None else y + (bias if bias.dtype == y.dtype else bias.to(y.dtype))

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class QuantizedEmbedding(_QuantizedLayer):
    """Rows of a quantized weight by their number, in the place of ``torch.nn.Embedding``.

    Only the rows that are asked for are expanded.

    Args:
        weight: the integers, or a :class:`QuantizedWeight` that other layers share.
        padding_idx: kept as an attribute; its row is among the integers.
        dtype: of the rows.

    Example:
        >>> from assay.quantize import quantize_weight
        >>> layer = QuantizedEmbedding(quantize_weight(torch.eye(5, 8), "int8"))
        >>> layer(torch.tensor([[3, 0]])).shape
        torch.Size([1, 2, 8])
    """

    def __init__(
        self,
        weight: PackedWeight | QuantizedWeight,
        padding_idx: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.weight = _weight(weight, dtype or torch.float32, None)
        self.num_embeddings, self.embedding_dim = self.weight.shape
        self.padding_idx = padding_idx

    def forward(self, indices: Tensor) -> Tensor:
        """The rows of indices of any shape, which gets another dimension of ``embedding_dim``."""
        if indices.dtype not in (torch.int64, torch.int32):
            raise DtypeError(describe("indices", str(indices.dtype), "torch.int64 or torch.int32", "Convert them"))
        shape = (*indices.shape, self.embedding_dim)
        if not indices.numel():
            return torch.empty(shape, dtype=self.weight.dtype, device=self.weight.device)
        return self.integers.rows(indices.reshape(-1).long()).dequantize(self.weight.dtype).reshape(shape)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


def _weight(weight: object, dtype: torch.dtype, table: DispatchTable | None) -> QuantizedWeight:
    if isinstance(weight, QuantizedWeight):
        return weight
    if isinstance(weight, PackedWeight):
        return QuantizedWeight(weight, dtype, table)
    expected = "PackedWeight or a QuantizedWeight"
    raise ConfigError(describe("weight", type(weight).__name__, expected, "Quantize it with quantize_weight"))


QUANTIZED = (QuantizedLinear, QuantizedEmbedding)
