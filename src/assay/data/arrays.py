"""Arrays by name as data, a row a sample: ``.npz``, ``.npy`` with named fields, ``.safetensors``, ``.pt``."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay._atomic import reading
from assay.data.column_roles import assign_roles, listed, number_columns, read_roles
from assay.data.columns import Columns, Data, check_lengths, loader
from assay.data.labels import tensor
from assay.data.options import DataOptions, ModelNeeds
from assay.errors import ConfigError, describe

_MOST_DEFLATED = 1032  # bytes that one byte can stand for (https://zlib.net/zlib_tech.html)


class NamedArrays(Mapping[str, Any]):
    """Arrays by name, each read when it is asked for.

    Args:
        names: of the arrays, in order.
        read: gives one of them.
    """

    def __init__(self, names: Sequence[str], read: Callable[[str], Any]) -> None:
        self._names, self._read = names, read

    def __getitem__(self, name: str) -> Any:
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def open_arrays(file: Mapping[str, Any], path: Path, options: DataOptions, needs: ModelNeeds) -> Data:
    """Arrays by name as data: tensors, NumPy arrays or lists of strings."""

    def read(name: str) -> Any:
        array = file[name]
        array = array if isinstance(array, Tensor) else np.asarray(array)
        return array if isinstance(array, Tensor) or array.dtype.kind in "US" else tensor(array, f"{path}: {name}")

    names = list(file)
    roles = assign_roles(names, options, str(path))
    parts, labels, classes, notes = read_roles(read, roles, needs.labels(options), str(path))
    columns, strings, more = number_columns(read, options.columns, parts, str(path))
    notes += more
    arrays = {name: read(name) for name in roles.inputs or tuple(name for name in names if name not in roles.taken)}
    if not roles.inputs:
        arrays = _fitting(arrays, None if labels is None else len(labels), path, notes)
    dtype = None if needs.is_estimator else needs.float_dtype
    inputs = {name: _input(array, dtype, f"{path}: {name}", notes) for name, array in arrays.items()}
    check_lengths({**inputs, **parts}, str(path))
    data = loader(Columns({**inputs, **parts}), options.batch_size, options.num_workers)
    which: Any = next(iter(inputs)) if len(inputs) == 1 else list(inputs)
    return Data(data, which, roles.target or None, None, labels, classes, tuple(notes), columns, strings)


def read_npz(path: Path) -> Mapping[str, Any]:
    """The arrays that `numpy.savez` wrote."""
    with reading(path, "arrays that numpy.savez wrote", "Save them again"), zipfile.ZipFile(path) as archive:
        names = [entry.removesuffix(".npy") for entry in archive.namelist() if entry.endswith(".npy")]

    def read(name: str) -> Any:
        do = "Save rows of one length, not objects, and the whole file"
        with reading(f"{path}: {name}", "numbers or texts", do), zipfile.ZipFile(path) as archive:
            _check_size(archive, f"{name}.npy")
            with archive.open(f"{name}.npy") as file:
                return np.lib.format.read_array(file, allow_pickle=False)

    return NamedArrays(names, read)


def read_npy(path: Path) -> Mapping[str, Any]:
    """The fields of the one array that `numpy.save` wrote."""
    with reading(path, "an array that numpy.save wrote", "Save it again"):
        array = np.lib.format.open_memmap(path, mode="r")
    if array.dtype.names is None:
        do = "Save inputs and target together: numpy.savez(path, x=x, target=y)"
        raise ConfigError(describe(str(path), f"one array of {array.dtype}", "an array with named fields", do))
    return {name: np.array(array[name]) for name in array.dtype.names}


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


def read_safetensors(path: Path) -> Mapping[str, Any]:
    """Tensors by name."""
    from safetensors import safe_open

    with reading(path, "tensors by name", "Save them again"):
        file: Any = safe_open(path, "pt")
        names = sorted(file.keys())

    def read(name: str) -> Any:
        with reading(f"{path}: {name}", "a tensor", "Save them again"):
            return file.get_tensor(name)

    return NamedArrays(names, read)


def read_saved(path: Path) -> Mapping[str, Any]:
    """The tensors by name that `torch.save` wrote; no other object is unpickled."""
    do = "Save tensors by name: torch.save({'x': x, 'target': y}, path)"
    with reading(path, "tensors by name that torch.save wrote", do):
        check_archive(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(content, Mapping) or not all(isinstance(name, str) for name in content):
        raise ConfigError(describe(str(path), type(content).__name__, "tensors by name", do))
    return content


def check_archive(path: Path) -> list[str]:
    """What a zip file holds, after its checksums were found to be right; nothing for any other file.

    torch does not look at them (it is built with ``MINIZ_DISABLE_ZIP_READER_CRC32_CHECKS``), so tensors of which a byte
    was changed would give other numbers and no error.

    Raises:
        zipfile.BadZipFile: a checksum is wrong, or the file is damaged.
    """
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.CRC:  # torch.serialization.set_crc32_options(False) writes 0
                _read_to_end(archive, entry)
        return archive.namelist()


def _read_to_end(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Read an entry of a zip file to its end, where its checksum is looked at, in little memory."""
    with archive.open(entry) as file:
        while file.read(1 << 20):
            pass


def _input(values: Any, dtype: torch.dtype | None, where: str, notes: list[str]) -> Tensor:
    """An array as the model takes it: floats in the dtype of its weights; None for any."""
    if not isinstance(values, Tensor):
        raise ConfigError(describe(where, "texts", "numbers as inputs", "Name arrays of numbers as inputs"))
    if not values.ndim:
        raise ConfigError(describe(where, "a single number", "a row a sample", "Name the inputs as inputs"))
    if dtype is not None and values.is_floating_point() and values.dtype != dtype:
        was, now = (str(each).removeprefix("torch.") for each in (values.dtype, dtype))
        notes.append(f"{where.rpartition(': ')[2]} is {was} in the file and goes to the model as {now}.")
        return values.to(dtype)
    return values


def _fitting(arrays: dict[str, Any], rows: int | None, path: Path, notes: list[str]) -> dict[str, Any]:
    """The arrays of numbers that have a row for each target; the others belong to something else."""
    by_row = {name: each for name, each in arrays.items() if np.ndim(each) and rows in (None, len(each))}
    tensors = {name: each for name, each in by_row.items() if isinstance(each, Tensor)} or by_row
    if not tensors:
        do = "Name the inputs as inputs"
        got = f"arrays {listed(list(arrays))}, none with {rows} rows" if arrays else "no other array"
        raise ConfigError(describe(str(path), got, "inputs for each target", do))
    left = [name for name in arrays if name not in tensors]
    if left:
        notes.append(f"Left out, as they are texts or have other numbers of rows: {listed(left)}.")
    return tensors
