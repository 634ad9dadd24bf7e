"""Files and folders: reading them as Python does, and writing them whole or not at all."""

from __future__ import annotations

import difflib
import io
import os
import shutil
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from assay._atomic import write_whole
from assay.errors import ConfigError, describe
from assay.migrate.rewriting import RewriteResult, rewrite

_NOT_OURS = ("__pycache__", "node_modules", "site-packages", "build", "dist")


@dataclass(frozen=True)
class FileMigration:
    """One file: what becomes of it, or why it could not be read.

    Attributes:
        path: the file.
        encoding: of its text.
        result: before, after and notes; None where it could not be read.
        error: why not.
    """

    path: Path
    encoding: str
    result: RewriteResult | None
    error: str = ""

    @property
    def changed(self) -> bool:
        """Whether something changes."""
        return self.result is not None and self.result.before != self.result.after

    def diff(self) -> str:
        """What changes, as a unified diff; empty where nothing does."""
        if self.result is None or not self.changed:
            return ""
        before, after = (each.splitlines(keepends=True) for each in (self.result.before, self.result.after))
        lines, name = [], self.path.as_posix().lstrip("/")
        for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"):
            text = line.rstrip("\r\n")
            lines.append(text if line != text else f"{text}\n\\ No newline at end of file")
        return "\n".join(lines) + "\n"


def migrate(path: str | os.PathLike[str], known: Mapping[str, int] | None = None) -> Iterator[FileMigration]:
    """What becomes of a Python file, or of all in a folder; nothing is written.

    Args:
        path: a file or a folder; hidden folders, environments and builds in it are left out.
        known: what holds for all metrics: `num_classes`, `num_labels`, `num_outputs`.

    Raises:
        ConfigError: there is no such file, or it is no Python.
    """
    start = Path(path)
    if not start.exists():
        raise ConfigError(describe("path", f"{start}, which is not there", "a file or a folder", "Name one that is"))
    if start.is_file() and start.suffix not in (".py", ".pyi"):
        do = "Name a .py file; of a notebook, export one first"
        raise ConfigError(describe("path", str(start), "Python, a .py file", do))
    for each in [start] if start.is_file() else sorted(_inside(start)):
        yield _migrated(each, known)


def _inside(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        left_out = [each for each in folders if each.startswith(".") or each in _NOT_OURS]
        left_out += [each for each in folders if (Path(root) / each / "pyvenv.cfg").exists()]
        folders[:] = [each for each in folders if each not in left_out]
        yield from (Path(root) / each for each in names if each.endswith(".py"))


def _migrated(path: Path, known: Mapping[str, int] | None) -> FileMigration:
    try:
        raw = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return FileMigration(path, encoding, rewrite(raw.decode(encoding), known))
    except (SyntaxError, UnicodeDecodeError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        return FileMigration(path, "", None, f"is no Python that can be read{where}: {getattr(error, 'msg', error)}")
    except OSError as error:
        return FileMigration(path, "", None, f"cannot be read: {error.strerror or error}")


def write(migration: FileMigration) -> None:
    """Write a changed file, whole or not at all, with the encoding, ends of lines and permissions that it had.

    Raises:
        OSError: it cannot be written; it is then as it was.
    """
    if migration.result is None or not migration.changed:
        return
    content, path = migration.result.after.encode(migration.encoding), migration.path.resolve()

    def fill(part: Path) -> None:
        part.write_bytes(content)
        shutil.copymode(path, part)

    write_whole(path, fill)
