"""What `import assay` adds to `import torch`: wall time, each in fresh processes that take turns."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys

from benchmarks.harness import Table, save

ROUNDS = 7
MODULES = {
    "assay": "assay",
    "assay, one metric used": "assay; assay.Meter(assay.Accuracy(num_classes=2))",
    "torchmetrics": "torchmetrics",
    "torcheval": "torcheval.metrics",
    "ignite": "ignite.metrics",
}
TIMED = "import torch, time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


CACHING = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""As pip leaves a package, its bytecode is there; of one that is editable Python writes it at first use."""


def seconds(what: str) -> float:
    command = [sys.executable, "-W", "ignore", "-c", TIMED.format(what)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=CACHING)
    return float(done.stdout.split()[-1])


def main() -> None:
    found: dict[str, list[float]] = {name: [] for name in MODULES}
    for what in MODULES.values():
        seconds(what)
    shuffled = random.Random(0)
    for _ in range(ROUNDS):
        for name in shuffled.sample(list(MODULES), len(MODULES)):
            found[name].append(seconds(MODULES[name]))
    table = Table("Import, s added to `import torch`", ["module", "median", "least"])
    for name, times in found.items():
        table.rows.append([name, f"{statistics.median(times):.3f}", f"{min(times):.3f}"])
    save("import_time", [table], found)


if __name__ == "__main__":
    main()
