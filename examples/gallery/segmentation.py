"""Ink on noisy paper: segmentation

Which pixels of a noisy digit are ink? A Gaussian blur and a threshold decide; the clean digit says what is right.

- The overlap of each image (mean Dice and IoU) and the distance of the borders.
- The worst images are shown twice: with the predicted mask, and with the true one.
"""

import numpy as np
import torch
from scipy import ndimage
from sklearn.datasets import load_digits

from assay import evaluate
from assay.metrics import MeanDice, MeanIoU

digits = load_digits()
clean = np.kron(digits.images[900:1200], np.ones((4, 4)))
noisy = torch.tensor(clean / 16 + np.random.default_rng(0).normal(0, 0.35, clean.shape)).float()


def ink(images):
    smooth = ndimage.gaussian_filter(images.numpy()[:, 0], (0, 1.5, 1.5))
    return torch.tensor(smooth > 0.45).long()


data = torch.utils.data.TensorDataset(noisy[:, None], torch.tensor(clean > 7).long())
report = evaluate(
    ink,
    data,
    {"Dice": MeanDice(num_classes=2), "IoU": MeanIoU(num_classes=2)},
    device="cpu",
    progress=False,
    title="Ink on noisy paper",
)
