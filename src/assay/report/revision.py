"""The git commit of the working directory, read once a process: what a report says of the code that made it."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

WAIT_S = 2.0


def revision() -> tuple[str, bool | None]:
    """The commit that is checked out here, and whether files that git knows were changed.

    It never fails: without git, a repository or an answer within seconds the parts are empty and None.
    """
    try:
        folder = Path.cwd()
        inside = any((each / ".git").exists() for each in (folder, *folder.parents))
    except OSError:
        return "", None
    return _revision(str(folder)) if inside else ("", None)


@functools.cache
def _revision(folder: str) -> tuple[str, bool | None]:
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if not commit:
        return "", None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules")
    return commit.strip(), None if changed is None else bool(changed.strip())


def _git(folder: str, *arguments: str) -> str | None:
    """What git prints; None where it fails. It writes no lock, and runs no monitor of files."""
    command = ["git", "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WAIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
