"""How much of the information in an image another one has: visual information fidelity in the pixel domain."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.tally.rows.image_terms import ImageTerm, as_floats, central, centred, row_mean, row_sum
from assay.tally.rows.windows import Window
from assay.tally.sums.float_terms import difference

SCALES = tuple(Window(size, size / 5) for size in (17, 9, 5, 3))


@dataclass(frozen=True)
class VisualInformation(ImageTerm):
    """The information that `preds` keep of `target`, over that in `target`; the mean over the channels.

    In each window `preds` are `gain * target` and a rest that has nothing to do with it. Both follow from the target
    and the error alone, which loses no digits for images that are nearly equal.
    """

    sigma_n_sq: float

    name = "visual information fidelity"
    bounded = False
    smallest = 41  # of which a window is left at the coarsest scale

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        error = difference(preds, target)
        truth, error = as_floats(centred(target, target)[0], centred(error, error)[0])
        retained, information = self._information(SCALES[0], truth, error)
        for window in SCALES[1:]:
            truth, error = (_halved(window.means(side, range(2, side.ndim))) for side in (truth, error))
            part, whole = self._information(window, truth, error)
            retained, information = retained + part, information + whole
        return row_mean((retained / information).view(preds.shape[:2]))

    def _information(self, window: Window, truth: Tensor, error: Tensor) -> tuple[Tensor, Tensor]:
        """What is kept and what there is, of each channel: sums over the windows, `(N * C,)`."""
        dims = range(2, truth.ndim)
        mean, bias = window.means(truth, dims), window.means(error, dims)
        variance = central(window.means(truth * truth, dims), mean * mean)
        noise = (window.means(error * error, dims) - bias * bias).clamp_(min=0)
        shared = window.means(truth * error, dims) - mean * bias
        slope = shared / torch.where(variance == 0, 1, variance)
        rest = (noise - slope * shared).clamp_(min=0)
        gain = (1 + slope).clamp_(min=0)
        signal = gain.square_().mul_(variance)
        maps = (signal / (rest + self.sigma_n_sq), variance / self.sigma_n_sq)
        retained, information = (row_sum(each.log1p_().flatten(0, 1)) for each in maps)
        return retained, information


def _halved(x: Tensor) -> Tensor:
    """Every second pixel along each dimension."""
    for dim in range(2, x.ndim):
        x = x.movedim(dim, 0)[::2].movedim(0, dim)
    return x
