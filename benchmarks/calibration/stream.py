"""Run many small checks in a process of its own, so that one that ends the process costs only itself."""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from assay.pretend import PretendDevice, pretend

RESULTS = Path("build/calibration")
PATIENCE = 120.0  # seconds without a word from the process
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
    results = collect(module, ["--device", asked.device, "--engine", asked.engine], names)
    kind, device = module.rpartition(".")[2], asked.device.partition(":")[0]
    keep(f"{kind}_{device}{'_python' * (asked.engine == 'python')}", results)
    return results


def quietly() -> Any:
    """The database warns of much that is meant."""
    return warnings.catch_warnings(action="ignore")


def collect(module: str, arguments: Sequence[str], names: Sequence[str]) -> list[Result]:
    """One result for each name: ``python -m module arguments --first i --last n`` prints one line of JSON for each.

    Where the process ends or hangs, the check it was at gets the outcome ``"crash"``, and another process goes on
    behind it.
    """
    results: list[Result] = []
    while len(results) < len(names):
        before = len(results)
        ending = _one_process(module, arguments, before, len(names), results)
        if len(results) < len(names):
            results.append({"name": names[len(results)], "outcome": "crash", "why": ending})
        _progress(module, arguments, len(results), len(names))
    print(file=sys.stderr)
    return results


def _one_process(module: str, arguments: Sequence[str], first: int, last: int, results: list[Result]) -> str:
    command = [sys.executable, "-m", module, *arguments, "--first", str(first), "--last", str(last)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in _lines(process):
            if line.startswith("{"):
                results.append(json.loads(line))
        words = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
    return f"ended with {process.returncode}" + (f": {words[-1]}" if words and process.returncode else "")


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """What the process prints, until it ends or says nothing for too long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        rest, heard = b"", time.monotonic()
        while True:
            if not selector.select(timeout=1.0):
                if time.monotonic() - heard > PATIENCE:
                    process.kill()
                    return
                continue
            read, heard = os.read(process.stdout.fileno(), 1 << 16), time.monotonic()
            if not read:
                return
            *lines, rest = (rest + read).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)


def _progress(module: str, arguments: Sequence[str], done: int, of: int) -> None:
    print(f"\r{module} {' '.join(arguments)}: {done} of {of}", end="", file=sys.stderr, flush=True)


def emit(first: int, last: int, names: Sequence[str], check: Callable[[int], Result]) -> None:
    """The other side: run checks ``first`` to ``last`` and print their results."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the checks print is no result
    for index in range(first, min(last, len(names))):
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
