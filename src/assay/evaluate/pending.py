"""What is being built beside this; goes when it is there."""

from __future__ import annotations

from typing import Any

try:
    from assay.meter.intervals import Interval, bootstrap, closed_forms
except ImportError:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Interval:
        lower: float
        upper: float
        level: float
        method: str

    def bootstrap(*args: Any) -> Any:
        return {}

    def closed_forms(*args: Any) -> Any:
        return {}
