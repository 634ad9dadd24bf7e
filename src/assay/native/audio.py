"""The compiled form of the ratios of energies in `tally.audio_terms`, for float32: the same bits."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.native.library import call


def signal_ratios(
    preds: Tensor, target: Tensor, scale_invariant: bool, zero_mean: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each target and each of the preds of a row: the ratio of the energies of signal and error, and what is wrong.

    Args:
        preds: float32 of shape `(rows, sources, channels, T)`.
        target: the same.
        scale_invariant: as `EnergyRatio` has it.
        zero_mean: as `EnergyRatio` has it.

    Returns:
        Ratios `(rows, sources, sources)`, of targets and preds, to be multiplied by `2 ** exponent`; the exponents,
        int64; and bool of shape `(3, rows, sources, sources)`, one for each fault of a pair.
    """
    rows, sources, channels, size = preds.shape
    ratio = torch.empty(rows, sources, sources, dtype=torch.float32, device="cpu")
    exponent = torch.empty(ratio.shape, dtype=torch.int64, device="cpu")
    faults = torch.empty(3, *ratio.shape, dtype=torch.bool, device="cpu")
    room = torch.empty((4 * sources + 2) * channels * size, dtype=torch.float32, device="cpu")
    inputs, kind = (preds.contiguous(), target.contiguous()), (int(scale_invariant), int(zero_mean))
    call("signal_ratios", rows, sources, channels, size, *inputs, *kind, ratio, exponent, faults, room)
    return ratio, exponent, faults
