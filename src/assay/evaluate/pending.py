"""What is being built beside this; goes when it is there."""

from __future__ import annotations

from typing import Any

try:
    from assay.metrics.contributions import contributions, decisions
except ImportError:

    def contributions(*args: Any) -> Any:
        return None

    def decisions(*args: Any) -> Any:
        return None


try:
    from assay.meter.intervals import Interval, bootstrap, closed_forms
except ImportError:
    Interval = Any  # type: ignore

    def bootstrap(*args: Any) -> Any:
        return {}

    def closed_forms(*args: Any) -> Any:
        return {}
