"""What is shown: one document model, and the terminal, Markdown and HTML made from it.

A report, a comparison, a gate, a plan or an audit is turned into a `Document` once. `assay.render.terminal`,
`assay.render.markdown` and `assay.render.html` render it. Importing this needs neither torch nor anything that draws.
"""

from __future__ import annotations

from assay.render.document import (
    Block,
    Bullets,
    Chapter,
    DataGrid,
    Document,
    Figures,
    Fold,
    Gallery,
    GridCell,
    GridColumn,
    GridRow,
    KeyValues,
    Line,
    Notes,
    Number,
    Numbers,
    Paragraph,
    Span,
    Tile,
    TokenStrips,
)
from assay.render.viewable import Viewable

__all__ = [
    "Block",
    "Bullets",
    "Chapter",
    "DataGrid",
    "Document",
    "Figures",
    "Fold",
    "Gallery",
    "GridCell",
    "GridColumn",
    "GridRow",
    "KeyValues",
    "Line",
    "Notes",
    "Number",
    "Numbers",
    "Paragraph",
    "Span",
    "Tile",
    "TokenStrips",
    "Viewable",
]
