"""Tables as data, a row a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.data.column_roles import Roles, assign_roles, check, features, listed, number_columns, read_roles
from assay.data.columns import TARGETS, Columns, Data, FrameRows, loader
from assay.data.labels import rows_at
from assay.data.options import DataOptions, ModelNeeds
from assay.data.tables.table_file import TableFile
from assay.data.tokens import TokenColumns
from assay.errors import ConfigError, ShapeError, describe

_TEXTS = ("text", "sentence")


def open_table_data(path: Path, options: DataOptions, needs: ModelNeeds) -> Data:
    """A table as data.

    Features become one float tensor in the order of their columns. Columns that `inputs` names go to the model by
    name, and those of `text` through its tokenizer. Parquet is read by row groups, as batches need them; of other
    tables the columns that are needed are read at once. Where metrics take strings, those of inputs and target stay
    strings.
    """
    raw = needs.takes_raw
    table = TableFile(path, (*options.inputs, *([options.target] if options.target else TARGETS)) if raw else ())
    roles = assign_roles(table.names, options, str(path))
    target = roles.target
    if not table.rows:
        raise ConfigError(describe(str(path), "no rows", "one or more", "Check what was written there"))
    inputs, which, notes = _inputs(table, roles, options, needs)
    classes = needs.labels(options)
    if raw:
        inputs |= {roles.target: table.strings(roles.target)} if roles.target else {}
        roles, classes = replace(roles, target=""), ()
    parts, labels, classes, more = read_roles(table.values, roles, classes, str(path))
    columns, strings, of_columns = number_columns(table.values, options.columns, parts, str(path))
    data = loader(Columns({**inputs, **parts}), options.batch_size, options.num_workers)
    return Data(data, which, target or None, None, labels, classes, (*notes, *more, *of_columns), columns, strings)


def _inputs(
    table: TableFile, roles: Roles, options: DataOptions, needs: ModelNeeds
) -> tuple[dict[str, Any], Any, list[str]]:
    """The columns for the model, how it is given them, and what to say about that."""
    texts = options.text or _usual_text(table, roles, needs)
    if texts:
        if needs.tokenizer is None:
            do = "Tokenize the texts in a data set of your own, or name a Hugging Face folder as the model"
            raise ConfigError(describe("text", "a model without a tokenizer", "a model with a tokenizer", do))
        tokens = TokenColumns(*needs.tokenizer(), [table.strings(name).tolist() for name in texts])
        return {"": tokens}, list(tokens.names), [tokens.note(texts)]
    if options.inputs:
        parts = {name: _input(table, name, needs) for name in roles.inputs}
        return parts, list(roles.inputs) if len(roles.inputs) > 1 else roles.inputs[0], []
    if needs.features:
        check(("the features that the model was fitted on", needs.features), table.names, str(table.path))
        return {"features": FrameRows(table.frame(needs.features))}, "features", []
    got = f"columns {listed(table.names)}"
    if needs.takes_raw and needs.is_identity:
        raise ConfigError(describe(str(table.path), got, "a column of predictions", "Name it as inputs"))
    names = features(table.names, options) or tuple(name for name in table.names if name not in roles.taken)
    if not names:
        raise ConfigError(describe(str(table.path), got, "features beside the target", "Name them as features"))
    note = f"{len(names)} feature column{'s' * (len(names) > 1)}: {listed(names)}."
    return {"features": FeatureColumns(table, names, needs.float_dtype)}, "features", [note]


def _usual_text(table: TableFile, roles: Roles, needs: ModelNeeds) -> tuple[str, ...]:
    if needs.tokenizer is None or roles.inputs:
        return ()
    return next(((name,) for name in _TEXTS if name in table.names), ())


def _input(table: TableFile, name: str, needs: ModelNeeds) -> Any:
    """A column that the model gets: strings where metrics take them, floats in the dtype of its weights."""
    if needs.takes_raw and (needs.is_identity or table.has_strings(name)):
        return table.strings(name)
    values = table.numbers(name)
    return values.to(needs.float_dtype) if values.is_floating_point() else values


class FeatureColumns:
    """Columns of numbers as rows of one float tensor, read group by group as batches need them.

    Args:
        table: the file.
        names: the columns, in order; lists in a column become as many features.
        dtype: of the tensor.
    """

    def __init__(self, table: TableFile, names: Sequence[str], dtype: torch.dtype) -> None:
        for name in names:
            table.check_numbers(name)
        self._table, self._names, self._dtype = table, list(names), dtype
        self._held: tuple[int, Tensor] | None = None

    def __len__(self) -> int:
        return self._table.rows

    def rows(self, index: list[int]) -> Tensor:
        """The features of some rows, shape (len(index), features)."""
        groups = self._table.groups
        of = np.searchsorted(groups, index, side="right") - 1
        parts = torch.empty(0, device="cpu")
        for group in dict.fromkeys(of.tolist()):
            here = [k for k, each in enumerate(of.tolist()) if each == group]
            matrix = self._matrix(group)
            if not parts.numel():
                parts = torch.empty(len(index), matrix.shape[1], dtype=self._dtype, device="cpu")
            if parts.shape[1] != matrix.shape[1]:
                got = f"{matrix.shape[1]} features from {rows_at([index[here[0]]])} on"
                expected = f"{parts.shape[1]}, as in the rows before"
                raise ShapeError(describe(str(self._table.path), got, expected, "Make lists as long as each other"))
            parts[here] = matrix[[index[k] - groups[group] for k in here]]
        return parts

    def _matrix(self, group: int) -> Tensor:
        if self._held is None or self._held[0] != group:
            columns = self._table.read(group, self._names)
            flat = [torch.from_numpy(each).reshape(len(each), -1).to(self._dtype) for each in columns]
            self._held = group, torch.cat(flat, 1)
        return self._held[1]
