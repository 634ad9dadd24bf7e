"""MLflow: a report logs itself into a run."""

from __future__ import annotations

import re

from assay.integrations.optional_packages import import_package
from assay.integrations.report_values import numbers, tables
from assay.report import Report

_NOT_IN_NAMES = re.compile(r"[^\w\-. :/]", re.ASCII)


def log_to_mlflow(report: Report, *, step: int | None = None, prefix: str = "", run_id: str | None = None) -> None:
    """Log a report: values and the ends of their intervals as metrics, tables, the page and the JSON as artifacts.

    Characters that MLflow does not take in names become `_`. The page is `assay/report.html` in the artifacts, where
    MLflow shows it, and `assay/report.json` is what `assay compare` and `assay gate` read.

    Args:
        report: what `evaluate` gave, or `Report.load(path)`.
        step: of the metrics, such as the epoch; it becomes part of the folder of the artifacts, too.
        prefix: put before each name, such as `"val/"`.
        run_id: which run; the active one by default, which MLflow starts if none is.

    Raises:
        ConfigError: it is no report, or two values have one name.
        MissingDependencyError: MLflow is not installed.

    Source: `mlflow.log_metrics`, `log_table` and `log_text` of MLflow 3.17; `log_table` needs pandas.
    """
    mlflow = import_package("mlflow", "runs that a report is logged into")
    values = _renamed(numbers(report, prefix))
    mlflow.log_metrics(values, step=step, run_id=run_id)
    folder = "/".join(["assay", *_clean(prefix).strip("/").split("/"), *([] if step is None else [f"step {step}"])])
    folder = folder.replace("//", "/").rstrip("/")
    for name, table in tables(report).items():
        columns = {column: [row[i] for row in table.rows] for i, column in enumerate(table.columns)}
        mlflow.log_table(columns, f"{folder}/{_clean(name)}.json", run_id=run_id)
    mlflow.log_text(_page(report), f"{folder}/report.html", run_id=run_id)
    mlflow.log_text(report.to_json(), f"{folder}/report.json", run_id=run_id)


def _page(report: Report) -> str:
    from assay.render.html import to_html

    return to_html(report.to_document())


def _clean(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)


def _renamed(values: dict[str, float]) -> dict[str, float]:
    """Names that MLflow takes, each still its own."""
    named: dict[str, float] = {}
    for name, number in values.items():
        clean, count = _clean(name), 1
        while clean in named:
            count += 1
            clean = f"{_clean(name)} {count}"
        named[clean] = number
    return named
