"""Which file has the results of one run of another tool."""

from __future__ import annotations

from pathlib import Path

from assay.errors import ConfigError, describe
from assay.render.text import first_names

_SHOWN = 3


def results_file(path: Path, pattern: str, what: str, do: str) -> Path:
    """The path of a file, or the only file of a pattern in a folder and the folders below.

    Args:
        path: a file or a folder.
        pattern: of names, such as `results_*.json`.
        what: what is looked for, for messages.
        do: how it is made, for messages.

    Raises:
        ConfigError: there is no such file, or there are several.
    """
    if path.is_file():
        return path
    found = sorted(path.rglob(pattern)) if path.is_dir() else []
    if len(found) == 1:
        return found[0]
    if not found:
        got = f"a folder without {pattern}" if path.is_dir() else "no such file"
        raise ConfigError(describe(str(path), got, what, do))
    got = f"{len(found)} results ({first_names((each.relative_to(path) for each in found), _SHOWN)})"
    raise ConfigError(describe(str(path), got, "those of one run", "Name one of the files"))
