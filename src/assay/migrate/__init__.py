"""From TorchMetrics, Ignite and TorchEval to assay: the tables, and what changes files by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.migrate.files import FileMigration as FileMigration
    from assay.migrate.files import migrate as migrate
    from assay.migrate.files import write as write
    from assay.migrate.rewriting import Note as Note
    from assay.migrate.rewriting import RewriteResult as RewriteResult
    from assay.migrate.rewriting import rewrite as rewrite
    from assay.migrate.table import LIBRARIES as LIBRARIES
    from assay.migrate.table import LibraryTable as LibraryTable
    from assay.migrate.table import library as library

__all__, __getattr__, __dir__ = attach(__name__)
