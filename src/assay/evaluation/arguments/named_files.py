"""Data in files: what the options of `evaluate` say of their columns, and what they give the evaluation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.data import Data, DataOptions, open_path
from assay.data.columns import Columns
from assay.data.files import digest_of
from assay.data.labels import check_classes
from assay.data.options import ModelNeeds
from assay.errors import ConfigError, describe
from assay.evaluation.arguments.options import EvaluateOptions
from assay.evaluation.data.batch import parse_shown
from assay.evaluation.observe.worst_queries import ranking_metric
from assay.metrics.base import Metric


def open_named(data: Any, options: EvaluateOptions, needs: ModelNeeds, metrics: Mapping[str, Metric]) -> Any:
    """The file or folder of a path; any other data as they are."""
    if not isinstance(data, str | os.PathLike):
        return data
    opened = open_path(data, _data_options(options, needs), needs)
    check_classes(opened.labels, opened.classes, metrics)
    return opened


def options_with(data: Data, options: EvaluateOptions, metrics: Mapping[str, Metric]) -> EvaluateOptions:
    """The options with what is known of data: which part of a batch is what. Functions of a batch stay."""
    dataset = getattr(data.data, "dataset", None)
    if options.resume is not None and data.path is not None and isinstance(dataset, Columns):
        dataset.content_digest = digest_of(data.path)
    show, queries = options.show, data.strings.get("indexes")
    if queries is not None and ranking_metric(metrics) is not None:
        show = {queries: queries, **parse_shown(show)}
    return replace(
        options,
        inputs=options.inputs if data.inputs is None or _is_function(options.inputs) else data.inputs,
        target=options.target if data.target is None or _is_function(options.target) else data.target,
        features=options.features if data.path is None else (),
        ids=data.ids if options.ids is None else options.ids,
        columns={**(options.columns or {}), **data.columns} or None,
        classes=options.classes or data.classes,
        show=show,
    )


def _is_function(selector: Any) -> bool:
    return callable(selector) or (isinstance(selector, list | tuple) and any(map(callable, selector)))


def _data_options(options: EvaluateOptions, needs: ModelNeeds) -> DataOptions:
    slices, shown = options.slice_spec.selectors, parse_shown(options.show)
    columns = {name: name for name in needs.columns} | dict(options.columns or {})
    target = _names("target", options.target)
    return DataOptions(
        target=None if options.target is None else next(iter(target), ""),
        inputs=_names("inputs", options.inputs),
        features=tuple(options.features),
        weights=next(iter(_names("weights", options.weights)), ""),
        ids=next(iter(_names("ids", options.ids)), ""),
        cluster=next(iter(_names("cluster", options.cluster)), ""),
        others=tuple(name for each in (*slices.values(), *shown.values()) for name in _names("slices or show", each)),
        columns={name: each for name, part in columns.items() for each in _names(f"columns: {name}", part)},
        classes=tuple(options.classes),
        batch_size=options.batch_size,
        num_workers=options.num_workers,
    )


def _names(option: str, selector: Any) -> tuple[str, ...]:
    """The columns that a selector names; of a function those that it says itself."""
    if callable(selector):
        return _names(option, getattr(selector, "column", None))
    if isinstance(selector, Sequence) and not isinstance(selector, str):
        return tuple(name for each in selector for name in _names(option, each))
    if selector is not None and not isinstance(selector, str):
        do = "Write the name of the column"
        raise ConfigError(describe(option, repr(selector), "a column of the file by its name", do))
    return () if selector is None else (selector,)
