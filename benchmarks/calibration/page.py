"""The numbers of docs/calibration.md, from what the other scripts kept in build/calibration."""

from __future__ import annotations

import collections
import datetime
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch

from assay.devices.kinds import ACCELERATORS as DEVICES
from benchmarks.calibration import compare, dtypes, errors, mps_lists, operators, stream
from benchmarks.harness import RESULTS

PAGE = Path("docs/calibration.md")
MARK = re.compile(r"<!-- begin: (\w+) -->.*?<!-- end: \1 -->", re.DOTALL)


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [[str(cell) for cell in row] for row in rows]
    numbers = [all(row[i][:1].isdigit() for row in cells) for i in range(len(header))]
    lines = [header, ["--:" if number else "---" for number in numbers], *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _short(text: str) -> str:
    return text[:150].replace("|", "\\|") + ("…" if len(text) > 150 else "")


def about() -> str:
    return f"Numbers of {datetime.date.today().isoformat()}, torch {torch.__version__}, native engine."


def _shares(kind: str) -> list[list[str]]:
    rows = []
    for device in (*DEVICES, "cuda_python"):
        results = stream.kept(f"{kind}_{device}")
        if results is None:
            continue
        counts = operators.summary(results)
        cells = [f"{counts['operators'][outcome]}" for outcome in operators.OUTCOMES]
        share = operators.share_equal(counts["samples"])
        rows.append([_named(device), *cells, f"{share:.2%}", f"{sum(counts['samples'].values()):,}"])
    return rows


def _named(device: str) -> str:
    return {"cuda": "`cuda:1`", "cuda_python": "`cuda:1` (Python engine)"}.get(device, f"`{device}`")


def values() -> str:
    header = ["", *operators.OUTCOMES, "samples equal", "samples"]
    legend = "\n".join(f"- *{name}*: {text}." for name, text in operators.OUTCOMES.items())
    parts = ["Operators:", _table(header, _shares("operators")), "Modules, in training mode:"]
    return "\n\n".join([*parts, _table(header, _shares("modules")), legend])


def unequal() -> str:
    """Every operator and module that is not equal, where, and why; what mps lacks has a section of its own."""
    found: dict[tuple[str, str], tuple[list[str], str]] = {}
    for device in (*DEVICES, "cuda_python"):
        for kind in ("operators", "modules"):
            for one in stream.kept(f"{kind}_{device}") or []:
                elsewhere = one["outcome"] == "refused" and device == "mps"
                if one["outcome"] not in (*operators.GOOD, "no reference") and not elsewhere:
                    found.setdefault((one["name"], one["outcome"]), ([], one["why"]))[0].append(_named(device))
    rows = [[f"`{name}`", outcome, ", ".join(on), _short(why)] for (name, outcome), (on, why) in found.items()]
    return _table(["", "outcome", "on", "why (on the first of them)"], rows)


def expected_errors() -> str:
    rows, wrong = [], []
    for device in DEVICES:
        results = stream.kept(f"errors_{device}") or []
        counts = collections.Counter(kind for one in results for kind in one.get("samples", ["crash"]))
        rows.append([_named(device), *(counts[kind] for kind in errors.OUTCOMES)])
        wrong += [
            [_named(device), f"`{one['name']}`", one["outcome"], _short(one["why"])]
            for one in results
            if one["outcome"] not in ("same", "no reference") and "not currently implemented" not in one["why"]
        ]
    return "\n\n".join([_table(["", *errors.OUTCOMES], rows), _table(["", "operator", "outcome", "why"], wrong)])


def declared_dtypes() -> str:
    rows = []
    for device in ("cuda", "xpu", "mps"):
        results = stream.kept(f"dtypes_{device}") or []
        for dtype in dtypes.DTYPES:
            name = str(dtype).removeprefix("torch.")
            counts = collections.Counter(one.get("dtypes", {}).get(name) for one in results)
            rows.append([_named(device), name, *(counts[kind] for kind in dtypes.KINDS)])
    legend = "\n".join(f"- *{name}*: {text}." for name, text in dtypes.KINDS.items())
    return "\n\n".join([_table(["", "dtype", *dtypes.KINDS], rows), legend])


def missing_on_mps() -> str:
    agreement, why = mps_lists.settled()
    known = mps_lists.REASONS
    counts = _table(
        ["", "expected to fail", "not expected to fail"],
        [
            ["raises on pretend `mps`", len(agreement.both), len(agreement.refused_only)],
            ["runs on pretend `mps`", len(agreement.listed_only), len(agreement.neither)],
        ],
    )
    rows = [
        [f"`{name}`", "raises, not expected", _short(known.get(name) or why[name])] for name in agreement.refused_only
    ]
    rows += [[f"`{name}`", "runs, expected to fail", known.get(name, "unexplained")] for name in agreement.listed_only]
    return "\n\n".join([counts, _table(["", "", "why"], rows)])


def expected_by_tests() -> str:
    rows, apart = [], []
    for device in DEVICES:
        probed = stream.kept(f"probe_{device}")
        if probed is None:
            continue
        verdicts = compare.against_tests(probed["answers"], probed["about"]["device"])
        counts = collections.Counter(verdict for verdict, _, _ in verdicts)
        rows.append([_named(device), len(probed["answers"]), len(verdicts), *(counts[one] for one in compare.VERDICTS)])
        apart += [
            [_named(device), name, verdict, _short(answers)]
            for verdict, name, answers in verdicts
            if verdict in ("disagree", "other text")
        ]
    parts = [_table(["", "questions", "with an expectation", *compare.VERDICTS], rows)]
    if apart:
        parts.append(_table(["", "question", "verdict", "expected, and found"], apart))
    return "\n\n".join(parts)


def overhead() -> str:
    file = RESULTS / "pretend_overhead.md"
    return "\n".join(file.read_text("utf-8").splitlines()[2:]).strip() if file.exists() else "Not measured."


SECTIONS: dict[str, Callable[[], str]] = {
    "about": about,
    "values": values,
    "unequal": unequal,
    "errors": expected_errors,
    "dtypes": declared_dtypes,
    "mps": missing_on_mps,
    "tests": expected_by_tests,
    "overhead": overhead,
}


FED_BY = {"dtypes": ("dtypes",), "errors": ("errors",), "probe": ("tests",)}  # the sections of one script alone


def write(page: Path = PAGE, sections: Iterable[str] = ()) -> None:
    """Put fresh numbers between the marks of the page, or of some sections."""
    text, chosen = page.read_text("utf-8"), tuple(sections) or tuple(SECTIONS)
    fresh = MARK.sub(lambda found: _section(found[1]) if found[1] in chosen else found[0], text)
    page.write_text(fresh, "utf-8")


def _section(name: str) -> str:
    return f"<!-- begin: {name} -->\n\n{SECTIONS[name]()}\n\n<!-- end: {name} -->"


def keep_probe(device: str, text: str) -> None:
    """Keep what `probe` printed for a device."""
    stream.keep(f"probe_{device}", json.loads(text))
