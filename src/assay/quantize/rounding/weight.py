"""Rounding one weight to the integers of a scheme, without data."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.errors import ConfigError, DtypeError, InvalidValuesError, describe
from assay.quantize.packed_weight import SCALES, PackedWeight, pack
from assay.quantize.rounding.grids import METHODS
from assay.quantize.scheme import Scheme

BLOCK = 2**22  # weights that are worked on at once: bounds the temporaries


def quantize_weight(
    weight: Tensor, scheme: Scheme | str, method: str = "nearest", *, scales: torch.dtype = torch.bfloat16
) -> PackedWeight:
    """Round a weight to the integers of a scheme.

    The scales and zeros that the method chooses for a group are rounded to the dtype of storage, and
    then every weight becomes the integer that is nearest under these:

    ``v = clamp(round((w - zero) / scale))``

    Args:
        weight: floats of shape (N, K), on any device that holds values.
        scheme: a scheme or its text, such as ``"int4"``.
        method: ``"nearest"`` (the grid spans the smallest to the largest weight of a group), ``"search"`` (the grid
            with the smallest squared error of many), or ``"hqq"`` (half-quadratic quantization, robust to outliers).
        scales: the dtype in which scales and zeros are kept; torch's kernels in bfloat16 read that one exactly.

    Returns:
        The integers, on the device of the weight.

    Raises:
        ConfigError: there is no such scheme or method, or the scheme cannot hold this shape.
        DtypeError: the weight is not floating-point, or the dtype of the scales is invalid.
        InvalidValuesError: the weight has NaN or infinite values, values too large for the scales, or none at all (on
            the meta device).

    Example:
        >>> weight = torch.linspace(-1, 1, 64).reshape(2, 32)
        >>> integers = quantize_weight(weight, "int4:g32")
        >>> bool((integers.dequantize() - weight).abs().max() < 0.04)
        True

    Source:
        The formulas of the grids are those of torchao's ``choose_qparams_affine``, with a zero in weights; HQQ is Badri
        and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023.
    """
    scheme = checked_scheme(weight, scheme, method, scales)
    rows, width = weight.shape
    step = max(1, BLOCK // width)
    blocks = (weight.detach()[first : first + step] for first in range(0, rows, step))
    parts = zip(*(_rounded(block, scheme, method, scales) for block in blocks), strict=True)
    packed, factors, zeros = (torch.cat(part) for part in parts)
    return PackedWeight(packed, factors, None if scheme.symmetric else zeros, scheme, (rows, width))


def checked_scheme(weight: Tensor, scheme: Scheme | str, method: str, scales: torch.dtype) -> Scheme:
    """The scheme; raises where a weight has no values, or others than finite floats, or does not fit."""
    scheme = Scheme.parse(scheme) if isinstance(scheme, str) else scheme
    if method not in METHODS:
        raise ConfigError(describe("method", repr(method), f"one of {', '.join(METHODS)}", "Check the spelling"))
    if not weight.is_floating_point():
        raise DtypeError(describe("weight", str(weight.dtype), "floats", "Quantize the float weight"))
    if scales not in SCALES:
        do = "Leave scales out for torch.bfloat16"
        raise DtypeError(describe("scales", str(scales), " or ".join(map(str, SCALES)), do))
    if why := scheme.why_not(weight.shape):
        got = f"shape {tuple(weight.shape)}: {why}"
        raise ConfigError(describe("weight", got, f"one that {scheme} holds", "Choose another scheme or group size"))
    if weight.is_meta:
        got = "a meta tensor, which has no values"
        raise InvalidValuesError(describe("weight", got, "values", "Load the model first"))
    limit = torch.finfo(scales).max / 2  # from the smallest to the largest weight it may be twice as far
    top = float(weight.detach().abs().amax())
    if top <= limit:
        return scheme
    if bad := int((~weight.isfinite()).sum()):
        got = f"{bad} values that are NaN or infinite"
        raise InvalidValuesError(describe("weight", got, "finite ones", "Fix the model"))
    expected = f"at most {limit:.3g}, for scales in {str(scales).removeprefix('torch.')}"
    raise InvalidValuesError(describe("weight", f"values up to {top:.3g}", expected, "Make the weights smaller"))


def _rounded(weight: Tensor, scheme: Scheme, method: str, scales: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    grouped = torch.unflatten(weight, 1, (-1, scheme.group(weight.shape[1]))).to(torch.float32)
    grid = METHODS[method](grouped, scheme, scales)
    values = grid.integers(grouped, scheme).flatten(1)
    zeros = grid.zeros if grid.zeros is not None else grid.scales
    return pack(values, scheme.bits), grid.scales.squeeze(-1), zeros.squeeze(-1)
