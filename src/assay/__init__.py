"""assay measures PyTorch models and gives the same, right number on every device.

The names below are imported when they are first used, so that ``import assay`` and ``assay --help`` cost nothing.
"""

from __future__ import annotations

from assay._lazy import attach

__version__ = "0.1.0"

# Add a name in three places: here in order, in _HOMES, and below TYPE_CHECKING for type checkers.
__all__: list[str] = []

_HOMES: dict[str, str] = {}  # public name -> module

__getattr__, __dir__ = attach(__name__, _HOMES)
