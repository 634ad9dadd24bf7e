"""What `import assay` adds to `import torch`, and what whole commands on ten rows take; fresh processes take turns."""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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


SCORE = ("score", "rows.csv", "--preds", "p", "--target", "y", "--metrics", "Accuracy,F1Score")
REPORT = "run/report.json"
COMMANDS: dict[str, tuple[str, ...]] = {
    "`import torch`": ("-c", "import torch"),
    "`assay score`, ten rows": ("-m", "assay", *SCORE),
    "`assay evaluate`, ten rows": ("-m", "assay", "evaluate", "net:net", "--data", "net:data", "--metrics", "mse"),
    "`assay verify`": ("-m", "assay", "verify", REPORT),
    "`assay compare`": ("-m", "assay", "compare", REPORT, REPORT),
    "`assay --help`": ("-m", "assay", "--help"),
}
NET = """
import torch

def net():
    return torch.nn.Linear(4, 1)

def data():
    return torch.utils.data.TensorDataset(torch.randn(10, 4), torch.randn(10, 1))
"""


def cpu_seconds(arguments: tuple[str, ...], folder: Path) -> float:
    """CPU seconds of a process, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-W", "ignore", *arguments], cwd=folder, capture_output=True, check=True, env=CACHING
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands() -> tuple[Table, dict[str, list[float]]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rows.csv").write_text("p,y\n" + "0,0\n1,1\n1,0\n0,0\n1,1\n" * 2)
        (folder / "net.py").write_text(NET)
        cpu_seconds(("-m", "assay", *SCORE, "--out", "run"), folder)
        turns = [(each, cpu_seconds(COMMANDS[each], folder)) for _ in range(ROUNDS) for each in COMMANDS]
    found = {name: [seconds for each, seconds in turns if each == name] for name in COMMANDS}
    table = Table("Commands, CPU s with their start", ["command", "median", "least"])
    for name, times in found.items():
        table.rows.append([name, f"{statistics.median(times):.2f}", f"{min(times):.2f}"])
    return table, found


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
    commands_table, of_commands = commands()
    save("import_time", [table, commands_table], found | of_commands)


if __name__ == "__main__":
    main()
