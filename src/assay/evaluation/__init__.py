"""The evaluation loop: any device, any number of processes, every sample once, and a report."""

from __future__ import annotations

from assay.evaluation.errors import BatchError, RankError
from assay.evaluation.evaluate_model import evaluate
from assay.evaluation.variants import Form, Parity, parity

__all__ = ["BatchError", "Form", "Parity", "RankError", "evaluate", "parity"]
