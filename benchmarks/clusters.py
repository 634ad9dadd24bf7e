"""Samples in clusters: level of tests, coverage of intervals and false passes of gates, with and without ``cluster=``.

Run: ``python -m benchmarks.clusters`` (five minutes; ``--draws`` and ``--resampled`` say how many simulations, and
``--only "60, uneven"`` or ``--only resampled`` takes a part). Two models that are equally good are measured on the
same samples. In a share of the samples a coin that the whole cluster shares says which model is right; so the samples
of a cluster depend on each other. docs/compare.md has the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from assay import Accuracy, score
from assay.metrics import AUROC
from assay.report import Report, Samples, Section, Value, compare, gate
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.tests_and_intervals import interval_of
from assay.stats.intervals import Array

Random = np.random.Generator
SHARED = 0.6
"""The share of samples whose outcome is that of their cluster."""


def sizes(clusters: int, how: str, random: Random) -> Array:
    """How many samples each cluster has, ten on average."""
    if how == "equal":
        return np.full(clusters, 10)
    if how == "uneven":
        return 1 + random.geometric(1 / 9, clusters)
    drawn = np.full(clusters, 7)
    drawn[0] = 3 * clusters + 7
    return drawn


def shared(codes: Array, draw: Callable[[int], Array], random: Random) -> Array:
    """Numbers of samples, in a share of which those of the cluster take their place."""
    of_cluster = draw(int(codes.max()) + 1)[codes]
    return np.where(random.random(len(codes)) < SHARED, of_cluster, draw(len(codes)))


def report(title: str, values: Array, codes: Array | None) -> Report:
    samples = Samples.pack(
        range(len(values)), {"x": values}, clusters=codes, cluster="" if codes is None else "passage"
    )
    value = Value("x", float(values.mean()), numerator="x", higher_is_better=True)
    return Report(title, (Section("test", (value,), samples=samples),))


def yes_or_no(codes: Array, drop: float, random: Random) -> tuple[Array, Array]:
    """Two models of which the second is worse by a drop; 10 % of the samples differ besides."""
    which = shared(codes, lambda n: random.choice(3, n, p=[0.05, 0.05 + drop, 0.9 - drop]), random)
    agree = shared(codes, lambda n: random.random(n) < 0.7, random)
    return np.where(which < 2, which == 1, agree), np.where(which < 2, which == 0, agree)


def numbers(codes: Array, random: Random) -> tuple[Array, Array]:
    return shared(codes, random.standard_normal, random), shared(codes, random.standard_normal, random)


def covers(values: Array, codes: Array | None, truth: float) -> bool:
    section = report("a", values, codes).sections[0]
    found = interval_of(MeasuredValue.of(section, "x"), 0.95, safe=False)
    return found.lower is not None and found.upper is not None and found.lower <= truth <= found.upper


def of_setting(clusters: int, how: str, draws: int) -> list[float]:
    """Per cent of verdicts between equal models, of coverage, and of false passes; each without and with clusters."""
    random, counts = np.random.default_rng(0), np.zeros((5, 2))
    for _ in range(draws):
        codes = np.repeat(np.arange(clusters), sizes(clusters, how, random))
        right, numeric = yes_or_no(codes, 0.0, random), numbers(codes, random)
        worse = yes_or_no(codes, 0.02, random)
        for k, known in enumerate((None, codes)):
            for row, (a, b) in enumerate((right, numeric)):
                p = compare(report("a", a, known), report("b", b, known)).deltas[0].p
                counts[row, k] += p is not None and p < 0.05
            counts[2, k] += covers(shared_share(codes, random), known, 0.7)
            counts[3, k] += covers(numeric[0], known, 0.0)
            rule = {"max-drop": {"x": 0.02}}
            counts[4, k] += gate(report("b", worse[1], known), rule, report("a", worse[0], known)).exit_code == 0
    return (100 * counts / draws).ravel().tolist()


def shared_share(codes: Array, random: Random) -> Array:
    return shared(codes, lambda n: random.random(n) < 0.7, random)


def of_replicates(clusters: int, draws: int) -> list[float]:
    """Per cent of verdicts between equal models by AUROC, whose clusters are resampled, and accuracy."""
    import pyarrow as pa

    random, counts = np.random.default_rng(1), np.zeros((2, 2))
    for _ in range(draws):
        codes = np.repeat(np.arange(clusters), sizes(clusters, "equal", random))
        y = shared(codes, lambda n: random.integers(0, 2, n), random)
        runs = [y + shared(codes, lambda n: 1.5 * random.standard_normal(n), random) for _ in range(2)]
        for k, cluster in enumerate((None, "c")):
            found = []
            for scores in runs:
                table = pa.table({"p": 1 / (1 + np.exp(-scores + 0.5)), "y": y, "c": codes})
                metrics = {"auc": AUROC(), "acc": Accuracy()}
                found.append(score(table, metrics, preds="p", target="y", cluster=cluster, progress=False))
            for row, name in enumerate(("auc", "acc")):
                p = compare(*found, correction="none").delta(name).p
                counts[row, k] += p is not None and p < 0.05
    return (100 * counts / draws).ravel().tolist()


SETTINGS = ((10, "equal"), (20, "uneven"), (60, "equal"), (60, "uneven"), (60, "one of 30 %"), (200, "uneven"))
RESAMPLED = "resampled"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--resampled", type=int, default=200)
    rows = {f"{clusters}, {how}": (clusters, how) for clusters, how in SETTINGS}
    parser.add_argument("--only", choices=[*rows, RESAMPLED], help="a part")
    options = parser.parse_args()
    print("Per cent, samples as independent / in clusters:")
    names = "verdict, yes or no | verdict, numbers | share is covered | mean is covered | drop of 0.02 passes"
    print(f"| clusters | {names} |\n|---|--:|--:|--:|--:|--:|")
    for name, setting in rows.items():
        if options.only in (None, name):
            found = of_setting(*setting, options.draws)
            cells = [f"{found[2 * k]:.1f} / {found[2 * k + 1]:.1f}" for k in range(5)]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    for clusters in (20, 60, 200) if options.resampled and options.only in (None, RESAMPLED) else ():
        auc, auc_c, acc, acc_c = of_replicates(clusters, options.resampled)
        print(
            f"{clusters} clusters, AUROC: verdicts {auc:.1f} / {auc_c:.1f}; accuracy {acc:.1f} / {acc_c:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
