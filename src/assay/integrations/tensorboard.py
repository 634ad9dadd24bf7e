"""TensorBoard: a report writes itself with a `SummaryWriter`."""

from __future__ import annotations

from typing import Any

from assay.errors import ConfigError, describe
from assay.integrations.report_values import numbers
from assay.report import Report


def log_to_tensorboard(report: Report, writer: Any, step: int | None = None, *, prefix: str = "") -> None:
    """Write a report: values and the ends of their intervals as scalars, the whole with its tables as text.

    TensorBoard stores no other files, so the page is not included: `report.to_html(path)` writes it.

    Args:
        report: what `evaluate` gave, or `Report.load(path)`.
        writer: a `torch.utils.tensorboard.SummaryWriter`, or anything with its `add_scalar` and `add_text`.
        step: such as the epoch.
        prefix: put before each name, such as `"val/"`.

    Raises:
        ConfigError: it is no report, two values have one name, or the writer is none.

    Source: torch/utils/tensorboard/writer.py of PyTorch 2.13.
    """
    if not hasattr(writer, "add_scalar") or not hasattr(writer, "add_text"):
        do = "Pass SummaryWriter(folder) of torch.utils.tensorboard"
        raise ConfigError(describe("writer", type(writer).__name__, "a SummaryWriter", do))
    for name, number in numbers(report, prefix).items():
        writer.add_scalar(name, number, global_step=step)
    writer.add_text(f"{prefix}report", report.to_markdown(), global_step=step)
