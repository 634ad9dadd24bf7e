"""The evaluation loop: any device, any number of processes, every sample once, and a report."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from assay.evaluate.errors import BatchError, RankError
from assay.evaluate.forms import Form, Parity, parity
from assay.evaluate.run import evaluate

__all__ = ["BatchError", "Form", "Parity", "RankError", "evaluate", "parity"]


class _Callable(ModuleType):
    """`assay.evaluate` is this package once it was imported, and the function before: both can be called."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return evaluate(*args, **options)


sys.modules[__name__].__class__ = _Callable
