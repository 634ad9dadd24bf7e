"""The releases of torch and Python that the tests were run with: of any other one line says so, once."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from assay._cache import cache_folder

TRIED = {
    "torch": ("2.6", "2.8", "2.9", "2.10", "2.13", "2.14", "2.15"),
    "Python": ("3.11", "3.12", "3.13", "3.14"),
}
"""Releases with which ``make test-torch`` passed, and those of Python; CONTRIBUTING.md says on which builds."""


@cache
def report_untried() -> None:
    """Say once on this machine, on the error stream, that the installed release of torch or Python was not tried.

    Where there is no cache folder to remember it in, it is said once in each process.
    """
    for name, release in _installed().items():
        if release not in TRIED[name] and _is_new(f"{name}-{release}"):
            print(
                f"assay: not tried with {name} {release}; tried: {', '.join(TRIED[name])}", file=sys.stderr, flush=True
            )


def _installed() -> dict[str, str]:
    python = {"Python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    try:
        return python | {"torch": ".".join(version("torch").split(".")[:2])}
    except PackageNotFoundError:  # built from source and not installed as a package
        return python


def _is_new(release: str) -> bool:
    """Whether nobody was told yet."""
    folder = cache_folder()
    try:
        if folder is not None:
            (folder / f"{release}-is-untried").touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # a full or read-only disk
        return True
    return True
