"""The compiled products with quantized weights in host memory, from their canonical bytes, and their expansion."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import SimpleNamespace

import torch
from torch import Tensor

from assay.native.library import MISSING, library, loaded

CHUNK = 128  # activations that compiled code puts in order together, at most
LANES = 16  # activations and rows of a weight that the matrix unit takes together
TILED_FROM = 4  # activations from which it is faster than products of pairs
GROUPS = 32  # the size of a group is a multiple of it
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
FEW = 2**20  # weights times rows below which one thread is faster than several


class WeightStruct(ctypes.Structure):
    """The fields of `struct weight` in weights.c."""

    _fields_ = (
        ("packed", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("zeros", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("rows", "width", "group")),
        *((name, ctypes.c_int32) for name in ("bits", "wide")),
    )


def why_not(group: int, scales: torch.dtype = torch.bfloat16) -> str:
    """Why the library cannot multiply by a weight; empty if it can. That it is in host memory is for the caller."""
    if library() is None:
        return MISSING
    if group % GROUPS:
        return f"it takes groups of a multiple of {GROUPS} weights, not {group}"
    return "" if scales != torch.float16 else "it takes scales in bfloat16 or float32"


def multiply(x: Tensor, packed: Tensor, scales: Tensor, zeros: Tensor | None, bits: int) -> Tensor:
    """``x @ wᵀ`` for a weight of ``v · scale + zero``, with sums in float32.

    Args:
        x: bfloat16, float16 or float32 of shape (M, K).
        packed: uint8 of shape (N, K · bits / 8), the integers bit behind bit.
        scales: bfloat16 or float32 of shape (N, K / group); the group is a multiple of 32.
        zeros: like the scales, or `None`.
        bits: of an integer.

    Returns:
        A tensor of shape (M, N) and the dtype of `x`.
    """
    x = (x if x.dtype != torch.float16 else x.float()).resolve_neg().contiguous()
    columns, width = x.shape
    rows, short = packed.shape[0], x.dtype == torch.bfloat16
    paired, tiled = short and multiplies_pairs(), short and columns >= TILED_FROM and multiplies_tiles()
    lanes = -(-columns // LANES) * LANES if tiled else columns  # what no activation is for, is not written
    whole = -(-width // CHUNK) * CHUNK
    ordered = torch.empty((lanes, whole), dtype=torch.bfloat16 if paired or tiled else torch.float32, device="cpu")
    sums = torch.empty((lanes, scales.shape[1]), dtype=torch.float32, device="cpu")
    y = torch.empty((columns, rows), dtype=torch.float32, device="cpu")
    weight, functions = ctypes.byref(_weight(packed, scales, zeros, width, bits)), _functions()
    read, to, of, out = x.data_ptr(), ordered.data_ptr(), sums.data_ptr(), y.data_ptr()
    if tiled:
        functions.order_tiles(weight, read, columns, to, of)
    else:
        functions.order_inputs(weight, read, columns, not short, paired, to, of)

    def product(first: int, last: int) -> int:
        if tiled:
            return int(functions.multiply_tiles(weight, first, last, to, of, columns, out))
        return int(functions.multiply_weight(weight, first, last, to, of, columns, paired, out))

    _shared_out(product, rows, columns * width)
    return y


def expand(packed: Tensor, scales: Tensor, zeros: Tensor | None, bits: int, out: Tensor) -> Tensor:
    """The weight that integers stand for: the bits that torch's operators give.

    Args:
        packed: uint8 of shape (N, ceil(K · bits / 8)).
        scales: bfloat16 or float32 of shape (N, K / group), for groups of any size.
        zeros: like the scales, or `None`.
        bits: of an integer.
        out: bfloat16 or float32 of shape (N, K), contiguous; it is written.

    Returns:
        `out`.
    """
    weight, expanded = ctypes.byref(_weight(packed, scales, zeros, out.shape[1], bits)), _functions().expand_weight
    begin, size, narrow = out.data_ptr(), out.shape[1] * out.element_size(), out.dtype == torch.bfloat16
    _shared_out(
        lambda first, last: expanded(weight, first, last, begin + first * size, narrow), len(packed), out.shape[1]
    )
    return out


@cache
def _functions() -> SimpleNamespace:
    """The functions of weights.c and tiles.c with the types of their arguments, which makes calls cheap."""
    pointer, long, flag = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
    arguments = {
        "order_inputs": (pointer, pointer, long, flag, flag, pointer, pointer),
        "multiply_weight": (pointer, long, long, pointer, pointer, long, flag, pointer),
        "order_tiles": (pointer, pointer, long, pointer, pointer),
        "multiply_tiles": (pointer, long, long, pointer, pointer, long, pointer),
        "expand_weight": (pointer, long, long, pointer, flag),
    }
    functions = SimpleNamespace(**{name: getattr(loaded(), f"assay_{name}") for name in arguments})
    for name, types in arguments.items():
        getattr(functions, name).argtypes = types
    return functions


@cache
def multiplies_pairs() -> bool:
    """Whether this processor multiplies pairs of bfloat16."""
    return bool(loaded().assay_multiplies_pairs())


@cache
def multiplies_tiles() -> bool:
    """Whether this processor has a matrix unit for bfloat16 (AMX), and the system lets this process use it."""
    return bool(loaded().assay_multiplies_tiles())


def _weight(packed: Tensor, scales: Tensor, zeros: Tensor | None, width: int, bits: int) -> WeightStruct:
    pointers = packed.data_ptr(), scales.data_ptr(), None if zeros is None else zeros.data_ptr()
    group = width // scales.shape[1]
    return WeightStruct(*pointers, len(packed), width, group, bits, scales.dtype == torch.float32)


def _shared_out(some: Callable[[int, int], int], rows: int, each: int) -> None:
    """Call for ranges of rows, in as many threads as torch uses; `each` is the work for a row."""
    threads = torch.get_num_threads() if rows * each >= FEW else 1
    if threads == 1 or rows < 2 * threads:
        failed = some(0, rows)
    else:
        step = -(-rows // threads) + LANES - 1 & -LANES
        ranges = [(first, min(first + step, rows)) for first in range(step, rows, step)]
        others = [_pool(threads).submit(some, *each) for each in ranges]
        failed = some(0, min(step, rows)) | max((other.result() for other in others), default=0)
    if failed:
        raise MemoryError("no memory for a row of a quantized weight")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads - 1, thread_name_prefix="assay-weights")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # the threads of the parent are not there
