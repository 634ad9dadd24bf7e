"""Values as JSON with a schema and a digest, and the same refusals for all that is read again."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from assay._sealed import sealed
from assay.errors import StateError, describe
from assay.report.plain import Plain, encode


def to_json(value: Plain, schema: str) -> str:
    """A value as JSON; ``schema`` becomes its first entry, and the digest of the whole its second."""
    text = json.dumps(sealed({"schema": schema} | encode(value)), indent=1, allow_nan=False)
    # A series of numbers belongs on one line. Strings hold no line break (it is written \\n): only lists match.
    return re.sub(r"\[\n[^\[\]{}\"]*\]", lambda series: " ".join(series[0].split()), text) + "\n"


def read_json(text: str, where: str, schema: str) -> Any:
    """What `to_json` wrote, without its schema and its digest.

    Args:
        text: the JSON.
        where: what to call it in messages, mostly the name of the file.
        schema: the one that can be read.

    Raises:
        StateError: the text was cut short or changed, is nothing of ours, or has another schema.
    """
    kind = schema.removeprefix("assay.").partition("/")[0]
    try:
        data = json.loads(text)
        expected = sealed(data)["digest"] if isinstance(data, dict) else None
    except (ValueError, RecursionError) as error:
        got = f"JSON that ends or breaks at character {getattr(error, 'pos', 0):,} of {len(text):,}"
        do = f"The file was cut short or changed: write the {kind} again"
        raise StateError(describe(where, got, f"a whole {kind}", do)) from error
    found = data.pop("schema", None) if isinstance(data, dict) else None
    if found != schema:
        do = f"Read it with the version of assay that wrote it, or write the {kind} again"
        raise StateError(describe(where, f"schema {found!r:.80}", f"schema {schema!r}", do))
    digest = data.pop("digest", None)
    if digest != expected:
        got = "no digest" if digest is None else f"digest {digest!r:.40}"
        do = f"The file was changed after it was written: make the {kind} again"
        raise StateError(describe(where, got, f"digest {expected!r}, that of its content", do))
    return data


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file.

    Raises:
        StateError: it is not UTF-8.
        OSError: it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        do = "Check the path"
        raise FileNotFoundError(
            describe(os.fspath(path), str(error.strerror), "a file that assay reads", do)
        ) from error
    except UnicodeDecodeError as error:
        do = "Name a file that assay wrote"
        raise StateError(describe(os.fspath(path), "bytes that are not UTF-8", "a report in JSON", do)) from error
