"""The ways to multiply activations by a quantized weight, each with where it can be had and why not."""

from __future__ import annotations

from assay.errors import ConfigError, describe
from assay.quantize.kernels.base import Kernel, KernelWeight
from assay.quantize.kernels.compiled import Native
from assay.quantize.kernels.int4 import Int4Pack, Int4PackCpu
from assay.quantize.kernels.int8 import Int8Dynamic, Int8Pack
from assay.quantize.kernels.portable import Dequantize

__all__ = ["KERNELS", "Kernel", "KernelWeight", "kernel"]

KERNELS: dict[str, Kernel] = {
    each.name: each for each in (Native(), Int8Pack(), Int4Pack(), Int4PackCpu(), Int8Dynamic(), Dequantize())
}


def kernel(name: str) -> Kernel:
    """The kernel of a name.

    Raises:
        ConfigError: no kernel has that name.

    Example:
        >>> kernel("dequantize").summary
        'expands the weight block by block and multiplies, in plain torch'
    """
    if name not in KERNELS:
        raise ConfigError(describe("kernel", repr(name), f"one of {', '.join(KERNELS)}", "Check the spelling"))
    return KERNELS[name]
