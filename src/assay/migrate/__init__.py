"""From TorchMetrics, Ignite and TorchEval to assay: the tables, and what changes files by them."""

from __future__ import annotations

from assay.migrate.files import FileMigration, migrate, write
from assay.migrate.rewrite import Note, RewriteResult, rewrite
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
