"""Pictures as data: a small image as PNG, and the boxes to draw over it. Only pages show them."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay._records import Record
from assay.errors import ConfigError, ShapeError, describe

COLORS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#b39ddb")
"""Of classes, on images: the colours of Okabe and Ito, which color-blind readers can tell apart."""


class PictureBox(Record):
    """A box on a picture, in its pixels.

    Args:
        left: its left edge.
        top: its top edge.
        right: its right edge.
        bottom: its bottom edge.
        label: the name of its class.
        score: that of a detection; None for a true box.
    """

    left: float
    top: float
    right: float
    bottom: float
    label: str
    score: float | None = None


class Picture(Record):
    """A small image of one sample.

    Args:
        id: which sample it is.
        png: the image as PNG, in base64.
        width: in pixels.
        height: likewise.
        boxes: what is drawn over it: detections, and true boxes.
        note: what else the image shows.

    Raises:
        ConfigError: `png` is no PNG in base64.

    Example:
        >>> Picture.of("7", np.zeros((2, 3), np.uint8)).width
        3
    """

    id: str
    png: str
    width: int
    height: int
    boxes: tuple[PictureBox, ...] = ()
    note: str = ""

    def _check(self) -> None:
        try:
            start = base64.b64decode(self.png, validate=True)[:8]
        except ValueError:
            start = b""
        if start != _SIGNATURE:
            got, do = f"{self.png:.20}", "Make pictures with Picture.of"
            raise ConfigError(describe("Picture.png", repr(got), "a PNG in base64", do))

    @classmethod
    def of(cls, id: str, pixels: NDArray[np.uint8], boxes: Sequence[PictureBox] = (), note: str = "") -> Picture:
        """A picture of pixels `(H, W)` or `(H, W, 3)`.

        Raises:
            ShapeError: pixels of another shape.
        """
        height, width = pixels.shape[:2]
        return cls(id, base64.b64encode(to_png(pixels)).decode(), width, height, tuple(boxes), note)


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOR_TYPES: dict[tuple[int, ...], int] = {(): 0, (3,): 2, (4,): 6}


def to_png(pixels: NDArray[np.uint8]) -> bytes:
    """Gray pixels `(H, W)`, colors `(H, W, 3)`, or colors with opacity `(H, W, 4)` as a PNG file of 8 bits.

    Raises:
        ShapeError: pixels of another shape.
    """
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.shape[2:] not in _COLOR_TYPES or not pixels.size:
        got = f"{pixels.dtype} of shape {pixels.shape}"
        raise ShapeError(describe("pixels", got, "uint8 of shape (H, W), (H, W, 3) or (H, W, 4)", "Convert the image"))
    height, width = pixels.shape[:2]
    differences = np.diff(pixels, axis=1, prepend=np.zeros_like(pixels[:, :1])).reshape(height, -1)
    rows = np.insert(differences, 0, 1, axis=1)  # filter 1: each pixel minus the one on its left
    header = struct.pack(">2I5B", width, height, 8, _COLOR_TYPES[pixels.shape[2:]], 0, 0, 0)
    chunks: dict[bytes, bytes] = {b"IHDR": header, b"IDAT": zlib.compress(rows.tobytes(), 9), b"IEND": b""}
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks.items()
    )


def colors_of(pictures: Sequence[Picture]) -> dict[str, Any]:
    """The color of each label on some pictures, by the order of their names."""
    labels = sorted({box.label for picture in pictures for box in picture.boxes})
    return {label: COLORS[i % len(COLORS)] for i, label in enumerate(labels)}
