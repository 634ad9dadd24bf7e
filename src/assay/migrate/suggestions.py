"""What to write instead of a name that assay does not have, such as one of TorchMetrics."""

from __future__ import annotations

import assay.metrics
from assay.metrics.parsing import class_named
from assay.migrate.table import LIBRARIES, TASKS, library

_OTHERS = {
    "MetricCollection": "Meter(...)",
    "MeanIou": "MeanIoU(num_classes=...)",
    "RootMeanSquaredError": "MeanSquaredError(squared=False)",
    "TopKAccuracy": "Accuracy(num_classes=..., top_k=...)",
    "classification_report": 'evaluate(..., "precision,recall,f1")',
    "load": "Report.load(path)",
    "load_report": "Report.load(path)",
    "log_loss": "LogLoss()",
    "mIoU": "MeanIoU(num_classes=...)",
    "mAP": "MeanAveragePrecision()",
    "roc_auc_score": "AUROC()",
}
"""Names that no table has, and what they mean here."""


def hint(package: str, name: str) -> str:
    """What to write; empty where nothing is known of the name.

    Example:
        >>> hint("assay.metrics", "MSE")
        'write MeanSquaredError()'
        >>> hint("assay", "MulticlassAccuracy")
        'write Accuracy(num_classes=...), or import MulticlassAccuracy from assay.compat.torchmetrics.classification'
        >>> hint("assay", "MeanMetric")
        'write Mean(), or write assay.compat.torchmetrics for torchmetrics in your import of MeanMetric'
    """
    if name in assay.metrics.__all__:
        return f"write from assay.metrics import {name}"
    there = next((each for each in LIBRARIES if library(each).knows(name)), "")
    here = _here(name, there)
    said = [f"write {here}"] * bool(here)
    if _task(name):
        said.append(f"import {name} from assay.compat.torchmetrics.classification")
    elif there:
        said.append(f"write assay.compat.{there} for {there} in your import of {name}")
    return ", or ".join(said)


def _task(name: str) -> str:
    """The task that a class of TorchMetrics is named after, where assay has its metric; else empty."""
    return next((task for task in TASKS if name.startswith(task) and name[len(task) :] in assay.metrics.__all__), "")


def _here(name: str, there: str) -> str:
    """What stands for a name here, as it is called; empty where nothing is known of it."""
    if task := _task(name):
        return f"{name[len(task) :]}({_given(TASKS[task])})"
    if name in _OTHERS:
        return _OTHERS[name]
    found = class_named(name)
    if found is None and there and name in (entries := library(there).entries):
        return f"{entries[name].assay}({_given(entries[name].needs)})"
    if found is None:
        return ""
    cls, arguments = found
    return f"{cls}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _given(argument: str) -> str:
    return f"{argument}=..." if argument else ""
