"""A document as one HTML page that needs nothing else: styles, scripts and plots are inside it.

All text is escaped by Jinja, or stands in JSON, which the script shows as text. The page's security policy forbids
every load from elsewhere and every script but the two written here, whose hashes it names, so that even text that
slipped through could not run. Without JavaScript the page has its pictures and the first rows of its tables.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from itertools import count
from typing import Any

from assay._records import CellValue
from assay.errors import needing
from assay.render import text
from assay.render.chart_parts import line_style
from assay.render.charts import chart
from assay.render.document import DataGrid, Document, Figures, Gallery, GridCell, TokenStrips, spans
from assay.render.library import library, pack
from assay.render.live_grids import SHOWN, grid_json, page_parts, tones, whisker
from assay.render.pictures import Picture, PictureBox, colors_of
from assay.render.plots import Curves, Distribution, Drawing
from assay.render.svg import to_svg
from assay.render.token_strips import DARKEST
from assay.render.trends import Trend


def to_html(
    document: Document, sheets: Mapping[str, Document] | None = None, view: Mapping[str, Any] | None = None
) -> str:
    """Draw a document as a page.

    Args:
        document: what to draw.
        sheets: further documents by their ids, letters and digits: a link to an id shows one of them instead. Their
            plots are drawn by the script alone.
        view: what the script needs to filter and compare runs, as JSON.

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
    template = environment.get_template("body.html")
    live = _Live()

    def body(document: Document, prefix: str = "") -> Markup:
        written = template.render(
            document=document,
            prefix=prefix,
            has_pictures=not prefix,
            contents=_contents(document, prefix),
            draw=lambda plot: Markup(to_svg(plot)),
            live=live,
            legend=_legend,
            labelled=labelled,
            colors_of=lambda gallery: colors_of([tile.picture for tile in gallery.tiles]),
            page_parts=page_parts,
            whisker=whisker,
            tones=tones,
            shown_rows=SHOWN,
            zip=zip,
            darkest=int(DARKEST),
            block_kind=lambda block: type(block).__name__,
        )
        return Markup(written)

    index = body(document)
    pages = {key: body(sheet, key) for key, sheet in (sheets or {}).items()}
    script = "\n".join(map(_part, ("page.js", "view.js") if view else ("page.js",)))
    used = library() if live.charts else None
    return environment.get_template("page.html").render(
        title=document.title,
        body=index,
        sheets=pages,
        style=Markup(_part("page.css")),  # ours, not the document's
        script=Markup(script),
        hashes=[_hash(script), *([used.sha256] if used else [])],
        library=used.packed if used else "",
        data=Markup(live.data(view)),
    )


@dataclass
class _Live:
    """What the script of a page makes live: charts and the rows of long grids, by their keys."""

    charts: dict[str, Any] = field(default_factory=dict)
    grids: dict[str, Any] = field(default_factory=dict)
    keys: Iterator[int] = field(default_factory=count)

    def key(self) -> str:
        """Letters and digits that nothing else on the page has."""
        return f"k{next(self.keys)}"

    def chart(self, plot: Drawing) -> str:
        """The key under which the script finds a chart."""
        key = self.key()
        self.charts[key] = chart(plot)
        return key

    def grid(self, grid: DataGrid) -> str:
        """The key under which the script finds the rows of a long grid; empty for one whose rows are all shown."""
        if len(grid.rows) <= SHOWN:
            return ""
        key = self.key()
        self.grids[key] = grid_json(grid)
        return key

    def data(self, view: Mapping[str, Any] | None) -> str:
        """All of it as JSON that can stand in a page, or compressed where it is long."""
        parts = {"charts": self.charts, "grids": self.grids} | ({"view": view} if view else {})
        data = json.dumps(parts, separators=(",", ":"), allow_nan=False)
        return data.replace("<", "\\u003c") if len(data) < _LONG else pack(data)


_LONG = 200_000  # bytes of data from which compressing them is worth it


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


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


def _contents(document: Document, prefix: str) -> list[list[tuple[str, str, str]]]:
    """The links at the head of a page, a list a chapter: id, text and CSS class; empty for a page without parts."""
    titled = [(i, chapter) for i, chapter in enumerate(document.chapters, 1) if chapter.title]
    has_chapters = len(titled) > 1
    lists = []
    for i, chapter in titled:
        parts = [(f"{prefix}s{i}", chapter.title, "section")] if has_chapters else []
        for k, block in enumerate(chapter.blocks, 1):
            if isinstance(block, Figures) and not block.on_page_only:
                parts.append((f"{prefix}s{i}-{k}", "Plots", ""))
            elif isinstance(block, DataGrid | Gallery | TokenStrips) and block.name:
                parts.append((f"{prefix}s{i}-{k}", block.name, ""))
        lists.append(parts)
    if all(len(parts) == 1 for parts in lists):
        lists = [[part for (part,) in lists]]
    return lists if has_chapters or sum(map(len, lists)) > 2 else []


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
