"""``.npz`` and ``.safetensors`` as data: arrays by name, a row a sample."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay._atomic import reading
from assay.cli.loaders.column_roles import assign_roles, listed, number_columns, read_roles
from assay.cli.loaders.columns import Data, check_lengths, loader
from assay.cli.loaders.labels import tensor
from assay.cli.options import EvaluateCommand
from assay.errors import ConfigError, describe
from assay.evaluation.data.columns import Columns

_MOST_DEFLATED = 1032  # bytes that one byte can stand for (https://zlib.net/zlib_tech.html)


def open_arrays(
    path: Path, options: EvaluateCommand, dtype: torch.dtype, classes: tuple[str, ...], columns: Mapping[str, Any]
) -> Data:
    """Arrays in a file as data."""
    names, read = _npz(path) if path.suffix == ".npz" else _safetensors(path)
    roles = assign_roles(names, options, columns, str(path))
    parts, labels, classes, notes = read_roles(read, roles, options.classes or classes, str(path))
    numbered, more = number_columns(read, columns, parts, str(path))
    notes += more
    arrays = {name: read(name) for name in roles.inputs or tuple(name for name in names if name not in roles.taken)}
    if not roles.inputs:
        arrays = _fitting(arrays, None if labels is None else len(labels), path, notes)
    inputs = {name: _input(array, dtype, f"{path}: {name}", notes) for name, array in arrays.items()}
    check_lengths({**inputs, **parts}, str(path))
    data = loader(Columns({**inputs, **parts}), options.batch_size, options.num_workers)
    which: Any = next(iter(inputs)) if len(inputs) == 1 else list(inputs)
    return Data(data, which, roles.target or None, None, labels, classes, tuple(notes), columns=numbered)


def _npz(path: Path) -> tuple[list[str], Callable[[str], Any]]:
    with reading(path, "arrays that numpy.savez wrote", "Save them again"), zipfile.ZipFile(path) as archive:
        names = [entry.removesuffix(".npy") for entry in archive.namelist() if entry.endswith(".npy")]

    def read(name: str) -> Any:
        do = "Save rows of one length, not objects, and the whole file"
        with reading(f"{path}: {name}", "numbers or texts", do), zipfile.ZipFile(path) as archive:
            _check_size(archive, f"{name}.npy")
            with archive.open(f"{name}.npy") as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
            return array if array.dtype.kind in "US" else tensor(array, f"{path}: {name}")

    return names, read


def _check_size(archive: zipfile.ZipFile, name: str) -> None:
    """Raise where a header asks for more values than follow it, before memory is taken for them."""
    entry = archive.getinfo(name)
    if entry.file_size > _MOST_DEFLATED * max(entry.compress_size, 1):
        raise ValueError(f"{entry.compress_size} bytes that say they are {entry.file_size} when unpacked")
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file)
        size = entry.file_size - file.tell()
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{size} bytes of {dtype} for shape {shape}")


def _safetensors(path: Path) -> tuple[list[str], Callable[[str], Any]]:
    from safetensors import safe_open

    with reading(path, "tensors by name", "Save them again"):
        file: Any = safe_open(path, "pt")
        names = sorted(file.keys())

    def read(name: str) -> Any:
        with reading(f"{path}: {name}", "a tensor", "Save them again"):
            return file.get_tensor(name)

    return names, read


def _input(values: Any, dtype: torch.dtype, where: str, notes: list[str]) -> Tensor:
    """An array as the model takes it: floats in the dtype of its weights."""
    if not isinstance(values, Tensor):
        raise ConfigError(describe(where, "texts", "numbers as inputs", "Name the inputs with --inputs"))
    if not values.ndim:
        raise ConfigError(describe(where, "a single number", "a row a sample", "Name the inputs with --inputs"))
    if values.is_floating_point() and values.dtype != dtype:
        was, now = (str(each).removeprefix("torch.") for each in (values.dtype, dtype))
        notes.append(f"{where.rpartition(': ')[2]} is {was} in the file and goes to the model as {now}.")
        return values.to(dtype)
    return values


def _fitting(arrays: dict[str, Any], rows: int | None, path: Path, notes: list[str]) -> dict[str, Any]:
    """The arrays of numbers that have a row for each target; the others belong to something else."""
    by_row = {name: each for name, each in arrays.items() if np.ndim(each) and rows in (None, len(each))}
    tensors = {name: each for name, each in by_row.items() if isinstance(each, Tensor)} or by_row
    if not tensors:
        do = "Say which are the inputs with --inputs"
        got = f"arrays {listed(list(arrays))}, none with {rows} rows" if arrays else "no other array"
        raise ConfigError(describe(str(path), got, "inputs for each target", do))
    left = [name for name in arrays if name not in tensors]
    if left:
        notes.append(f"Left out, as they are texts or have other numbers of rows: {listed(left)}.")
    return tensors
