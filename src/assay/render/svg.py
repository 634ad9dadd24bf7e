"""Charts as SVG to stand inside a page: text stays text, and colours follow the page, light or dark.

`vl-convert` runs Vega-Lite here, so the picture is what the page draws again when it comes alive.
"""

from __future__ import annotations

import html
import re

from assay.errors import needing
from assay.render.charts import chart, still
from assay.render.plots import Drawing
from assay.render.text import clean

VEGA_LITE = "6.4"
"""The version that draws charts here and in the page."""


def to_svg(plot: Drawing) -> str:
    """Draw a plot.

    Args:
        plot: what to draw.

    Returns:
        An ``<svg>`` element that fills the width it is given, with its summary as accessible name.
    """
    with needing("vl_convert", "pages", "HTML pages"):
        import vl_convert

    drawn = vl_convert.vegalite_to_svg(still(chart(plot)), vl_version=VEGA_LITE)
    head, _, rest = drawn.partition(">")
    view = re.search(r'viewBox="[\d. -]+"', head)
    assert view, head
    label = html.escape(clean(f"{plot.name}: {plot.summary()}"))
    return f'<svg {view[0]} role="img" aria-label="{label}">{rest.strip()}'
