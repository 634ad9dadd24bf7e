"""From TorchMetrics, Ignite and TorchEval to assay: the tables, and what changes files by them."""

from __future__ import annotations

from assay.migrate.files import Migrated, migrate, write
from assay.migrate.rewrite import Note, Rewritten, rewrite
from assay.migrate.table import LIBRARIES, LibraryTable, library

__all__ = ["LIBRARIES", "LibraryTable", "Migrated", "Note", "Rewritten", "library", "migrate", "rewrite", "write"]
