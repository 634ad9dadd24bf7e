"""Folders of AWQ, as AutoAWQ writes them for its GEMM kernel.

A layer of ``K`` inputs and ``N`` outputs has ``qweight``, int32 of shape ``(K, N / 8)``; ``qzeros``, int32 of shape
``(groups, N / 8)``; and ``scales`` of shape ``(groups, N)``. A word holds eight outputs of 4 bits, interleaved: from
the least significant on the outputs 0, 2, 4, 6, 1, 3, 5, 7.

    ``w[n, k] = scales[g, n] · (q[k, n] - z[g, n])``,  ``g = k // group_size``

Source:
    https://github.com/casper-hansen/AutoAWQ, ``awq/modules/linear/gemm.py`` (``order_map``) and
    ``awq/utils/packing_utils.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from assay.quantize.formats.foreign_format import Config, ForeignFormat
from assay.quantize.formats.int32_fields import fields_of

ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
BITS = 4


def _refused(config: Config) -> str:
    if (version := str(config.get("version", "gemm")).lower()) != "gemm":
        return f"the version {version}, which is laid for another kernel; save it as gemm"
    if (bits := config.get("bits", BITS)) != BITS:
        return f"{bits} bits; AWQ's layout is known for 4"
    return ""


def _integers(words: Tensor) -> Tensor:
    """The integers of words by their outputs, of shape (rows, 8 · words)."""
    fields = torch.unflatten(fields_of(words, BITS, words.shape[1] * len(ORDER)), 1, (-1, len(ORDER)))
    result = torch.empty_like(fields)
    result[..., list(ORDER)] = fields
    return result.flatten(1)


def _dequantize(parts: Mapping[str, Tensor], config: Config) -> Tensor:
    scales = parts["scales"].to(torch.float32)
    width = parts["qweight"].shape[0]
    index = torch.arange(width, device="cpu") // (width // scales.shape[0])
    centred = (_integers(parts["qweight"]) - _integers(parts["qzeros"])[index]).to(torch.float32)
    return (centred * scales[index]).t().contiguous()


FORMAT = ForeignFormat("qweight", ("qweight", "qzeros", "scales"), _dequantize, _refused)
