"""A folder of images as data: a subfolder a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay._atomic import reading
from assay.data.columns import Columns, Data, loader
from assay.data.labels import class_note, number_classes
from assay.data.options import DataOptions, ModelNeeds
from assay.errors import ConfigError, MissingDependencyError, ShapeError, describe

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
MODES = {"RGB": 3, "L": 1}


def open_images(path: Path, options: DataOptions, needs: ModelNeeds) -> Data:
    """A folder of images as data; they are read when a batch needs them.

    A batch has `image` (N, C, H, W) from 0 to 1, or normalised, `label` and `path`, by which samples are known.
    """
    _pillow()
    look = _look(options, needs.float_dtype)
    folders = sorted(each.name for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))
    files = [file for name in folders for file in sorted((path / name).rglob("*")) if file.suffix.lower() in SUFFIXES]
    if not files:
        got = f"{len(folders)} subfolders without images" if folders else "no subfolder"
        expected = f"images ({', '.join(SUFFIXES)}) in a subfolder a class"
        raise ConfigError(describe(str(path), got, expected, "Name the folder that holds the subfolders"))
    class_names = tuple(map(str, needs.labels(options)))
    names = [file.relative_to(path).parts[0] for file in files]
    labels, classes = number_classes(names, class_names or folders, f"{path}")
    known = np.array([file.relative_to(path).as_posix() for file in files], dtype=object)
    columns = Columns({"image": Images(files, look), "label": labels, "path": known})
    note = class_note(classes, "the order that was said" if class_names else "alphabetical order of the folders")
    data = loader(columns, options.batch_size, options.num_workers)
    return Data(data, "image", "label", "path", labels, classes, (note, f"Images: {look}."))


@dataclass(frozen=True)
class ImageTransform:
    """How an image becomes a tensor.

    Attributes:
        size: the height and width of the part in the middle; 0 for the whole image.
        resize: what the shorter side becomes before that; 0 to keep the size.
        mode: RGB or L.
        mean: of each channel, taken away; empty for none.
        std: of each channel, divided by.
        dtype: of the tensor.
    """

    size: int
    resize: int
    mode: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        parts = [self.mode]
        if self.resize:
            parts.append(f"shorter side to {self.resize}")
        if self.size:
            parts.append(f"the middle {self.size} x {self.size}")
        if self.mean:
            parts.append(f"minus {', '.join(map(str, self.mean))}, over {', '.join(map(str, self.std))}")
        return "; ".join(parts)


class Images:
    """Image files that are read when they are asked for.

    Args:
        files: their paths.
        look: how they become tensors.
    """

    def __init__(self, files: Sequence[Path], look: ImageTransform) -> None:
        self._files, self._look = files, look

    def __len__(self) -> int:
        return len(self._files)

    def rows(self, index: list[int]) -> Tensor:
        """Some images, shape (len(index), C, H, W)."""
        images = [self._read(self._files[k]) for k in index]
        other = next((k for k, image in enumerate(images) if image.shape != images[0].shape), None)
        if other is not None:
            first, second = (self._files[index[k]] for k in (0, other))
            got = f"{first.name} of {_size(images[0])} and {second.name} of {_size(images[other])}"
            raise ShapeError(describe("images", got, "one size", "Say it with image_size, such as 224"))
        return torch.stack(images)

    def _read(self, file: Path) -> Tensor:
        look, pillow = self._look, _pillow()
        with reading(file, "an image", "Replace it, or take it out of the folder"), pillow.open(file) as image:
            if image.mode[0] in "IF":  # Pillow would clip more than 8 bits a channel
                do = "Convert it to 8 bits a channel"
                raise ConfigError(describe(str(file), f"mode {image.mode}", "8 bits a channel", do))
            pixels = np.array(_cropped(image.convert(look.mode), look), dtype=np.float32) / np.float32(255)
        tensor = torch.from_numpy(pixels.reshape(*pixels.shape[:2], -1)).permute(2, 0, 1)
        if look.mean:
            mean, std = (torch.tensor(each, dtype=torch.float32, device="cpu") for each in (look.mean, look.std))
            tensor = (tensor - mean[:, None, None]) / std[:, None, None]
        return tensor.to(look.dtype).contiguous()


def _cropped(image: Any, look: ImageTransform) -> Any:
    """Resized, bilinear with antialiasing, and then the middle of it."""
    width, height = image.size
    if look.resize and min(width, height) != look.resize:
        scale = look.resize / min(width, height)
        width, height = (look.resize, int(height * scale)) if width <= height else (int(width * scale), look.resize)
        image = image.resize((width, height), 2)
    if not look.size or (width, height) == (look.size, look.size):
        return image
    left, top = round((width - look.size) / 2), round((height - look.size) / 2)
    return image.crop((left, top, left + look.size, top + look.size))


def _look(options: DataOptions, dtype: torch.dtype) -> ImageTransform:
    if options.image_mode not in MODES:
        raise ConfigError(describe("image_mode", repr(options.image_mode), " or ".join(MODES), "Write RGB"))
    channels = MODES[options.image_mode]
    for name, values in (("mean", options.mean), ("std", options.std)):
        if values and len(values) != channels:
            expected, do = f"{channels}, one a channel", f"Write {channels} numbers"
            raise ConfigError(describe(name, f"{len(values)} numbers", expected, do))
    if bool(options.mean) != bool(options.std):
        raise ConfigError(describe("normalisation", "one of mean and std", "both or none", "Name both"))
    if any(each <= 0 for each in options.std):
        do = "Write 1 to leave the values of a channel unchanged"
        raise ConfigError(describe("std", options.std, "numbers above 0", do))
    size, resize = options.image_size, options.image_resize or options.image_size
    if size < 0 or resize < size:
        got = f"image_size {size} and image_resize {options.image_resize}"
        do = "Write an image_resize of at least image_size"
        raise ConfigError(describe("images", got, "a size, and no smaller one before it", do))
    return ImageTransform(size, resize, options.image_mode, options.mean, options.std, dtype)


def _size(image: Tensor) -> str:
    return f"{image.shape[2]} x {image.shape[1]}"


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError("Pillow", extra="images", purpose="folders of images") from error
    return Image
