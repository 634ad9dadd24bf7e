"""``assay catalogue``: every metric class of TorchMetrics, Ignite and TorchEval, and what it is in assay."""

from __future__ import annotations

import json
from dataclasses import asdict

from assay.cli.options.tools import CatalogueCommand
from assay.errors import ConfigError, describe
from assay.migrate.catalogue import catalogue, catalogue_document
from assay.migrate.table import LIBRARIES
from assay.render.terminal import show


def run(options: CatalogueCommand) -> None:
    """Print the catalogue."""
    unknown = [name for name in options.library if name not in LIBRARIES]
    if unknown:
        expected = f"some of {', '.join(LIBRARIES)}"
        raise ConfigError(describe("library", ", ".join(unknown), expected, "Correct the name, or leave it out"))
    rows = catalogue(options.library or LIBRARIES)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        show(catalogue_document(rows), pipe_width=160)
