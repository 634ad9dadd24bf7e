"""Audits packages that use torch: ``python -m benchmarks.packages_audited run|reproduce|page``.

``run RESULTS DRIVER ...`` runs the cases of drivers, such as ``drivers/piq.py``, whose packages are installed, and
appends what was found to a file of JSON lines, from which it goes on. ``reproduce [PACKAGE ...]`` runs what is written
to reproduce each finding. ``page [RESULTS ...]`` writes the page and the texts for issues, and counts the calls in the
results anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.packages_audited import findings, page


def main(what: str, *arguments: str) -> int:
    """Do what the first argument says."""
    if what == "run":
        from benchmarks.packages_audited.run import run_drivers

        run_drivers(*map(Path, arguments))
        return 0
    if what == "reproduce":
        from benchmarks.packages_audited.reproduce import wrong

        differences = list(wrong(list(arguments)))
        for package, finding, text in differences:
            print(f"{package.name}: {finding.line}: {text}")
        return int(bool(differences))
    if arguments:
        findings.summarize([Path(each) for each in arguments])
    page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
