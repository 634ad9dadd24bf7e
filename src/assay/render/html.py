"""A document as one HTML page that needs nothing else: styles, script and plots are inside it.

All text is escaped by Jinja. The page's security policy forbids every load from elsewhere and every script but the one
written here, whose hash it names, so that even text that slipped through could not run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
from importlib import resources
from itertools import count

from assay._records import CellValue
from assay.errors import needing
from assay.render import text
from assay.render.document import DataGrid, Document, Figures, Gallery, GridCell, TokenStrips, spans
from assay.render.pictures import Picture, PictureBox, colors_of
from assay.render.plots import Curves, Distribution, Drawing
from assay.render.svg import line_style, to_svg
from assay.render.token_strips import DARKEST
from assay.render.trends import Trend


def to_html(document: Document) -> str:
    """Draw a document as a page.

    Args:
        document: what to draw.

    Returns:
        A whole HTML document: light or dark as the reader's system is, fit for a phone and for paper.

    Example:
        >>> to_html(Document("my <model>")).splitlines()[0]
        '<!doctype html>'
    """
    with needing("jinja2", "pages", "HTML pages"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("assay.render", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(clean=text.clean, number=text.number, spans=spans, sort_key=_sort_key, kind=_kind)
    keys = count()
    script = _part("page.js")
    return environment.get_template("page.html").render(
        document=document,
        contents=_contents(document),
        style=Markup(_part("page.css")),  # ours, not the document's
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        draw=lambda plot: Markup(to_svg(plot, f"p{next(keys)}")),
        key=lambda: f"k{next(keys)}",
        legend=_legend,
        labelled=labelled,
        colors_of=lambda gallery: colors_of([tile.picture for tile in gallery.tiles]),
        whisker=whisker,
        zip=zip,
        darkest=int(DARKEST),
        block_kind=lambda block: type(block).__name__,
    )


def to_frame(document: Document) -> str:
    """Draw a document as a page in a frame, whose styles meet nobody else's: what a notebook shows.

    The frame is as high as its page, which is light or dark as what is behind the frame. Where no script may run, it
    has a fixed height and scrolls.

    Example:
        >>> to_frame(Document("digits")).startswith('<iframe srcdoc="&lt;!doctype html&gt;')
        True
    """
    page, script = html.escape(to_html(document)), html.escape(_part("frame.js"))
    style = "width: 100%; height: 36rem; border: 0; resize: vertical"
    return f'<iframe srcdoc="{page}" style="{style}" onload="{script}"></iframe>'


def _part(name: str) -> str:
    return resources.files("assay.render").joinpath("page", name).read_text(encoding="utf-8").strip()


def _contents(document: Document) -> list[list[tuple[str, str, str]]]:
    """The links at the head of a page, a list a chapter: id, text and CSS class; empty for a page without parts."""
    titled = [(i, chapter) for i, chapter in enumerate(document.chapters, 1) if chapter.title]
    has_chapters = len(titled) > 1
    lists = []
    for i, chapter in titled:
        parts = [(f"s{i}", chapter.title, "section")] if has_chapters else []
        for k, block in enumerate(chapter.blocks, 1):
            if isinstance(block, Figures) and not block.on_page_only:
                parts.append((f"s{i}-{k}", "Plots", ""))
            elif isinstance(block, DataGrid | Gallery | TokenStrips) and block.name:
                parts.append((f"s{i}-{k}", block.name, ""))
        lists.append(parts)
    return lists if has_chapters or sum(map(len, lists)) > 2 else []


def whisker(cell: GridCell) -> dict[str, float] | None:
    """Where to draw a value and its interval on a line of 100 units with 0 in the middle; None without interval.

    Each has a scale of its own, as differences of an accuracy and of a price do not share one, unless its cell has a
    reach.

    Example:
        >>> whisker(GridCell(span=(-0.1, 0.3, 0.1)))
        {'x1': 34.0, 'x2': 98.0, 'x': 66.0}
    """
    reach = (cell.reach or max(map(abs, cell.span))) if cell.span else 0.0
    if not cell.span or not reach or not all(map(math.isfinite, cell.span)):
        return None
    return {name: round(50 + 48 * value / reach, 2) for name, value in zip(("x1", "x2", "x"), cell.span, strict=True)}


def _legend(plot: Drawing) -> list[tuple[str, str, str, str]]:
    """For each line of a plot of several: ink, dashes, name, area or size."""
    if isinstance(plot, Distribution) and len(plot.series) > 1:
        return [(*line_style(i), each.name, f"n = {sum(each.counts):,}") for i, each in enumerate(plot.series)]
    if isinstance(plot, Trend) and len(plot.lines) > 1:
        names = [f"data {i + 1}" for i in range(len(plot.lines))]
        return [(*line_style(i), name, f"{len(plot.lines[i]):,} runs") for i, name in enumerate(names)]
    if not isinstance(plot, Curves) or len(plot.curves) < 2:
        return []
    areas = ["" if curve.area is None else text.number(curve.area) for curve in plot.curves]
    return [(*line_style(i), curve.name, areas[i]) for i, curve in enumerate(plot.curves)]


def labelled(picture: Picture) -> list[PictureBox]:
    """The detections whose labels can be written: those that would lie on the label of a better one cannot.

    Example:
        >>> import numpy as np
        >>> near = [PictureBox(10 + x, 10, 90, 90, "cat", 0.9 - x / 10) for x in range(3)]
        >>> [box.score for box in labelled(Picture.of("", np.zeros((100, 100), np.uint8), near))]
        [0.9]
    """
    unit = max(picture.width, picture.height) / 100
    written: list[PictureBox] = []
    for box in sorted((box for box in picture.boxes if box.score is not None), key=lambda box: -(box.score or 0)):
        if all(abs(box.left - each.left) > 40 * unit or abs(box.top - each.top) > 8 * unit for each in written):
            written.append(box)
    return written


def _kind(cell: GridCell, column_kind: str) -> str:
    """The CSS class of a cell: numbers to the right, bit patterns in a fixed pitch."""
    if isinstance(cell.value, str):
        return "bits" if cell.value.startswith(("0x", "-0x")) else "text"
    return column_kind


def _sort_key(value: CellValue) -> str:
    return "" if value is None or isinstance(value, str) else repr(value)
