"""The goals of the project, and what the other scripts measured beside each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from benchmarks.harness import RESULTS, Cost, Table, microseconds
from benchmarks.update_cost import OTHERS

Costs = dict[str, dict[str, Cost]]
COPY = "assay checks every score and label and copies them; TorchEval keeps references to the tensors of the caller"
EXACT = "every product is exact, in two doubles or 128 bits; others round one float32 difference, square or sum"
MAKES_A_METER = "a call makes a meter and rounds exact sums; TorchMetrics adds to floats of a metric that exists"
BY_NUMPY = "each column is read some six times, and one of two passes multiplies int64, which NumPy does not vectorise"


@dataclass(frozen=True)
class Goal:
    """What a cost is compared with, and how it should come out.

    Attributes:
        work: what was measured, as the table names it.
        script: the script that measured it.
        rows: its rows, as a pattern. Of several rows the one that is furthest from the goal counts.
        limit: the most seconds; with `others` the most times their cost; with `faster` the least times as fast.
        others: the candidates to compare with. The fastest of them counts.
        own: the candidate that is assay.
        reason: what stands in the way where the goal is missed.
    """

    work: str
    script: str
    rows: str
    limit: float
    others: tuple[str, ...] = ()
    faster: bool = False
    own: str = "assay"
    reason: str = "not explained yet"

    def measured(self, row: dict[str, Cost]) -> float:
        """What counts in one row, in the unit of `limit`."""
        if not self.others:
            return row[self.own].median
        other = min((row[name] for name in self.others if name in row), key=lambda cost: cost.median)
        ratio = row[self.own].over(other)
        return 1 / ratio if self.faster else ratio

    def met(self, measured: float) -> bool:
        """Whether what was measured is within the limit."""
        return measured >= self.limit if self.faster else measured <= self.limit

    def shown(self, measured: float) -> str:
        """What was measured, or the limit, with its unit."""
        if self.faster:
            return f"{measured:,.3g} times as fast" if measured < 1_000 else f"{measured:,.0f} times as fast"
        if self.others:
            return f"{measured:.2f}".rstrip("0").rstrip(".")
        return f"{microseconds(measured)} µs" if measured < 1e-3 else f"{measured:.3g} s"


def once(name: str, reason: str = "") -> Goal:
    """A metric that is called with one batch, beside TorchMetrics' `forward`."""
    work = f"{name}: called once with 256 samples / TorchMetrics' `forward`"
    return Goal(work, "value_cost", f"{name}, 256", 1, ("torchmetrics",), own="called once", reason=reason)


def large(name: str, limit: float, reason: str, others: tuple[str, ...] = OTHERS) -> Goal:
    """An update of many rows, beside the fastest other library."""
    work = f"{name}: update of 65,536 / the fastest other"
    return Goal(work, "update_cost", f"{name} @ 65536", limit, others, reason=reason)


def in_torch(name: str, limit: float) -> Goal:
    """The same where there is no compiler."""
    work = f"{name}: update of 65,536 without a compiler / the fastest other"
    return Goal(work, "update_cost_in_torch", f"{name} @ 65536", limit, OTHERS, reason=BY_NUMPY)


def faster(work: str, script: str, row: str, limit: float, other: str = "TorchMetrics", reason: str = "") -> Goal:
    """Work that TorchMetrics does, too."""
    return Goal(f"{work}, beside {other}", script, row, limit, (other,), faster=True, reason=reason)


def scored(what: str, limit: float, reason: str = "") -> Goal:
    """Stored predictions with slices."""
    work = f"`assay score`, 10,000,000 rows in memory, 79 slices, values alone: {what}"
    return Goal(work, "score", what, limit, reason=reason)


GOALS = (
    *(once(name, MAKES_A_METER) for name in ("accuracy, 10 classes", "F1 macro, 10 classes", "MSE", "Pearson")),
    *(once(name, MAKES_A_METER) for name in ("AUROC, exact", "mean")),
    *(
        Goal(f"{name}: called once with 256 samples", "value_cost", f"{name}, 256", 1e-4, own="called once", reason=why)
        for name, why in (("MSE", MAKES_A_METER), ("mean", MAKES_A_METER))
    ),
    Goal(
        "`forward` of `as_torchmetric` / TorchMetrics' own, in the slowest of all rows",
        "value_cost",
        "*",
        1,
        ("torchmetrics",),
        own="forward",
        reason="perplexity is mostly torch's log-softmax in both, to which assay adds an exact sum",
    ),
    Goal("`compute` of 1,000 outputs, the slowest of nine metrics", "many_outputs", "*", 2e-3),
    *(large(name, 1.5, EXACT) for name in ("MSE", "R2", "Pearson", "mean")),
    *(in_torch(name, 5) for name in ("MSE", "R2", "Pearson", "mean")),
    large("AUROC, exact", 3, COPY, ("torcheval",)),
    large("calibration error", 2, "TorchMetrics keeps every sample and counts when it computes"),
    faster("COCO mAP of boxes", "detection", "mAP of boxes", 100, "pycocotools"),
    faster("COCO mAP of boxes", "detection", "mAP of boxes", 20, "faster-coco-eval"),
    faster("five retrieval metrics, `indexes=`", "retrieval", "indexes=", 18),
    faster("five retrieval metrics, (Q, D) rows", "retrieval", "(Q, D) rows", 80),
    faster("word error rate", "text", "WER", 200),
    faster("character error rate", "text", "CER", 5_000),
    faster("chrF++", "text", "chrF++", 50),
    faster("BLEU", "text", "*BLEU", 5),
    faster("SSIM", "image", "SSIM", 8),
    faster("Hausdorff distance", "image", "Hausdorff distance", 300),
    faster("PanopticQuality", "detection", "PanopticQuality", 30),
    Goal(
        "features of the Fréchet distance / a float64 product of the matrix with itself",
        "generative",
        "counting",
        1.5,
        ("product",),
    ),
    faster("audio and shapes, the slowest of five metrics", "audio", "*", 1),
    scored("accuracy, macro F1", 0.5),
    scored("accuracy, macro F1, AUROC", 3),
    scored("R2 and MAE in float64", 1),
)


def results(script: str) -> Costs:
    """The costs that a script saved, by row and candidate."""
    raw = json.loads((RESULTS / f"{script}.json").read_text("utf-8"))
    return {row: {name: Cost(rounds) for name, rounds in costs.items()} for row, costs in raw.items()}


def furthest(goal: Goal, costs: Costs) -> tuple[str, float]:
    """The row that is furthest from the goal, and what counts in it."""
    rows = {
        name: goal.measured(row)
        for name, row in costs.items()
        if fnmatchcase(name, goal.rows) and (not goal.others or any(other in row for other in goal.others))
    }
    if not rows:
        raise SystemExit(f"{goal.script} measured no row {goal.rows!r} for the goal {goal.work!r}: run it again")
    return (min if goal.faster else max)(rows.items(), key=lambda row: row[1])


def lines() -> Iterator[tuple[Goal, str, bool]]:
    """Each goal, what was measured, and whether the goal is met."""
    measured = {script: results(script) for script in {goal.script for goal in GOALS}}
    for goal in GOALS:
        row, value = furthest(goal, measured[goal.script])
        shown = goal.shown(value) + (f" ({row})" if "*" in goal.rows else "")
        yield goal, shown, goal.met(value)


def table() -> Table:
    """All goals, and the reasons of those that are missed."""
    result = Table("Goals", ["work", "measured", "goal", "met"])
    missed: dict[str, list[str]] = {}
    for goal, shown, met in lines():
        limit = goal.shown(goal.limit) + (" or more" if goal.faster else " or less")
        result.rows.append([goal.work, shown, limit, "yes" if met else "no"])
        if not met:
            missed.setdefault(goal.reason, []).append(goal.work)
    reasons = (f"- {'; '.join(works)}: {reason}." for reason, works in missed.items())
    result.notes.append("What limits those that are not met:" if missed else "All goals are met.")
    result.notes.append("\n".join(reasons))
    return result


if __name__ == "__main__":
    print(table().markdown())
