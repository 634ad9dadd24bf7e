"""The evaluation loop: any device, any number of processes, every sample once, and a report."""

from __future__ import annotations

from assay.evaluation.errors import BatchError, RankError
from assay.evaluation.forms import Form, Parity, parity
from assay.evaluation.run import evaluate

__all__ = ["BatchError", "Form", "Parity", "RankError", "evaluate", "parity"]
