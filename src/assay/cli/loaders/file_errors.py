"""Whatever packages raise that read files, as one error that names the file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from assay.errors import AssayError, StateError, describe


@contextmanager
def reading(where: object, expected: str, do: str = "Save it again") -> Iterator[None]:
    """Report an error inside as a file that cannot be read.

    A damaged file can raise anything: errors of zip, zlib, JSON, Unicode, pickle, of memory that a wrong size asks for.

    Args:
        where: the file, or what in it.
        expected: what it should hold.
        do: what the user can do.

    Raises:
        StateError: something inside raised; errors of assay pass.
    """
    try:
        yield
    except AssayError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        got = f"a file that cannot be read ({type(error).__name__}: {reason})"
        raise StateError(describe(str(where), got, expected, do)) from error


def check(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Read an entry of a zip file to its end, where its checksum is looked at, in little memory.

    Raises:
        Exception: whatever `zipfile` raises where it is damaged.
    """
    with archive.open(entry) as file:
        while file.read(1 << 20):
            pass
