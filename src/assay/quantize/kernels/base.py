"""What a kernel is: one way to multiply activations by a quantized weight, and where it can be had."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.devices.operators.support import borrowed, falls_short, kernel, lacks, layout_of
from assay.quantize.packed_weight import PackedWeight
from assay.quantize.scheme import Scheme


@dataclass(frozen=True, eq=False)
class KernelWeight:
    """A weight as one kernel reads it: for this device and processor, this dtype of activations, and no other.

    Attributes:
        kernel: the name of the kernel.
        layout: what the layout of its tensors depends on; :func:`assay.devices.operators.layout_of`.
        tensors: what the kernel's matmul takes.
        scheme: of the weight.
        shape: of the weight, ``(N, K)``.
    """

    kernel: str
    layout: str
    tensors: tuple[Tensor, ...]
    scheme: Scheme
    shape: tuple[int, int]


@dataclass(frozen=True)
class KernelUse:
    """What a kernel is to multiply, and where; the fields are the arguments of :meth:`Kernel.why_not`."""

    device: str | torch.device
    dtype: str
    scheme: Scheme
    shape: Sequence[int]
    release: str | None


class Kernel(ABC):
    """One way to multiply activations of shape (M, K) by a quantized weight of shape (N, K).

    Attributes:
        name: by which plans and tables call it.
        summary: what it does, in a line.
    """

    name: str
    summary: str

    def why_not(
        self,
        device: str | torch.device,
        dtype: str | torch.dtype,
        scheme: Scheme,
        shape: Sequence[int],
        release: str | None = None,
    ) -> str:
        """Why a weight cannot take this kernel; empty if it can.

        Args:
            device: any device or its name, of this machine or not.
            dtype: of the activations, ``torch.bfloat16`` or ``"bfloat16"``.
            scheme: of the weight.
            shape: of the weight, ``(N, K)``.
            release: of torch; by default the installed one.

        Returns:
            A reason that can follow the name of the kernel.
        """
        return self.obstacle(KernelUse(device, str(dtype).removeprefix("torch."), scheme, shape, release))

    @abstractmethod
    def obstacle(self, use: KernelUse) -> str:
        """What :meth:`why_not` returns."""

    @abstractmethod
    def tensors(self, integers: PackedWeight, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """What :meth:`matmul` needs, on the device of the integers; made of their bytes by elementary operators."""

    @abstractmethod
    def matmul(self, x: Tensor, packed: KernelWeight) -> Tensor:
        """``x @ wᵀ`` of shape (M, N), in the dtype of ``x``, which is contiguous, of shape (M, K), and not empty."""

    def extra_bytes(self, device: str | torch.device, scheme: Scheme, shape: Sequence[int]) -> int:
        """The bytes that it keeps on a device beside the canonical form, once it was used."""
        return 0

    def layout(self, device: str | torch.device) -> str:
        """What the layout of its tensors depends on, on this device here."""
        return "canonical"

    def pack(self, integers: PackedWeight, dtype: torch.dtype) -> KernelWeight:
        """The weight as this kernel reads it, on the device where its integers are."""
        layout = self.layout(integers.device)
        return KernelWeight(self.name, layout, self.tensors(integers, dtype), integers.scheme, integers.shape)


class TorchKernel(Kernel):
    """A kernel through one of torch's operators for quantized weights.

    Attributes:
        operator: its name, ``_weight_int8pack_mm``.
        bits: the only ones that it takes.
        activations: the only ones that it takes; see :class:`Scheme`.
    """

    operator: str
    bits: int
    activations: str = ""

    def obstacle(self, use: KernelUse) -> str:
        takes, scheme, width = kernel(use.device, self.operator), use.scheme, use.shape[1]
        if why := lacks(use.device, self.operator, use.release):
            return why
        if takes is None:
            return f"nothing is known of {self.operator} on {use.device}"
        if scheme.bits != self.bits:
            return f"it takes {self.bits} bits, not {scheme.bits}"
        if scheme.activations != self.activations:
            return "it does not round activations" if scheme.activations else "it rounds activations"
        if not takes.groups and (scheme.group_size not in (None, width) or not scheme.symmetric):
            return "it takes one scale for each row and no zeros"
        if takes.groups and scheme.group(width) not in takes.groups:
            return f"it takes groups of {', '.join(map(str, takes.groups))}, not {scheme.group(width)}"
        if use.dtype not in takes.dtypes:
            return f"it takes {' or '.join(takes.dtypes)}, not {use.dtype}"
        for kind in (takes, borrowed(use.device, self.operator)):
            if kind and width % kind.width:
                return f"it takes rows of a multiple of {kind.width} weights, not {width}"
        return falls_short(torch.device(use.device), takes.needs) if takes.needs else ""

    def layout(self, device: str | torch.device) -> str:
        return f"{self.name} {layout_of(device)}"

    def rows(self, device: str | torch.device, rows: int) -> int:
        """The rows of a weight as the operator takes it there: filled up to a multiple."""
        takes = kernel(device, self.operator)
        return padded(rows, takes.rows) if takes else rows

    def filled_up(self, integers: PackedWeight) -> PackedWeight:
        """The integers with rows of zeros at the end, as many as the operator takes."""
        return integers.padded(self.rows(integers.device, integers.shape[0]))

    def matmul(self, x: Tensor, packed: KernelWeight) -> Tensor:
        y = self.multiply(x, packed)
        return y if y.shape[1] == packed.shape[0] else y[:, : packed.shape[0]]

    def multiply(self, x: Tensor, packed: KernelWeight) -> Tensor:
        """The operator's result, with the rows that the weight was filled up with."""
        raise NotImplementedError


def padded(rows: int, multiple: int) -> int:
    """The rows of a weight, filled up to a multiple.

    Example:
        >>> padded(17, 16), padded(32, 16)
        (32, 32)
    """
    return -(-rows // multiple) * multiple
