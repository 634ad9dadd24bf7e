"""When a rule of an operator applies: conditions on its arguments, by the names that the fact files use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.errors import ConfigError, describe

Arguments = Mapping[str, Any]
"""The arguments of a call by the names that the operator's schema gives them; those left out may be missing."""


def applies(condition: str, arguments: Arguments) -> bool:
    """Whether a rule applies to a call with these arguments; an empty condition never does.

    Example:
        >>> applies("accumulate", {"accumulate": True}), applies("without output_size", {"output_size": 3})
        (True, False)
    """
    if not condition:
        return False
    if condition not in CONDITIONS:
        names = ", ".join(CONDITIONS)
        raise ConfigError(describe("condition", repr(condition), f"one of {names}", "Check the spelling"))
    return CONDITIONS[condition](arguments)


def _boolean_index(arguments: Arguments) -> bool:
    """A mask on the device: torch turns it into positions. Those of a mask on the CPU are found on the CPU."""
    masks = [index for index in arguments.get("indices") or () if index is not None and _is_mask(index)]
    here = arguments["self"].device
    return any(mask.device == here or mask.device.type != "cpu" for mask in masks)


def _boolean_index_unless_filled(arguments: Arguments) -> bool:
    """One mask and one value of the CPU become ``masked_fill_``, which needs no positions."""
    return _boolean_index(arguments) and not is_filled(arguments)


def is_filled(arguments: Arguments) -> bool:
    """Whether ``index_put_`` with these arguments is ``masked_fill_``: one mask of the tensor's device, one CPU value.

    Source:
        ``canDispatchToMaskedFill`` in ``aten/src/ATen/native/TensorAdvancedIndexingUtils.h``, pytorch/pytorch.
    """
    value, here = arguments.get("values"), arguments["self"].device
    indices = [index for index in arguments.get("indices") or () if index is not None]
    one_value = value is not None and value.numel() == 1 and value.device.type == "cpu" and value.device != here
    one_mask = len(indices) == 1 and indices[0].device == here and _is_mask(indices[0])
    return one_value and one_mask and not arguments.get("accumulate")


def _is_mask(index: Any) -> bool:
    return str(index.dtype) in ("torch.bool", "torch.uint8")


def _inexact(arguments: Arguments) -> bool:
    dtype = arguments.get("dtype") or getattr(arguments.get("self"), "dtype", None)
    return bool(dtype is not None and (dtype.is_floating_point or dtype.is_complex))


def _alpha_and_wider(arguments: Arguments) -> bool:
    """``self.add_(other, alpha=2)`` that is computed in a wider float dtype than that of ``self``."""
    import torch

    self, other = arguments["self"], arguments.get("other")
    if not isinstance(other, torch.Tensor) or arguments.get("alpha", 1) == 1:
        return False
    return bool(self.dtype.is_floating_point and torch.result_type(self, other) != self.dtype)


def _without_range(arguments: Arguments) -> bool:
    if "range" in arguments:
        return arguments["range"] is None
    given = hasattr(arguments.get("bins"), "device")  # a tensor of edges
    return not given and bool(arguments.get("min", 0) == arguments.get("max", 0))


def _projections(arguments: Arguments) -> bool:
    """Hidden states of an LSTM that are smaller than its cells: ``torch.nn.LSTM(..., proj_size=...)``."""
    hidden, cells = arguments["hx"]
    return bool(hidden.shape[-1] != cells.shape[-1])


def _reduces_by(*reductions: str) -> Callable[[Arguments], bool]:
    return lambda arguments: arguments.get("reduce") in reductions


OF_DTYPES = ("alpha and a wider float",)
"""Conditions on dtypes: where one refuses a call, the dtype is what the device lacks (``check_refused`` in C++)."""
CONDITIONS: dict[str, Callable[[Arguments], bool]] = {
    "always": lambda arguments: True,
    "boolean index": _boolean_index,
    "boolean index unless filled": _boolean_index_unless_filled,
    "floating point or complex": _inexact,
    "floating point": lambda arguments: bool(arguments["self"].dtype.is_floating_point),
    "weights": lambda arguments: arguments.get("weights") is not None,
    "accumulate": lambda arguments: bool(arguments.get("accumulate")),
    "without accumulate": lambda arguments: not arguments.get("accumulate"),
    "accumulate of floating point or complex": lambda arguments: (
        bool(arguments.get("accumulate")) and _inexact({"self": arguments["self"]})
    ),
    "a reduction": lambda arguments: arguments.get("reduction", 1) != 0,
    "without a range": _without_range,
    "without output_size": lambda arguments: arguments.get("output_size") is None,
    "check_errors": lambda arguments: bool(arguments.get("check_errors")),
    "reduce is sum or mean": _reduces_by("sum", "mean"),
    "reduce is prod": _reduces_by("prod"),
    "alpha and a wider float": _alpha_and_wider,
    "projections": _projections,
    "mode is max": lambda arguments: arguments.get("mode") == 2,
}
