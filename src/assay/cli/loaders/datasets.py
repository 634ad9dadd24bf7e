"""DATA: a function that makes a data set, arrays, a table, or a folder of images."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from assay.cli.loaders.arrays import open_arrays
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


def open_data(options: EvaluateCommand, model: Model, metrics: Mapping[str, Metric]) -> Data:
    """The data that were named, checked against what measures them."""
    data = _opened(options, model)
    check_classes(data.labels, data.classes, metrics)
    return data


def _opened(options: EvaluateCommand, model: Model) -> Data:
    named = options.data
    path = Path(named)
    if path.is_dir():
        return open_images(path, options, model.dtype, model.classes)
    if path.suffix in (*ARRAYS, *TABLES) or (path.is_file() and ":" not in named):
        if not path.is_file():
            raise ConfigError(
                describe("--data", f"{named}, which does not exist", "an existing file or folder", "Check the path")
            )
        if path.suffix in ARRAYS:
            return open_arrays(path, options, model.dtype, model.classes)
        if path.suffix in TABLES:
            return open_table(path, options, model)
        expected = f"one of {', '.join((*ARRAYS, *TABLES))}"
        if path.suffix == ".py":
            do = f"Name the function in it that makes the data, as in {path.stem}:data"
            raise ConfigError(describe("--data", f"{named}, a Python file", "package.module:function", do))
        raise ConfigError(describe("--data", f"a file {path.name}", expected, "Save it as one of these"))
    if os.sep in named.partition(":")[0]:
        raise ConfigError(
            describe("--data", f"{named}, which does not exist", "an existing file or folder", "Check the path")
        )
    return Data(construct(named, "--data", options.seed), classes=options.classes or model.classes, is_made=True)
