"""``assay view``: many stored reports as one page."""

from __future__ import annotations

import sys

from assay.cli.declaration import same_named
from assay.cli.options.reports import ViewCommand
from assay.cli.output import print_path
from assay.report.many_reports.collection import collect


def run(options: ViewCommand) -> None:
    """Read reports, and write one page of all of them."""
    found = collect(options.reports, **same_named(collect, options))
    path = found.to_html(options.html)
    for line in found.history.not_read:
        print(f"not read: {line}", file=sys.stderr)
    print_path(path)
