"""Parts of a table that were counted apart, added up: CPU seconds of `assay.scoring.merge`, in memory and from files.

Each part has 100 rows. Parts are counted once and renamed, as counting is not what is measured.
"As a tree": the same files merged 100 at a time, the sums written, and these merged; "longest way" is the time of that
where each of the first merges has a processor of its own.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from assay.scoring import Partial, count, merge

ROWS = 100
DISTINCT = 50
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "accuracy": ("accuracy", {}),
    "accuracy, 2 slices": ("accuracy", {"slices": ["g"]}),
    "accuracy, macro F1 and AUROC, 2 slices": ("accuracy,f1:average=macro,auroc", {"slices": ["g"]}),
    "AUROC with exact_up_to=0": ("auroc:exact_up_to=0", {}),
    "AUROC with exact_up_to=0, 2 slices": ("auroc:exact_up_to=0", {"slices": ["g"]}),
}


def parts_of(metrics: str, options: dict[str, Any], names: Sequence[str]) -> list[bytes]:
    """Parts with different rows, as the bytes of files, each in the same manifest."""
    random = np.random.default_rng(0)
    parts = []
    for name in names:
        scores = random.random(ROWS, dtype=np.float32)
        g = np.array(["a", "b"])[random.integers(0, 2, ROWS)]
        table = pa.table({"p": scores, "y": (random.random(ROWS) < scores).astype(np.int64), "g": g})
        parts.append(count(table, metrics, name, preds="p", target="y", **options))
    return [each.to_bytes() for each in parts]


def renamed(data: bytes, name: str) -> Partial:
    """A part as if its rows were of another fragment."""
    partial = Partial.from_bytes(data)
    partial.fragments = {name: ROWS}
    return partial


def cpu_s(act: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = act()
    return time.process_time() - start, found


def measure(name: str, size: int) -> list[str]:
    metrics, options = CASES[name]
    distinct = parts_of(metrics, options, [f"part {k}" for k in range(DISTINCT)])
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{k}.safetensors") for k in range(size)]
        for k, file in enumerate(files):
            renamed(distinct[k % DISTINCT], f"part {k}").to_file(file)
        stored = sum(file.stat().st_size for file in files) / size
        from_files, whole = cpu_s(lambda: merge(files))
        assert whole.rows == size * ROWS
        assert len(whole.fragments) == size
        groups = [files[start : start + 100] for start in range(0, size, 100)]
        sums = [Path(folder, f"sum-{k}.safetensors") for k in range(len(groups))]
        start = time.process_time()
        longest = max(cpu_s(lambda k=k: merge(groups[k]).to_file(sums[k]))[0] for k in range(len(groups)))  # type: ignore[misc]
        last, of_tree = cpu_s(lambda: merge(sums))
        tree = time.process_time() - start
        start = time.process_time()
        report = whole.report()
        read = time.process_time() - start
        assert of_tree.report().sections[0].values == report.sections[0].values
    memory = "in memory: too large"
    if stored < 1 << 16 and "exact_up_to" not in name:
        some = [renamed(distinct[k % DISTINCT], f"part {k}") for k in range(size)]
        memory = f"{cpu_s(lambda: merge(some))[0]:.1f}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    cells = (memory, f"{from_files:.1f}", f"{tree:.1f}", f"{longest + last:.2f}", f"{read:.1f}", f"{peak:.2f}")
    return [name, f"{size:,}", f"{stored / 1e3:.1f}", *cells]


def main(size: int, only: Sequence[str]) -> None:
    """Print the table."""
    torch.set_num_threads(1)
    columns = (
        "metrics",
        "parts",
        "kB a part",
        "in memory, s",
        "from files, s",
        "as a tree, s",
        "longest way, s",
    )
    print(f"| {' | '.join((*columns, 'report, s', 'peak memory of all so far, GB'))} |\n|---|{'--:|' * 8}")
    for name in only or CASES:
        print(f"| {' | '.join(measure(name, size))} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", choices=[*CASES, []], help="some of the cases; all by default")
    parser.add_argument("--size", type=int, default=10_000, help="how many parts")
    main(**vars(parser.parse_args()))
