"""The file with the results of one run of another tool."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay.errors import ConfigError, StateError, describe
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


def task_results(file: Path, tool: str, keys: Iterable[str], do: str) -> dict[str, Any]:
    """The content of a JSON file that has `results` by the names of tasks.

    Args:
        file: the file.
        tool: which wrote it, for messages.
        keys: what else the tool writes, of which one must be there.
        do: how the file is made, for messages.

    Raises:
        StateError: the file is cut short, or of something else.
    """
    what, text = f"results of {tool}", ""
    try:
        text = file.read_text(encoding="utf-8")
        content = json.loads(text)
    except UnicodeDecodeError as error:
        raise StateError(describe(str(file), "bytes that are not UTF-8", what, do)) from error
    except (ValueError, RecursionError) as error:
        got = f"JSON that ends or breaks at character {getattr(error, 'pos', 0):,} of {len(text):,}"
        raise StateError(describe(str(file), got, f"whole {what}", do)) from error
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, dict) or not all(isinstance(each, dict) for each in results.values()):
        raise StateError(describe(str(file), "JSON without results of tasks", what, do))
    if not any(key in content for key in keys):
        raise StateError(describe(str(file), "JSON of something else", what, do))
    return dict(content)


def digest_of_data(samples: Iterable[Any]) -> str:
    """What tells the data of a run from others: a digest of what identifies each sample, as JSON."""
    digest = hashlib.sha256()
    for each in samples:
        digest.update(json.dumps(each, sort_keys=True, default=str).encode())
    return digest.hexdigest()[:16]
