"""The safetensors file of what was counted of some fragments: its bytes, and what other files are instead."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from assay._atomic import location
from assay.errors import AssayError, ShapeError, StateError, describe
from assay.meter.file import checksum

SCHEMA = 5
EXPECTED = "a part, which assay score --part or Partial.to_file wrote"
COUNT_AGAIN = "Count those fragments again"
_KEY, _CHECKSUM = "assay.partial", "sha256"
_PASS_PARTS = "Pass the files that assay score --part wrote, such as part-1-of-2.safetensors"


def packed(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
    """The bytes of a file with this description and these tensors."""
    text = json.dumps({"schema": SCHEMA, **about}, ensure_ascii=False)
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    return save(whole, {_KEY: text, _CHECKSUM: checksum(text, whole)})


def unpacked(data: bytes, where: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description in the bytes of a file, and its tensors, after its checksum was found to be right."""
    if data[:1] == b"{":
        got, do = _kind_of_json(data)
        raise StateError(describe(where, got, EXPECTED, do))
    try:
        tensors = load(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except SafetensorError as error:
        got = f"no whole safetensors file ({error})"
        raise StateError(describe(where, got, EXPECTED, COUNT_AGAIN)) from error
    metadata = header.get("__metadata__", {})
    if _KEY not in metadata:
        got, do = _kind_of_tensors(metadata)
        raise StateError(describe(where, got, EXPECTED, do))
    about = metadata[_KEY]
    if checksum(about, tensors) != metadata.get(_CHECKSUM):
        raise StateError(describe(where, "bytes that were changed", "those of its checksum", COUNT_AGAIN))
    values: dict[str, Any] = json.loads(about)
    if values["schema"] != SCHEMA:
        raise StateError(describe(where, f"schema {values['schema']}", f"schema {SCHEMA}", COUNT_AGAIN))
    rows = values.get("fragments")
    counts = [*rows.values(), values.get("filtered")] if isinstance(rows, dict) else [None]
    if not all(type(each) is int and 0 <= each < 1 << 63 for each in counts):
        got = "numbers of rows that are no counts"
        raise StateError(describe(where, got, "an integer of 0 or more for each fragment", COUNT_AGAIN))
    return values, tensors


@contextmanager
def reading_counts(is_of_files: bool) -> Iterator[None]:
    """Report an error inside as a part that was edited, where counts come from files: no rows give such counts."""
    if not is_of_files:
        yield
        return
    try:
        yield
    except ShapeError as error:
        raise _edited(error) from error
    except AssayError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise _edited(error) from error


def _edited(error: Exception) -> StateError:
    return StateError(describe("report", f"counts that no rows give ({error})", f"those of {EXPECTED}", COUNT_AGAIN))


def bytes_of(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file; of a folder with a report those of the report.

    Raises:
        StateError: it is another folder.
    """
    file = location("path", path)
    if not file.is_dir():
        return file.read_bytes()
    if (file / "report.json").is_file():
        return (file / "report.json").read_bytes()
    do = f"Pass the files in it: assay merge {os.fspath(path)}/*.safetensors"
    raise StateError(describe(os.fspath(path), "a folder", EXPECTED, do))


def _kind_of_json(data: bytes) -> tuple[str, str]:
    """What a JSON file is that was passed as a part, and what to do instead."""
    try:
        schema = str(json.loads(data).get("schema", ""))
    except ValueError:
        schema = ""
    if schema.startswith("assay.report/"):
        return (
            "a report, which has values and not the counts that add up",
            "Count each part of the predictions with assay score --part 1/2 --out parts (2/2, ...) and run "
            "assay merge parts/*.safetensors; assay compare shows two reports side by side",
        )
    return "a JSON file", _PASS_PARTS


def _kind_of_tensors(metadata: Mapping[str, str]) -> tuple[str, str]:
    """What a safetensors file is that was passed as a part, and what to do instead."""
    if "assay.meter" in metadata:
        do = "Add meters up in Python: Meter.from_file(a).merge(Meter.from_file(b)).compute()"
        return "the counts of a meter, which has no record of its fragments", do
    if "assay.checkpoint" in metadata:
        return "a checkpoint of assay evaluate", "Run assay evaluate again with --resume and the folder of this file"
    return "a safetensors file of something else", _PASS_PARTS
