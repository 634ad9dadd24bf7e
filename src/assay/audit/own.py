"""assay's own metrics with inputs, so that ``assay audit assay`` holds them to what is asked of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

import assay.metrics
from assay.audit.case import Case
from assay.devices import policy
from assay.errors import ConfigError
from assay.meter import Meter
from assay.metrics import Accuracy, MeanSquaredError, Metric, Recall

ROWS, BATCHES, CLASSES = 24, 3, 5
ARGUMENTS: dict[str, dict[str, Any]] = {
    "FBetaScore": {"beta": 2.0},
    "RecallAtFixedPrecision": {"min_precision": 0.5},
    "PrecisionAtFixedRecall": {"min_recall": 0.5},
    "SensitivityAtSpecificity": {"min_specificity": 0.5},
    "SpecificityAtSensitivity": {"min_sensitivity": 0.5},
    "MinkowskiDistance": {"p": 3.0},
    "CriticalSuccessIndex": {"threshold": 0.5},
    "Quantile": {"q": 0.5},
    "Arithmetic": {"operation": "/", "operands": (Accuracy(), Recall())},
    "Classwise": {"metric": Recall(num_labels=CLASSES, average=None), "names": tuple("abcde")},
    "PerOutput": {"metric": MeanSquaredError(), "outputs": CLASSES},
}
TASKS: tuple[dict[str, int], ...] = ({}, {"num_classes": CLASSES}, {"num_labels": CLASSES})


def cases(name: str = "assay") -> Iterator[Case]:
    """A case for each metric of assay, and for each task that it knows.

    Args:
        name: the library; for the shape of other generators.

    Yields:
        The cases.
    """
    for metric_name in assay.metrics.__all__:
        kind = getattr(assay.metrics, metric_name)
        if kind is Metric:
            continue
        for task in TASKS:
            if all(argument in kind.__dataclass_fields__ for argument in task):
                with suppress(ConfigError):  # kappa of several labels, and the like, cannot be
                    yield _case(kind(**task, **ARGUMENTS.get(metric_name, {})), task)


def _case(metric: Metric, task: dict[str, int]) -> Case:
    generator = torch.Generator().manual_seed(0)
    batches = tuple(_batch(metric, task, generator) for _ in range(BATCHES))
    told = ", ".join(f"{argument}={value}" for argument, value in task.items())
    return Case(
        f"assay.metrics.{type(metric).__name__}" + (f"({told})" if told else ""),
        lambda: Meter(value=metric, stage_bytes=0),  # the tallies run in each update, and not when it is read
        batches,
        move=_settle,
        states=lambda meter: {str(device): states for device, states in meter.device_states().items()},
        reads_on_host=True,
    )


def _settle(meter: Meter, device: Any) -> Meter:
    """A meter counts where its batches are; what a device can do is found out at its first use, which is here."""
    policy(device)
    return meter


def _batch(metric: Metric, task: dict[str, int], generator: torch.Generator) -> tuple[Tensor, ...]:
    def floats(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator)

    def labels(high: int, *shape: int) -> Tensor:
        return torch.randint(0, high, shape, generator=generator)

    family = type(metric).__module__.rpartition(".")[2]
    if family == "text":
        return floats(ROWS, 4, CLASSES), labels(CLASSES, ROWS, 4)
    if family in ("aggregation", "quantile"):
        return (floats(ROWS),)
    if type(metric).__name__ in ("KLDivergence", "CosineSimilarity"):
        return floats(ROWS, CLASSES).softmax(-1), floats(ROWS, CLASSES).softmax(-1)
    if family in ("regression", "correlation", "explained", "rank_correlation"):
        return floats(ROWS), floats(ROWS)
    if "num_classes" in task:
        return floats(ROWS, CLASSES).softmax(-1), labels(CLASSES, ROWS)
    shape = (ROWS, CLASSES) if task or family in ("classwise", "per_output") else (ROWS,)
    return floats(*shape), labels(2, *shape)
