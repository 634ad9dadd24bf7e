"""Rules of gates that do not hold, with every kind of rule and of metric: how often they pass.

In each setting the bound is the true value and a hair beyond, which is the hardest case: a model that is clearly unfit
passes less often.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.coverage.gate_changes import change_rules, cluster_rules, sequential_rules, slice_rules
from benchmarks.coverage.gate_rule import SIZES, Rule
from benchmarks.coverage.gate_values import label_rules, means, score_rules


def rules() -> Iterator[Rule]:
    """All settings."""
    for each in (means, label_rules, score_rules, slice_rules, change_rules, cluster_rules, sequential_rules):
        yield from each()


def table(draws: int) -> Iterator[str]:
    """The lines of the table."""
    sizes = (3, *SIZES)
    yield "| rule that does not hold | of | " + " | ".join(f"n = {size:,}" for size in sizes) + " | † |"
    yield "|---|---|" + "--:|" * len(sizes) + "---|"
    for rule in rules():
        found = {size: rule.measured(size, draws) for size in rule.sizes}
        cells = (f"{100 * found[size][0]:.1f}{' †' * found[size][1]}" if size in found else "" for size in sizes)
        reason = rule.reason if any(is_more for _, is_more in found.values()) else ""
        yield f"| `{rule.rule}` | {rule.about} | {' | '.join(cells)} | {reason} |"
