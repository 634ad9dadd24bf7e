"""``assay gate``: whether a stored report is good enough."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from assay.errors import ConfigError, describe
from assay.report import Report, gate
from assay.report.gate_config import Settings, parse_rule, read_config


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line; None where nothing was said."""

    rules: dict[str, list[str]]
    baseline: Path | None
    config: Path | None
    level: float | None
    point: bool | None
    min_slice_size: int | None
    as_json: bool
    markdown: bool


def run(path: Path, options: Options) -> None:
    """Judge a report, print what was found, and exit with 0 (pass), 1 (fail) or 2 (cannot say).

    Args:
        path: the file of the report.
        options: the rules and how to judge them.

    Raises:
        ConfigError: a rule or an option cannot be.
        StateError: a file is no report or no configuration.
        OSError: a file cannot be read.
        typer.Exit: with the exit code.
    """
    if options.as_json and options.markdown:
        raise ConfigError(describe("output", "--json and --markdown", "one of the two", "Leave one out"))
    settings = settled(options)
    found = gate(
        Report.load(path),
        settings.rules,
        None if settings.baseline is None else Report.load(settings.baseline),
        confidence_level=settings.confidence_level,
        point=settings.point,
        min_slice_size=settings.min_slice_size,
    )
    if options.as_json:
        print(found.to_json(), end="")
    elif options.markdown:
        print(found.to_markdown(), end="")
    else:
        found.show()
    raise typer.Exit(found.exit_code)


def settled(options: Options) -> Settings:
    """The configuration file, and over it the command line; a rule on it replaces that of the same kind and metric."""
    told: dict[str, Any] = {} if options.config is None else read_config(options.config)
    rules = {(rule.kind, rule.metric): rule for rule in told.pop("rules", ())}
    for kind, written in options.rules.items():
        rules |= {(kind, rule.metric): rule for rule in (parse_rule(kind, each) for each in written)}
    for name in ("baseline", "confidence_level", "point", "min_slice_size"):
        if (value := getattr(options, name.removeprefix("confidence_"))) is not None:
            told[name] = value
    return Settings(tuple(rules.values()), **told)
