"""Lists of numbers in a table as raw samples: a tensor a row, or a dictionary of tensors, such as boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from assay.data.tables.arrow import arrow


def sample_tensors(array: Any) -> tuple[list[Any], NDArray[np.bool_]]:
    """The rows of a column with their lists of numbers as tensors, and which rows have a list that is no tensor.

    Fields of a row that are null are left out of its dictionary. Rows that are null are None.

    Args:
        array: a column of lists of numbers, or of structs; other columns, such as strings, come as Python values.

    Example:
        >>> import pyarrow as pa
        >>> rows = pa.array([{"boxes": [[0.0, 0.0, 2.0, 2.0]], "labels": [1]}])
        >>> samples, bad = sample_tensors(rows)
        >>> tuple(samples[0]["boxes"].shape), samples[0]["labels"].dtype, bad.tolist()
        ((1, 4), torch.int64, [False])
    """
    samples: list[Any] = array.to_pylist()
    bad = np.zeros(len(samples), bool)
    kind = array.type
    if (dtype := _dtype(kind)) is not None:
        for row, value in enumerate(samples):
            samples[row], bad[row] = _tensor(value, dtype)
    elif arrow().types.is_struct(kind):
        dtypes = {field.name: found for field in kind if (found := _dtype(field.type)) is not None}
        for row, fields in enumerate(samples):
            if fields is None:
                continue
            for name in [name for name, value in fields.items() if value is None]:
                del fields[name]
            for name in dtypes.keys() & fields.keys():
                fields[name], is_bad = _tensor(fields[name], dtypes[name])
                bad[row] |= is_bad
    return samples, bad


def _dtype(kind: Any) -> type | None:
    """Of the numbers in lists of any depth; None for columns of anything else."""
    types = arrow().types
    depth = 0
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind, depth = kind.value_type, depth + 1
    if not depth:
        return None
    if types.is_boolean(kind):
        return bool
    if types.is_integer(kind):
        return np.int64
    if types.is_null(kind):  # of lists that are all empty
        return np.float32
    if types.is_floating(kind):
        return np.float64 if types.is_float64(kind) else np.float32
    return None


def _tensor(value: Any, dtype: type) -> tuple[Any, bool]:
    """Lists of numbers as a tensor, and whether they are none: with nulls, or of different lengths."""
    if value is None:
        return None, False
    try:
        if None in _leaves(value):
            return value, True
        return torch.from_numpy(np.array(value, dtype)), False
    except ValueError:  # lists of different lengths
        return value, True


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    else:
        yield value
