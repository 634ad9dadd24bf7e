"""Values as JSON with a schema, and the same refusals for all that is read again."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from assay.errors import StateError, describe
from assay.report.plain import Plain, encode


def to_json(value: Plain, schema: str) -> str:
    """A value as JSON; ``schema`` becomes its first entry."""
    text = json.dumps({"schema": schema} | encode(value), indent=1, allow_nan=False)
    # A series of numbers belongs on one line. Strings hold no line break (it is written \\n): only lists match.
    return re.sub(r"\[\n[^\[\]{}\"]*\]", lambda series: " ".join(series[0].split()), text) + "\n"


def read_json(text: str, where: str, schemas: tuple[str, ...]) -> Any:
    """What `to_json` wrote, without its schema.

    Args:
        text: the JSON.
        where: what to call it in messages, mostly the name of the file.
        schemas: those that can be read, the present one last.

    Raises:
        StateError: the text was cut short, is nothing of ours, or has another schema.
    """
    kind = schemas[-1].removeprefix("assay.").partition("/")[0]
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        got = f"JSON that ends or breaks at character {getattr(error, 'pos', 0):,} of {len(text):,}"
        do = f"The file was cut short or changed: write the {kind} again"
        raise StateError(describe(where, got, f"a whole {kind}", do)) from error
    found = data.pop("schema", None) if isinstance(data, dict) else None
    if found not in schemas:
        do = f"Read it with the version of assay that wrote it, or write the {kind} again"
        expected = " or ".join(map(repr, schemas))
        raise StateError(describe(where, f"schema {found!r:.80}", f"schema {expected}", do))
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
