"""Where derived tables and compiled engines are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """The folder for what can be made again: ``ASSAY_CACHE``, or ``assay`` in the user's cache folder.

    Returns:
        A folder that exists and can be written, or ``None``: then nothing is cached.
    """
    chosen = os.environ.get("ASSAY_CACHE")
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(chosen) if chosen else Path(base) / "assay"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a file in its place, no permission; a user without a home
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None
