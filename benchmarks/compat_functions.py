"""Functions of one batch by the names of TorchMetrics: TorchMetrics itself, and `assay.compat`."""

from __future__ import annotations

import inspect
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import torch

import assay.metrics
from assay.compat.drop_ins import QUERY_FUNCTIONS
from assay.compat.for_torchmetrics import calls
from assay.migrate.table import library
from benchmarks.harness import Candidate, Cost, Table, measure, microseconds, save, titled

ROWS, CLASSES, LABELS = 256, 10, 5
ABOVE_METRIC = 20
"""µs that a function may take longer than a call of assay's metric."""
FAMILIES = ("classification", "regression", "retrieval", "text", "clustering", "nominal")
GIVEN: dict[str, Any] = {"num_classes": CLASSES, "num_labels": LABELS, "beta": 2.0, "p": 3.0, "threshold": 0.5}
GIVEN |= {f"min_{each}": 0.5 for each in ("precision", "recall", "sensitivity", "specificity")}
NOMINAL = ("cramersv", "pearsonscontingencycoefficient", "theilsu", "tschuprowst")
SHOWN = (
    *("multiclass_accuracy", "multiclass_f1_score", "multiclass_confusion_matrix", "multiclass_auroc"),
    *(
        "binary_accuracy",
        "binary_auroc",
        "multilabel_accuracy",
        "mean_squared_error",
        "mean_absolute_error",
        "r2_score",
    ),
    *("pearson_corrcoef", "spearman_corrcoef", "kl_divergence", "cosine_similarity", "retrieval_hit_rate"),
    *("retrieval_normalized_dcg", "word_error_rate", "bleu_score", "normalized_mutual_info_score", "cramers_v"),
    *("mean_absolute_percentage_error", "minkowski_distance", "retrieval_average_precision", "rand_score"),
)


def functions() -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """Each function that assay counts: its name, that of TorchMetrics, and that in its place."""
    entries = library("torchmetrics").entries
    counted = {name for name, each in entries.items() if each.function and not each.tasks}
    for family in FAMILIES:
        there = import_module(f"torchmetrics.functional.{family}")
        here = import_module(f"assay.compat.torchmetrics.functional.{family}")
        for name in sorted((counted | QUERY_FUNCTIONS.keys()) & set(there.__all__)):
            yield name, getattr(there, name), getattr(here, name)


def batch(name: str, count: int = ROWS) -> tuple[Any, ...]:
    """A batch of so many samples for a function or a class."""
    scores, targets = torch.rand(count), torch.randint(2, (count,))
    task = name.lower()
    if name in QUERY_FUNCTIONS or task.startswith("binary"):
        return scores, targets
    if task.startswith("multiclass"):
        return torch.rand(count, CLASSES).softmax(1), torch.randint(CLASSES, (count,))
    if task.startswith("multilabel"):
        return torch.rand(count, LABELS), torch.randint(2, (count, LABELS))
    return _of_inputs(str(getattr(assay.metrics, library("torchmetrics").entries[name].assay).inputs), name, count)


def _of_inputs(inputs: str, name: str, count: int) -> tuple[Any, ...]:
    classes, rows = (lambda: torch.randint(CLASSES, (count,))), (lambda: torch.rand(count, CLASSES).softmax(1))
    text = [f"the {a} cat sat on a {b} mat" for a, b in torch.randint(5, (count, 2)).tolist()]
    other = [f"the {a} cat sat on a {b} mat" for a, b in torch.randint(5, (count, 2)).tolist()]
    made: dict[str, Callable[[], tuple[Any, ...]]] = {
        "clusters": lambda: (classes(), classes()),
        "classes": lambda: (classes(), classes()),
        "multiclass": lambda: (classes(), classes()),
        "vectors": lambda: (rows(), rows()),
        "distributions": lambda: (rows(), rows()),
        "rows": lambda: (rows(), rows()),
        "ensembles": lambda: (torch.rand(count, CLASSES), torch.rand(count)),
        "tokens": lambda: (torch.rand(count // 8, 8, CLASSES), torch.randint(CLASSES, (count // 8, 8))),
        "strings": lambda: (text, other),
        "references": lambda: (text, [[each] for each in other]),
    }
    if name.replace("_", "").lower() in NOMINAL:
        inputs = "classes"
    return made.get(inputs, lambda: (torch.rand(count) + 0.1, torch.rand(count) + 0.1))()


def costs(there: Callable[..., Any], here: Callable[..., Any], name: str) -> dict[str, Cost] | None:
    """The cost of a call of both, and of assay's metric; None where TorchMetrics refuses the batch."""
    parameters = list(inspect.signature(there).parameters.items())[2:]
    required = {each for each, at in parameters if at.default is at.empty} | {"num_classes"} & dict(parameters).keys()
    given = {each: GIVEN[each] for each in required if each in GIVEN}
    torch.manual_seed(0)
    data = batch(name)
    try:
        there(*data, **given)
    except (AttributeError, ImportError, OSError, TypeError, ValueError, RuntimeError):
        return None

    def candidate(function: Callable[..., Any]) -> Candidate:
        return Candidate(lambda _: function(*data, **given))

    candidates = {"torchmetrics": candidate(there), "assay": candidate(here)}
    if (metric := native_call(lambda: here(*data, **given), data)) is not None:
        candidates["metric"] = Candidate(lambda _: metric())
    return measure(candidates, rounds=5, seconds=0.01)


def native_call(call: Callable[[], Any], data: tuple[Any, ...]) -> Callable[[], Any] | None:
    """A call of assay's metric of the data that a function counts with it; None where that keeps no metric."""
    calls.REUSED.by_key.clear()
    call()
    kept = next(iter(calls.REUSED.by_key.values()), None)
    if kept is None:
        return None
    metric, batch = kept.described(), kept._format(*data)
    return lambda: metric(**batch)


def main() -> None:
    header = ["function", "TorchMetrics, µs", "assay.compat, µs", "assay.compat / TorchMetrics", "assay's metric, µs"]
    title = titled(f"Functions of {ROWS} samples by the names of TorchMetrics")
    table, raw, ratios, left_out, over_metric = Table(title, header), {}, {}, [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, there, here in functions():
            found = costs(there, here, name)
            if found is None:
                left_out.append(name)
                continue
            raw[name] = {each: cost.rounds for each, cost in found.items()}
            ratios[name] = found["assay"].over(found["torchmetrics"])
            row = [f"`{name}`", *(microseconds(found[each].median) for each in ("torchmetrics", "assay"))]
            row.append(f"{ratios[name]:.2f}")
            if "metric" in found:
                over_metric[name] = 1e6 * (found["assay"].median - found["metric"].median)
            row.append(microseconds(found["metric"].median) if "metric" in found else "-")
            print(*row, sep=" | ", flush=True)
            if name in SHOWN:
                table.rows.append(row)
    slower, beyond = (sum(each > limit for each in ratios.values()) for limit in (1, 1.5))
    median, most = statistics.median(ratios.values()), max(ratios, key=lambda name: ratios[name])
    table.notes.append(
        f"Of {len(ratios)} functions that were measured, {slower} were slower than TorchMetrics', {beyond} of them by "
        f"more than half; the median ratio was {median:.2f}, the largest {ratios[most]:.1f} (`{most}`)."
    )
    beyond_metric = [name for name, more in over_metric.items() if more > ABOVE_METRIC]
    table.notes.append(
        f"Of {len(over_metric)} that keep a metric of assay, {len(beyond_metric)} took more than {ABOVE_METRIC} µs "
        f"longer than a call of it: {', '.join(f'`{name}`' for name in beyond_metric) or 'none'}."
    )
    print("left out:", *left_out, file=sys.stderr)
    save("compat_functions", [table], raw)


if __name__ == "__main__":
    main()
