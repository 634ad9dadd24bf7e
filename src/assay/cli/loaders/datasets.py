"""DATA: a function that makes a data set, arrays, a table, or a folder of images."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path

from assay._atomic import kept_copy, location
from assay._remote import RemotePath
from assay.cli.loaders.arrays import open_arrays
from assay.cli.loaders.batch_parts import parse_columns
from assay.cli.loaders.columns import Data
from assay.cli.loaders.images import open_images
from assay.cli.loaders.labels import check_classes
from assay.cli.loaders.named_model import Model
from assay.cli.loaders.python_objects import construct
from assay.cli.loaders.table_file import SUFFIXES as TABLES
from assay.cli.loaders.tables import open_table
from assay.cli.options import EvaluateCommand
from assay.errors import ConfigError, describe
from assay.metrics.base import Metric

ARRAYS = (".npz", ".safetensors")


@functools.cache
def data_path(named: str) -> Path:
    """Where the data are on this machine: a file at a URL is copied here, once, until the process ends."""
    path = location("--data", named) if "://" in named else Path(named)
    if not isinstance(path, RemotePath):
        return path
    if path.suffix not in (*ARRAYS, *TABLES):
        expected = f"a file that ends in {', '.join((*ARRAYS, *TABLES))}"
        raise ConfigError(describe("--data", repr(named), expected, "Copy a folder of images to this machine"))
    return kept_copy(path, data_path)


def open_data(options: EvaluateCommand, model: Model, metrics: Mapping[str, Metric]) -> Data:
    """The data that were named, checked against what measures them."""
    if model.is_identity and len(options.inputs) > 1:
        got = f"{', '.join(options.inputs)} for the model identity"
        raise ConfigError(describe("--inputs", got, "one column, the predictions", "Name that one alone"))
    data = _opened(options, model, metrics)
    check_classes(data.labels, data.classes, metrics)
    return data


def _opened(options: EvaluateCommand, model: Model, metrics: Mapping[str, Metric]) -> Data:
    named, columns = options.data, parse_columns(options.column, metrics)
    path = data_path(named)
    if path.is_dir():
        return open_images(path, options, model.dtype, model.classes)
    if path.suffix in (*ARRAYS, *TABLES) or (path.is_file() and ":" not in named):
        if not path.is_file():
            raise ConfigError(
                describe("--data", f"{named}, which does not exist", "an existing file or folder", "Check the path")
            )
        if path.suffix in ARRAYS:
            return open_arrays(path, options, model.dtype, model.classes, columns)
        if path.suffix in TABLES:
            takes_raw = any(metric.encoders for metric in metrics.values())
            return open_table(path, options, model, columns, takes_raw)
        expected = f"one of {', '.join((*ARRAYS, *TABLES))}"
        if path.suffix == ".py":
            do = f"Name the function in it that makes the data, as in {path.stem}:data"
            raise ConfigError(describe("--data", f"{named}, a Python file", "package.module:function", do))
        raise ConfigError(describe("--data", f"a file {path.name}", expected, "Save it as one of these"))
    if os.sep in named.partition(":")[0]:
        raise ConfigError(
            describe("--data", f"{named}, which does not exist", "an existing file or folder", "Check the path")
        )
    dataset = construct(named, "--data", options.seed)
    return Data(dataset, columns=columns, classes=options.classes or model.classes, is_made=True)
