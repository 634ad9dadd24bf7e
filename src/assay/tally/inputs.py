"""What an update may be given: tensors with values, on one device, with one row for each sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.nn.parameter import is_lazy

from assay.devices.placement import bring_together, has_values, is_freed, is_plain, plain
from assay.errors import ConfigError, DeviceError, DtypeError, ShapeError, describe, plural
from assay.tally.arrays import as_tensor, not_a_tensor
from assay.tally.base import BatchLayout, TensorLayout

_DTYPES = {
    *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    *(dtype for name, dtype in vars(torch).items() if name.startswith("float8_")),
}
_WIDER = {
    torch.bool: torch.uint8,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    **{dtype: torch.float32 for dtype in _DTYPES if dtype.is_floating_point and dtype.itemsize == 1},
}


def check_inputs(arguments: Mapping[str, Any], weighted: bool, strict: bool) -> dict[str, Tensor]:
    """The arguments that there are, on one device and with a sample dimension.

    Args:
        arguments: `preds`, `target`, `weights` and named columns as they came, as tensors or as `as_tensor` takes them;
            None for what is not there.
        weighted: weights are expected.
        strict: raise when they are on several devices.

    Raises:
        ShapeError, DtypeError, DeviceError: an argument is no tensor that can be counted, or has another length.
        ConfigError: weights where none are expected, or none where they are.
    """
    arguments = {name: as_tensor(value) for name, value in arguments.items()}
    for name, value in arguments.items():
        if value is not None or name == "preds":
            _check(name, value)
    if (arguments["weights"] is not None) != weighted:
        got, expected = ("weights", "none") if not weighted else ("no weights", "weights")
        raise ConfigError(describe("weights", got, expected, "Make the meter with weighted=True, or leave them out"))
    together = bring_together(strict=strict, **arguments)
    tensors = {name: t[None] if t.ndim == 0 else t for name, t in together.items() if t is not None}
    rows = tensors["preds"].shape[0]
    for name, tensor in tensors.items():
        if tensor.shape[0] != rows:
            expected = f"as many as preds has, {rows}"
            do = "Pass batches, in which dimension 0 counts the samples"
            raise ShapeError(describe(name, plural(tensor.shape[0], "sample"), expected, do))
    return tensors


def match_shapes(tensors: dict[str, Tensor], check: Callable[[BatchLayout], None]) -> dict[str, Tensor]:
    """The arguments after their layout was checked; where `(N, 1)` meets `(N,)` and only that fits, all as `(N,)`.

    A network with one output gives `(N, 1)`, and targets of one value are `(N,)`. Nothing is broadcast.

    Raises:
        InputError: what `check` raises for the arguments as they came.
    """
    flat = {name: t[:, 0] if t.ndim == 2 and t.shape[1] == 1 else t for name, t in tensors.items()}
    data = [t.ndim for name, t in tensors.items() if name in ("preds", "target")]
    if sorted(data) != [1, 2] or any(t.ndim != 1 for t in flat.values()):
        check(layout(tensors))
        return tensors
    try:
        check(layout(tensors))
    except ShapeError as error:
        try:
            check(layout(flat))
        except ShapeError:
            raise error from None
        return flat
    return tensors


def layout(tensors: Mapping[str, Tensor]) -> BatchLayout:
    """The metadata of arguments."""
    columns = {name: TensorLayout(tensor.dtype, tuple(tensor.shape[1:])) for name, tensor in tensors.items()}
    preds, target, weights = columns.pop("preds"), columns.pop("target", None), columns.pop("weights", None)
    return BatchLayout(preds, target, weights, columns)


def type_name(value: object) -> str:
    """What a value is, for messages."""
    if value is None:
        return "nothing"
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _check(name: str, value: Any) -> None:
    """Raise when a value is no dense tensor of numbers."""
    if not isinstance(value, Tensor):
        raise not_a_tensor(name, value, type_name(value))
    lazy = not is_compiling() and is_lazy(value)
    if lazy or not has_values(value):
        got = f"{type_name(value) if lazy else f'a tensor on {value.device}'}, without values"
        do = "Load the weights of the model, or make it with to_empty, before it is run"
        raise DeviceError(describe(name, got, "one that has values", do))
    if value.is_nested:
        raise ShapeError(describe(name, "a nested tensor", "one shape", "Update once for each of its parts"))
    if value.layout != torch.strided:
        raise ShapeError(describe(name, f"a tensor of layout {value.layout}", "a dense one", f"Pass {name}.to_dense()"))
    if value.is_quantized:
        raise DtypeError(describe(name, value.dtype, "plain numbers", f"Pass {name}.dequantize()"))
    if value.dtype not in _DTYPES:
        do = f"Pass {name}.long(), where it fits" if value.dtype == torch.uint64 else "Convert it to float32 or int64"
        raise DtypeError(describe(name, value.dtype, "a dtype that torch can compare and add", do))
    if name == "weights" and value.dtype.is_complex:
        raise DtypeError(describe(name, value.dtype, "real numbers", "Pass the real part or the modulus"))
    if not is_compiling():
        _check_memory(name, value)


def _check_memory(name: str, value: Tensor) -> None:
    """Raise when there is no memory of its own behind a tensor: torch would fail inside, or crash, when it reads it."""
    if not is_plain(value):
        got = f"a {type_name(value)}, whose values other code computes"
        do = f"Pass a plain tensor: {name}.full_tensor(), {name}.wait(), {name}.get_data() or {name}.dequantize()"
        raise ShapeError(describe(name, got, "a plain tensor", do))
    try:
        freed = is_freed(value)
    except NotImplementedError as error:
        do = "Call update outside of torch.func.vmap, grad and jvp, with their result"
        raise ShapeError(describe(name, "a tensor without storage", "a plain tensor", do)) from error
    if freed:
        do = f"Update before its storage is freed, or pass {name}.clone() of that time"
        raise DeviceError(describe(name, "a tensor whose storage was freed", "one that has values", do))


def readable(tensor: Tensor) -> Tensor:
    """The same values in memory, in a dtype that torch has operators for.

    Few take float8, uint16 and uint32, or subtract bool.
    """
    tensor = plain(tensor)
    wider = _WIDER.get(tensor.dtype)
    return tensor if wider is None else tensor.to(wider)
