"""What is shown: one document model, and the terminal, Markdown and HTML made from it.

A report, a comparison, a gate, a plan or an audit is turned into a `Document` once. `assay.render.terminal`,
`assay.render.markdown` and `assay.render.html` render it. Importing this needs neither torch nor anything that draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.render.document import Block as Block
    from assay.render.document import Bullets as Bullets
    from assay.render.document import Chapter as Chapter
    from assay.render.document import DataGrid as DataGrid
    from assay.render.document import Document as Document
    from assay.render.document import Figures as Figures
    from assay.render.document import Fold as Fold
    from assay.render.document import Gallery as Gallery
    from assay.render.document import GridCell as GridCell
    from assay.render.document import GridColumn as GridColumn
    from assay.render.document import GridRow as GridRow
    from assay.render.document import KeyValues as KeyValues
    from assay.render.document import Line as Line
    from assay.render.document import Notes as Notes
    from assay.render.document import Number as Number
    from assay.render.document import Numbers as Numbers
    from assay.render.document import Paragraph as Paragraph
    from assay.render.document import Span as Span
    from assay.render.document import Tile as Tile
    from assay.render.document import TokenStrips as TokenStrips
    from assay.render.viewable import Viewable as Viewable

__all__, __getattr__, __dir__ = attach(__name__)
