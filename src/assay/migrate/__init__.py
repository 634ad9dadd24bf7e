"""From TorchMetrics, Ignite and TorchEval to assay: the tables, and what changes files by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.migrate.files import FileMigration, migrate, write
    from assay.migrate.rewriting import Note, RewriteResult, rewrite
    from assay.migrate.table import LIBRARIES, LibraryTable, library

__all__ = [
    "LIBRARIES",
    "FileMigration",
    "LibraryTable",
    "Note",
    "RewriteResult",
    "library",
    "migrate",
    "rewrite",
    "write",
]

_HOMES = {
    **dict.fromkeys(("FileMigration", "migrate", "write"), "assay.migrate.files"),
    **dict.fromkeys(("Note", "RewriteResult", "rewrite"), "assay.migrate.rewriting"),
    **dict.fromkeys(("LIBRARIES", "LibraryTable", "library"), "assay.migrate.table"),
}
__getattr__, __dir__ = attach(__name__, _HOMES)
