"""``assay merge``: the parts of a table that were counted apart become one report."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence

from assay._atomic import Location
from assay._remote import RemotePath
from assay.cli.options.measurement import MergeCommand
from assay.cli.score import measure_table
from assay.errors import ConfigError, describe
from assay.scoring.partial import merge


def run(options: MergeCommand) -> None:
    """Add up the parts, write the report where a folder was named, and print it."""
    measure_table(lambda: merge(map(os.fspath, _files(options.parts))).checked_report(), options)


def _files(written: Sequence[Location]) -> Iterator[Location]:
    """The files of the parts. A pattern at a URL stands for all files that match it, as no shell replaces it."""
    for each in written:
        if not (isinstance(each, RemotePath) and glob.has_magic(str(each))):
            yield each
            continue
        found = each.matches()
        if not found:
            do = "Check the URL; assay score --part writes part-1-of-2.safetensors"
            raise ConfigError(describe(str(each), "no file that matches", "the files of all parts", do))
        yield from found
