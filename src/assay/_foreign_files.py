"""Files that another distribution has put into this package: some install a package of the same name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path

from assay.errors import describe

OWN = frozenset(
    (
        *("__init__.py", "__main__.py", "_atomic.py", "_cache.py", "_foreign_files.py", "_lazy.py", "_records.py"),
        *(
            "_remote.py",
            "audit",
            "cli",
            "compat",
            "conformance",
            "data",
            "decide.py",
            "devices",
            "encode",
            "errors.py",
            "evaluation",
        ),
        *("huggingface.py", "integrations", "language", "meter", "metrics", "migrate", "native", "pretend"),
        *("progress.py", "py.typed", "quantize", "render", "report", "scoring", "selftest.py", "stability", "stats"),
        *("tally", "triton_kernels", "verify", "wrappers", "__pycache__"),
    )
)
"""What is in the folder of this package."""


def foreign_files(folder: Path = Path(__file__).parent) -> list[str]:
    """What is in a folder of this package and not of it; caches and hidden files are left out.

    Args:
        folder: the folder.
    """
    return sorted(each.name for each in os.scandir(folder) if each.name not in OWN and not each.name.startswith("."))


def about_foreign_files(names: Iterable[str]) -> str:
    """One line that says what is there, whose it is, and what to do.

    Args:
        names: what `foreign_files` found.
    """
    found = set(names)
    owners = {
        each.metadata["Name"]
        for each in distributions()
        if any(
            file.parts[:1] == ("assay",) and file.parts[1] in found for file in each.files or () if len(file.parts) > 1
        )
    }
    whose = f" of {', '.join(sorted(owners))}" if owners else ", of another distribution"
    do = "Install one of the two in an environment of its own: each may replace files of the other"
    return describe("assay", f"{', '.join(sorted(found))}{whose} in its package", "its own files alone", do)
