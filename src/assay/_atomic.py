"""Paths and URLs, writing a file so that it is whole or not there, and one error for what cannot be read."""

from __future__ import annotations

import functools
import os
import re
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from assay._remote import URL, RemotePath
from assay.errors import AssayError, ConfigError, StateError, describe

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_FOLDER, _LOCK = "assay-", ".assay-lock"

Location: TypeAlias = Path | RemotePath
"""A path on this machine, or a URL."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # such as s3://; a path drops the second slash
_HERE = re.compile(r"(file|local)://(?=/)")


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
    text = _text(what, path)
    if _URL.match(text):
        do = "Pass a local or mounted path, and copy files from or to elsewhere"
        raise ConfigError(describe(what, repr(text), "a path on this machine, as URLs are not supported", do))
    return Path(text)


def location(what: str, path: object) -> Location:
    """A path on this machine, or a URL that fsspec opens; ``file://`` is on this machine.

    Raises:
        ConfigError: it is empty, a URL that lost a slash, or no path at all.

    Example:
        >>> location("--out", "s3://bucket/run"), str(location("--out", "file:///tmp/run"))
        (RemotePath('s3://bucket/run'), '/tmp/run')
    """
    text = _HERE.sub("", _text(what, path))
    if URL.match(text):
        return RemotePath(text)
    if match := _URL.match(text):
        do = f"Write {match[0]}/, and pass it as a string: a Path drops a slash"
        raise ConfigError(describe(what, repr(text), "a path, or a URL with two slashes", do))
    return Path(text)


def _text(what: str, path: object) -> str:
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    if not text or "\0" in text:
        raise ConfigError(describe(what, repr(path), "a path", "Name a file or folder"))
    return text


def prepare_folder(what: str, folder: Location, expected: str = "a folder") -> None:
    """Make a folder, or check that there is a store to write to, before anything is measured.

    Args:
        what: the argument that names it, for the error.
        folder: the folder.
        expected: what it is for, for the error.

    Raises:
        ConfigError: it is a file, or cannot be made.
    """
    try:
        if isinstance(folder, RemotePath):
            folder.prepare()
        else:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "is no folder" if isinstance(error, FileExistsError) else f"cannot be made ({error.strerror or error})"
        raise ConfigError(describe(what, f"{folder}, which {why}", expected, "Name another one")) from error


def files_in(folder: Location, pattern: str, *, recursive: bool = False) -> list[Location]:
    """The files in a folder whose names fit a pattern, in order."""
    if isinstance(folder, RemotePath):
        return [*folder.files(pattern, recursive=recursive)]
    return [*sorted(folder.rglob(pattern) if recursive else folder.glob(pattern))]


@contextmanager
def local_copy(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file on this machine: the file itself, or a copy of that at a URL, which is deleted at the end."""
    where = location("path", path)
    if isinstance(where, Path):
        yield where
        return
    with tempfile.TemporaryDirectory(prefix="assay-", ignore_cleanup_errors=True) as folder:
        yield where.download(Path(folder, where.name))


def temporary_folder(owner: object) -> Path:
    """A new folder on this machine, which is deleted with its owner, or when the process ends.

    One that a killed process left is deleted by the next process that makes one: a process holds a lock on each of its
    folders, which the system releases however it ends.
    """
    _remove_left_folders()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    lock = _locked(folder)
    weakref.finalize(owner, _remove, folder, os.getpid(), lock)
    return folder


@functools.cache
def _remove_left_folders() -> None:
    """Delete the folders of this user whose processes were killed; once in a process."""
    if fcntl is None:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with suppress(OSError), open(folder / _LOCK, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused where its process works
            shutil.rmtree(folder)


def _locked(folder: Path) -> IO[bytes] | None:
    """An open file in a folder, on which this process has a lock; None where the system has no such locks."""
    if fcntl is None:
        return None
    lock = open(folder / f"{_LOCK}.new", "wb")  # noqa: SIM115 - open as long as the folder is there
    with suppress(OSError):  # a file system without locks: then there is no file by which the folder could be deleted
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.replace(lock.name, folder / _LOCK)  # nobody sees it before it is locked
    return lock


def _remove(folder: Path, process: int, lock: IO[bytes] | None) -> None:
    """Delete a folder; a process that was forked from the one that made it leaves it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        lock.close()


def link_or_copy(path: Path, into: Path) -> None:
    """Put a file at another path, too, without a copy where the system can."""
    try:
        os.link(path, into)
    except OSError:
        shutil.copyfile(path, into)


def kept_copy(path: RemotePath, owner: object) -> Path:
    """A copy on this machine of a file at a URL, which is deleted with its owner, or when the process ends."""
    return path.download(temporary_folder(owner) / path.name)


def write_whole(path: str | os.PathLike[str], fill: Callable[[Path], object]) -> Location:
    """Write a file so that a crash leaves the old one or the new one, never a part.

    A new file beside it is filled, reaches the disk, and then takes the name in one step. For a URL the new file is on
    this machine until it is whole; where the store refuses it, it stays there and the error names it.

    Args:
        path: where to, on this machine or at a URL; folders that are missing are made.
        fill: writes the whole content to the path that it is given.

    Returns:
        The path written.

    Raises:
        ConfigError: it is a folder.
        OSError: the system or the store refuses; the old file is as it was.
    """
    where = location("path", path)
    return _uploaded(where, fill) if isinstance(where, RemotePath) else _replaced(where, fill)


def _replaced(path: Path, fill: Callable[[Path], object]) -> Path:
    if path.is_dir():
        raise ConfigError(describe("path", f"{path}, which is a folder", "a file", "Name a file in it"))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        fill(part)
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename in (part, str(part)):
            error.filename = str(path)  # the name that was asked for
        with suppress(OSError):
            part.unlink()
        raise
    return path


def _uploaded(path: RemotePath, fill: Callable[[Path], object]) -> RemotePath:
    folder = Path(tempfile.mkdtemp(prefix="assay-"))
    is_full = False
    try:
        fill(folder / path.name)
        is_full = True
        path.upload(folder / path.name)
    except BaseException as error:
        if not (is_full and isinstance(error, OSError)):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return path


def write_text(path: str | os.PathLike[str], text: str) -> Location:
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
