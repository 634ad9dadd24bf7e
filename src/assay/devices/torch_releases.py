"""The releases of torch that the tests were run with: of any other one line says so, once."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from assay._cache import cache_folder

TRIED = ("2.6", "2.9", "2.13", "2.14", "2.15")
"""Releases with which ``make test-torch`` passed; CONTRIBUTING.md says on which builds."""


@cache
def report_untried() -> None:
    """Say once on this machine, on the error stream, that the installed release of torch was not tried.

    Where there is no cache folder to remember it in, it is said once in each process.
    """
    try:
        release = ".".join(version("torch").split(".")[:2])
    except PackageNotFoundError:  # built from source and not installed as a package
        return
    if release not in TRIED and _is_new(release):
        print(f"assay: not tried with torch {release}; tried: {', '.join(TRIED)}", file=sys.stderr, flush=True)


def _is_new(release: str) -> bool:
    """Whether nobody was told yet."""
    folder = cache_folder()
    try:
        if folder is not None:
            (folder / f"torch-{release}-is-untried").touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # a full or read-only disk
        return True
    return True
