"""Runs checks of a device and prints a line a check: ``python -m assay.conformance.worker DEVICE FIRST``."""

from __future__ import annotations

import json
import os
import sys

from assay._records import encode
from assay.conformance.checks import checks_for
from assay.conformance.running import outcomes_here


def main(device: str, first: str) -> None:
    """Print the outcome of each check from a number on; what libraries print goes to the error stream."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for outcome in outcomes_here(checks_for(device)[int(first) :], device):
            print(json.dumps(encode(outcome)), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
