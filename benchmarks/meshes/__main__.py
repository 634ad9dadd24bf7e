"""Run every configuration with assay, some with other libraries, and write docs/meshes.md."""

from __future__ import annotations

import argparse
import sys

from benchmarks.meshes.cases import CONFIGURATIONS, case_of, label
from benchmarks.meshes.groups import results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="configurations whose name has this in it")
    options = parser.parse_args()
    chosen = [each for each in CONFIGURATIONS if options.only in label(each)]
    found = results(
        [case_of(label(each)) for each in chosen], case_of, lambda text: print(text, file=sys.stderr, flush=True)
    )


if __name__ == "__main__":
    main()
