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
from benchmarks.proof.outcomes import has_fingerprint, outcomes
from tally_laws import TALLY_CASES

STRIKES = (None, 1, 2, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take one of so many cases")
    parser.add_argument("--missed", action="store_true", help="name what was missed")
    options = parser.parse_args()
    counts: Counter[tuple[str, bool, bool, str]] = Counter()
    with pretend("mps"):
        for case in [case for case in TALLY_CASES if not case.raw][:: options.every]:
            for kind, strikes, each in outcomes(case, KINDS, STRIKES):
                counts[kind.name, each.counts, has_fingerprint(case), each.result] += 1
                if options.missed and each.result == "missed" and each.counts and has_fingerprint(case):
                    print(f"missed: {kind.name}, call {strikes}: {case}"[:200], file=sys.stderr)
    print(table(counts), end="")


def table(counts: Counter[tuple[str, bool, bool, str]]) -> str:
    """The table of docs/proof.md, and how many faults there were."""
    lines = [
        "| fault | where | changed counts | found by laws | by laws or fingerprints | reported as invalid | missed |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    places = {
        (True, True): "while counting, with a fingerprint",
        (True, False): "while counting, without one",
        (False, True): "before it, with a fingerprint",
        (False, False): "before it, without one",
    }
    for kind in KINDS:
        for place, text in places.items():
            law, fingerprint, reported, missed = (
                counts[kind.name, *place, result] for result in ("law", "fingerprint", "reported", "missed")
            )
            if law + fingerprint + reported + missed:
                cells = law + fingerprint + reported + missed, law, law + fingerprint, reported, missed
                lines.append(f"| {kind.name} | {text} | {' | '.join(f'{cell:,}' for cell in cells)} |")
    fired = sum(count for key, count in counts.items() if key[-1] != "no fault")
    refused = sum(count for key, count in counts.items() if key[-1] == "refused")
    same = sum(count for key, count in counts.items() if key[-1] == "unchanged")
    lines.append(f"\n{fired:,} faults: {refused:,} ended in another error, {same:,} changed nothing that is counted.")
    return "\n".join(lines) + f" torch {torch.__version__}.\n"


if __name__ == "__main__":
    main()
