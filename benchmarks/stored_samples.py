"""What it costs to evaluate, save and compare with the values of many samples: python -m benchmarks.stored_samples."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from assay.report import Report, Samples, Section, Value, compare


def save(folder: Path, rows: int, seed: int) -> None:
    """Save a report: a yes or no, a loss in float32, a decision and a target of each sample."""
    random = np.random.default_rng(seed)
    target = np.random.default_rng(9).integers(0, 10, rows)
    correct, loss = random.random(rows) < 0.8, random.exponential(1, rows).astype(np.float32)
    decision = np.where(correct, target, (target + 1) % 10)
    samples = Samples.pack(np.arange(rows), {"correct": correct, "loss": loss}, decision=decision, target=target)
    values = (
        Value("accuracy", float(correct.mean()), numerator="correct", higher_is_better=True),
        Value("loss", float(loss.astype(np.float64).mean()), numerator="loss", higher_is_better=False),
    )
    Report("run", [Section("test", values, samples=samples)]).save(folder / "report.json")


def compared(folder: Path) -> None:
    """Compare the two reports."""
    assert compare(Report.load(folder / "0"), Report.load(folder / "1")).deltas[0].paired


def evaluated(rows: int, kept: bool) -> None:
    """Evaluate scores that are made when they are asked for, and save the report."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    from assay import Accuracy, evaluate
    from assay.metrics import LogLoss

    class Rows(Dataset[torch.Tensor]):
        def __len__(self) -> int:
            return rows

        def __getitems__(self, index: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
            numbers = torch.as_tensor(index)
            scores = [((numbers * factor) % 1000003).float() / 1000003 for factor in (7919, 104729, 1299709)]
            return torch.stack(scores, 1).softmax(1), (numbers * 31) % 3

    loader = DataLoader(Rows(), batch_size=8192, collate_fn=lambda batch: batch)
    metrics = {"accuracy": Accuracy(num_classes=3), "loss": LogLoss(num_classes=3)}
    options: dict[str, Any] = {"device": "cpu", "keep_samples": kept, "max_kept_samples": 10**9, "progress": False}
    report = evaluate(lambda scores: scores, loader, metrics, inputs=0, target=1, **options)
    with tempfile.TemporaryDirectory() as folder:
        report.save(Path(folder, "report.json"))


def main() -> None:
    """Print seconds, bytes and peak memory of each step, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[3_000_000, 10_000_000])
    parser.add_argument("--evaluate", action="store_true", help="evaluate, with and without per-sample values")
    parser.add_argument("--step", nargs=3, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, folder, number = options.step
        before, start = _peak(), time.process_time()
        if name == "save":
            save(Path(folder, number), options.rows[0], int(number))
        elif name == "compare":
            compared(Path(folder))
        else:
            evaluated(options.rows[0], name == "keep")
        print(f"{time.process_time() - start:.1f} CPU s, peak {_peak() / 1e9:.2f} GB (imports {before / 1e9:.2f})")
        return
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            steps = [("save", folder, "0"), ("save", folder, "1"), ("compare", folder, "0")]
            if options.evaluate:
                steps = [("keep", folder, "0"), ("without", folder, "0")]
            for step in steps:
                command = [sys.executable, "-m", "benchmarks.stored_samples", "--rows", str(rows), "--step", *step]
                out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
                print(f"{rows:>12,} {step[0]}: {out}")
            if options.evaluate:
                continue
            sizes = {each.suffix: each.stat().st_size for each in Path(folder, "0").iterdir()}
            print(f"{rows:>12,} bytes: {sizes}")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
