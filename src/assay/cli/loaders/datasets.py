"""DATA: a function that makes a data set, or a file or folder that `assay.data` opens."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from assay.cli.loaders.batch_parts import parse_columns, slice_columns
from assay.cli.loaders.named_model import Model
from assay.cli.loaders.python_objects import construct
from assay.cli.options.measurement import EvaluateCommand
from assay.data import Data, DataOptions, open_path
from assay.data.files import file_endings
from assay.data.labels import check_classes
from assay.data.options import ModelNeeds
from assay.data.tables.formats import suffix_of
from assay.errors import ConfigError, describe
from assay.evaluation.model.estimators import classes_of, is_estimator
from assay.metrics.base import Metric


def open_data(
    options: EvaluateCommand, model: Model, metrics: Mapping[str, Metric], *, needs_target: bool = True
) -> Data:
    """The data that were named, checked against what measures them; a file without a target may be refused."""
    if model.is_identity and len(options.inputs) > 1:
        got = f"{', '.join(options.inputs)} for the model identity"
        raise ConfigError(describe("--inputs", got, "one column, the predictions", "Name that one alone"))
    data = _opened(options, model, metrics, needs_target)
    check_classes(data.labels, data.classes, metrics)
    return data


def is_file(named: str) -> bool:
    """Whether a name is that of a file or a folder, not of a function."""
    path = Path(named)
    is_there = path.is_dir() or (path.is_file() and ":" not in named)
    is_url = "://" in named
    return is_there or is_url or suffix_of(named) in file_endings() or os.sep in named.partition(":")[0]


def _opened(options: EvaluateCommand, model: Model, metrics: Mapping[str, Metric], needs_target: bool) -> Data:
    columns = parse_columns(options.column, metrics)
    if is_file(options.data):
        if options.data.endswith(".py"):
            do = f"Name the function in it that makes the data, as in {Path(options.data).stem}:data"
            raise ConfigError(describe("--data", f"{options.data}, a Python file", "package.module:function", do))
        fitted = is_estimator(model.model)
        needs = ModelNeeds(
            dtype=None if fitted else model.dtype,
            features=tuple(getattr(model.model, "feature_names_in_", ())) if fitted else (),
            classes=classes_of(model.model) if fitted else model.classes,
            is_estimator=fitted,
            takes_raw=any(metric.encoders for metric in metrics.values()),
            is_identity=model.is_identity,
            tokenizer=None if model.folder is None else lambda: _tokenizer(model),
        )
        return open_path(options.data, _data_options(options, columns, needs_target), needs)
    dataset = construct(options.data, "--data", options.seed)
    return Data(dataset, columns=columns, classes=options.classes or model.classes)


def _tokenizer(model: Model) -> tuple[Any, int | None]:
    from assay.cli.loaders.texts import text_tokenizer  # which imports what quantizes, and that torch's compiler

    return text_tokenizer(model)


def _data_options(options: EvaluateCommand, columns: Mapping[str, str], needs_target: bool) -> DataOptions:
    """The options as those of a file: functions of a batch are no columns."""
    same = {each.name: getattr(options, each.name) for each in fields(DataOptions) if hasattr(options, each.name)}
    sliced = [name for each in options.slice for name in slice_columns(each)]
    return replace(
        DataOptions(**same),
        target=_column(options.target) if options.target else None if needs_target else "",
        inputs=() if any(":" in each for each in options.inputs) else options.inputs,
        weights=_column(options.weights),
        ids=_column(options.ids),
        cluster=_column(options.cluster),
        others=(*sliced, *options.show),
        columns=columns,
    )


def _column(written: str) -> str:
    return "" if ":" in written else written
