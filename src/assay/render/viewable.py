"""What can be shown: from one document, terminal output, Markdown and HTML."""

from __future__ import annotations

import os
from typing import Any

from assay._atomic import Location, write_text
from assay.render.document import Document


class Viewable:
    """What can be shown: a subclass gives a document, and has its terminal output, Markdown and HTML from it."""

    pipe_width: int | None = None
    """The width of the terminal output where it is no terminal; that of the console by default."""

    def to_document(self) -> Document:
        """The document that is shown."""
        raise NotImplementedError

    def to_markdown(self) -> str:
        """It as Markdown, for a pull request or a model card."""
        from assay.render.markdown import to_markdown

        return to_markdown(self.to_document())

    def to_html(self, path: str | os.PathLike[str]) -> Location:
        """Write it as one HTML page that needs nothing else: no network, no script from elsewhere.

        Args:
            path: the file, on this machine or at a URL.
        """
        from assay.render.html import to_html

        return write_text(path, to_html(self.to_document()))

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame as high as it is."""
        from assay.render.html import to_frame

        return to_frame(self.to_document())

    def show(self) -> None:
        """Print it to the terminal; plain text where the output is not one."""
        from assay.render.terminal import show

        show(self.to_document(), pipe_width=self.pipe_width)

    def __str__(self) -> str:
        """It as plain text of 80 columns."""
        return self.to_text(80).strip("\n")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows in a terminal."""
        printer.text(str(self))

    def to_text(self, width: int = 100) -> str:
        """It as plain text of a width."""
        from assay.render.terminal import to_text

        return to_text(self.to_document(), width)
