"""Metrics of assay by name, wherever they live."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

import assay.metrics
from assay.metrics.base import Metric


@cache
def _homes() -> dict[str, type[Metric]]:
    modules = [importlib.import_module(m.name) for m in pkgutil.iter_modules(assay.metrics.__path__, "assay.metrics.")]
    return {name: thing for module in modules for name, thing in vars(module).items() if isinstance(thing, type)}


def metric(name: str, **fields: Any) -> Metric:
    """The metric of this name with these fields."""
    return _homes()[name](**fields)
