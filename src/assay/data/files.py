"""A path as data: an image folder, or a file of a format that its name ends in."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay._atomic import kept_copy, location
from assay._remote import RemotePath
from assay.data.arrays import open_arrays, read_npy, read_npz, read_safetensors, read_saved
from assay.data.columns import Data
from assay.data.images import open_images
from assay.data.options import DataOptions, ModelNeeds
from assay.data.table_data import open_table_data
from assay.data.tables.formats import FORMATS, suffix_of
from assay.errors import ConfigError, describe

ARRAYS: dict[str, Callable[[Path], Mapping[str, Any]]] = {
    ".npz": read_npz,
    ".npy": read_npy,
    ".safetensors": read_safetensors,
    ".pt": read_saved,
    ".pth": read_saved,
}
"""Formats of arrays by the endings of names: what reads a file gives its arrays by name. Tables are in `FORMATS`."""
_TEXTS = (".txt", ".md", ".rst", ".tex")


def open_path(
    path: str | os.PathLike[str], options: DataOptions | None = None, needs: ModelNeeds | None = None
) -> Data:
    """Data in a file, in a folder of images, or in a file at a URL.

    Args:
        path: a file that ends in one of `file_endings()`, or a folder with a subfolder of images for each class.
        options: what its columns are for.
        needs: what the model takes; by default floats in float32.

    Raises:
        ConfigError: there is no such file or column, or it holds something else.
        StateError: the file is damaged.
        MissingDependencyError: a package that reads it is absent.
    """
    options, needs = options or DataOptions(), needs or ModelNeeds()
    place = local_data(os.fspath(path))
    if place.is_dir():
        data = open_images(place, options, needs)
    elif (suffix := _format_of(place)) in ARRAYS:
        data = open_arrays(ARRAYS[suffix](place), place, options, needs)
    else:
        data = open_table_data(place, options, needs)
    return replace(data, path=place)


def _format_of(place: Path) -> str:
    """What the name of a file ends in, if files that end so can be opened."""
    if not place.is_file():
        got = f"{place}, which is no file" if place.exists() else f"{place}, which does not exist"
        raise ConfigError(describe("data", got, "an existing file or folder", "Check the path"))
    suffix = suffix_of(place)
    if suffix not in file_endings():
        do = "Measure texts with assay.language.perplexity" if suffix in _TEXTS else "Save it as one of these"
        raise ConfigError(describe("data", f"a file {place.name}", f"one of {', '.join(file_endings())}", do))
    return suffix


def file_endings() -> tuple[str, ...]:
    """What the names of files end in that can be opened."""
    return (*ARRAYS, *FORMATS)


@functools.cache
def local_data(named: str) -> Path:
    """Where data are on this machine: a file at a URL is copied here, once, until the process ends."""
    path = location("data", named) if "://" in named else Path(named)
    if not isinstance(path, RemotePath):
        return path
    if suffix_of(str(path)) not in file_endings():
        expected = f"a file that ends in {', '.join(file_endings())}"
        raise ConfigError(describe("data", repr(named), expected, "Copy a folder of images to this machine"))
    return kept_copy(path, local_data)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of the names and sizes of the files in a folder."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    files = sorted(
        (each.relative_to(path).as_posix(), each.stat().st_size) for each in path.rglob("*") if each.is_file()
    )
    return hashlib.sha256(repr(files).encode(errors="surrogatepass")).hexdigest()
