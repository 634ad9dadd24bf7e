"""kornia's test suite on a pretend mps, against what the same tests did on a real Mac.

kornia keeps a list of the tests that fail on a hosted Mac, each with the exact type of its exception
(``testing/known_failure_xfails/mps_float32.txt``; all others pass there or are skipped). This runs its suite with
``pytest --assay-pretend mps`` and compares. What fails here on the CPU, too, says nothing of the device and is left out
(a package or a download that is missing). kornia and pytest-timeout must be installed; the release of torch is
the one that the list names, or its facts: ``ASSAY_PRETEND_TORCH=2.9``.

python -m benchmarks.calibration.kornia CLONE [--manifest FILE] [--listed] [tests/geometry ...]
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.calibration import stream

MANIFEST = "testing/known_failure_xfails/mps_float32.txt"
TOGETHER = 12  # files of tests in one process
SECONDS = 600  # for one test, on a machine that may be busy
SETTINGS = {"KORNIA_TEST_OPTIMIZER": "", "KORNIA_TEST_IN_SUBPROCESS": "1"}  # without tests of torch.compile
REFUSALS = ("NotImplementedError", "TypeError")
OUTCOMES = {
    "same type": "fails on the Mac, and here with an exception of the same type",
    "other type": "fails on both, with exceptions of different types",
    "passes here": "fails on the Mac only",
    "passes": "passes on both",
    "fails here": "passes on the Mac only",
    "left out": "skipped here, or fails here on the CPU, too",
}
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """What became of the tests: by outcome, those that the list names by type, and what differs."""

    counts: dict[str, int]
    listed: dict[str, dict[str, int]]  # by the type of the exception on the Mac
    differ: list[tuple[str, str, str, str]]  # outcome, test, the type on the Mac, what happened here

    @property
    def passing(self) -> float:
        """The share of the tests that pass on the Mac that pass here."""
        return _share(self.counts["passes"], self.counts["fails here"])

    @property
    def refusals(self) -> float:
        """The share of the refusals on the Mac that have the same type here."""
        counts = collections.Counter(kind for each in REFUSALS for kind in _repeated(self.listed.get(each, {})))
        return _share(counts["same type"], counts["other type"] + counts["passes here"])


def _repeated(counts: dict[str, int]) -> Iterable[str]:
    return collections.Counter(counts).elements()


def _share(right: int, wrong: int) -> float:
    return right / (right + wrong) if right + wrong else float("nan")


def manifest(text: str) -> dict[str, str]:
    """The tests that fail on the Mac, with the type of the exception."""
    lines = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return {test: error for error, test in lines}


def compare(found: Iterable[Outcome], on_cpu: dict[str, str], listed: dict[str, str]) -> Comparison:
    """What was found on the pretend device, with the outcomes on the CPU by name, against the list."""
    counts = dict.fromkeys(OUTCOMES, 0)
    by_type: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    differ = []
    for one in found:
        expected = listed.get(one["test"], "")
        outcome = _outcome(one, expected, on_cpu.get(_name_on_cpu(one["test"]), "passed"))
        counts[outcome] += 1
        if expected:
            by_type[expected][outcome] += 1
        if outcome in ("other type", "passes here", "fails here"):
            differ.append((outcome, one["test"], expected, f"{one['error'] or 'passes'}: {one['text']}"))
    return Comparison(counts, {kind: dict(each) for kind, each in by_type.items()}, differ)


def _outcome(one: Outcome, expected: str, on_cpu: str) -> str:
    if one["outcome"] in ("skipped", "xfailed") or (one["outcome"] == "failed" and on_cpu != "passed"):
        return "left out"
    if one["outcome"] == "passed":
        return "passes here" if expected else "passes"
    if not expected:
        return "fails here"
    return "same type" if one["error"] == expected else "other type"


def _name_on_cpu(test: str) -> str:
    return re.sub(r"\[mps\b", "[cpu", test)


def run(clone: Path, tests: Sequence[str], device: str, out: Path) -> list[Outcome]:
    """Run tests or files of them, some files in a process; those that ``out`` already names are not run again."""
    done = read(out)
    begun = {one["test"].partition("::")[0] for one in done} | {one["test"] for one in done}
    todo = [test for test in tests if test not in begun]
    files = list(dict.fromkeys(test.partition("::")[0] for test in todo))
    for some in _batched(files, TOGETHER):
        only = [test for test in todo if "::" in test and test.partition("::")[0] in some]
        with out.open("a", encoding="utf-8") as file:
            file.write(_one_process(clone, some, only, device, out))
        print(f"\r{device}: {len(read(out))} tests", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return read(out)


def _one_process(clone: Path, files: Sequence[str], only: Sequence[str], device: str, out: Path) -> str:
    part, chosen = out.with_suffix(".part").resolve(), out.with_suffix(".only").resolve()
    part.unlink(missing_ok=True)
    chosen.write_text("\n".join(only), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", __package__ + ".outcomes"]
    command += ["--device", device, "--dtype", "float32", f"--timeout={SECONDS}", *files]
    command += ["--assay-pretend", device] if device != "cpu" else []
    here = (os.path.abspath(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder)
    path = os.pathsep.join([str(clone), str(Path.cwd()), *here])
    settings = {"OUTCOMES": str(part), "ONLY": str(chosen) if only else "", "PYTHONPATH": path, **SETTINGS}
    said = subprocess.run(command, cwd=clone, env=os.environ | settings, capture_output=True, text=True)
    if said.returncode not in (0, 1, 5):  # all passed, some failed, no tests
        print(said.stdout[-2000:], file=sys.stderr)
    return part.read_text("utf-8") if part.exists() else ""


def _batched(values: Sequence[str], count: int) -> Iterable[Sequence[str]]:
    return (values[i : i + count] for i in range(0, len(values), count))


def read(file: Path) -> list[Outcome]:
    """The outcomes in a file; the last one of each test."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return list({one["test"]: one for one in map(json.loads, lines)}.values())


def files_of(clone: Path, paths: Sequence[str]) -> list[str]:
    """All files of tests in some folders."""
    found = (file for path in paths for file in ([clone / path] if path.endswith(".py") else (clone / path).rglob("*")))
    return sorted(str(file.relative_to(clone)) for file in found if re.fullmatch(r"test_\w+\.py", file.name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, help="a checkout of kornia")
    parser.add_argument("paths", nargs="*", default=["tests"], help="folders and files of tests")
    parser.add_argument("--manifest", type=Path, help="the list of a Mac, if it is not the checkout's own")
    parser.add_argument("--listed", action="store_true", help="run only the tests that the list names")
    asked = parser.parse_intermixed_args()
    clone = asked.clone.resolve()
    listed = manifest((asked.manifest or clone / MANIFEST).read_text("utf-8"))
    stream.RESULTS.mkdir(parents=True, exist_ok=True)
    name = f"kornia_{torch.__version__}_as_{os.environ.get('ASSAY_PRETEND_TORCH', 'installed')}"
    tests = [test for test in listed if (clone / test.partition("::")[0]).exists()]
    tests = tests if asked.listed else files_of(clone, asked.paths)
    found = run(clone, tests, "mps", stream.RESULTS / f"{name}{'_listed' * asked.listed}.jsonl")
    failed = [_name_on_cpu(one["test"]) for one in found if one["outcome"] == "failed"]
    on_cpu = run(clone, failed, "cpu", stream.RESULTS / f"{name}_cpu.jsonl")
    show(compare(found, {one["test"]: one["outcome"] for one in on_cpu}, listed))


def show(result: Comparison) -> None:
    """Print the counts, and each test that differs."""
    for outcome, test, expected, here in result.differ:
        print(f"{outcome:12} {test} {expected}\n             {here}")
    for name, text in OUTCOMES.items():
        print(f"{result.counts[name]:6} {name}: {text}")
    for error, counts in result.listed.items():
        print(f"{error} on the Mac: {counts}")
    print(f"pass on both: {result.passing:.2%}; refusals of the same type: {result.refusals:.2%}")


if __name__ == "__main__":
    main()
