"""Weights & Biases: a report logs itself into a run, online or offline."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from assay.errors import StateError, describe
from assay.integrations.optional_packages import import_package
from assay.integrations.report_values import numbers, tables
from assay.report import Report


def log_to_wandb(report: Report, run: Any = None, *, step: int | None = None, prefix: str = "") -> None:
    """Log a report: values and the ends of their intervals, tables, the page; page and JSON as an artifact, too.

    Args:
        report: what `evaluate` gave, or `Report.load(path)`.
        run: what `wandb.init` gave; the one that is under way by default.
        step: as `run.log` takes it; the next one by default.
        prefix: put before each name, such as `"val/"`.

    Raises:
        ConfigError: it is no report, or two values have one name.
        StateError: no run is under way.
        MissingDependencyError: Weights & Biases is not installed.

    Source: `wandb.Table`, `wandb.Html` and `wandb.Artifact` of wandb 0.31.
    """
    values: dict[str, Any] = dict(numbers(report, prefix))
    wandb = import_package("wandb", "runs that a report is logged into")
    run = run if run is not None else wandb.run
    if run is None:
        raise StateError(describe("wandb", "no run that is under way", "one", "Call wandb.init(...) first, or pass it"))
    with tempfile.TemporaryDirectory() as folder:
        page = report.to_html(Path(folder, "report.html"))
        for name, table in tables(report, prefix).items():
            rows = [list(row) for row in table.rows]
            values[name] = wandb.Table(columns=list(table.columns), data=rows, allow_mixed_types=True)
        values[f"{prefix}report"] = wandb.Html(page.read_text(encoding="utf-8"), inject=False)
        artifact = wandb.Artifact(f"report-{run.id}{_suffix(prefix)}", type="report", description=report.title)
        artifact.add_file(str(page))
        artifact.add_file(str(report.save(Path(folder, "report.json"))))
        run.log(values, step=step)
        run.log_artifact(artifact)


def _suffix(prefix: str) -> str:
    """What the prefix adds to the name of an artifact, which takes letters, digits, `-`, `_` and `.` only."""
    clean = re.sub(r"[^\w\-.]+", "-", prefix, flags=re.ASCII).strip("-")
    return f"-{clean}" if clean else ""
