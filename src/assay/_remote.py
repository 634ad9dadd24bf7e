"""Paths at URLs, read and written through fsspec: the part of `pathlib.Path` that assay needs."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from assay.errors import AssayError, ConfigError, MissingDependencyError, describe

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_READ_ONLY = ("http", "https", "github", "git", "zip", "tar", "data")
_BUCKETS = ("s3", "s3a", "gs", "gcs")
_ATOMIC = (*_BUCKETS, "az", "abfs", "abfss", "adl", "oci", "oss", "hf")
"""Where an object that is being written is seen when it is whole, so that nothing must be renamed."""


class RemotePath(os.PathLike[str]):
    """A file or folder at a URL.

    Args:
        url: such as ``s3://bucket/run``; fsspec says which there are.

    Example:
        >>> folder = RemotePath("s3://bucket/run/")
        >>> str(folder / "report.json"), folder.name, (folder / "report.json").suffix, str(folder.parent)
        ('s3://bucket/run/report.json', 'run', '.json', 's3://bucket')
    """

    def __init__(self, url: str) -> None:
        self._protocol, _, inside = url.partition("://")
        self._inside = inside.rstrip("/")

    def __fspath__(self) -> str:
        return f"{self._protocol}://{self._inside}"

    def __str__(self) -> str:
        return self.__fspath__()

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __lt__(self, other: RemotePath) -> bool:
        return str(self) < str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self._inside.rpartition("/")[2]

    @property
    def shown(self) -> str:
        """The URL as messages show it."""
        return without_password(str(self))

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return Path(self.name).suffix

    @property
    def parent(self) -> RemotePath:
        """The folder that it is in."""
        return RemotePath(f"{self._protocol}://{self._inside.rpartition('/')[0]}")

    def exists(self) -> bool:
        """Whether there is such a file or folder now."""
        with self._errors("read") as (store, path):
            store.invalidate_cache()
            return bool(store.exists(path))

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        if self._protocol in ("http", "https"):
            return False  # fsspec would take a page with links for one
        with self._errors("read") as (store, path):
            return bool(store.isdir(path))

    def is_file(self) -> bool:
        """Whether it is a file."""
        with self._errors("read") as (store, path):
            return bool(store.isfile(path))

    def read_bytes(self) -> bytes:
        """The content.

        Raises:
            OSError: the store refuses or cannot be reached; FileNotFoundError where there is no such file.
        """
        with self._errors("read") as (store, path):
            return bytes(store.cat_file(path))

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The content as text."""
        return self.read_bytes().decode(encoding, errors)

    def head(self, size: int) -> bytes:
        """The first bytes."""
        with self._errors("read") as (store, path), store.open(path, "rb") as file:
            return bytes(file.read(size))

    def download(self, target: Path) -> Path:
        """Copy the file to this machine."""
        with self._errors("read") as (store, path):
            store.get_file(path, os.fspath(target))
        return target

    def files(self, pattern: str = "*", *, recursive: bool = False) -> list[RemotePath]:
        """The files in the folder whose names fit a pattern, in order; none where there is no such folder."""
        with self._errors("read") as (store, path):
            store.invalidate_cache()
            found = store.find(path, maxdepth=None if recursive else 1)
            return sorted(self / _below(path, each) for each in found if fnmatch.fnmatch(Path(each).name, pattern))

    def matches(self) -> list[RemotePath]:
        """The files that the URL stands for as a pattern, in order."""
        parts = str(self).split("/")
        first = next((k for k, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        folder = RemotePath("/".join(parts[:first]))
        with self._errors("read") as (store, path):
            store.invalidate_cache()
            inside = "/".join(path.split("/")[: first - len(parts)]) if first < len(parts) else path
            return sorted(folder / _below(inside, each) for each in store.glob(path))

    def prepare(self) -> None:
        """Make the folder, or check that its bucket is there; nobody wants to learn that after an hour of measuring.

        Raises:
            OSError: the store refuses or cannot be reached.
            ConfigError: nothing can be written there.
        """
        with self._errors("write") as (store, path):
            self._check_writable()
            if self._protocol in _BUCKETS:
                bucket = path.partition("/")[0]
                with suppress(PermissionError):  # to write objects takes other rights than to see a bucket
                    if not store.exists(bucket):
                        raise FileNotFoundError(f"no bucket {bucket}")
            elif self._protocol not in _ATOMIC:
                store.makedirs(path, exist_ok=True)

    def upload(self, source: Path) -> None:
        """Write a file of this machine so that others see the old one or the new one, never a part.

        Raises:
            OSError: the store refuses or cannot be reached; the old file and the source are as they were.
        """
        with self._errors("write", f"What was to be written is in {source}") as (store, path):
            self._check_writable()
            if self._protocol in _ATOMIC:
                store.put_file(os.fspath(source), path)
                return
            folder, _, name = path.rpartition("/")
            part = f"{folder}/.{name}.{secrets.token_hex(4)}.part"
            store.makedirs(folder or "/", exist_ok=True)
            try:
                store.put_file(os.fspath(source), part)
                _move(store, part, path)
            except BaseException:
                with suppress(Exception):
                    store.rm_file(part)
                raise

    def unlink(self) -> None:
        """Delete the file."""
        with self._errors("write") as (store, path):
            store.rm_file(path)

    def _check_writable(self) -> None:
        if self._protocol in _READ_ONLY:
            do = "Name a folder on this machine, or at s3://, gs:// or another store"
            raise ConfigError(describe(str(self), f"{self._protocol}://, which is read only", "a place to write", do))

    @contextmanager
    def _errors(self, what: str, do: str = "") -> Iterator[tuple[Any, str]]:
        """The file system and the path in it; every error of a store becomes one line that names the URL."""
        try:
            yield self._opened()
        except AssayError:
            raise
        except FileNotFoundError as error:
            got = "no such bucket or folder" if what == "write" else "no such file"
            message = describe(self.shown, f"{got}{_reason(error)}", f"one to {what}", do or "Check the URL")
            raise FileNotFoundError(message) from error
        except Exception as error:
            got = f"{type(error).__name__}{_reason(error)}"
            kind = PermissionError if isinstance(error, PermissionError) else OSError
            check = "Check the URL, the credentials and the network"
            message = describe(self.shown, got, f"a store that assay can {what}", f"{do}. {check}" if do else check)
            raise kind(message) from error

    def _opened(self) -> tuple[Any, str]:
        try:
            import fsspec
        except ImportError as error:
            raise MissingDependencyError("fsspec", extra="remote", purpose="files at URLs") from error
        try:
            store, path = fsspec.core.url_to_fs(str(self))
        except ImportError as error:
            package = getattr(error.__cause__, "name", None) or error.name or f"a package for {self._protocol}"
            do = f'Run: pip install "assay[remote]" {package}'
            raise ConfigError(describe(self.shown, f"no package {package}", "it for this URL", do)) from error
        except ValueError as error:
            do = "Write s3://, gs://, hf:// or another one that fsspec has"
            raise ConfigError(describe(self.shown, f"{error}", "a URL that fsspec can open", do)) from error
        return store, str(path).rstrip("/")


def without_password(url: str) -> str:
    """A URL as reports and messages show it.

    Example:
        >>> without_password("ftp://me:secret@host/run")
        'ftp://me:***@host/run'
    """
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", url)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f" ({text[:200]})" if text else ""


def _below(folder: str, path: str) -> str:
    """A path relative to a folder of the same store."""
    return path.removeprefix(folder).lstrip("/") or path.rpartition("/")[2]


def _move(store: Any, source: str, target: str) -> None:
    """Give a file another name."""
    from fsspec import AbstractFileSystem

    if type(store).mv is not AbstractFileSystem.mv:
        store.mv(source, target)
    else:  # that one would take brackets in a name for a pattern
        store.cp_file(source, target)
        store.rm_file(source)
