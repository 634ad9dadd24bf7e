"""How often each interval covers, and how often each test errs where models are equally good: docs/coverage.md.

Run: ``python -m benchmarks.coverage`` (a quarter of an hour of one core), or one part of it, such as ``labels``. The
page is written from the parts that were run. ``--share 0.1`` takes a tenth of the draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.coverage import decisions, detections, labels, moments, samples, scores
from benchmarks.coverage.rows import SIZES, measured
from benchmarks.harness import RESULTS

PAGE = Path("docs/coverage.md")
PARTS = {"labels": labels.rows, "scores": scores.rows, "samples": samples.rows, "moments": moments.rows}
OTHERS = {"detections": detections.table, "decisions": decisions.table}
"""Parts whose tables have other columns."""


def table(part: str, share: float) -> Iterator[str]:
    """The lines of a part."""
    yield "| metric | samples | " + " | ".join(f"n = {size:,}" for size in SIZES) + " | † |"
    yield "|---|---|" + "--:|" * len(SIZES) + "---|"
    for row in PARTS[part]():
        cells = {size: measured(row, size, share) for size in row.sizes}
        for name in row.truth:
            own = {size: cells[size][name] for size in row.sizes}
            line = " | ".join(str(own[size]) if size in own else "" for size in SIZES)
            short = any(cell.is_short for cell in own.values())
            metric, _, how = name.partition(",")
            title = f"`{metric}`{',' if how else ''}{how}" if metric[0].isupper() else name
            yield f"| {title} | {row.about} | {line} | {row.reason if short else ''} |"


def write_page() -> None:
    """Put the parts that were run into the page, between their comments."""
    text = PAGE.read_text("utf-8")
    for part in (*PARTS, *OTHERS):
        file, start, end = RESULTS / f"coverage_{part}.md", f"<!-- {part} -->\n\n", f"\n<!-- /{part} -->"
        if file.exists():
            before, after = text.split(start)[0], text.split(end)[1]
            text = f"{before}{start}{file.read_text('utf-8')}{end}{after}"
    PAGE.write_text(text, "utf-8")


def main(parts: list[str], share: float) -> None:
    """Measure parts, and write the page."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for part in parts or (*PARTS, *OTHERS):
        lines = OTHERS[part](share) if part in OTHERS else table(part, share)
        with open(RESULTS / f"coverage_{part}.md", "w", encoding="utf-8") as file:
            for line in lines:
                print(line, file=file, flush=True)
    write_page()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"{', '.join((*PARTS, *OTHERS))}; all by default")
    parser.add_argument("--share", type=float, default=1.0)
    main(**vars(parser.parse_args()))
