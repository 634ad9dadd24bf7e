"""Which fragments of a table were counted, of which manifest, and what content their files had."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from assay.data.tables.content_digests import changed_files
from assay.errors import StateError, describe
from assay.render.text import first_names
from assay.scoring.query_rows import TableOrigin


class FragmentRecord:
    """The fragments that were counted.

    Args:
        manifest: the keys of all fragments of the table; None where that is not known.
        expected: how many rows the whole table has; 0 where that is not known.

    Attributes:
        rows: by key, how many rows each fragment had.
        contents: by file, the digest of its content, which must be the same in all partials.
        origin: where the fragments were read from; None where they cannot be read again.
    """

    def __init__(self, manifest: Sequence[str] | None = None, expected: int = 0) -> None:
        self.manifest = None if manifest is None else tuple(manifest)
        self.expected = expected
        self.rows: dict[str, int] = {}
        self.contents: dict[str, str] = {}
        self.origin: TableOrigin | None = None
        self._known_manifest: tuple[Any, str] = (None, "")
        self._known_contents = ""

    @property
    def missing(self) -> list[str]:
        """The fragments of the manifest that were not counted."""
        return [key for key in self.manifest or () if key not in self.rows]

    def begin(self, key: str) -> None:
        """Note that a fragment is counted.

        Raises:
            StateError: it was counted before.
        """
        if key in self.rows:
            do = "Count each fragment once, and merge each partial once"
            raise StateError(describe("fragments", f"{key!r} twice", "each fragment once", do))
        self.rows[key] = 0

    def add(self, other: FragmentRecord) -> None:
        """Have the fragments of another record, too, after its parts were checked."""
        self.rows |= other.rows
        self.contents |= other.contents
        self.origin = self.origin or other.origin

    def check_fragments(self, keys: Iterable[str], where: str) -> None:
        """Raise where a fragment was counted here, too."""
        if twice := sorted(self.rows.keys() & set(keys)):
            do = "Merge each partial once"
            raise StateError(describe(where, f"the fragment {twice[0]!r} twice", "each fragment once", do))

    def check_manifest(self, manifest: tuple[str, ...] | None, expected: int, where: str) -> None:
        """Take the first manifest; raise if a later one is that of another table."""
        if manifest is None or self.manifest == manifest:
            return
        if self.manifest is not None:
            raise _other_table(where)
        self.manifest, self.expected = manifest, expected

    def check_contents(self, contents: Mapping[str, str], where: str) -> None:
        """Raise where a file was written again."""
        if changed := changed_files(contents, self.contents):
            got = f"{changed[0]!r} with other content than in the partials before"
            do = "The file was written again: count all of its fragments again"
            raise StateError(describe(where, got, "one content of each file", do))

    def check_complete(self) -> None:
        """Raise where fragments of the manifest are missing, or where it lacks one.

        Raises:
            StateError: so it is.
        """
        if missing := self.missing:
            got = f"{len(missing)} of {len(self.manifest or ())} fragments not counted ({first_names(missing)})"
            raise StateError(describe("report", got, "all fragments", "Count them, and merge all partials"))
        unknown = sorted(self.rows.keys() - set(self.manifest)) if self.manifest is not None else []
        if unknown:
            do = "Merge partials of one table"
            raise StateError(describe("report", f"the fragment {unknown[0]!r}", "one of the manifest", do))

    def to_json(self) -> dict[str, Any]:
        """The fragments as plain values, with digests of the manifest and of the contents."""
        return {
            "fragments": self.rows,
            "manifest": self._manifest_digest(),
            "contents": _digest(_as_bytes(self.contents)),
            "expected": self.expected,
            "origin": None if self.origin is None else asdict(self.origin),
        }

    def tensors(self) -> dict[str, Tensor]:
        """The manifest and the contents, compressed."""
        parts = {"manifest": self.manifest, "contents": self.contents or None}
        return {name: _compressed(part) for name, part in parts.items() if part is not None}

    def add_packed(self, about: Mapping[str, Any], tensors: Mapping[str, Tensor], where: str) -> None:
        """Add what `to_json` and `tensors` gave; a manifest and contents that are known are not read again.

        Raises:
            StateError: a fragment was counted here, too; it is of another table, or of a file that was written again.
        """
        self.check_fragments(about["fragments"], where)
        if about["manifest"] is not None:
            if self.manifest is None:
                self.manifest, self.expected = tuple(_decompressed(tensors["manifest"])), about["expected"]
            if self._manifest_digest() != about["manifest"]:
                raise _other_table(where)
        if "contents" in tensors and self._known_contents != about["contents"]:
            contents = _decompressed(tensors["contents"])
            self.check_contents(contents, where)
            self.contents |= contents
            self._known_contents = about["contents"]
        self.rows |= about["fragments"]
        if self.origin is None and about["origin"] is not None:
            self.origin = TableOrigin(*map(tuple, about["origin"].values()))

    def _manifest_digest(self) -> str | None:
        if self.manifest is None:
            return None
        if self._known_manifest[0] is not self.manifest:
            self._known_manifest = self.manifest, _digest(_as_bytes(self.manifest))
        return self._known_manifest[1]


def _other_table(where: str) -> StateError:
    do = "Count all fragments of one table, and none of another"
    return StateError(describe(where, "partials of different tables", "one manifest", do))


def _as_bytes(names: Sequence[str] | Mapping[str, str]) -> bytes:
    """The names of fragments, or the digests of files, as bytes."""
    return json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()


def _digest(names: bytes) -> str:
    """What tells one manifest from another."""
    return hashlib.blake2b(names, digest_size=16).hexdigest()


def _compressed(names: Any) -> Tensor:
    return torch.frombuffer(bytearray(zlib.compress(_as_bytes(names), 1)), dtype=torch.uint8)


def _decompressed(data: Tensor) -> Any:
    return json.loads(zlib.decompress(data.numpy().tobytes()))
