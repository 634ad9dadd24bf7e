"""Run many small checks in a process of its own, so that one that ends the process costs only itself."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from assay.pretend import PretendDevice, pretend

RESULTS = Path("build/calibration")
SOURCES = ("src/assay/devices", "src/assay/pretend", "benchmarks/calibration")
PATIENCE = 120.0  # seconds of the CPU's time for one check, however busy the machine is
SILENCE = 1800.0  # seconds without a word from a process that waits for something
Result = dict[str, Any]


def check_all(
    module: str, description: str | None, names: Sequence[str], check: Callable[[int, PretendDevice | None], Result]
) -> list[Result]:
    """What the command of a list of checks does: run them on ``--device``, keep the results and give them back.

    ``check(i, pretended)`` makes the result of name ``i``; ``pretended`` is None on the CPU. The checks run in
    processes of their own (:func:`collect`), each of which comes by here, too, and ends when it has printed its part.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cuda:1")
    parser.add_argument("--engine", default="auto", choices=("auto", "native", "python"))
    parser.add_argument("--first", type=int)
    parser.add_argument("--last", type=int, default=1 << 30)
    asked = parser.parse_args()
    if asked.first is not None:
        torch.set_num_threads(1)
        place = nullcontext() if asked.device == "cpu" else pretend(asked.device, engine=asked.engine)
        with quietly(), place as pretended:
            emit(asked.first, asked.last, names, lambda i: check(i, pretended))
        sys.exit()
    kind, device = module.rpartition(".")[2], asked.device.partition(":")[0]
    name = f"{kind}_{device}{'_python' * (asked.engine == 'python')}"
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = collect(
        module, ["--device", asked.device, "--engine", asked.engine], names, RESULTS / f"{name}.part.jsonl"
    )
    keep(name, results)
    return results


def quietly() -> Any:
    """The database warns of much that is meant."""
    return warnings.catch_warnings(action="ignore")


def collect(module: str, arguments: Sequence[str], names: Sequence[str], part: Path) -> list[Result]:
    """One result for each name: ``python -m module arguments --first i --last n`` prints one line of JSON for each.

    Where the process ends or hangs, the check it was at gets the outcome ``"crash"``, and another process goes on
    behind it. ``part`` holds the results so far.
    """
    results = _begun(part, [*arguments, *names])
    with part.open("a", encoding="utf-8") as file:

        def note(result: Result) -> None:
            results.append(result)
            print(json.dumps(result), file=file, flush=True)
            print(
                f"\r{module} {' '.join(arguments)}: {len(results)} of {len(names)}", end="", file=sys.stderr, flush=True
            )

        while len(results) < len(names):
            ending = _one_process(module, arguments, len(results), len(names), note)
            if len(results) < len(names):
                note({"name": names[len(results)], "outcome": "crash", "why": ending})
    print(file=sys.stderr)
    return results


def _begun(part: Path, asked: Sequence[str]) -> list[Result]:
    """The results of a run that was interrupted; a run of other sources begins anew."""
    stamp = made_from(asked)
    lines = part.read_text("utf-8").splitlines() if part.exists() else []
    whole = [line for line in lines[1:] if line.endswith("}")] if lines[:1] == [stamp] else []
    part.write_text("\n".join([stamp, *whole, ""]), "utf-8")
    return [json.loads(line) for line in whole]


def made_from(asked: Sequence[str] = ()) -> str:
    """A digest of what results rest on: torch's version, the sources of devices, and what is asked."""
    digest = hashlib.sha256("\n".join((torch.__version__, *asked)).encode())
    for folder in SOURCES:
        for file in sorted(Path(folder).rglob("*")):
            if file.suffix in (".py", ".toml", ".cpp", ".h"):
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _one_process(module: str, arguments: Sequence[str], first: int, last: int, note: Callable[[Result], None]) -> str:
    command = [sys.executable, "-m", module, *arguments, "--first", str(first), "--last", str(last)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as said:  # a pipe that nobody reads stops a process that says much
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, env=environment) as process:
            for line in _lines(process):
                if line.startswith("{"):
                    note(json.loads(line))
        said.seek(0)
        words = said.read().decode("utf-8", "replace").strip().splitlines()
    return f"ended with {process.returncode}" + (f": {words[-1]}" if words and process.returncode else "")


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """What the process prints, until it ends or says nothing for too long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        rest, heard = b"", time.monotonic()
        while True:
            if not selector.select(timeout=1.0):
                if time.monotonic() - heard > SILENCE:
                    process.kill()
                    return
                continue
            read, heard = os.read(process.stdout.fileno(), 1 << 16), time.monotonic()
            if not read:
                return
            *lines, rest = (rest + read).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)


def _progress(text: str) -> None:
    print(f"\r{text}", end="", file=sys.stderr, flush=True)


def emit(first: int, last: int, names: Sequence[str], check: Callable[[int], Result]) -> None:
    """The other side: run checks ``first`` to ``last`` and print their results."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the checks print is no result
    for index in range(first, min(last, len(names))):
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)  # ends this process with SIGPROF
        out.write(json.dumps({"name": names[index], **check(index)}) + "\n")
        out.flush()


def keep(name: str, results: Any) -> None:
    """Keep results as JSON in build/calibration."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def kept(name: str) -> Any:
    """What was kept under a name, or nothing."""
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text("utf-8")) if file.exists() else None
