"""Merkle trees (RFC 6962, section 2.1): one hash of many entries, and proofs that an entry is among them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence


def leaf_hash(entry: bytes) -> bytes:
    """The hash of one entry."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two hashes."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def merkle_root(entries: Iterable[bytes]) -> bytes:
    """The root of the tree over entries in their order; the hash of nothing without entries.

    Example:
        >>> merkle_root([b"a", b"b"]) == node_hash(leaf_hash(b"a"), leaf_hash(b"b"))
        True

    Source: B. Laurie, A. Langley, E. Kasper, RFC 6962 (2013), section 2.1, https://www.rfc-editor.org/rfc/rfc6962.
    """
    hashes = [leaf_hash(entry) for entry in entries]
    while len(hashes) > 1:
        hashes = _parents(hashes)
    return hashes[0] if hashes else hashlib.sha256().digest()


def merkle_path(entries: Iterable[bytes], index: int) -> list[bytes]:
    """The hashes that make the root of an entry, from the leaves up: RFC 6962, section 2.1.1."""
    hashes, path = [leaf_hash(entry) for entry in entries], []
    while len(hashes) > 1:
        if (sibling := index ^ 1) < len(hashes):
            path.append(hashes[sibling])
        hashes, index = _parents(hashes), index // 2
    return path


def root_of_path(entry: bytes, index: int, count: int, path: Sequence[bytes]) -> bytes | None:
    """The root that a path gives for an entry at `index` of `count`; None where there is no such place or path."""
    if not 0 <= index < count:
        return None
    found, rest = leaf_hash(entry), list(path)
    while count > 1:
        if index ^ 1 < count:
            if not rest:
                return None
            sibling = rest.pop(0)
            found = node_hash(sibling, found) if index % 2 else node_hash(found, sibling)
        index, count = index // 2, (count + 1) // 2
    return None if rest else found


def _parents(hashes: Sequence[bytes]) -> list[bytes]:
    """The level above; the last of an odd number moves up as it is."""
    pairs = [node_hash(left, right) for left, right in zip(hashes[::2], hashes[1::2], strict=False)]
    return pairs + list(hashes[-1:] if len(hashes) % 2 else [])
