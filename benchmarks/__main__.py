"""Run every benchmark in a process of its own, or those that are named, and write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import goals
from benchmarks.harness import RESULTS

PAGE = Path("docs/benchmarks.md")
PACKAGES = ("torch", "torchmetrics", "torcheval", "pytorch-ignite", "numpy", "scikit-learn")
HEAD = """# Benchmarks

What `make bench` measured, side by side: the candidates take turns in a random order, on one thread, and what counts is
the CPU time of that thread, except where a row says otherwise. The machine was shared and noisy: believe ratios more
than times. No GPU took part.
"""


@dataclass(frozen=True)
class Run:
    """A script, with assay's compiled code or without it."""

    script: str
    compiled: bool = True

    @property
    def name(self) -> str:
        return self.script if self.compiled else f"{self.script}_in_torch"

    def start(self) -> bool:
        """Whether it came to its end."""
        environment = os.environ | {"ASSAY_NATIVE": str(int(self.compiled)), "BENCHMARK_NAME": self.name}
        return subprocess.run([sys.executable, "-m", f"benchmarks.{self.script}"], env=environment).returncode == 0

    def part(self) -> str:
        """Its tables, with the day on which they were measured."""
        file = RESULTS / f"{self.name}.md"
        day = datetime.date.fromtimestamp(file.stat().st_mtime).isoformat()
        return f"{file.read_text('utf-8').rstrip()}\n\nMeasured on {day}.\n"


RUNS = (
    Run("collection"),
    Run("compat_collection"),
    Run("compat_classes"),
    Run("compat_functions"),
    Run("update_cost"),
    Run("value_cost"),
    Run("many_outputs"),
    Run("accuracy_of_values"),
    Run("auroc"),
    Run("many_classes"),
    Run("retrieval"),
    Run("text"),
    Run("image"),
    Run("detection"),
    Run("generative"),
    Run("audio"),
    Run("score"),
    Run("large"),
    Run("one_batch"),
    Run("sync"),
    Run("loop"),
    Run("evaluate_cost"),
    Run("integrations"),
    Run("quantize"),
    Run("import_time"),
    Run("collection", compiled=False),
    Run("update_cost", compiled=False),
)


def about() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    machine = f"{os.cpu_count()}-core {platform.machine()} CPU, Python {platform.python_version()}"
    return f"{machine}; {versions}.\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="those to run again; all by default")
    names = parser.parse_args().names or [run.name for run in RUNS]
    unknown = set(names) - {run.name for run in RUNS}
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(run.name for run in RUNS)}")
    failed = []
    for k, run in enumerate(chosen := [run for run in RUNS if run.name in names], 1):
        print(f"== {run.name}, {k} of {len(chosen)}", flush=True)
        start = time.perf_counter()
        if not run.start():
            failed.append(run.name)
        print(f"-- {time.perf_counter() - start:.0f} s", flush=True)
    failed += [run.name for run in RUNS if run.name not in failed and not (RESULTS / f"{run.name}.md").exists()]
    if failed:
        print(f"failed or never run, so {PAGE} stays as it is: {', '.join(failed)}", file=sys.stderr)
        return 1
    PAGE.write_text("\n".join([HEAD, about(), goals.table().markdown(), *(run.part() for run in RUNS)]), "utf-8")
    print(f"{goals.table().markdown()}\nwrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
