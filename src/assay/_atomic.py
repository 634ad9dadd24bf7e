"""Paths on this machine, writing a file so that it is whole or not there, and one error for what cannot be read."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.errors import AssayError, ConfigError, StateError, describe

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # such as s3://; a path drops the second slash


def local_path(what: str, path: object) -> Path:
    """A path on this machine.

    Raises:
        ConfigError: it is a URL, empty, or no path at all.

    Example:
        >>> local_path("--out", "s3://bucket/run")
        Traceback (most recent call last):
        ...
        assay.errors.ConfigError: --out: got 's3://bucket/run', expected a path on this machine, as URLs are not \
supported. Pass a local or mounted path, and copy files from or to elsewhere.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    if not text or "\0" in text:
        raise ConfigError(describe(what, repr(path), "a path", "Name a file or folder on this machine"))
    if _URL.match(text):
        do = "Pass a local or mounted path, and copy files from or to elsewhere"
        raise ConfigError(describe(what, repr(text), "a path on this machine, as URLs are not supported", do))
    return Path(text)


def write_whole(path: str | os.PathLike[str], fill: Callable[[Path], object]) -> Path:
    """Write a file so that a crash leaves the old one or the new one, never a part.

    A new file beside it is filled, reaches the disk, and then takes the name in one step.

    Args:
        path: where to; folders that are missing are made.
        fill: writes the whole content to the path that it is given.

    Returns:
        The path written.

    Raises:
        ConfigError: the path is a URL.
    """
    path = local_path("path", path)
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


@contextmanager
def reading(
    where: object, expected: str, do: str = "Save it again", what: str = "a file that cannot be read"
) -> Iterator[None]:
    """Report an error inside as a file that cannot be read.

    A damaged file can raise anything: errors of zip, zlib, JSON, Unicode, pickle, of memory that a wrong size asks for.

    Args:
        where: the file, or what in it.
        expected: what it should hold.
        do: what the user can do.
        what: what it is then called.

    Raises:
        StateError: something inside raised; errors of assay pass.
    """
    try:
        yield
    except AssayError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        got = f"{what} ({type(error).__name__}: {reason})"
        raise StateError(describe(str(where), got, expected, do)) from error
