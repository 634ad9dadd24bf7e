"""assay measures PyTorch models and gives the same, right number on every device."""

from __future__ import annotations

__version__ = "0.1.0"

__all__: list[str] = []
