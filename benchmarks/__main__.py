"""Run every benchmark in a process of its own and write docs/benchmarks.md."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import goals
from benchmarks.harness import RESULTS

PAGE = Path("docs/benchmarks.md")
SCRIPTS = (
    "collection",
    "compat_collection",
    "update_cost",
    "value_cost",
    "many_outputs",
    "accuracy_of_values",
    "auroc",
    "retrieval",
    "sync",
    "loop",
    "integrations",
    "quantize",
    "text",
    "image",
    "detection",
    "generative",
    "import_time",
)
IN_TORCH = ("collection", "update_cost")  # are run again without the compiled code
PACKAGES = ("torch", "torchmetrics", "torcheval", "pytorch-ignite", "numpy", "scikit-learn")
HEAD = """# Benchmarks

What `make bench` measured, in one run, side by side: the candidates take turns in a random order, on one thread, and
what counts is the CPU time of that thread, except where a row says otherwise. The machine was shared and noisy: believe
ratios more than times. No GPU took part.

"""


def about() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    machine = f"{os.cpu_count()}-core {platform.machine()} CPU, Python {platform.python_version()}"
    return f"{datetime.date.today().isoformat()}; {machine}; {versions}.\n"


def main() -> int:
    failed, parts = [], [HEAD + about()]
    for name, native in [*((name, "1") for name in SCRIPTS), *((name, "0") for name in IN_TORCH)]:
        print(f"== {name}", flush=True)
        start = time.perf_counter()
        result = name if native == "1" else f"{name}_in_torch"
        environment = os.environ | {"ASSAY_NATIVE": native, "BENCHMARK_NAME": result}
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], env=environment).returncode:
            failed.append(result)
        else:
            parts.append((RESULTS / f"{result}.md").read_text("utf-8"))
        print(f"-- {time.perf_counter() - start:.0f} s", flush=True)
    if failed:
        print("failed: " + ", ".join(failed), file=sys.stderr)
        return 1
    parts.insert(1, goals.table().markdown())
    PAGE.write_text("\n".join(parts).rstrip() + "\n", "utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
