"""What the other scripts measured, beside the goals of the project."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.harness import RESULTS, Cost, Table, microseconds
from benchmarks.update_cost import OTHERS

ONCE = ("accuracy, 10 classes", "F1 macro, 10 classes", "MSE", "Pearson", "AUROC, exact", "mean")
MOST_SECONDS = {"MSE": 1e-4, "mean": 1e-4}
SUMS = ("MSE", "R2", "Pearson", "mean")
Costs = dict[str, dict[str, Cost]]


def measured(script: str) -> Costs:
    """The costs that a script saved, by row and candidate."""
    raw = json.loads((RESULTS / f"{script}.json").read_text("utf-8"))
    return {row: {name: Cost(rounds) for name, rounds in costs.items()} for row, costs in raw.items()}


def compared(values: Costs, updates: Costs) -> Iterator[tuple[str, str, str, bool]]:
    """What was measured, how it came out, the goal, and whether it is met."""
    for name in ONCE:
        row = values[f"{name}, 256"]
        own, ratio = row["called once"], row["called once"].over(row["torchmetrics"])
        goal, met = "1 or less", ratio <= 1
        if name in MOST_SECONDS:
            goal += f", {microseconds(MOST_SECONDS[name])} µs or less"
            met = met and own.median <= MOST_SECONDS[name]
        yield (
            f"{name}: called once with 256 samples / TorchMetrics' `forward`",
            f"{ratio:.2f} ({microseconds(own.median)} µs)",
            goal,
            met,
        )
    ratios = [row["forward"].over(row["torchmetrics"]) for row in values.values()]
    faster = sum(ratio < 1 for ratio in ratios)
    shown = f"{min(ratios):.2f} to {max(ratios):.2f}, faster in {faster} of {len(ratios)}"
    yield "`forward` of the adapter / TorchMetrics' own", shown, "faster in all", faster == len(ratios)
    for name, fastest, goal in [*((name, OTHERS, 1.5) for name in SUMS), ("AUROC, exact", ("torcheval",), 3)]:
        row = updates[f"{name} @ 65536"]
        other = min((each for each in fastest if each in row), key=lambda each: row[each].median)
        ratio = row["assay"].over(row[other])
        yield f"{name}: update of 65,536 / {other}", f"{ratio:.2f}", f"{goal:g} or less", ratio <= goal


def table() -> Table:
    """The goals of the metrics that there are."""
    result = Table("Goals", ["work", "measured", "goal", "met"])
    for *cells, met in compared(measured("value_cost"), measured("update_cost")):
        result.rows.append([*cells, "yes" if met else "no"])
    return result


if __name__ == "__main__":
    print(table().markdown())
