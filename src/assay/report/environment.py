"""The versions that a result depends on, without places or names of machines."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

_PACKAGES = ("assay", "torch", "numpy")


def environment() -> dict[str, str]:
    """The versions that a reader needs to get the same numbers, read without importing anything.

    Returns:
        Names and versions: Python, the system, the processor's kind, and the packages that are installed.

    Example:
        >>> sorted(environment())[-1]
        'torch'
    """
    versions = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    return versions | _versions_of_packages()


@cache
def _versions_of_packages() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
