"""JSON documents that hold a digest of themselves, so that a changed value is told when they are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """A document with the digest of all other entries under ``digest``.

    It is BLAKE2b of the entries as JSON with sorted keys and no spaces: indenting a file anew keeps it, changing a
    value does not. It tells of mistakes and damage, and is no signature.

    Args:
        data: what JSON holds; an old digest is replaced.

    Example:
        >>> sealed({"schema": "assay.report/3", "title": "digits"})["digest"]
        'd2db93292d1d23c3eec2248539b49ed3'
    """
    content = {name: value for name, value in data.items() if name != "digest"}
    written = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    first = {"schema": content["schema"]} if "schema" in content else {}  # which readers look at before anything else
    return first | {"digest": hashlib.blake2b(written, digest_size=16).hexdigest()} | content


def is_sealed(data: Any) -> bool:
    """Whether a document is a mapping that has the digest of its content.

    Example:
        >>> is_sealed(sealed({"a": 1})), is_sealed({"a": 1})
        (True, False)
    """
    return isinstance(data, dict) and "digest" in data and sealed(data)["digest"] == data["digest"]
