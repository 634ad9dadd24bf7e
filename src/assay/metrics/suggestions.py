"""What to write instead of a name of a metric that there is not."""

from __future__ import annotations

import assay.metrics
from assay.metrics.parsing import class_named

_TASKS = {"Binary": "", "Multiclass": "num_classes=...", "Multilabel": "num_labels=..."}
"""What names of TorchMetrics begin with, and the argument that says the same."""


def hint(package: str, name: str) -> str:
    """What to write; empty where nothing is known of the name.

    Example:
        >>> hint("assay.metrics", "MSE")
        'write MeanSquaredError()'
        >>> hint("assay", "MulticlassAccuracy")
        'write Accuracy(num_classes=...), or import MulticlassAccuracy from assay.compat.torchmetrics'
    """
    if name in assay.metrics.__all__:
        return f"write from assay.metrics import {name}"
    task = next((task for task in _TASKS if name.startswith(task) and name[len(task) :] in assay.metrics.__all__), "")
    if task:
        return f"write {name[len(task) :]}({_TASKS[task]}), or import {name} from assay.compat.torchmetrics"
    found = class_named(name)
    if found is None:
        return ""
    cls, arguments = found
    return f"write {cls}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
