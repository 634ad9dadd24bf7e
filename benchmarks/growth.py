"""What grows with what, and with what power: the tables of docs/scale.md.

Run: ``python -m benchmarks.growth`` (some minutes; 16 processes on gloo). CPU time is that of one process. The power is
the slope of a line through the logarithms of the last two rows: 1 means proportional.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import TensorDataset

from assay import AUROC, Accuracy, F1Score, Meter, PearsonCorrCoef, R2Score, evaluate
from benchmarks.sync import counted

CLASSES = 10
RANK_SAMPLES = 10_000
RANKS = (2, 8, 16, 32, 64)
OTHERS_UP_TO = 16
"""Processes up to which TorchMetrics is measured, too."""
METRICS = (1, 10, 100)
UPDATES = 200
OUTPUTS = (10, 100, 1_000)
STATES = (100, 1_000, 10_000)
SAMPLES = (10_000, 100_000, 1_000_000)


def cpu_s(act: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    start = time.process_time()
    act(*arguments, **options)
    return time.process_time() - start


def power(sizes: Sequence[float], costs: Sequence[float]) -> str:
    """The exponent between the last two sizes."""
    return f"{math.log(costs[-1] / costs[-2]) / math.log(sizes[-1] / sizes[-2]):.2f}"


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'--:|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def read_again(metric: Any) -> Callable[[], Any]:
    """A `compute` of TorchMetrics that does not return the value of the last one."""

    def read() -> None:
        metric._computed = None
        metric.compute()

    return read


def counts_and_scores() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """By what is measured: a sync of assay's meter, and of TorchMetrics' metric."""
    from torchmetrics import classification as tm

    scores, target = torch.rand(RANK_SAMPLES, CLASSES), torch.randint(CLASSES, (RANK_SAMPLES,))
    labels = Meter(Accuracy(num_classes=CLASSES), F1Score(num_classes=CLASSES, average="macro"))
    ranking, binary = Meter(AUROC()), (scores[:, 0], (target == 0).long())
    labels.update(scores, target)
    ranking.update(*binary)
    f1, auroc = tm.MulticlassF1Score(CLASSES, validate_args=False), tm.BinaryAUROC(validate_args=False)
    f1.update(scores, target)
    auroc.update(*binary)

    return {
        "accuracy and F1 / F1": (lambda: labels.sync().compute(), read_again(f1)),
        f"AUROC, {RANK_SAMPLES:,} samples a process": (lambda: ranking.sync().compute(), read_again(auroc)),
    }


def payload(act: Callable[[], Any]) -> int:
    """Bytes that this process passes to collectives."""
    sent = []

    def noting(real: Callable[..., Any], position: int) -> Callable[..., Any]:
        def passed(*arguments: Any, **named: Any) -> Any:
            sent.append(arguments[position].nbytes)
            return real(*arguments, **named)

        return passed

    with ExitStack() as stack:
        for name, position in (("all_reduce", 0), ("all_gather", 1)):
            real = getattr(dist, name)
            setattr(dist, name, noting(real, position))
            stack.callback(setattr, dist, name, real)
        act()
    return sum(sent)


def on_rank(rank: int, ranks: int, folder: str) -> None:
    """Measure one process of a group."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    rows = []
    for name, acts in counts_and_scores().items():
        cells = [f"{payload(acts[0]) / 1024:,.0f}"]
        for act in acts if ranks <= OTHERS_UP_TO else acts[:1]:
            with counted() as calls:
                act()
            times = []
            for _ in range(5 if ranks <= OTHERS_UP_TO else 3):
                dist.barrier()
                start = time.perf_counter()
                act()
                times.append(time.perf_counter() - start)
            cells += [str(calls.total()), f"{1_000 * min(times):,.1f}"]
        rows.append([name, str(ranks), *cells, *[""] * (5 - len(cells))])
    if not rank:
        torch.save(rows, f"{folder}/rows.pt")
    dist.barrier()
    dist.destroy_process_group()


def sync() -> None:
    rows: list[list[str]] = []
    import_module("torchmetrics.classification")
    context = multiprocessing.get_context("fork")  # what is imported here is not imported by 64 processes
    for ranks in RANKS:
        with tempfile.TemporaryDirectory() as folder:
            processes = [context.Process(target=on_rank, args=(rank, ranks, folder)) for rank in range(ranks)]
            for each in processes:
                each.start()
            for each in processes:
                each.join()
            rows += torch.load(Path(folder, "rows.pt"))
            print(rows[-2:], flush=True)
    columns = ("what", "processes", "KiB a process", "collectives", "ms", "TorchMetrics: collectives", "ms")
    title = "`sync` and `compute`, gloo on one machine, shortest wall time of 5, of 3 from 32 processes on"
    show(title, columns, sorted(rows, key=lambda r: r[0]))


def update_often(meter: Meter, *batch: torch.Tensor) -> None:
    for _ in range(UPDATES):
        meter.update(*batch)


def many_metrics() -> None:
    scores, target = torch.rand(256, CLASSES), torch.randint(CLASSES, (256,))
    rows, updates, reads = [], [], []
    for count in METRICS:
        averages = ("micro", "macro", "weighted", None)
        meter = Meter(
            **{
                f"m{k}": F1Score(num_classes=CLASSES, average=averages[k % 4], top_k=1 + k // 4 % 9)
                for k in range(count)
            }
        )
        meter.update(scores, target)
        updates.append(cpu_s(update_often, meter, scores, target) / UPDATES)
        reads.append(cpu_s(meter.compute))
        rows.append([f"{count}", f"{len(meter.tallies)}", f"{1e6 * updates[-1]:.0f}", f"{1e3 * reads[-1]:.1f}"])
    rows.append(["power", "", power(METRICS, updates), power(METRICS, reads)])
    show("A meter of F1 scores, batches of 256", ("metrics", "tallies", "µs an update", "ms a `compute`"), rows)


def many_states() -> None:
    rows, flat, kept = [], [], []
    for count in STATES:
        labels = [Meter(Accuracy(num_classes=CLASSES)) for _ in range(count)]
        ranking = [Meter(AUROC()) for _ in range(count)]
        for k in range(count):
            labels[k].update(torch.rand(16, CLASSES), torch.randint(CLASSES, (16,)))
            ranking[k].update(torch.rand(16), torch.randint(2, (16,)))
        flat.append(cpu_s(Meter(Accuracy(num_classes=CLASSES)).merge, *labels))
        kept.append(cpu_s(Meter(AUROC()).merge, *ranking))
        rows.append([f"{count:,}", f"{flat[-1]:.2f}", f"{kept[-1]:.2f}"])
    rows.append(["power", power(STATES, flat), power(STATES, kept)])
    show("`merge` of so many meters at once", ("meters", "accuracy, s", "AUROC, 16 samples each, s"), rows)


def many_outputs() -> None:
    from torchmetrics import regression as tm

    kinds = {"R2": (R2Score, tm.R2Score), "Pearson": (PearsonCorrCoef, tm.PearsonCorrCoef)}
    rows = []
    for name, (own, other) in kinds.items():
        for count in OUTPUTS:
            target = torch.randn(256, count)
            preds = target + torch.randn(256, count) / 4
            meter, theirs = Meter(own(num_outputs=count)), other() if name == "R2" else other(count)
            meter.update(preds, target)
            theirs.update(preds, target)
            meter.states()  # what was staged is counted by then
            costs = [statistics.median(cpu_s(read) for _ in range(9)) for read in (meter.compute, read_again(theirs))]
            rows.append([name, f"{count:,}", *(f"{1e3 * cost:.2f}" for cost in costs)])
    show("`compute` of many outputs, median of 9", ("metric", "outputs", "ms", "TorchMetrics, ms"), rows)


def reports() -> None:
    rows, costs, sizes = [], [], []
    for count in SAMPLES:
        torch.manual_seed(0)
        data = TensorDataset(torch.rand(count), torch.randint(2, (count,)))
        metrics = {"accuracy": Accuracy(), "AUROC": AUROC()}
        options: dict[str, Any] = {"device": "cpu", "batch_size": 4096, "progress": False}
        start = time.process_time()
        report = evaluate(torch.nn.Identity(), data, metrics, **options)
        costs.append(time.process_time() - start)
        without = evaluate(torch.nn.Identity(), data, metrics, keep_samples=False, **options)
        sizes.append(len(report.to_json()))
        rows.append(
            [f"{count:,}", f"{costs[-1]:.1f}", f"{sizes[-1] / 1e3:,.0f}", f"{len(without.to_json()) / 1e3:,.0f}"]
        )
    rows.append(["power", power(SAMPLES, costs), power(SAMPLES, sizes), ""])
    columns = ("samples", "CPU s", "report, kB", "without per-sample values, kB")
    show("`evaluate`: accuracy and AUROC of scores", columns, rows)


PARTS = {"sync": sync, "outputs": many_outputs, "metrics": many_metrics, "states": many_states, "reports": reports}


def main(parts: Sequence[str]) -> None:
    """Print the tables."""
    for name in parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="some of them; all by default")
    main(**vars(parser.parse_args()))
