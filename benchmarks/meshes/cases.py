"""All configurations of the table, by kind, and what processes do for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.meshes import batches, by_hand, ended, pipelines, resumed, sharded, transformers_models, words
from benchmarks.meshes.configuration import label
from benchmarks.meshes.groups import Case
from benchmarks.meshes.others import OTHERS

CONFIGURATIONS = (
    *sharded.CASES,
    *batches.CASES,
    *by_hand.CASES,
    *transformers_models.CASES,
    *pipelines.CASES,
    *words.CASES,
    *resumed.CASES,
    *ended.CASES,
)

COMPARED = (
    *(
        "2: whole model, 101/8",
        "3: whole model, 101/8",
        "2: FSDP2, 5/2",
        "3: FSDP2, 101/8",
        "2: TP, 64/8",
        "2: TP, 101/8",
    ),
    *("4: DP × TP 2 × 2, 101/8", "4: FSDP2 × TP 2 × 2, 101/8"),
)
"""The configurations that other libraries are given, too."""


def case_of(name: str) -> Case:
    """What processes do for a configuration; of another library where its name stands behind an `@`."""
    name, _, library = name.partition("@")
    if library:
        (each,) = (each for each in CONFIGURATIONS if label(each) == name)
        act = OTHERS[library]

        def run(rank: int, folder: Path) -> Any:
            return act(each.model().eval(), each.count, each.batch)

        return Case(f"{name}@{library}", each.size, run, ends_group=True, limit_s=20.0)
    (each,) = (each for each in CONFIGURATIONS if label(each) == name)
    after = next((label(other) for other in CONFIGURATIONS if other.name == each.after), "") if each.after else ""
    return Case(name, each.size, each.act, bool(each.dies) or each.fails, after=after)
