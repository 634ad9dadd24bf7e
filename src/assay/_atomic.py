"""Writing a file so that it is whole or not there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def write_whole(path: str | os.PathLike[str], fill: Callable[[Path], object]) -> Path:
    """Write a file so that a crash leaves the old one or the new one, never a part.

    A new file beside it is filled, reaches the disk, and then takes the name in one step.

    Args:
        path: where to; folders that are missing are made.
        fill: writes the whole content to the path that it is given.

    Returns:
        The path written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        fill(part)
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text as UTF-8, whole or not at all."""
    return write_whole(path, lambda part: part.write_text(text, encoding="utf-8", newline="\n"))
