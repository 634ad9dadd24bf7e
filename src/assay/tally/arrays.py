"""Arrays, Series and lists as tensors, and why some are none."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import torch
import torch.utils.dlpack
from torch import Tensor

from assay.errors import DtypeError, InputError, ShapeError, describe, plural

_LISTS = (list, tuple, range)


def as_tensor(value: Any) -> Any:
    """Numbers of NumPy, pandas, Polars, JAX and Python as a tensor; anything else unchanged.

    Arrays, what converts itself to one (`__array__`, as a Series does) or gives its memory (`__dlpack__`, which leaves
    it on its device), numbers, and lists, tuples and ranges of numbers. The dtype is that of the array; Python's floats
    are float64. The tensor may share the memory of an array, and is read when an update counts or copies it, as a
    tensor of the caller is. Where values are missing, nothing is converted.
    """
    if value is None or isinstance(value, Tensor):
        return value
    is_list = isinstance(value, _LISTS)
    if not (is_list or isinstance(value, bool | int | float) or hasattr(value, "__array__") or _has_memory(value)):
        return value
    if is_list and any(isinstance(each, Tensor) for each in value):
        return value
    try:
        if missing_values(value):
            return value
        if _has_memory(value):
            with suppress(Exception):  # of a device or a dtype that torch lacks, or read-only
                return torch.utils.dlpack.from_dlpack(value)
        array = np.asarray(value)
        if array.dtype.kind not in "biufc":
            return value
        is_usable = array.dtype.isnative and array.flags.writeable and all(stride >= 0 for stride in array.strides)
        return torch.from_numpy(array if is_usable else array.astype(array.dtype.newbyteorder("="), order="C"))
    except Exception:  # lists of several lengths, numbers that torch lacks, or what cannot convert itself after all
        return value


def _has_memory(value: Any) -> bool:
    """Whether something that is no array of NumPy gives its memory by DLPack."""
    return hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray | np.generic | type)


def missing_values(value: Any) -> int:
    """How many values a masked array, a Series or a table of Arrow lacks; NaN of a float dtype is a value."""
    if isinstance(value, np.ndarray):
        return int(np.ma.getmaskarray(value).sum()) if isinstance(value, np.ma.MaskedArray) else 0
    if isinstance(value, _LISTS):
        return 0
    nulls = getattr(
        value, "null_count", None
    )  # a property in Arrow, a method in Polars, where a frame has a row of them
    if nulls is not None:
        nulls = nulls() if callable(nulls) else nulls
        return int(np.asarray(nulls).sum())
    if not hasattr(value, "isna"):
        return 0
    dtypes: Any = getattr(value, "dtypes", None)  # of pandas: one, or a Series with those of the columns
    dtypes = getattr(value, "dtype", None) if dtypes is None else dtypes
    kinds = dtypes.tolist() if hasattr(dtypes, "tolist") else [dtypes]
    return 0 if all(isinstance(kind, np.dtype) for kind in kinds) else int(np.asarray(value.isna()).sum())


def has_strings(value: Any) -> bool:
    """Whether something is a list, an array or a Series with strings in it."""
    if not (isinstance(value, list | tuple) or hasattr(value, "__array__")) or isinstance(value, type | Tensor):
        return False
    try:
        array = np.asarray(value)  # which tells numbers at once
        return array.dtype.kind in "OUT" and any(isinstance(each, str) for each in np.asarray(value, dtype=object).flat)
    except Exception:  # what has no elements, does not give them, or is ragged
        return isinstance(value, list | tuple) and any(isinstance(each, str) for each in value)


def not_a_tensor(name: str, value: Any, kind: str) -> InputError:
    """The error for what `as_tensor` left as it was.

    Args:
        name: the argument.
        value: what it is.
        kind: the name of its type.
    """
    if isinstance(value, list | tuple) and any(isinstance(each, Tensor) for each in value):
        do = f"Pass torch.stack({name}), or torch.cat({name}) of batches"
        return ShapeError(describe(name, kind, "a tensor", do))
    if has_strings(value):
        do = (
            "Pass labels= with all classes in the order of their numbers, to Meter(...) or to the call of a metric, "
            "which finds them itself where preds and target are both strings"
        )
        return ShapeError(describe(name, f"{kind} of strings", "numbers, or labels of a metric of classification", do))
    with suppress(Exception):
        if missing := missing_values(value):
            return _missing(name, kind, missing)
    try:
        array = np.asarray(value)
    except ValueError:
        do = "Pad the lists to one length; metrics with ignore_index leave out what was padded"
        return ShapeError(describe(name, f"{kind} with parts of several lengths", "one shape", do))
    except Exception:
        array = np.empty(0, object)
    if array.dtype.kind in "mM":
        do = f"Pass numbers, such as seconds: numpy.asarray({name}, '{array.dtype.kind}8[s]').astype(float)"
        return DtypeError(describe(name, f"{kind} of {array.dtype}", "numbers", do))
    if array.dtype.kind in "fc" and isinstance(value, np.ndarray):
        return DtypeError(describe(name, f"{kind} of {array.dtype}", "at most float64", f"Pass {name}.astype(float)"))
    if array.dtype.kind == "O" and array.size and (isinstance(value, _LISTS) or hasattr(value, "__array__")):
        objects = list(array.flat)
        if missing := sum(each is None for each in objects):
            return _missing(name, kind, missing)
        kinds = sorted({type(each).__name__ for each in objects})
        dtype = "int" if {*kinds} <= {"bool", "int"} else "float"
        do = f"Pass numpy.asarray({name}, dtype={dtype}), where every object is a number"
        return DtypeError(describe(name, f"{kind} of objects ({', '.join(kinds)})", "numbers of at most 64 bits", do))
    return ShapeError(describe(name, kind, "a tensor", f"Pass {name} as a tensor, an array or a list of numbers"))


def _missing(name: str, kind: str, count: int) -> InputError:
    do = "Drop these samples, or fill them, a target with the ignore_index of its metric"
    return InputError(describe(name, f"{plural(count, 'missing value')} in {kind}", "a value each", do))
