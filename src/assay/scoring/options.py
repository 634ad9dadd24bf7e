"""How a table is measured: the options of `score`, and which values they may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from assay.errors import ConfigError, describe
from assay.evaluation.arguments.options import ReportOptions
from assay.evaluation.data.batch import parse_shown
from assay.evaluation.observe.slices import SliceSpec, parse_slices
from assay.scoring.columns import TableColumns, parse_fields, parse_names
from assay.scoring.slice_ranges import SliceRanges, join_ranges, split_ranges
from assay.scoring.where import parse_where

ON_BAD = ("raise", "skip")
_HOW = ("progress", "workers")  # which change no bit


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(ReportOptions):
    """How a table is measured: the keyword arguments of `score`, which describes them.

    Raises:
        ConfigError: an invalid value.
    """

    preds: str | Sequence[str] | Mapping[str, str] = ""
    target: str | Sequence[str] | Mapping[str, str] | None = None
    weights: str | None = None
    ids: str | None = None
    columns: Mapping[str, str] | None = None
    labels: str | Sequence[str] = ()
    where: str | None = None
    sql: str | None = None
    on_bad: str = "raise"
    workers: int = 1
    title: str = "Score"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integers(workers=1)
        if self.on_bad not in ON_BAD:
            raise ConfigError(describe("on_bad", repr(self.on_bad), " or ".join(ON_BAD), 'Pass on_bad="raise"'))
        for name in ("weights", "ids", "where", "sql", "cluster"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ConfigError(describe(name, repr(value), "a string", f'Pass {name}="..."'))
        columns: Any = self.columns
        if columns is not None and not isinstance(columns, Mapping):
            do = 'Pass columns={"indexes": "query_id"}'
            raise ConfigError(describe("columns", repr(columns), "columns of the table by name", do))
        self.table_columns()

    @property
    def slice_spec(self) -> SliceSpec:
        """The slices, and the columns that they are made of."""
        return parse_slices(split_ranges(self.slices)[0]).with_tables(self.by)

    @property
    def slice_ranges(self) -> dict[str, SliceRanges]:
        """By name, the columns of slices that are cut into ranges."""
        return split_ranges(self.slices)[1]

    def table_columns(self, named: Sequence[str] | None = None) -> TableColumns:
        """What each column is for.

        Args:
            named: the names that metrics have for the further columns that they take; None if unknown.
        """
        preds, preds_fields = parse_fields("preds", self.preds)
        target, target_fields = parse_fields("target", self.target)
        spec = self.slice_spec
        if self.cluster in self.slice_ranges:
            do = "Add a column of ranges to the table, and slice by that"
            raise ConfigError(describe("cluster", f"{self.cluster!r}, of which slices are ranges", "its values", do))
        for name, selector in spec.selectors.items():
            if not isinstance(selector, str) or selector != name:
                do = "Add a column to the table, and name that"
                raise ConfigError(describe(f"slices: {name}", repr(selector), "the name of a column", do))
        labels = parse_names("labels", self.labels)
        if len(set(labels)) < len(labels):
            raise ConfigError(describe("labels", ", ".join(labels), "each name once", "Remove the one that is twice"))
        others = dict(self.columns or {})
        unknown = sorted(others.keys() - set(others if named is None else named))
        if unknown:
            expected = f"some of {', '.join(named)}" if named else "none, as no metric takes a named column"
            raise ConfigError(describe("columns", ", ".join(unknown), expected, "Correct the names, or leave them out"))
        shown = {name: each for name, each in parse_shown(self.show).items() if isinstance(each, str)}
        if strange := parse_shown(self.show).keys() - shown.keys():
            do = "Add a column to the table, and name that"
            raise ConfigError(describe("show", f"{min(strange)!r} as no name", "the name of a column", do))
        where = () if self.where is None else parse_where(self.where).names
        return TableColumns(
            preds,
            target,
            self.weights or "",
            self.ids or "",
            others if named is None else {name: others.get(name, name) for name in named},
            tuple(dict.fromkeys(spec.selectors)),
            labels,
            tuple(where),
            shown,
            preds_fields,
            target_fields,
            self.cluster or "",
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values of what decides the report, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _HOW}
        slices = {name: parts if len(parts) > 1 else parts[0] for name, parts in self.slice_spec.slices.items()}
        values["by"] = list(self.slice_spec.tables) or None
        values["slices"] = join_ranges(slices, self.slice_ranges) or None
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ScoreOptions:
        """What `to_json` gave, after it was JSON."""
        slices = values["slices"] and {
            name: tuple(each) if isinstance(each, list) else each for name, each in values["slices"].items()
        }
        return cls(**{**values, "slices": slices})
