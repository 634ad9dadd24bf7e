"""``.npz`` and ``.safetensors`` as data: arrays by name, a row a sample."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.cli.named.columns import Columns, Data, check_lengths, loader
from assay.cli.named.labels import as_target, check_ids, named_classes, tensor
from assay.cli.named.options import Options
from assay.cli.named.roles import listed, roles
from assay.errors import ConfigError, StateError, describe


def open_arrays(path: Path, options: Options, dtype: torch.dtype, classes: tuple[str, ...] = ()) -> Data:
    """Arrays in a file as data.

    Args:
        path: a file of NumPy (.npz) or of tensors (.safetensors, which is mapped into memory, not read).
        options: which array is what.
        dtype: what floats must be for the model.
        classes: the names of the classes, where the model brings them.

    Raises:
        ConfigError: an array is not there or cannot be used.
        ShapeError: arrays have not as many rows as each other.
        StateError: the file is damaged, or has pickled objects.
    """
    names, read = _npz(path) if path.suffix == ".npz" else _safetensors(path)
    found = roles(names, options, str(path))
    parts: dict[str, Any] = {}
    notes: list[str] = []
    if found.target:
        said = options.classes or classes
        parts[found.target], named = as_target(read(found.target), said, f"{path}: {found.target}")
        if named:
            notes.append(named_classes(named, "the order that was said" if said else "alphabetical order"))
    for name in found.others:
        parts[name] = read(name)
    if found.ids:
        check_ids(parts[found.ids], f"{path}: {found.ids}")
    inputs = found.inputs or tuple(name for name in names if name not in found.taken)
    arrays = {name: read(name) for name in inputs}
    if not found.inputs:
        arrays = _fitting(arrays, len(parts[found.target]) if found.target else None, path, notes)
    given = {name: _input(array, dtype, f"{path}: {name}", notes) for name, array in arrays.items()}
    check_lengths({**given, **parts}, str(path))
    columns = Columns({**given, **parts})
    which: Any = next(iter(given)) if len(given) == 1 else list(given)
    labels = parts.get(found.target)
    return Data(
        loader(columns, options.batch_size, options.workers),
        which,
        found.target or None,
        None,
        labels,
        named if found.target else (),
        tuple(notes),
    )


def _npz(path: Path) -> tuple[list[str], Callable[[str], Any]]:
    try:
        archive = np.load(path, allow_pickle=False)
        names = list(archive.files)
    except (ValueError, OSError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        got = f"a file that cannot be read ({' '.join(str(error).split())[:120]})"
        raise StateError(describe(str(path), got, "arrays that numpy.savez wrote", "Save them again")) from error

    def read(name: str) -> Any:
        try:
            array = archive[name]
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            got = f"an array that cannot be read ({' '.join(str(error).split())[:120]})"
            do = "Save rows of one length, not objects, and the whole file"
            raise StateError(describe(f"{path}: {name}", got, "numbers or texts", do)) from error
        return array if array.dtype.kind in "US" else tensor(array, f"{path}: {name}")

    return names, read


def _safetensors(path: Path) -> tuple[list[str], Callable[[str], Any]]:
    from safetensors import safe_open

    try:
        file = safe_open(path, "pt")
    except Exception as error:
        got = f"a file that cannot be read ({' '.join(str(error).split())[:120]})"
        raise StateError(describe(str(path), got, "tensors by name", "Save them again")) from error
    return sorted(file.keys()), file.get_tensor  # type: ignore[no-untyped-call]


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
    kept = {name: each for name, each in by_row.items() if isinstance(each, Tensor)} or by_row
    if not kept:
        do = "Say which are the inputs with --inputs"
        got = f"arrays {listed(list(arrays))}, none with {rows} rows" if arrays else "no other array"
        raise ConfigError(describe(str(path), got, "inputs for each target", do))
    left = [name for name in arrays if name not in kept]
    if left:
        notes.append(f"Left out, as they are texts or have other numbers of rows: {listed(left)}.")
    return kept
