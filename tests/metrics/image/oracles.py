"""Metrics of images as their papers have them, in NumPy's longest floats, window by window."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Array = np.ndarray
DECIBELS = 10


def gaussian(size: int, sigma: float, dims: int) -> Array:
    """The weights of a Gaussian window."""
    line = np.exp(-(((np.arange(size) - (size - 1) / 2) / sigma) ** 2) / 2).astype(np.longdouble)
    window = line
    for _ in range(dims - 1):
        window = window[..., None] * line
    return window / window.sum()


def uniform(size: int, dims: int) -> Array:
    return np.full((size,) * dims, 1 / np.longdouble(size**dims))


def windows(x: Array, window: Array) -> Array:
    """Every window of `x (C, ...)`: `(C, ..., pixels)`."""
    found = sliding_window_view(x, window.shape, tuple(range(1, x.ndim)))
    return found.reshape(*found.shape[: x.ndim], -1)


def similarity(x: Array, y: Array, window: Array, c1: float, c2: float, sample: bool = False) -> tuple[Array, Array]:
    """SSIM and its structure in every window, for `(C, ...)`."""
    weights = window.reshape(-1)
    x, y = (windows(side.astype(np.longdouble), window) for side in (x, y))
    mx, my = (x * weights).sum(-1), (y * weights).sum(-1)
    dx, dy = x - mx[..., None], y - my[..., None]
    scale = weights.size / (weights.size - 1) if sample else 1
    xx, yy, xy = ((a * b * weights).sum(-1) * scale for a, b in ((dx, dx), (dy, dy), (dx, dy)))
    with np.errstate(invalid="ignore"):
        light, structure = (2 * mx * my + c1) / (mx * mx + my * my + c1), (2 * xy + c2) / (xx + yy + c2)
    structure = np.where((xx + yy + c2) == 0, 1, structure)
    return np.where((mx * mx + my * my + c1) == 0, 1, light) * structure, structure


def halved(x: Array) -> Array:
    channels, height, width = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2].reshape(channels, height // 2, 2, width // 2, 2)
    return x.mean((2, 4))


def multiscale(x: Array, y: Array, window: Array, c1: float, c2: float, betas: tuple[float, ...]) -> float:
    value = 1.0
    for k, beta in enumerate(betas):
        whole, structure = similarity(x, y, window, c1, c2)
        value *= max(0.0, float((whole if k == len(betas) - 1 else structure).mean())) ** beta
        x, y = halved(x), halved(y)
    return value


def angles(x: Array, y: Array) -> float:
    x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    x, y = (side / np.sqrt((side * side).sum(0)) for side in (x, y))
    return float((2 * np.arctan2(np.sqrt(((x - y) ** 2).sum(0)), np.sqrt(((x + y) ** 2).sum(0)))).mean())


def variation(x: Array) -> float:
    return float(sum(np.abs(np.diff(x, axis=axis)).sum() for axis in range(1, x.ndim)))


def ergas(x: Array, y: Array, ratio: float) -> float:
    axes = tuple(range(1, x.ndim))
    return float(100 / ratio * np.sqrt((((x - y) ** 2).mean(axes) / y.mean(axes) ** 2).mean()))


def windowed_error(x: Array, y: Array, size: int) -> float:
    return float(np.sqrt(windows((x - y) ** 2, uniform(size, x.ndim - 1)).mean(-1)).mean())


def rase(x: Array, y: Array, size: int) -> float:
    window = uniform(size, x.ndim - 1)
    errors, means = windows((x - y) ** 2, window).mean(-1), windows(y, window).mean(-1)
    return float((100 / means.mean(0) * np.sqrt(errors.mean(0))).mean())


def edges(x: Array) -> Array:
    """`(C, H, W)` behind the filter with 8 in the middle of -1, inside of the image."""
    return 9 * x[:, 1:-1, 1:-1] - windows(x, uniform(3, 2)).sum(-1)


def edge_correlation(x: Array, y: Array, size: int) -> float:
    x, y = (windows(edges(side), uniform(size, 2)) for side in (x, y))
    dx, dy = (side - side.mean(-1, keepdims=True) for side in (x, y))
    size_of = np.sqrt((dx**2).mean(-1) * (dy**2).mean(-1))
    return float(((dx * dy).mean(-1) / size_of).mean())


def psnr(x: Array, y: Array, data_range: float) -> float:
    return float(DECIBELS * np.log10(data_range**2 / ((x - y) ** 2).mean()))


def blocked_psnr(x: Array, y: Array, data_range: float, block: int) -> float:
    """PSNR-B of `(C, H, W)`, pair of neighbours by pair of neighbours."""
    steps: dict[bool, list[Array]] = {True: [], False: []}
    _, height, width = x.shape
    for k in range(1, height):
        steps[k % block == 0].extend((x[:, k] - x[:, k - 1]).reshape(-1) ** 2)
    for k in range(1, width):
        steps[k % block == 0].extend((x[:, :, k] - x[:, :, k - 1]).reshape(-1) ** 2)
    excess = np.mean(steps[True]) - np.mean(steps[False]) if steps[True] else 0
    effect = max(0, excess) * np.log2(block) / np.log2(min(height, width))
    return float(DECIBELS * np.log10(data_range**2 / (((x - y) ** 2).mean() + effect)))


def visual_information(x: Array, y: Array, noise: float) -> float:
    """VIF of `(C, H, W)` in the pixel domain: from the gain and the variance of the rest in every window."""
    x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    retained, information = np.zeros(len(x)), np.zeros(len(x))
    for scale in range(4):
        size = 2 ** (4 - scale) + 1
        window = gaussian(size, size / 5, 2)
        weights = window.reshape(-1)
        if scale:
            x, y = ((windows(side, window) * weights).sum(-1)[:, ::2, ::2] for side in (x, y))
        dx, dy = (side - (side * weights).sum(-1, keepdims=True) for side in (windows(x, window), windows(y, window)))
        xx, yy, xy = ((a * b * weights).sum(-1) for a, b in ((dx, dx), (dy, dy), (dx, dy)))
        gain = np.where(yy > 1e-10, np.maximum(0, xy / np.where(yy > 1e-10, yy, 1)), 0)
        rest = np.maximum(0, xx - gain * xy)
        retained = retained + np.log(1 + gain**2 * yy / (rest + noise)).sum((1, 2))
        information = information + np.log(1 + yy / noise).sum((1, 2))
    return float((retained / information).mean())


def quality(x: Array, y: Array) -> float:
    """The universal image quality index of one channel beside another."""
    return float(similarity(x[None], y[None], gaussian(11, 1.5, 2), 0, 0)[0].mean())


def spectral_distortion(x: Array, y: Array, order: int) -> float:
    pairs = [(i, j) for i in range(len(x)) for j in range(len(x)) if i != j]
    gaps = [abs(quality(x[i], x[j]) - quality(y[i], y[j])) ** order for i, j in pairs]
    return float(np.mean(gaps) ** (1 / order))


def spatial_distortion(x: Array, ms: Array, pan: Array, pan_lr: Array, order: int) -> float:
    gaps = [abs(quality(low, pan_lr) - quality(high, pan)) ** order for low, high in zip(ms, x, strict=True)]
    return float(np.mean(gaps) ** (1 / order))
