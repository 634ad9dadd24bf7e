"""The JavaScript library that draws charts in a page: Vega-Lite, which `vl-convert` carries, made into one script."""

from __future__ import annotations

import base64
import gzip
import hashlib
from contextlib import suppress
from functools import cache
from importlib import resources
from importlib.metadata import version
from typing import NamedTuple

from assay._atomic import write_text
from assay._cache import cache_folder
from assay.errors import needing
from assay.render.svg import VEGA_LITE


class Library(NamedTuple):
    """A script, compressed as a page holds it, and the digest by which the page's policy allows it."""

    packed: str
    sha256: str


@cache
def library() -> Library:
    """The script that defines ``assayEmbed``, which draws a chart of Vega-Lite in an element.

    Making it takes seconds, so it is kept in the cache folder.
    """
    with needing("vl_convert", "pages", "HTML pages"):
        import vl_convert

    folder = cache_folder()
    file = None if folder is None else folder / f"page-library-{version('vl-convert-python')}-{VEGA_LITE}.js"
    script = ""
    if file is not None:
        with suppress(OSError, UnicodeDecodeError):
            script = file.read_text(encoding="utf-8")
    if not script:
        bundle = vl_convert.javascript_bundle("globalThis.assayEmbed = vegaEmbed;", vl_version=VEGA_LITE)
        licences = resources.files("assay.render").joinpath("page", "library_licences.txt").read_text(encoding="utf-8")
        script = f"/*\n{licences}*/\n(() => {{{bundle}}})();"
        if file is not None:
            with suppress(OSError):
                write_text(file, script)
    return Library(pack(script), base64.b64encode(hashlib.sha256(script.encode()).digest()).decode())


def pack(text: str) -> str:
    """Text as base64 of gzip, the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
