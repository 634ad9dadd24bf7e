"""Data that are in memory as something else than a data set: arrays, frames, and data sets of Hugging Face."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from assay.data.column_roles import features
from assay.data.columns import TARGETS, Columns, FrameRows, check_lengths, loader
from assay.data.labels import class_numbers
from assay.data.options import DataOptions, ModelNeeds
from assay.errors import ConfigError, describe
from assay.evaluation.arguments.options import EvaluateOptions
from assay.evaluation.data.batch import parse_shown

FEATURES, TARGET = "features of the frame", "target of the frame"
"""Parts of a batch, under names that no column is likely to have."""
_FRAMES = ("pandas", "polars")
_HUGGING_FACE = "datasets"


def open_in_memory(data: Any, options: EvaluateOptions, needs: ModelNeeds) -> tuple[Any, EvaluateOptions]:
    """Data as a loader, with the options that say what its parts are; any other data as they are.

    Raises:
        ConfigError: a column is not there, holds something else, or is one of several data sets.
        ShapeError: arrays have not as many rows as each other.
    """
    if _library(data) == _HUGGING_FACE:
        data = _of_hugging_face(data, needs)
    if hasattr(data, "collect") and _library(data) in _FRAMES:
        raise ConfigError(describe("data", type(data).__name__, "a frame in memory", "Pass data.collect()"))
    if is_frame(data):
        return _of_frame(data, options, needs)
    if isinstance(data, np.ndarray):
        data = (data,)
    if isinstance(data, tuple) and data and _is_column(data[0]) and all(map(_is_column_or_list, data)):
        if is_frame(data[0]):
            return _of_frame(data[0], options, needs, data[1:])
        return _of_tuple(*_with_slice_arrays(data, options), needs)
    if isinstance(data, Mapping) and data and all(map(_is_column, data.values())):
        target = options.target if isinstance(options.target, str) else _usual_target(data)
        parts = {str(name): _part(each, str(name), needs, name == target) for name, each in data.items()}
        return _loader(Columns(parts), options), options
    if options.features:
        do = "Name the parts of a batch that the model gets with inputs="
        raise ConfigError(describe("features", f"columns of {type(data).__name__}", "a table or a frame", do))
    return data, options


def class_label_names(data: Any, target: Any) -> tuple[str, ...]:
    """The names of the classes that a data set of Hugging Face has for its target; empty for other data."""
    features = getattr(data, "features", None) if _library(data) == _HUGGING_FACE else None
    if not isinstance(features, Mapping):
        return ()
    name = target if isinstance(target, str) else _usual_target(features)
    return tuple(getattr(features.get(name), "names", None) or ())


def is_frame(data: Any) -> bool:
    """Whether data are a frame of pandas or Polars."""
    return _library(data) in _FRAMES and hasattr(data, "columns")


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def _is_column(data: Any) -> bool:
    """Whether something is an array with a row a sample, or a frame or series."""
    if isinstance(data, np.ndarray | Tensor):
        return data.ndim > 0
    return _library(data) in _FRAMES and hasattr(data, "__len__")


def _is_column_or_list(data: Any) -> bool:
    return _is_column(data) or (isinstance(data, list) and isinstance(next(iter(data), 0), str | int | float))


def _usual_target(names: Iterable[Any]) -> str:
    there = set(names)
    return next((name for name in TARGETS if name in there), "")


def _of_hugging_face(data: Any, needs: ModelNeeds) -> Any:
    if isinstance(data, Mapping):
        got = f"{type(data).__name__} of {', '.join(map(str, data))}"
        first = next(iter(data), "test")
        raise ConfigError(describe("data", got, "one of them", f"Pass data[{str(first)!r}]"))
    if needs.is_estimator and hasattr(data, "to_pandas"):
        return data.to_pandas()
    return data.with_format("torch") if _gives_lists(data) else data


def _gives_lists(data: Any) -> bool:
    """Whether a sample of a data set of Hugging Face holds lists or frames; a stream keeps its format elsewhere."""
    if hasattr(data, "format"):
        return hasattr(data, "with_format") and data.format.get("type", "") in (None, "python", "arrow", *_FRAMES)
    return hasattr(data, "with_format") and getattr(data, "_formatting", False) is None


def _target_of_tuple(data: tuple[Any, ...], options: EvaluateOptions) -> Any:
    """The target, by default the last of several parts."""
    return len(data) - 1 if options.target is None and len(data) > 1 else options.target


def _with_slice_arrays(data: tuple[Any, ...], options: EvaluateOptions) -> tuple[tuple[Any, ...], EvaluateOptions]:
    """Slices that are arrays with one value a sample, as further parts of the data."""
    slices = options.slices if isinstance(options.slices, Mapping) else {}
    arrays = {name: each for name, each in slices.items() if _is_column_or_list(each)}
    if not arrays:
        return data, options
    places = {name: len(data) + place for place, name in enumerate(arrays)}
    target = _target_of_tuple(data, options)
    return (*data, *arrays.values()), replace(options, target=target, slices={**slices, **places})


def _of_tuple(data: tuple[Any, ...], options: EvaluateOptions, needs: ModelNeeds) -> tuple[Any, EvaluateOptions]:
    target = _target_of_tuple(data, options)
    place = target % len(data) if isinstance(target, int) else None
    parts = {str(k): _part(each, f"data[{k}]", needs, k == place) for k, each in enumerate(data)}
    return _loader(Columns(parts, is_tuple=True), options), options


def _of_frame(
    frame: Any, options: EvaluateOptions, needs: ModelNeeds, others: Sequence[Any] = ()
) -> tuple[Any, EvaluateOptions]:
    """A frame, with what it does not hold itself: the target, as in `(X, y)`."""
    names = list(frame.columns)
    target: Any = options.target
    if len(others) > 1 or (others and target is not None):
        got = f"{len(others)} parts beside a frame" + (f", and target={target!r}" if target is not None else "")
        raise ConfigError(describe("data", got, "(frame, target)", "Make all others columns of the frame"))
    if target is None and not others:
        target = _usual_target(names) or None
    selectors = [options.weights, options.ids, *options.slice_spec.selectors.values()]
    selectors += (options.columns or {}).values()
    selectors += parse_shown(options.show).values()
    selectors += [each for each in needs.columns if each not in (options.columns or {})]
    roles = [each for each in (target, *selectors) if isinstance(each, str)]
    if any(callable(each) for each in (options.inputs, target, *selectors)):
        roles += names  # functions of a batch may look at any column
    parts = {str(each): _part(_column(frame, each), each, needs, each == target) for each in dict.fromkeys(roles)}
    inputs: Any = options.inputs
    if not callable(inputs):
        named = features(names, DataOptions(features=tuple(options.features)))
        chosen = [inputs] if isinstance(inputs, str) else inputs or named
        chosen = list(needs.features) or list(chosen) or [name for name in names if name not in roles]
        parts[FEATURES] = _features(frame, chosen, needs)
        inputs = FEATURES
    if others:
        parts[TARGET], target = _part(others[0], "target", needs, True), TARGET
    return _loader(Columns(parts), options), replace(options, inputs=inputs, target=target)


def _column(frame: Any, name: Any) -> Any:
    if name not in list(frame.columns):
        shown = ", ".join(map(str, list(frame.columns)[:8])) + (", …" if len(frame.columns) > 8 else "")
        raise ConfigError(describe("data", f"no column {name!r}", f"one of {shown}", "Correct the name"))
    return frame[name]


def _features(frame: Any, names: Sequence[Any], needs: ModelNeeds) -> Any:
    """What the model gets: rows of the frame that it was fitted on, strings of one column, or a matrix."""
    columns = [_column(frame, name) for name in names]
    if not columns:
        got = f"the columns {', '.join(map(str, frame.columns))}"
        raise ConfigError(describe("data", got, "features beside the target", "Add them, or name them with inputs="))
    if needs.features:
        return FrameRows(frame[list(names)])
    arrays = [np.asarray(each) for each in columns]
    if len(arrays) == 1 and _is_text(arrays[0]):
        return arrays[0].astype(object)
    is_vectors = len(arrays) == 1 and _is_vectors(arrays[0])
    bad = next((name for name, array in zip(names, arrays, strict=True) if array.dtype.kind not in "biuf"), None)
    if bad is not None and not is_vectors:
        do = "Name columns of numbers with inputs=, or one of strings"
        raise ConfigError(describe(f"data: column {bad!r}", "no numbers", "a number in each row", do))
    matrix = np.stack(arrays[0].tolist()) if is_vectors else np.stack(arrays, 1)
    return _tensor(matrix if needs.is_estimator else matrix.astype(np.float64), needs.dtype or torch.float64)


def _part(values: Any, where: str, needs: ModelNeeds, is_target: bool) -> Any:
    """An array as a tensor, or strings as an array of objects; the classes of a target as numbers."""
    if is_target and needs.classes and not needs.takes_raw:
        array = values if isinstance(values, Tensor) else np.asarray(values)
        if needs.is_estimator or (not isinstance(array, Tensor) and _is_text(array)):
            flat = array.reshape(-1) if array.ndim == 2 and array.shape[1] == 1 else array
            return torch.from_numpy(class_numbers(flat, needs.classes, "target")) if flat.ndim == 1 else _tensor(flat)
    if isinstance(values, Tensor):
        return values
    array = np.asarray(values)
    if _is_text(array):
        if is_target and not needs.takes_raw:
            names = ", ".join(map(repr, sorted(set(array.tolist()))[:4]))
            do = "Pass classes=[...], the names in the order of the model's outputs"
            raise ConfigError(describe("target", f"the strings {names}", "numbers of classes", do))
        return array.astype(object)
    if array.dtype.kind == "O" and any(isinstance(each, list | tuple | np.ndarray) for each in array.flat):
        return array  # lists of values, which slices are made of
    if array.dtype.kind not in "biuf":
        do = "Convert it, and fill in what is missing"
        raise ConfigError(describe(where, f"{array.dtype} values", "numbers or strings", do))
    return _tensor(array, None if is_target else needs.dtype)


def _tensor(array: Any, dtype: torch.dtype | None = None) -> Tensor:
    """An array as a tensor; float64 in a dtype."""
    tensor = array if isinstance(array, Tensor) else torch.tensor(np.ascontiguousarray(array), device="cpu")
    return tensor.to(dtype) if dtype is not None and tensor.dtype == torch.float64 else tensor


def _is_text(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind in "US" or (array.dtype.kind in "OT" and all(isinstance(each, str) for each in array.flat))


def _is_vectors(array: np.ndarray[Any, Any]) -> bool:
    """Whether a column holds a row of so many numbers for each sample, as data sets of Hugging Face keep them."""
    if array.dtype.kind != "O" or not all(isinstance(each, list | np.ndarray) for each in array):
        return False
    rows = [np.asarray(each) for each in array]
    return len({each.shape for each in rows}) == 1 and rows[0].ndim == 1 and rows[0].dtype.kind in "biuf"


def _loader(columns: Columns, options: EvaluateOptions) -> DataLoader[Any]:
    check_lengths(columns.parts, "data", "Pass parts of the same samples; batches belong into a list")
    return loader(columns, options.batch_size, options.num_workers)
