"""Inject faults into a pretended device, and print which of them counts find in themselves.

`python -m benchmarks.proof` takes a few minutes; `--every 5` takes a fifth of the cases. The table is in docs/proof.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from assay.pretend import pretend
from benchmarks.proof.faults import KINDS
from benchmarks.proof.outcomes import outcomes
from tally_laws import TALLY_CASES

STRIKES = (None, 1, 2, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take one of so many cases")
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    parser.add_argument("--missed", action="store_true", help="name what was missed")
    options = parser.parse_args()
    counts: Counter[tuple[str, bool, str]] = Counter()
    with pretend("mps"):
        for case in [case for case in TALLY_CASES if not case.raw][options.first :: options.every]:
            for kind, strikes, each in outcomes(case, KINDS, STRIKES):
                counts[kind.name, each.counts, each.result] += 1
                is_missed = each.result == "missed" or (each.counts and each.result == "recount")
                if options.missed and is_missed:
                    print(f"{each.result}, {each.counts}: {kind.name}, call {strikes}: {case}"[:200], file=sys.stderr)
    print(table(counts), end="")


def table(counts: Counter[tuple[str, bool, str]]) -> str:
    """The table of docs/proof.md, and how many faults there were."""
    lines = [
        "| fault | where | changed counts | found by laws | fingerprints | recounts | reported as invalid | missed |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    places = {True: "while counting", False: "before it"}
    for kind in KINDS:
        for place, text in places.items():
            found = [
                counts[kind.name, place, result] for result in ("law", "fingerprint", "recount", "reported", "missed")
            ]
            if sum(found):
                cells = sum(found), *found
                lines.append(f"| {kind.name} | {text} | {' | '.join(f'{cell:,}' for cell in cells)} |")
    fired = sum(count for key, count in counts.items() if key[-1] != "no fault")
    refused = sum(count for key, count in counts.items() if key[-1] == "refused")
    same = sum(count for key, count in counts.items() if key[-1] == "unchanged")
    lines.append(f"\n{fired:,} faults: {refused:,} ended in another error, {same:,} changed nothing that is counted.")
    return "\n".join(lines) + f" torch {torch.__version__}.\n"


if __name__ == "__main__":
    main()
