"""What the examples have in common: predictions of scikit-learn's digits as a file of row groups, and its report."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import assay

METRICS = "accuracy:num_classes=10"
OPTIONS = {"preds": "digit", "target": "y", "ids": "id"}


def write_table(folder: Path) -> Path:
    """The file with the predictions."""
    x, y = load_digits(return_X_y=True)
    digits = LogisticRegression(max_iter=200).fit(x[:300], y[:300]).predict(x)
    path = folder / "predictions.parquet"
    pq.write_table(pa.table({"digit": digits, "y": y, "id": range(len(y))}), path, row_group_size=200)
    return path


def check(report: assay.report.Report, path: Path) -> None:
    """Show a report, which must have the bits of one process."""
    assert report.sections[0].values == assay.score(path, METRICS, **OPTIONS).sections[0].values
    report.show()
    print(f"{report.sections[0].values[0].count} samples")


PATH = write_table(Path(tempfile.mkdtemp(prefix="assay-")))
