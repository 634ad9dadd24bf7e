"""Folders of GPTQ, as AutoGPTQ and GPTQModel write them.

A layer of ``K`` inputs and ``N`` outputs has ``qweight``, int32 of shape ``(K · bits / 32, N)``, whose integers lie
along ``K``; ``qzeros``, int32 of shape ``(groups, N · bits / 32)``, whose integers lie along ``N``; ``scales`` of shape
``(groups, N)``; and mostly ``g_idx``, the group of each input, which need not be in order (``desc_act``).

    ``w[n, k] = scales[g, n] · (q[k, n] - z[g, n])``,  ``g = g_idx[k]``

The first convention (``checkpoint_format`` ``gptq``, the default) stores ``z - 1``, so that a stored 15 of 4 bits is 0;
the second one (``gptq_v2``) stores ``z``.

Source:
    https://github.com/AutoGPTQ/AutoGPTQ, ``nn_modules/qlinear/qlinear_cuda_old.py``, and
    https://github.com/ModelCloud/GPTQModel, ``utils/model.py``, which converts between both conventions.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from assay.quantize.formats.foreign_format import Config, ForeignFormat
from assay.quantize.formats.int32_fields import fields_of

FORMATS = ("gptq", "gptq_v2")
WORD = 32


def _refused(config: Config) -> str:
    kind = config.get("checkpoint_format", "gptq")
    if kind not in FORMATS:
        return f"the checkpoint_format {kind}, which is laid for one kernel; save it as gptq or gptq_v2"
    return ""


def _dequantize(parts: Mapping[str, Tensor], config: Config) -> Tensor:
    scales = parts["scales"].to(torch.float32)
    groups, rows = scales.shape
    index = parts["g_idx"].long() if "g_idx" in parts else None
    width = parts["qweight"].shape[0] * WORD // int(config["bits"]) if index is None else len(index)
    bits = parts["qweight"].shape[0] * WORD // width  # layers may have other bits than the configuration
    if index is None:
        index = torch.arange(width, device="cpu") // (width // groups)
    zeros = fields_of(parts["qzeros"], bits, rows)
    if config.get("checkpoint_format", "gptq") == "gptq":
        zeros = (zeros + 1) & ((1 << bits) - 1)
    integers = fields_of(parts["qweight"].t(), bits, width)
    return (integers - zeros[index].t()).to(torch.float32) * scales[index].t()


FORMAT = ForeignFormat("qweight", ("qweight", "qzeros", "scales", "g_idx"), _dequantize, _refused)
